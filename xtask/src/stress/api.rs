//! The API of the node, asked over a connection for each request. Between two lives of the node nobody asks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::client::Shared;
use crate::bench::find;

/// How long an answer may take. A reserve that waits is far quicker.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the node is to be asked, while there is one.
#[derive(Clone)]
pub struct Api {
    door: watch::Receiver<Option<SocketAddr>>,
    shared: Arc<Shared>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value, empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let line = self
            .head
            .lines()
            .find(|line| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name)));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
    }
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Ask {
    pub fn new(method: &'static str, path: impl Into<String>, body: impl ToString) -> Ask {
        Ask { method, path: path.into(), headers: Vec::new(), body: body.to_string() }
    }

    pub fn get(path: impl Into<String>) -> Ask {
        Ask::new("GET", path, "")
    }

    fn bytes(&self, host: SocketAddr) -> Vec<u8> {
        let Ask { method, path, headers, body } = self;
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        text.into_bytes()
    }
}

impl Api {
    pub fn new(door: watch::Receiver<Option<SocketAddr>>, shared: Arc<Shared>) -> Api {
        Api { door, shared }
    }

    /// The node that is there, or the next one.
    async fn address(&self) -> anyhow::Result<SocketAddr> {
        let mut door = self.door.clone();
        let there = tokio::time::timeout(PATIENCE, door.wait_for(Option::is_some)).await;
        let there = there.context("there was no node for long")?.context("the run is over")?;
        there.context("it was waited for")
    }

    /// One try: an error when the connection breaks, and nobody knows what became of it.
    pub async fn try_send(&self, ask: &Ask) -> anyhow::Result<Answer> {
        let address = self.address().await?;
        let stopping = || self.shared.stopping.load(Ordering::SeqCst);
        let before = stopping();
        let exchange = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            stream.write_all(&ask.bytes(address)).await?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await?;
            parse(&bytes)
        };
        let answer = match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(anyhow::anyhow!("NO ANSWER within {PATIENCE:?}: {} {}", ask.method, ask.path)),
        };
        self.note(ask, || match &answer {
            Ok(answer) => format!("{} {}", answer.status, answer.header("flare-outcome")),
            Err(error) => format!("{error:#}"),
        });
        if let Ok(answer) = &answer
            && answer.status == 503
            && answer.text().contains("stopping")
            && !before
            && !stopping()
        {
            let what = format!("{} {}: 503 of a node that is not stopping", ask.method, ask.path);
            self.shared.clients().wrong(usize::MAX, "", what);
        }
        answer
    }

    fn note(&self, ask: &Ask, what: impl FnOnce() -> String) {
        self.shared.clients().note(|| {
            let body: String =
                ask.body.replace("pppppppppp", "").replace('\n', " ; ").chars().take(700).collect();
            format!("{} {} {body} -> {}", ask.method, ask.path, what())
        });
    }

    /// Until there is an answer that is not "not now". Only for what may be said twice. The second part is how often
    /// it was said before, whatever became of it.
    pub async fn send(&self, ask: &Ask) -> anyhow::Result<(Answer, u32)> {
        let mut before = 0;
        loop {
            match self.try_send(ask).await {
                Ok(answer) if answer.status != 503 => return Ok((answer, before)),
                Err(error) if error.to_string().starts_with("NO ANSWER") => return Err(error),
                Ok(answer) if before > 2_000 => bail!("503 for long: {ask:?}: {}", answer.text()),
                Err(error) if before > 2_000 => return Err(error),
                _ => {}
            }
            before += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A connection on which the request was sent whole, for answers that come bit by bit.
    pub async fn open(&self, ask: &Ask) -> anyhow::Result<TcpStream> {
        let address = self.address().await?;
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&ask.bytes(address)).await?;
        self.note(ask, || "listening".into());
        Ok(stream)
    }

    /// Sends so many parts of a thousand of it, waits, and leaves without reading the answer.
    pub async fn cut(&self, ask: &Ask, part: u64, wait: Duration) -> anyhow::Result<()> {
        let address = self.address().await?;
        let bytes = ask.bytes(address);
        self.note(ask, || format!("cut at {part} of 1000"));
        let upto = (bytes.len() as u64 * part).div_ceil(1000).min(bytes.len() as u64) as usize;
        // The node may be on its way down: then it is cut even shorter.
        if let Ok(mut stream) = TcpStream::connect(address).await {
            let _ = stream.set_nodelay(true);
            let _ = stream.write_all(&bytes[..upto]).await;
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> anyhow::Result<Answer> {
    let head = find(bytes, b"\r\n\r\n").context("the connection was closed without an answer")?;
    let text = std::str::from_utf8(&bytes[..head])?.to_owned();
    let status = text.get(9..12).context("a status line")?.parse()?;
    let rest = &bytes[head + 4..];
    let answer = Answer { status, head: text, body: Vec::new() };
    let body = if answer.header("transfer-encoding").eq_ignore_ascii_case("chunked") {
        unchunk(rest)?
    } else {
        let length: usize = answer.header("content-length").parse().unwrap_or(0);
        rest.get(..length).context("the answer was cut")?.to_vec()
    };
    Ok(Answer { body, ..answer })
}

/// A body in chunks, which must be complete.
fn unchunk(mut bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = find(bytes, b"\r\n").context("the answer was cut")?;
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line])?.trim(), 16)?;
        if size == 0 {
            return Ok(body);
        }
        let start = line + 2;
        body.extend_from_slice(bytes.get(start..start + size).context("the answer was cut")?);
        bytes = bytes.get(start + size + 2..).context("the answer was cut")?;
    }
}
