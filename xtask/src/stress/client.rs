//! The clients as HTTP servers: a few receivers, each the host of several clients, whose number is in the path. They
//! read requests, remember them (`memory.rs`), and answer as their mood says (`mood.rs`).

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::beliefs::Ending;
use super::connection::Connection;
use super::memory::Clients;
use super::mood::{Kind, Reply};
use super::pair::{Proof, Way};
use super::told::Told;
use super::world::World;
use crate::bench::{find, length};

/// What receivers and operations share. Who needs both locks takes the world first.
#[derive(Default)]
pub struct Shared {
    pub world: Mutex<World>,
    pub clients: Mutex<Clients>,
    connections: AtomicUsize,
    /// The node is being stopped or killed.
    pub stopping: AtomicBool,
}

impl Shared {
    pub fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().expect("nobody panics with the world in hand")
    }

    pub fn clients(&self) -> std::sync::MutexGuard<'_, Clients> {
        self.clients.lock().expect("nobody panics with the clients in hand")
    }

    /// Waits until every connection has been read to its end: nothing of a dead process comes later.
    pub async fn drained(&self) {
        while self.connections.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A host of clients.
pub struct Receiver {
    pub address: SocketAddr,
    /// Serves until it is dropped.
    _serving: JoinSet<()>,
}

impl Receiver {
    pub async fn start(shared: Arc<Shared>) -> io::Result<Receiver> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, shared));
        Ok(Receiver { address, _serving: serving })
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let shared = shared.clone();
                connections.spawn(async move {
                    let _ = serve(stream, &shared).await;
                    shared.connections.fetch_sub(1, Ordering::SeqCst);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (connection, mut stream) = Connection::of(stream)?;
    let connection = Arc::new(connection);
    let served = serve_all(&mut stream, &connection, shared).await;
    connection.close();
    served
}

async fn serve_all(
    stream: &mut TcpStream,
    connection: &Arc<Connection>,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some((client, told)) = read(stream, &mut buffer, shared).await? {
        let served = connection.reads();
        if !connection.is_open() {
            shared.clients().comes_late(client, &told);
            return Ok(());
        }
        let (request, reply) = {
            let world = shared.world();
            let mut clients = shared.clients();
            let request = clients.begins(&world, client, &told, Way::Request(connection.clone()));
            let state = &mut clients.list[client];
            let reply = Reply::draw(state.mood, &mut state.dice);
            if reply.processes {
                clients.processes(client, &told);
            }
            (request, reply)
        };
        let proof = Proof::On(connection.clone(), served);
        if !answer(stream, shared, client, request, &told, reply, proof).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers, or does not. Whether the connection goes on.
async fn answer(
    stream: &mut TcpStream,
    shared: &Arc<Shared>,
    client: usize,
    request: u64,
    told: &Told,
    reply: Reply,
    proof: Proof,
) -> io::Result<bool> {
    let gone = if let Kind::Hang { late } = reply.kind {
        let _ = stream.peek(&mut [0; 1]).await;
        shared.clients().ends(client, request, told, Ending::Failed, Proof::None);
        if late {
            let (shared, told) = (shared.clone(), told.clone());
            tokio::time::sleep(Duration::from_millis(30)).await;
            shared.clients().processes_late(client, &told);
        }
        return Ok(false);
    } else {
        let mut peeked = [0; 1];
        tokio::select! {
            biased;
            () = tokio::time::sleep(reply.after) => false,
            _ = stream.peek(&mut peeked) => true,
        }
    };
    // What the sender has left is answered to nobody.
    let ending = if gone { Ending::Failed } else { reply.kind.ending() };
    shared.clients().ends(client, request, told, ending, proof);
    let text = match reply.kind {
        Kind::Status { status, retry_after } => {
            let more = retry_after.map_or(String::new(), |seconds| format!("retry-after: {seconds}\r\n"));
            format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n{more}\r\n")
        }
        Kind::Close => "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok".into(),
        Kind::CloseSilently => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into(),
        Kind::Garbage => "there is no such thing\r\n\r\n".into(),
        Kind::Half => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".into(),
        Kind::Drop | Kind::Hang { .. } => String::new(),
    };
    stream.write_all(text.as_bytes()).await?;
    Ok(matches!(reply.kind, Kind::Status { .. }))
}

/// The next request: whose it is, and what it tells.
async fn read(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    shared: &Shared,
) -> io::Result<Option<(usize, Told)>> {
    loop {
        if let Some(head) = find(buffer, b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
            let end = head + 4 + length(&text).unwrap_or(0);
            if buffer.len() >= end {
                let header = |name: &str| {
                    let values = text.lines().skip(1).filter_map(|line| line.split_once(':'));
                    let mut found = values.filter(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.next().map(|(_, value)| value.trim().to_owned())
                };
                let client = text.split('/').nth(2).and_then(|number| number.parse::<usize>().ok());
                let told = Told::read(header, &buffer[head + 4..end]);
                buffer.drain(..end);
                let mut clients = shared.clients();
                match (client.filter(|client| *client < clients.list.len()), told) {
                    (Some(client), Ok(told)) => return Ok(Some((client, told))),
                    (client, told) => {
                        let what = format!("a request that is none: {:?}: {text}", told.err());
                        clients.wrong(client.unwrap_or(usize::MAX), "", what);
                        return Ok(None);
                    }
                }
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            if !buffer.is_empty() {
                // Somebody's request was begun, and nobody can say whose.
                let now = shared.world().now();
                shared.clients().list.iter_mut().for_each(|client| client.blur(now));
            }
            return Ok(None);
        }
    }
}
