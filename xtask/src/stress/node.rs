//! The process under test: started on a directory, killed, stopped, started again; its clock set ahead or back.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::process::{Child, Command};

/// How long a start or a clean stop may take. A stop waits for open requests, whose timeouts are far shorter.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(3);

/// One life after the other of a node on the same data.
pub struct Node {
    binary: PathBuf,
    folder: PathBuf,
    log_level: String,
    lives: u32,
    child: Child,
    pub address: SocketAddr,
}

/// Where the data of a run is.
pub fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn offset_file(folder: &Path) -> PathBuf {
    folder.join("clock-offset")
}

impl Node {
    /// The first life.
    pub async fn start(
        binary: &Path,
        folder: &Path,
        log_level: &str,
        variables: &[(&'static str, String)],
    ) -> anyhow::Result<Node> {
        std::fs::write(offset_file(folder), "0")?;
        let child = spawn(binary, folder, log_level, 1, variables)?;
        let (binary, folder) = (binary.to_owned(), folder.to_owned());
        let address = ([127, 0, 0, 1], 0).into();
        let mut node = Node { binary, folder, log_level: log_level.to_owned(), lives: 1, child, address };
        node.ready().await?;
        Ok(node)
    }

    /// The next life; the one before has ended.
    pub async fn start_again(&mut self, variables: &[(&'static str, String)]) -> anyhow::Result<()> {
        self.lives += 1;
        self.child = spawn(&self.binary, &self.folder, &self.log_level, self.lives, variables)?;
        self.ready().await
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let (log, began) = (log_file(&self.folder, self.lives), Instant::now());
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                bail!("Flare did not start: {status}; see {}", log.display());
            }
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if let Some(address) = text.lines().find_map(address_in) {
                self.address = address;
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("Flare was not ready within {PATIENCE:?}; see {}", log.display())
    }

    /// Whether it has ended by itself, which it never should.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// kill -9.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing Flare")
    }

    /// SIGTERM; fails if it does not end well and in time.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        let pid = self.child.id().context("Flare has ended by itself")?;
        Command::new("kill").args(["-TERM", &pid.to_string()]).status().await?;
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(status) if status.as_ref().is_ok_and(ExitStatus::success) => Ok(()),
            Ok(status) => bail!("Flare stopped with {status:?}"),
            Err(_) => {
                self.child.kill().await?;
                bail!("Flare did not stop within {PATIENCE:?}")
            }
        }
    }

    /// Sets its wall clock ahead or back of the machine's.
    pub fn set_clock(&self, offset: i64) -> anyhow::Result<()> {
        // Written whole: a half written number would be another jump.
        let (file, fresh) = (offset_file(&self.folder), self.folder.join("clock-offset.new"));
        std::fs::write(&fresh, offset.to_string())?;
        Ok(std::fs::rename(fresh, file)?)
    }
}

fn log_file(folder: &Path, life: u32) -> PathBuf {
    folder.join(format!("flare-{life}.log"))
}

fn spawn(
    binary: &Path,
    folder: &Path,
    log_level: &str,
    life: u32,
    variables: &[(&'static str, String)],
) -> anyhow::Result<Child> {
    let log = std::fs::File::create(log_file(folder, life))?;
    Command::new(binary)
        .args(["start", "--addr", "127.0.0.1:0", "--data"])
        .arg(data(folder))
        .current_dir(folder)
        .env_clear()
        .env("FLARE_LOG_FORMAT", "json")
        .env("FLARE_LOG_LEVEL", log_level)
        .env("FLARE_TEST_CLOCK_OFFSET_FILE", offset_file(folder))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .context("starting Flare")
}

/// The address in the line that says that it is ready.
fn address_in(line: &str) -> Option<SocketAddr> {
    if !line.contains("Flare is ready") {
        return None;
    }
    let (_, after) = line.split_once("\"address\":\"")?;
    after.split_once('"')?.0.parse().ok()
}
