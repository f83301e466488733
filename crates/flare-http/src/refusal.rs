//! In: the stream of a connection, over which hyper refuses heads that it cannot read, without a word. Out: the same, with the
//! answer in the shape of all errors; and what the client still sends is read for a moment, since an answer that is followed
//! by a reset may never be seen.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::StatusCode;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use tokio::time::Sleep;

use super::error::{ApiError, ErrorAnswer};

/// So much of what follows a head that was refused is read, and for so long. When full: the connection is closed.
const LEFT_BYTES: usize = 1 << 20;
const LEFT_TIME: Duration = Duration::from_secs(1);

/// A stream on which refusals say why.
pub struct Refusing<S> {
    stream: S,
    /// How long a head may be.
    limit: usize,
    /// What is said in place of what hyper says, and how much of it is written.
    words: Option<(Vec<u8>, usize)>,
    /// It was said; what the client still sends is read.
    left: Option<Left>,
}

/// What is left to read.
struct Left {
    bytes: usize,
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Refusing<S> {
    /// A stream with heads of at most so many bytes.
    pub fn new(stream: S, limit: usize) -> Refusing<S> {
        Refusing { stream, limit, words: None, left: None }
    }
}

/// What is said in place of `head`, where that is hyper's own: none of ours is without a body.
fn words(head: &[u8], limit: usize) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(head).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = text.split("\r\n");
    let first = lines.next()?;
    let error = match first.strip_prefix("HTTP/1.1 ")?.get(..3)? {
        "400" => ApiError::bad_request("this is no head of an HTTP/1.1 request"),
        "414" => {
            ApiError::new(StatusCode::URI_TOO_LONG, "The address is too long", "it has more than 65534 bytes")
        }
        "431" => {
            let detail = format!("it may have {limit} bytes at most (http.server.header-limit)");
            ApiError::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "The head is too large", detail)
        }
        _ => return None,
    };
    let (own, other): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("content-length:") || line.starts_with("connection:"));
    if !own.contains(&"content-length: 0") {
        return None;
    }
    let body = serde_json::to_string(&ErrorAnswer { error: &error.into_body() }).ok()?;
    let other: String = other.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    Some(
        format!(
            "{first}\r\n{other}connection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}

impl<S: Write + Unpin> Refusing<S> {
    /// Writes what is said in place of `head`, whole; nothing where that is to be written itself.
    fn poll_words(&mut self, context: &mut Context<'_>, head: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if self.words.is_none() {
            self.words = Some((words(head, self.limit)?, 0));
        }
        let (words, written) = self.words.as_mut()?;
        while *written < words.len() {
            match Pin::new(&mut self.stream).poll_write(context, &words[*written..]) {
                Poll::Ready(Ok(0)) => return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into()))),
                Poll::Ready(Ok(more)) => *written += more,
                other => return Some(other),
            }
        }
        self.words = None;
        self.left = Some(Left { bytes: LEFT_BYTES, until: None });
        Some(Poll::Ready(Ok(head.len())))
    }
}

impl<S: Read + Unpin> Read for Refusing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Read + Write + Unpin> Write for Refusing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(polled) = self.poll_words(context, bytes) {
            return polled;
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [head] = parts
            && let Some(polled) = self.poll_words(context, head)
        {
            return polled;
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Refusing { stream, left, .. } = self.get_mut();
        let Some(left) = left else { return Pin::new(stream).poll_shutdown(context) };
        if left.until.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
        }
        let until = left.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(LEFT_TIME)));
        let mut room = [MaybeUninit::uninit(); 8192];
        while left.bytes > 0 && until.as_mut().poll(context).is_pending() {
            let mut read = ReadBuf::uninit(&mut room);
            match Pin::new(&mut *stream).poll_read(context, read.unfilled()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                    left.bytes = left.bytes.saturating_sub(read.filled().len());
                }
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_a_word_gets_the_shape_of_errors_and_nothing_else_is_touched() {
        let bare = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: then\r\n\r\n";
        let said = String::from_utf8(words(bare.as_bytes(), 32768).unwrap()).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{head}");
        for line in ["connection: close", "content-type: application/json", "date: then"] {
            assert!(head.lines().any(|other| other == line), "{head}");
        }
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["title"], "The head is too large");
        assert!(body["error"]["detail"].as_str().unwrap().contains("32768"), "{body}");
        for (from, to) in [("431", "404"), ("431", "200"), ("length: 0", "length: 7"), ("\r\n\r\n", "\r\n")] {
            assert_eq!(words(bare.replacen(from, to, 1).as_bytes(), 9), None, "{to}");
        }
        for status in ["400 Bad Request", "414 URI Too Long"] {
            let bare = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            assert!(words(bare.as_bytes(), 9).is_some(), "{status}");
        }
    }
}
