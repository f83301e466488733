//! A PostgreSQL server for a benchmark: started on a fresh folder beside the binary, with its usual settings (fsync is on), and
//! ended with it. Each node that is measured gets a schema of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};

static URL: OnceLock<String> = OnceLock::new();

/// A server that runs until this is dropped.
pub struct Server {
    child: Child,
    folder: PathBuf,
}

/// A schema that no node had before, as variables of the environment; nothing where nodes keep everything themselves.
pub fn fresh_schema() -> Vec<(&'static str, String)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some(url) = URL.get() else { return Vec::new() };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    vec![
        ("FLARE_PROVIDER_STORE", "postgresql".to_owned()),
        ("FLARE_PROVIDER_POSTGRESQL_URL", url.clone()),
        ("FLARE_PROVIDER_POSTGRESQL_SCHEMA", format!("bench_{number}")),
    ]
}

impl Server {
    /// Starts one; from now on nodes are measured over it.
    pub fn start(binary: &Path) -> anyhow::Result<Server> {
        let bin = programs().context("there is no PostgreSQL in /usr/lib/postgresql (package postgresql)")?;
        let folder = binary.with_file_name(format!("bench-postgresql-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let root = Command::new("id").arg("-u").output()?.stdout.trim_ascii() == b"0";
        let run = |program: &str| {
            if !root {
                return Command::new(bin.join(program));
            }
            // PostgreSQL refuses to be run by root.
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"])
                .arg(bin.join(program));
            command
        };
        if root && !Command::new("chown").arg("postgres").arg(&folder).status()?.success() {
            bail!("the folder of PostgreSQL cannot be given to the user postgres");
        }
        let data = folder.join("data");
        let made = run("initdb")
            .arg("-D")
            .arg(&data)
            .args(["-U", "flare", "-A", "trust", "-E", "UTF8", "--locale", "C"])
            .stdout(Stdio::null())
            .status()?;
        if !made.success() {
            bail!("initdb failed");
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = run("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.with_extension("log"))?)
            .spawn()?;
        let server = Server { child, folder };
        for _ in 0..300 {
            let ready = Command::new(bin.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
                .status()?;
            if ready.success() {
                let url = format!("postgres://flare@127.0.0.1:{port}/postgres");
                if URL.set(url).is_err() {
                    bail!("one server is enough");
                }
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("PostgreSQL did not start: see {}", server.folder.with_extension("log").display())
    }
}

fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|bin| bin.join("initdb").exists());
    found.sort();
    found.pop()
}

impl Drop for Server {
    fn drop(&mut self) {
        // An end that is quick, and leaves nothing: SIGINT.
        let _ended = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _gone = self.child.wait();
        let _removed = std::fs::remove_dir_all(&self.folder);
        let _log = std::fs::remove_file(self.folder.with_extension("log"));
    }
}
