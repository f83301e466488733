//! The least HTTP/1.1 that a load driver needs: one keep-alive connection, bodies with a length.

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Connection {
    stream: TcpStream,
    host: String,
    /// Who asks, as a line of the head; nothing where nobody asks who it is.
    authorization: String,
    buffer: Vec<u8>,
}

pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Connection {
    pub async fn open(address: &str) -> anyhow::Result<Connection> {
        Connection::open_as(address, "").await
    }

    /// The same for whoever shows a token, in a line of a head with its end.
    pub async fn open_as(address: &str, authorization: &str) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let (host, authorization) = (address.to_owned(), authorization.to_owned());
        Ok(Connection { stream, host, authorization, buffer: Vec::with_capacity(4096) })
    }

    pub async fn send(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
        self.send_with(method, path, "", body).await
    }

    /// The same with more headers, each with its end of line.
    pub async fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> anyhow::Result<Answer> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{}{headers}content-length: {}\r\n\r\n{body}",
            self.host,
            self.authorization,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        loop {
            if let Some(head) = find(&self.buffer, b"\r\n\r\n") {
                let text = std::str::from_utf8(&self.buffer[..head])?;
                let status = text.get(9..12).context("a status line")?.parse()?;
                let length = length(text).unwrap_or(0);
                let start = head + 4;
                while self.buffer.len() < start + length {
                    self.fill().await?;
                }
                return Ok(Answer { status, body: self.buffer[start..start + length].to_vec() });
            }
            self.fill().await?;
        }
    }

    /// The same for an answer in chunks, which is read to its end and forgotten.
    pub async fn send_and_drain(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<()> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{}content-length: {}\r\n\r\n{body}",
            self.host,
            self.authorization,
            body.len()
        );
        let (mut reading, mut writing) = self.stream.split();
        let mut answer = Vec::new();
        let read = async {
            while !answer.ends_with(b"\r\n0\r\n\r\n") {
                if reading.read_buf(&mut answer).await? == 0 {
                    bail!("the connection was closed");
                }
            }
            anyhow::Ok(())
        };
        // Answers come while lines are still being sent.
        let (sent, received) = tokio::join!(writing.write_all(request.as_bytes()), read);
        sent?;
        received?;
        if find(&answer, b"\"error\"").is_some() {
            bail!("a line was refused: {}", String::from_utf8_lossy(&answer[..answer.len().min(500)]));
        }
        Ok(())
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the connection was closed");
        }
        Ok(())
    }
}

/// The first place of `needle` in `hay`.
pub fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

/// The content length that a head announces.
pub fn length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse().ok() } else { None }
    })
}
