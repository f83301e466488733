//! The broker of these tests: one for all of them, started when the first needs it, on free ports and over a folder of its own; or the
//! one that `FLARE_TEST_RABBITMQ_URL` names.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use flare_provider::conformance::bridge::Server as Use;
use tokio::sync::{OnceCell, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Debian's own program, which is not where programs are looked for: the one that is changes its user.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// A broker.
pub struct Broker {
    /// `host:port`.
    pub address: String,
    /// `user:password@`, and what follows the address.
    login: String,
    path: String,
    own: Option<Own>,
}

/// One that these tests started.
struct Own {
    folder: PathBuf,
    ports: [u16; 3],
    keeper: std::sync::Mutex<Option<Child>>,
}

/// Who uses the broker: several at a time, or one who starts it again.
pub enum Held {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

/// The broker, for as long as this is held. Nothing: there is none on this machine.
pub async fn broker(usage: Use) -> Option<(Arc<Broker>, Held)> {
    static BROKER: OnceCell<Option<Arc<Broker>>> = OnceCell::const_new();
    static HELD: OnceCell<Arc<RwLock<()>>> = OnceCell::const_new();
    let broker = BROKER.get_or_init(|| async { Broker::find().await.map(Arc::new) }).await.clone()?;
    let held = HELD.get_or_init(|| async { Arc::default() }).await.clone();
    let held = match usage {
        Use::Shared => Held::Shared { _guard: held.read_owned().await },
        Use::Alone => Held::Alone { _guard: held.write_owned().await },
    };
    Some((broker, held))
}

impl Broker {
    async fn find() -> Option<Broker> {
        if let Ok(url) = std::env::var("FLARE_TEST_RABBITMQ_URL") {
            let rest = url.strip_prefix("amqp://").expect("FLARE_TEST_RABBITMQ_URL begins with amqp://");
            let (login, rest) = rest.rsplit_once('@').unwrap_or(("guest:guest", rest));
            let (address, path) = rest.split_once('/').unwrap_or((rest, "%2f"));
            let [login, path] = [format!("{login}@"), format!("/{path}")];
            return Some(Broker { address: address.to_owned(), login, path, own: None });
        }
        if !std::path::Path::new(PROGRAM).exists() {
            left_out("RabbitMQ is missing: the engine for it is not tested (Debian package rabbitmq-server)");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("flare-rabbitmq-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        std::fs::write(folder.join("plugins"), "[].").expect("the folder is there");
        if is_root() {
            let owned = Command::new("chown").args(["-R", "nobody:nogroup"]).arg(&folder).status();
            assert!(owned.expect("chown runs").success());
        }
        let own = Own { folder, ports: free_ports(), keeper: std::sync::Mutex::new(None) };
        own.start().await;
        let address = format!("127.0.0.1:{}", own.ports[0]);
        let [login, path] = ["guest:guest@", "/%2f"].map(str::to_owned);
        Some(Broker { address, login, path, own: Some(own) })
    }

    /// The url of the broker by way of this address.
    pub fn url(&self, address: &str) -> String {
        format!("amqp://{}{address}{}", self.login, self.path)
    }

    /// Ends the broker and starts it again over what it has. `false`: it is not ours.
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

    /// Runs the broker's own tool. `false`: the broker is not ours.
    pub fn control(&self, arguments: &[&str]) -> bool {
        let Some(own) = &self.own else { return false };
        let run = own.command("/usr/lib/rabbitmq/bin/rabbitmqctl").args(arguments).output();
        let run = run.expect("rabbitmqctl runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        true
    }
}

impl Own {
    /// A command in the surroundings of this broker, as somebody who is not root.
    fn command(&self, program: &str) -> Command {
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        let folder = self.folder.display();
        let [port, distribution, names] = self.ports;
        command
            .env("HOME", &self.folder)
            .env("RABBITMQ_NODENAME", format!("flare{port}@localhost"))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port.to_string())
            .env("RABBITMQ_DIST_PORT", distribution.to_string())
            .env("ERL_EPMD_PORT", names.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_MNESIA_BASE", format!("{folder}/db"))
            .env("RABBITMQ_LOG_BASE", format!("{folder}/log"))
            .env("RABBITMQ_LOGS", "-")
            .env("RABBITMQ_PID_FILE", format!("{folder}/pid"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", format!("{folder}/plugins"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("RABBITMQ_CONFIG_FILE", format!("{folder}/rabbitmq.conf"))
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "+sbwt none +S 2:2 -kernel inet_dist_use_interface {127,0,0,1}",
            );
        command
    }

    /// Starts it under a shell that ends it when these tests are over, however they end: then nobody writes to the shell any more.
    async fn start(&self) {
        let folder = self.folder.display();
        let log = self.folder.join("out");
        // What the one before has said is not about this one.
        let _ = std::fs::remove_file(&log);
        let script = format!(
            "'{PROGRAM}' </dev/null >'{folder}/out' 2>&1 & P=$!; cat >/dev/null; \
             kill $(cat '{folder}/pid') 2>/dev/null; wait $P; epmd -port {} -kill >/dev/null 2>&1; \
             [ -e '{folder}/keep' ] || rm -rf '{folder}'; exit 0",
            self.ports[2]
        );
        let keeper = self.command("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("a shell");
        *self.keeper.lock().expect("nobody panicked") = Some(keeper);
        for _ in 0..3600 {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if said.contains("Server startup complete") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("RabbitMQ does not start: {}", std::fs::read_to_string(&log).unwrap_or_default());
    }
}

/// Ports that nobody has: all are held until the last is found.
fn free_ports() -> [u16; 3] {
    let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    held.map(|listener| listener.local_addr().expect("its address").port())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id is everywhere");
    id.stdout.trim_ascii() == b"0"
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
