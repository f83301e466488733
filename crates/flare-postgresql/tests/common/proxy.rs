//! What stands between the engine and the server: it passes everything on, until it is told to lose the answer to a commit,
//! or the commit itself, or to let nobody through.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What happens to the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Passes,
    /// It never gets to the server: the connection breaks before.
    IsLost,
    /// It is done, and the connection breaks before that is heard.
    IsNotAnswered,
    /// It never gets to the server, and nothing else does: so it looks to the server when a process is suspended.
    IsHeld,
}

#[derive(Debug)]
struct State {
    next: Next,
    closed: bool,
    /// Whether notifications are taken out of what the server says.
    hides: bool,
}

/// The proxy. It ends with the test.
pub struct Proxy {
    state: Arc<Mutex<State>>,
    addr: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Before this server, given as `host:port`.
    pub async fn before(server: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let state = Arc::new(Mutex::new(State { next: Next::Passes, closed: false, hides: false }));
        let mut tasks = JoinSet::new();
        let shared = state.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if shared.lock().expect("nobody panicked").closed {
                    continue;
                }
                connections.spawn(pass(client, server.clone(), shared.clone()));
            }
        });
        Proxy { state, addr, _tasks: tasks }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What happens to the next commit; and whether nobody gets through afterwards.
    pub fn set(&self, next: Next, closed: bool) {
        *self.state.lock().expect("nobody panicked") = State { next, closed: false, hides: false };
        if closed {
            self.close();
        }
    }

    /// From now on nobody hears of notifications, as behind a pooler that gives each transaction another connection.
    pub fn hide_notifications(&self) {
        self.state.lock().expect("nobody panicked").hides = true;
    }

    /// Nobody new gets through.
    pub fn close(&self) {
        self.state.lock().expect("nobody panicked").closed = true;
    }

    /// Everybody gets through.
    pub fn open(&self) {
        self.state.lock().expect("nobody panicked").closed = false;
    }
}

const COMMIT: &[u8] = b"COMMIT\0";

async fn pass(client: TcpStream, server: String, state: Arc<Mutex<State>>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut silent = false;
    let mut messages = Messages::default();
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let bytes = &asked[..length];
                if has(bytes, COMMIT) {
                    let next = std::mem::replace(&mut state.lock().expect("nobody panicked").next, Next::Passes);
                    match next {
                        Next::Passes => {}
                        Next::IsLost => return,
                        Next::IsNotAnswered => silent = true,
                        // Until the server has had enough.
                        Next::IsHeld => {
                            while matches!(from_server.read(&mut answered).await, Ok(1..)) {}
                            return;
                        }
                    }
                }
                if to_server.write_all(bytes).await.is_err() {
                    return;
                }
            }
            read = from_server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                let bytes = &answered[..length];
                if silent {
                    // Done; and now nobody hears of it.
                    if has(bytes, COMMIT) {
                        return;
                    }
                    continue;
                }
                let hides = state.lock().expect("nobody panicked").hides;
                let passed = if hides { messages.without_notifications(bytes) } else { bytes.to_vec() };
                if to_client.write_all(&passed).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// What the server says, message by message: a letter, and a length that counts itself. The part that is not whole waits.
#[derive(Default)]
struct Messages {
    part: Vec<u8>,
}

impl Messages {
    fn without_notifications(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.part.extend_from_slice(bytes);
        let mut passed = Vec::new();
        while self.part.len() >= 5 {
            let length =
                u32::from_be_bytes([self.part[1], self.part[2], self.part[3], self.part[4]]) as usize;
            if self.part.len() < length + 1 {
                break;
            }
            let message: Vec<u8> = self.part.drain(..=length).collect();
            if message[0] != b'A' {
                passed.extend(message);
            }
        }
        passed
    }
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
