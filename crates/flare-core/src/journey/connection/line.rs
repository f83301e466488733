//! What a connection runs over: TCP, TLS over it, or what a simulation hands out. What is written is counted at the bottom:
//! TLS may hold bytes back, and may fail after some of them went out.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use flare_wire::{Counted, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// What a handed connection is written to and read from.
pub trait Pipe: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Pipe for T {}

/// A stream of bytes to a client.
pub enum Line {
    /// Over TCP.
    Plain(Counted<TcpStream>),
    /// Over TLS.
    Tls(Box<TlsStream<Counted<TcpStream>>>),
    /// Without a network.
    Handed(Counted<Box<dyn Pipe>>),
}

/// The same for whatever it is.
macro_rules! each {
    ($line:expr, $stream:ident => $call:expr) => {
        match $line.get_mut() {
            Line::Plain($stream) => $call,
            Line::Tls($stream) => $call,
            Line::Handed($stream) => $call,
        }
    };
}

impl Stream for Line {
    fn written(&self) -> u64 {
        match self {
            Line::Plain(stream) => stream.written(),
            Line::Tls(stream) => stream.get_ref().0.written(),
            Line::Handed(stream) => stream.written(),
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Line::Plain(stream) => stream.is_write_vectored(),
            Line::Tls(stream) => stream.is_write_vectored(),
            Line::Handed(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
