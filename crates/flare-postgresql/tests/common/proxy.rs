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
}

#[derive(Debug)]
struct State {
    next: Next,
    closed: bool,
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
        let state = Arc::new(Mutex::new(State { next: Next::Passes, closed: false }));
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
        *self.state.lock().expect("nobody panicked") = State { next, closed: false };
        if closed {
            self.close();
        }
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
                if to_client.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
