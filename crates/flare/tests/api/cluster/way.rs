//! For tests: the way between one node and its store, which can be blocked: nothing passes then, and nobody is told. What was on
//! its way arrives when it is open again.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// It ends with this.
pub struct Way {
    blocked: watch::Sender<bool>,
    pub addr: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Way {
    /// To this server, given as `host:port`.
    pub async fn to(server: String) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let (blocked, is_blocked) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (server, mut is_blocked) = (server.clone(), is_blocked.clone());
                connections.spawn(async move {
                    if !until_open(&mut is_blocked).await {
                        return;
                    }
                    let Ok(server) = TcpStream::connect(server).await else { return };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::select! {
                        () = pass(from_client, to_server, is_blocked.clone()) => {}
                        () = pass(from_server, to_client, is_blocked.clone()) => {}
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Way { blocked, addr, _tasks: tasks }
    }

    /// Nothing passes any more, or everything does.
    pub fn block(&self, blocked: bool) {
        self.blocked.send_replace(blocked);
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut blocked: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if !until_open(&mut blocked).await || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

/// False: the test is over.
async fn until_open(blocked: &mut watch::Receiver<bool>) -> bool {
    blocked.wait_for(|blocked| !blocked).await.is_ok()
}
