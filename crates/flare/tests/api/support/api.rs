//! A client of Flare's API: each request on a connection of its own.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The API of a process.
#[derive(Clone, Copy)]
pub struct Api {
    addr: SocketAddr,
    token: Option<&'static str>,
    account: Option<&'static str>,
}

/// An answer of the API.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {} {text}", self.status))
    }

    /// A header's value, empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a header of text"))
    }

    /// Insists on a status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Insists that this is an error of the documented shape whose detail contains all of `words`.
    #[track_caller]
    pub fn refused(self, status: u16, words: &[&str]) -> Answer {
        let answer = self.expect(status);
        assert_eq!(answer.header("content-type"), "application/json");
        let json = answer.json();
        let title = json["error"]["title"].as_str().unwrap_or_default();
        let detail = json["error"]["detail"].as_str().unwrap_or_default();
        assert!(!title.is_empty() && !detail.is_empty(), "{json}");
        for word in words {
            assert!(detail.contains(word), "`{word}` is not in: {detail}");
        }
        answer
    }
}

impl Api {
    pub fn new(addr: SocketAddr) -> Api {
        Api { addr, token: None, account: None }
    }

    /// The same, for whoever has this token.
    pub fn with(self, token: &str) -> Api {
        // A test is a short life.
        Api { token: Some(String::from(token).leak()), ..self }
    }

    /// What it shows.
    pub fn token(self) -> Option<&'static str> {
        self.token
    }

    /// The same, for this account.
    pub fn acting_for(self, account: &'static str) -> Api {
        Api { account: Some(account), ..self }
    }

    /// Sends a request and reads the whole answer; `Err` when the connection breaks.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.addr).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes())?).uri(path);
        request = request.header("host", self.addr.to_string());
        if let Some(token) = self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(account) = self.account {
            request = request.header("flare-account", account);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(body.into()))?).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let answer = self.try_send(method, path, headers, body).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], body.to_string()).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, &[], body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").await
    }

    /// PUTs a document and returns the outcome of a 202.
    pub async fn put(&self, url: &str, document: &Value) -> String {
        let answer =
            self.send("PUT", &format!("/documents/{url}"), &[], document.to_string()).await.expect(202);
        answer.header("flare-outcome").to_owned()
    }

    /// DELETEs a document and returns the outcome of a 202.
    pub async fn remove(&self, url: &str) -> String {
        self.delete(&format!("/documents/{url}")).await.expect(202).header("flare-outcome").to_owned()
    }

    /// Writes bytes as they are and reads until the other side closes.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.addr).await.expect("Flare listens");
        stream.write_all(bytes).await.expect("Flare reads");
        let mut answer = Vec::new();
        // A reset after the answer is an end too.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}
