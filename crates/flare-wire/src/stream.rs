//! What a connection runs over: any stream of bytes that knows how many it has written.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream of bytes, and how many of them went out.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// How many bytes were written so far. A layer above (TLS) may hold some back, and may fail after some of them went
    /// out: so they are counted at the bottom, where the answer is certain.
    fn written(&self) -> u64;
}

/// Counts what is written, so that "nothing was sent" is known and not guessed.
#[derive(Debug)]
pub struct Counted<S> {
    stream: S,
    written: u64,
}

impl<S> Counted<S> {
    /// A stream of which nothing has been written yet.
    pub fn new(stream: S) -> Counted<S> {
        Counted { stream, written: 0 }
    }

    /// How many bytes were written so far.
    pub fn written(&self) -> u64 {
        self.written
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for Counted<S> {
    fn written(&self) -> u64 {
        self.written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = ready!(Pin::new(&mut this.stream).poll_write(cx, buf))?;
        this.written += wrote as u64;
        Poll::Ready(Ok(wrote))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, bufs))?;
        this.written += wrote as u64;
        Poll::Ready(Ok(wrote))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
