//! What stands between an engine and its server: it passes everything on, until it is told to break what is connected, or to let
//! nobody through. So a test that is about connections leaves the server to others.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Whether anybody gets through, and which connections stay: those made since the last cut.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    cuts: u64,
    away: bool,
}

/// The proxy. It ends with this.
pub struct Proxy {
    state: watch::Sender<State>,
    addr: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Before this server, given as `host:port`.
    pub async fn before(server: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let (state, seen) = watch::channel(State { cuts: 0, away: false });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if !seen.borrow().away {
                    connections.spawn(pass(client, server.clone(), seen.clone()));
                }
                while connections.try_join_next().is_some() {}
            }
        });
        Proxy { state, addr, _tasks: tasks }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Breaks everything that is connected.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Breaks everything that is connected and lets nobody through, or lets them again.
    pub fn set_away(&self, away: bool) {
        self.state.send_modify(|state| {
            state.away = away;
            state.cuts += u64::from(away);
        });
    }
}

async fn pass(mut client: TcpStream, server: String, mut state: watch::Receiver<State>) {
    let cuts = state.borrow_and_update().cuts;
    let both = async {
        if let Ok(mut server) = TcpStream::connect(server).await {
            // However it ends: both sides are closed.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
    };
    tokio::select! {
        () = both => {}
        _ = state.wait_for(|state| state.cuts != cuts) => {}
    }
}
