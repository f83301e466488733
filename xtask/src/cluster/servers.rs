//! The servers that nodes depend on, each in its namespace: PostgreSQL, a second one that follows it, and three members of etcd.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::network::{Network, Place};
use super::node::{Said, send};

const PORT: u16 = 5432;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// PostgreSQL, and one that follows it.
pub struct Store {
    network: Network,
    folder: PathBuf,
    bin: PathBuf,
    /// Which of the two is the store at present.
    at: Place,
    server: Option<Child>,
    standby: Option<Child>,
}

impl Store {
    /// Starts both; the second has everything before a commit is answered.
    pub fn start(network: &Network, folder: &Path) -> anyhow::Result<Store> {
        let bin = programs().context("there is no PostgreSQL in /usr/lib/postgresql (package postgresql)")?;
        let folder = folder.join("postgresql");
        std::fs::create_dir_all(&folder)?;
        owned_by_postgres(&folder)?;
        let (network, at) = (network.clone(), Place::Store);
        let mut store = Store { network, folder, bin, at, server: None, standby: None };
        let mut initdb = store.run_in(Place::Store, "initdb");
        initdb.arg("-D").arg(store.data(Place::Store));
        initdb.args(["-U", "flare", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C"]);
        succeed(&mut initdb)?;
        let access = store.data(Place::Store).join("pg_hba.conf");
        std::fs::write(
            access,
            "local all all trust\nhost all all all trust\nhost replication all all trust\n",
        )?;
        store.server = Some(store.begin(Place::Store)?);
        store.until_ready()?;
        store.follow()?;
        Ok(store)
    }

    /// A copy that follows, and without which nothing is committed.
    fn follow(&mut self) -> anyhow::Result<()> {
        let mut copy = self.run_in(Place::Standby, "pg_basebackup");
        copy.args(["-h", &Place::Store.address(), "-U", "flare", "-X", "stream", "-R", "--no-sync"]);
        copy.args(["-c", "fast", "-D"]).arg(self.data(Place::Standby));
        succeed(&mut copy)?;
        self.standby = Some(self.begin(Place::Standby)?);
        self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.ask("SELECT pg_reload_conf()")?;
        let began = Instant::now();
        while self.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")? != "1" {
            if began.elapsed() > PATIENCE {
                bail!("the second server of PostgreSQL does not follow: see {}", self.folder.display());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// How nodes reach it.
    pub fn url(&self) -> String {
        format!("postgres://flare@{}:{PORT}/postgres", Place::Store.address())
    }

    /// Ends it without a word, and starts it again over what it has.
    pub fn restart(&mut self, down: Duration) -> anyhow::Result<()> {
        end(&mut self.server, "-QUIT");
        std::thread::sleep(down);
        self.server = Some(self.begin(self.at)?);
        self.until_ready()
    }

    /// Whether there is a second server that can take over.
    pub fn has_standby(&self) -> bool {
        self.standby.is_some()
    }

    /// Ends it without a word; the second takes over under its address.
    pub fn promote(&mut self) -> anyhow::Result<()> {
        let standby = self.standby.take().context("the second server took over before")?;
        end(&mut self.server, "-KILL");
        (self.server, self.at) = (Some(standby), Place::Standby);
        let mut promote = self.run_in(Place::Standby, "pg_ctl");
        promote.arg("-D").arg(self.data(Place::Standby)).args(["promote", "-w", "-s"]);
        succeed(&mut promote)?;
        self.network.move_store()?;
        // There is nobody left who could follow it.
        self.ask("ALTER SYSTEM SET synchronous_standby_names = ''")?;
        self.ask("SELECT pg_reload_conf()").map(drop)
    }

    /// One statement; what it answers, as text.
    pub fn ask(&self, statement: &str) -> anyhow::Result<String> {
        let folder = self.socket(self.at);
        let output = Command::new("psql")
            .args([
                "-qAtX",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "flare",
                "-d",
                "postgres",
                "-p",
                &PORT.to_string(),
            ])
            .arg("-h")
            .arg(folder)
            .args(["-c", statement])
            .output()
            .context("running psql")?;
        if !output.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn data(&self, place: Place) -> PathBuf {
        self.folder.join(if place == Place::Store { "first" } else { "second" })
    }

    fn socket(&self, place: Place) -> PathBuf {
        self.folder.join(if place == Place::Store { "socket-1" } else { "socket-2" })
    }

    /// PostgreSQL refuses to be run by root.
    fn run_in(&self, place: Place, program: &str) -> Command {
        let mut command = self.network.command(place, "setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--pdeathsig", "KILL"]);
        command.arg(self.bin.join(program)).current_dir(&self.folder);
        command
    }

    fn begin(&self, place: Place) -> anyhow::Result<Child> {
        let socket = self.socket(place);
        std::fs::create_dir_all(&socket)?;
        owned_by_postgres(&socket)?;
        let log = std::fs::File::options().create(true).append(true).open(socket.with_extension("log"))?;
        let mut postgres = self.run_in(place, "postgres");
        postgres
            .arg("-D")
            .arg(self.data(place))
            .args(["-h", "*", "-p", &PORT.to_string(), "-k"])
            .arg(&socket);
        postgres.args(["-c", "max_connections=200", "-c", "hot_standby=on"]);
        postgres.stdout(Stdio::null()).stderr(log).spawn().context("starting PostgreSQL")
    }

    fn until_ready(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while self.ask("SELECT 1").is_err() {
            if began.elapsed() > PATIENCE {
                bail!("PostgreSQL does not start: see {}", self.folder.display());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        end(&mut self.standby, "-QUIT");
        end(&mut self.server, "-QUIT");
    }
}

/// Three members of etcd; they end with this.
pub struct Etcd {
    members: Vec<Child>,
    pub endpoints: Vec<String>,
}

impl Etcd {
    /// Starts them.
    pub fn start(network: &Network, folder: &Path) -> anyhow::Result<Etcd> {
        let host = Place::Coordinator.address();
        let url = |port: usize| format!("http://{host}:{port}");
        let peers: Vec<String> =
            (0..3).map(|member| format!("m{member}={}", url(2380 + member * 100))).collect();
        let mut etcd = Etcd { members: Vec::new(), endpoints: Vec::new() };
        for member in 0..3 {
            let (client, peer) = (url(2379 + member * 100), url(2380 + member * 100));
            let log = std::fs::File::create(folder.join(format!("etcd-{member}.log")))?;
            let mut command = network.command(Place::Coordinator, "etcd");
            command.args(["--name", &format!("m{member}"), "--data-dir"]);
            command.arg(folder.join(format!("etcd-{member}")));
            command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            command.args(["--initial-cluster", &peers.join(",")]);
            let started = command.stdout(Stdio::null()).stderr(log).spawn();
            etcd.members.push(started.context("starting etcd (package etcd-server)")?);
            etcd.endpoints.push(client);
        }
        Ok(etcd)
    }

    /// Waits until all of them have found a leader.
    pub async fn until_ready(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        for endpoint in &self.endpoints {
            let asked = Said { method: "GET", path: "/health", headers: "", body: "" };
            let address = endpoint.trim_start_matches("http://");
            while !send(address, asked, Duration::from_secs(1)).await.is_ok_and(|answer| answer.status == 200)
            {
                if began.elapsed() > PATIENCE {
                    bail!("etcd does not start: {endpoint}");
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in self.members.drain(..) {
            end(&mut Some(member), "-KILL");
        }
    }
}

fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|bin| bin.join("pg_basebackup").exists());
    found.sort();
    found.pop()
}

fn owned_by_postgres(folder: &Path) -> anyhow::Result<()> {
    succeed(Command::new("chown").arg("postgres").arg(folder))
}

fn end(server: &mut Option<Child>, signal: &str) {
    if let Some(mut server) = server.take() {
        let _gone_already = Command::new("kill").args([signal, &server.id().to_string()]).status();
        let _status = server.wait();
    }
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
