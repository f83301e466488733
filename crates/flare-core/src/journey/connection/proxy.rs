//! By way of a proxy: a client's host comes in, a stream that leads there goes out. The proxy is asked for a tunnel (`CONNECT`),
//! whatever is spoken in it: so TLS is with the client, and the proxy sees nothing of it. It is the proxy that resolves names; an
//! address that is written as one is judged here all the same.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Broken;
use crate::config::Proxy;
use crate::network::Destinations;
use crate::notification::host::HostKey;

/// The longest head of an answer. When full: the proxy is taken for broken.
const HEAD: usize = 8192;

/// Opens a tunnel to a client.
pub async fn tunnel(proxy: &Proxy, host: &HostKey, destinations: &Destinations) -> Result<TcpStream, Broken> {
    let name = host.host.trim_start_matches('[').trim_end_matches(']');
    super::allowed(host, destinations.check_written(name, host.port))?;
    let at = proxy.host.trim_start_matches('[').trim_end_matches(']');
    let mut stream =
        TcpStream::connect((at, proxy.port)).await.map_err(|error| refused(error.to_string()))?;
    let _ = stream.set_nodelay(true);
    let place =
        if name.contains(':') { format!("[{name}]:{}", host.port) } else { format!("{name}:{}", host.port) };
    let shown = proxy.reveal().map_or_else(String::new, |credentials| {
        format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(credentials))
    });
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{shown}\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| refused(error.to_string()))?;
    let head = head(&mut stream).await.map_err(|error| refused(error.to_string()))?;
    let status = head
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5))
        .and_then(|word| word.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(stream),
        Some(status) => Err(refused(format!("it answered {status}"))),
        None => Err(refused("what it answered is no HTTP".to_owned())),
    }
}

fn refused(why: String) -> Broken {
    Broken::Proxy(why)
}

/// The head of an answer, and not a byte more: what follows is the client's.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD {
            return Err(io::Error::other("its answer has too long a head"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
