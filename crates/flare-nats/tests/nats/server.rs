//! The server of these tests: one for all of them, started when the first needs it, on a free port and over a folder of its own; or the
//! one that `FLARE_TEST_NATS_URL` names.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use flare_provider::conformance::bridge::Server as Use;
use tokio::sync::{OnceCell, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// A server.
pub struct Server {
    /// `host:port`.
    pub address: String,
    /// `user:password@`, where it wants that.
    login: String,
    own: Option<Own>,
}

/// One that these tests started.
struct Own {
    folder: PathBuf,
    port: u16,
    keeper: std::sync::Mutex<Option<Child>>,
}

/// Who uses the server: several at a time, or one who starts it again.
pub enum Held {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

/// The server, for as long as this is held. Nothing: there is none on this machine.
pub async fn server(usage: Use) -> Option<(Arc<Server>, Held)> {
    static SERVER: OnceCell<Option<Arc<Server>>> = OnceCell::const_new();
    static HELD: OnceCell<Arc<RwLock<()>>> = OnceCell::const_new();
    let server = SERVER.get_or_init(|| async { Server::find().await.map(Arc::new) }).await.clone()?;
    let held = HELD.get_or_init(|| async { Arc::default() }).await.clone();
    let held = match usage {
        Use::Shared => Held::Shared { _guard: held.read_owned().await },
        Use::Alone => Held::Alone { _guard: held.write_owned().await },
    };
    Some((server, held))
}

impl Server {
    async fn find() -> Option<Server> {
        if let Ok(url) = std::env::var("FLARE_TEST_NATS_URL") {
            let rest = url.strip_prefix("nats://").expect("FLARE_TEST_NATS_URL begins with nats://");
            let (login, address) =
                rest.rsplit_once('@').map_or(("", rest), |(login, address)| (login, address));
            let login = if login.is_empty() { String::new() } else { format!("{login}@") };
            return Some(Server { address: address.to_owned(), login, own: None });
        }
        if Command::new("nats-server").arg("--version").output().is_err() {
            left_out("NATS is missing: the engine for it is not tested (Debian package nats-server)");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("flare-nats-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let own = Own { folder, port, keeper: std::sync::Mutex::new(None) };
        own.start().await;
        Some(Server { address: format!("127.0.0.1:{port}"), login: String::new(), own: Some(own) })
    }

    /// The url of the server by way of this address.
    pub fn url(&self, address: &str) -> String {
        format!("nats://{}{address}", self.login)
    }

    /// Ends the server and starts it again over what it has. `false`: it is not ours.
    pub async fn restart(&self) -> bool {
        let Some(own) = &self.own else { return false };
        std::fs::write(own.folder.join("keep"), "").expect("the folder is there");
        let keeper = own.keeper.lock().expect("nobody panicked").take();
        let ended = tokio::task::spawn_blocking(move || {
            let mut keeper = keeper.expect("it runs");
            drop(keeper.stdin.take());
            keeper.wait()
        });
        ended.await.expect("nobody panicked").expect("it has ended");
        std::fs::remove_file(own.folder.join("keep")).expect("it was written");
        own.start().await;
        true
    }
}

impl Own {
    /// Starts it under a shell that ends it when these tests are over, however they end: then nobody writes to the shell any more.
    async fn start(&self) {
        let folder = self.folder.display();
        let script = format!(
            "nats-server -a 127.0.0.1 -p {} -js -sd '{folder}/data' </dev/null >'{folder}/out' 2>&1 & P=$!; \
             cat >/dev/null; kill $P 2>/dev/null; wait $P; [ -e '{folder}/keep' ] || rm -rf '{folder}'; exit 0",
            self.port
        );
        let keeper = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("a shell");
        *self.keeper.lock().expect("nobody panicked") = Some(keeper);
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let said = std::fs::read_to_string(self.folder.join("out")).unwrap_or_default();
        panic!("NATS does not start: {said}");
    }
}

/// Something cannot be tested on this machine: a failure in CI, elsewhere a line that `cargo xtask test` closes with.
pub fn left_out(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI nothing may be left out: {why}");
    eprintln!("LEFT OUT: {why}");
    if let Some(list) = std::env::var_os("FLARE_TEST_LEFT_OUT") {
        let list = std::fs::OpenOptions::new().create(true).append(true).open(list);
        let noted = list.and_then(|mut list| list.write_all(format!("{why}\n").as_bytes()));
        noted.expect("what was left out is noted");
    }
}
