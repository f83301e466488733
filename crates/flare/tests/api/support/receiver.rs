//! A client that is told: it records every request in order of arrival and answers as the test says. HTTP is written by
//! hand here, because most of the answers are ones that no library would give.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::until;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl Request {
    /// A header's value, empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn action(&self) -> &str {
        self.header("flare-action")
    }

    pub fn document(&self) -> &str {
        self.header("flare-document")
    }

    pub fn sequence(&self) -> u64 {
        self.header("flare-sequence").parse().expect("a sequence is a number")
    }

    pub fn revision(&self) -> i64 {
        self.header("flare-revision").parse().expect("these revisions are integers")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

/// What to answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This status, and an empty body.
    Status(u16),
    /// A whole answer.
    Full { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// The answer, after a while.
    After(Duration, Box<Reply>),
    /// The answer, once the gate is open.
    Held(Gate, Box<Reply>),
    /// Nothing, for as long as the connection lives.
    Hang,
    /// The connection is reset, with no answer.
    Reset,
    /// These bytes as they are; then the connection is closed.
    Bytes(Vec<u8>),
    /// A good head, and a body one byte at a time, for ever.
    Trickle,
    /// 200 and a body that never ends.
    Flood,
    /// 200 with keep-alive; then the connection is closed without a word.
    ThenClose(u16),
}

/// Keeps answers back until the test opens it: what has to happen before an answer happens before it, however slow the
/// machine is.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// One that is closed.
    pub fn closed() -> Gate {
        Gate(Arc::new(watch::Sender::new(false)))
    }

    /// This answer, once it is open.
    pub fn then(&self, reply: Reply) -> Reply {
        Reply::Held(self.clone(), Box::new(reply))
    }

    /// Lets go of all answers that it keeps, and keeps none from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn opened(&self) {
        // Its sender lives as long as it does.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

type Answering = Box<dyn FnMut(&Request) -> Reply + Send>;

struct State {
    requests: Mutex<Vec<Request>>,
    answering: Mutex<Answering>,
    connections: AtomicUsize,
    open_connections: AtomicUsize,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
}

/// A client that is told.
pub struct Receiver {
    state: Arc<State>,
    addr: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    /// One that answers 200 to everything.
    pub async fn start() -> Receiver {
        Receiver::answering(|_| Reply::Status(200)).await
    }

    /// One that answers as `answer` says.
    pub async fn answering(answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Receiver::on(listener, answer)
    }

    /// One on a port that the test chose.
    pub fn on(listener: TcpListener, answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Receiver {
        let addr = listener.local_addr().expect("it is bound");
        let state = Arc::new(State {
            requests: Mutex::default(),
            answering: Mutex::new(Box::new(answer)),
            connections: AtomicUsize::new(0),
            open_connections: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
        });
        let task = tokio::spawn(accept(listener, state.clone()));
        Receiver { state, addr, task }
    }

    /// From now on it answers so.
    pub fn answer(&self, answer: impl FnMut(&Request) -> Reply + Send + 'static) {
        *self.state.answering.lock().expect("no answer panics") = Box::new(answer);
    }

    /// A url of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything that came, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().expect("no answer panics").clone()
    }

    /// How much came.
    pub fn count(&self) -> usize {
        self.state.requests.lock().expect("no answer panics").len()
    }

    /// Waits for so many requests, and returns all that came.
    pub async fn wait_for(&self, count: usize) -> Vec<Request> {
        let what = format!("{count} requests came");
        until(&what, || std::future::ready((self.count() >= count).then_some(()))).await;
        self.requests()
    }

    /// The most requests that were open at once.
    pub fn most_in_flight(&self) -> usize {
        self.state.most_in_flight.load(Ordering::SeqCst)
    }

    /// How many requests are open.
    pub fn in_flight(&self) -> usize {
        self.state.in_flight.load(Ordering::SeqCst)
    }

    /// How many connections have been made.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits until every connection has been read to its end: nothing of a dead sender comes later.
    pub async fn drained(&self) {
        until("all connections are closed", || {
            let none = self.state.open_connections.load(Ordering::SeqCst) == 0;
            std::future::ready(none.then_some(()))
        })
        .await;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                state.connections.fetch_add(1, Ordering::SeqCst);
                state.open_connections.fetch_add(1, Ordering::SeqCst);
                let state = state.clone();
                connections.spawn(async move {
                    let _ = stream.set_nodelay(true);
                    let _ = serve(stream, &state).await;
                    state.open_connections.fetch_sub(1, Ordering::SeqCst);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Counts a request as open, however it ends.
struct Counted<'a>(&'a State);

impl<'a> Counted<'a> {
    fn new(state: &'a State) -> Counted<'a> {
        let now = state.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        state.most_in_flight.fetch_max(now, Ordering::SeqCst);
        Counted(state)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn serve(mut stream: TcpStream, state: &State) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await? {
        let counted = Counted::new(state);
        let mut reply = {
            // The record and the answer under one lock: whoever sees the record sees what the answer did.
            let mut requests = state.requests.lock().expect("no answer panics");
            let reply = (state.answering.lock().expect("no answer panics"))(&request);
            requests.push(request);
            reply
        };
        let reply = loop {
            // The sender may give up while it waits.
            let mut peeked = [0; 1];
            reply = match reply {
                Reply::After(time, then) => {
                    tokio::select! {
                        () = tokio::time::sleep(time) => {}
                        _ = stream.peek(&mut peeked), if buffer.is_empty() => {}
                    }
                    *then
                }
                Reply::Held(gate, then) => {
                    tokio::select! {
                        () = gate.opened() => {}
                        _ = stream.peek(&mut peeked), if buffer.is_empty() => {}
                    }
                    *then
                }
                reply => break reply,
            };
        };
        if matches!(reply, Reply::Hang) {
            let _ = stream.read(&mut [0; 1]).await;
            return Ok(());
        }
        drop(counted);
        if !write(&mut stream, reply).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether the connection is to be used again.
async fn write(stream: &mut TcpStream, reply: Reply) -> io::Result<bool> {
    match reply {
        Reply::Status(status) => {
            let head = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            Ok(true)
        }
        Reply::ThenClose(status) => {
            let head = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            Ok(false)
        }
        Reply::Full { status, headers, body } => {
            let mut head = format!("HTTP/1.1 {status} So\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
            Ok(true)
        }
        Reply::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await?;
            Ok(false)
        }
        Reply::Reset => {
            stream.set_zero_linger()?;
            Ok(false)
        }
        Reply::Trickle => {
            stream.write_all(b"HTTP/1.1 200 So\r\ncontent-length: 1000000\r\n\r\n").await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Reply::Flood => {
            stream.write_all(b"HTTP/1.1 200 So\r\ncontent-length: 1000000000\r\n\r\n").await?;
            let part = vec![b'x'; 64 * 1024];
            loop {
                stream.write_all(&part).await?;
            }
        }
        Reply::Hang | Reply::After(..) | Reply::Held(..) => unreachable!("dealt with before"),
    }
}

/// Reads a request with a body of announced length; `None` at the end of the connection.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let head = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |text| text.parse().expect("a length"));
    while buffer.len() < head + 4 + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = buffer[head + 4..head + 4 + length].to_vec();
    buffer.drain(..head + 4 + length);
    let (method, path) = (method.to_owned(), path.to_owned());
    Ok(Some(Request { method, path, headers, body, at: Instant::now() }))
}
