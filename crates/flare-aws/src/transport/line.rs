//! What a connection runs over: TCP, or TLS over it. What is written is counted at the bottom: TLS may hold bytes back, and may
//! fail after some of them went out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use flare_wire::{Counted, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::Address;

/// A stream of bytes to a service.
pub enum Line {
    Plain(Counted<TcpStream>),
    Tls(Box<TlsStream<Counted<TcpStream>>>),
}

impl Line {
    /// Connects.
    pub async fn dial(address: &Address, tls: &Arc<ClientConfig>) -> io::Result<Line> {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        stream.set_nodelay(true)?;
        let stream = Counted::new(stream);
        if !address.secure {
            return Ok(Line::Plain(stream));
        }
        let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
        Ok(Line::Tls(Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await?)))
    }
}

impl Stream for Line {
    fn written(&self) -> u64 {
        match self {
            Line::Plain(stream) => stream.written(),
            Line::Tls(stream) => stream.get_ref().0.written(),
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Line::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Line::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Line::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Line::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
