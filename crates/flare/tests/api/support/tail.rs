//! For tests: one who reads `/tail`.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::Flare;

/// Watches, and hears lines until it is dropped.
pub struct Tail {
    body: hyper::body::Incoming,
    read: Vec<u8>,
}

impl Tail {
    /// From when this returns on it hears what ends.
    pub async fn watch(flare: &Flare, query: &str) -> Tail {
        let stream = tokio::net::TcpStream::connect(flare.addr()).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::get(format!("/tail{query}")).header("host", "localhost");
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), http::StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        let mut tail = Tail { body: response.into_body(), read: Vec::new() };
        assert_eq!(tail.line().await, Some(json!({"watching": true})));
        tail
    }

    /// The next line that is not blank; nothing once it is over.
    pub async fn line(&mut self) -> Option<Value> {
        loop {
            if let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=at).collect();
                if line.len() > 1 {
                    return Some(serde_json::from_slice(&line).unwrap());
                }
                continue;
            }
            let frame = tokio::time::timeout(super::PATIENCE, self.body.frame()).await.expect("news");
            self.read.extend_from_slice(&frame?.ok()?.into_data().unwrap());
        }
    }
}
