//! In: a connection that was accepted. Out: a stream of bytes, whether they are encrypted on the way or not.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A connection of a client.
pub enum Line {
    /// As it is.
    Plain(TcpStream),
    /// Over TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Line {
    /// Whether HTTP/2 was agreed on.
    pub fn multiplexes(&self) -> bool {
        matches!(self, Line::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2"))
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Line::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Line::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Line::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Line::Plain(stream) => stream.is_write_vectored(),
            Line::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_flush(context),
            Line::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Line::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
