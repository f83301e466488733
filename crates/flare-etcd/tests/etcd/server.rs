//! etcd servers of a test: one, or several that are members of one cluster, each with a folder of its own.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flare_etcd::{Etcd, EtcdConfig, Login};
use flare_provider::Cluster as _;
use flare_provider::conformance::cluster::Participant;
use flare_provider::conformance::cluster::fixture::within;

/// Servers that were started; they end with this.
pub struct Servers {
    members: Vec<Member>,
    folder: PathBuf,
}

pub struct Member {
    pub endpoint: String,
    child: Child,
    command: Vec<String>,
}

impl Servers {
    /// Starts them and waits until they answer. Nothing where there is no etcd on this machine.
    pub async fn start(members: usize) -> Option<Servers> {
        if Command::new("etcd").arg("--version").output().is_err() {
            left_out("etcd is missing: the engine for it is not tested (Debian package etcd-server)");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("flare-etcd-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let ports: Vec<[u16; 2]> = free_ports(members * 2).chunks(2).map(|pair| [pair[0], pair[1]]).collect();
        let names = ports.iter().enumerate();
        let all: Vec<String> =
            names.map(|(number, [_, peer])| format!("m{number}=http://127.0.0.1:{peer}")).collect();
        let members = ports.iter().enumerate().map(|(number, [client, peer])| {
            let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
            let data = folder.join(format!("m{number}")).display().to_string();
            let command: Vec<String> = [
                ("--name", format!("m{number}")),
                ("--data-dir", data),
                ("--listen-client-urls", client.clone()),
                ("--advertise-client-urls", client.clone()),
                ("--listen-peer-urls", peer.clone()),
                ("--initial-advertise-peer-urls", peer),
                ("--initial-cluster", all.join(",")),
            ]
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect();
            Member { endpoint: client, child: begin(&command), command }
        });
        let servers = Servers { members: members.collect(), folder };
        servers.until_ready().await;
        Some(servers)
    }

    /// Waits until a write is taken.
    pub async fn until_ready(&self) {
        let ready = async {
            while self.engine(None).grant("ready", Duration::from_secs(2)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        within(ready, "etcd answers").await;
    }

    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.endpoint.clone()).collect()
    }

    pub fn engine(&self, login: Option<Login>) -> Etcd {
        let config = EtcdConfig {
            endpoints: self.endpoints(),
            prefix: "flare/".to_owned(),
            login,
            tls: None,
            timeout: Duration::from_secs(2),
        };
        Etcd::new(config).expect("the configuration is right")
    }

    pub fn participant(&self) -> Participant {
        let etcd = Arc::new(self.engine(None));
        Participant { cluster: etcd.clone(), doorbell: etcd }
    }

    /// Kills a member without a word.
    pub fn kill(&mut self, member: usize) {
        let child = &mut self.members[member].child;
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }

    /// Starts it again over what it has.
    pub fn restart(&mut self, member: usize) {
        let member = &mut self.members[member];
        member.child = begin(&member.command);
    }

    /// Stops a member where it stands, or lets it go on.
    pub fn signal(&self, member: usize, signal: &str) {
        let id = self.members[member].child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Runs etcd's own client at a member.
    pub fn control(&self, arguments: &[&str]) -> String {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.members[0].endpoint])
            .args(arguments)
            .output()
            .expect("etcdctl runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for member in &mut self.members {
            // One that was killed already is fine.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn begin(arguments: &[String]) -> Child {
    let mut command = Command::new("etcd");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("etcd starts")
}

/// Ports that nobody has: all are held until the last is found.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    held.iter().map(|listener| listener.local_addr().expect("its address").port()).collect()
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
