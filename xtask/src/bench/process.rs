//! The binary under test: built, started on a fresh directory, measured, stopped.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::{Child, Command};

use super::http::Connection;
use super::postgresql;

/// The operator's token where there is authentication. Changes are sent with one that is made by it, as origins have.
const OPERATOR: &str = "operator-of-the-benchmark-0123456789abcdef";

pub struct Flare {
    child: Child,
    pub address: String,
    /// What requests show, as a line of their heads; nothing without authentication.
    pub authorization: String,
    data: PathBuf,
    /// A file of authorities that it trusts in place of the public ones.
    authority: Option<PathBuf>,
    /// Where it keeps everything, if not in the data directory.
    store: Vec<(&'static str, String)>,
}

/// Builds the release binary and says where it is.
pub fn build() -> anyhow::Result<PathBuf> {
    let status = std::process::Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "flare"])
        .status()
        .context("building flare")?;
    if !status.success() {
        bail!("flare does not build");
    }
    Ok(target()?.join("release/flare"))
}

/// Runs this program once more, with the same arguments, built as a release.
pub fn run_optimized() -> anyhow::Result<()> {
    let status = std::process::Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .status()
        .context("building the benchmark")?;
    if !status.success() {
        bail!("the benchmark failed");
    }
    Ok(())
}

/// Where cargo puts what it builds.
pub fn target() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")?;
    Ok(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from))
}

impl Flare {
    pub async fn start(binary: &Path) -> anyhow::Result<Flare> {
        Flare::start_trusting(binary, None, false).await
    }

    /// The same, with clients that an authority of their own vouches for, and with authentication or without.
    pub async fn start_trusting(
        binary: &Path,
        authority: Option<&Path>,
        authenticates: bool,
    ) -> anyhow::Result<Flare> {
        // Beside the binary: a temporary directory may be in memory, where an fsync costs nothing.
        let data = binary.with_file_name(format!("bench-data-{}", std::process::id()));
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        let store = postgresql::fresh_schema();
        let mut flare =
            Flare::start_on(binary, data, authority.map(Path::to_owned), store, authenticates).await?;
        if authenticates {
            flare.authorization = flare.make_token().await?;
        }
        Ok(flare)
    }

    async fn start_on(
        binary: &Path,
        data: PathBuf,
        authority: Option<PathBuf>,
        store: Vec<(&'static str, String)>,
        authenticates: bool,
    ) -> anyhow::Result<Flare> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(binary)
            .args(["start", "--addr", &address, "--data"])
            .arg(&data)
            .env("FLARE_LOG_LEVEL", "error")
            .envs(authority.as_ref().map(|file| ("FLARE_HTTP_CLIENT_CA", file)))
            .envs(store.iter().map(|(name, value)| (name, value)))
            .envs(authenticates.then_some(("FLARE_AUTH_MODE", "token")))
            .envs(authenticates.then_some(("FLARE_AUTH_OPERATOR_TOKEN", OPERATOR)))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("starting flare")?;
        let flare = Flare { child, address, authorization: String::new(), data, authority, store };
        for _ in 0..500 {
            if let Ok(mut connection) = Connection::open(&flare.address).await
                && connection.send("GET", "/readyz", "").await.is_ok_and(|answer| answer.status == 200)
            {
                return Ok(flare);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("flare did not become ready")
    }

    /// A connection for whoever drives it.
    pub async fn open(&self) -> anyhow::Result<Connection> {
        Connection::open_as(&self.address, &self.authorization).await
    }

    async fn make_token(&self) -> anyhow::Result<String> {
        let operator = format!("authorization: Bearer {OPERATOR}\r\n");
        let draft = r#"{"name":"bench","scopes":["read","origin","subscribe","admin"]}"#;
        let made =
            Connection::open_as(&self.address, &operator).await?.send("POST", "/tokens", draft).await?;
        let made: serde_json::Value = serde_json::from_slice(&made.body)?;
        Ok(format!("authorization: Bearer {}\r\n", made["token"].as_str().context("a token")?))
    }

    fn stat(&self, file: &str) -> anyhow::Result<String> {
        let pid = self.child.id().context("flare has ended")?;
        Ok(std::fs::read_to_string(format!("/proc/{pid}/{file}"))?)
    }

    /// User and system time so far.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = self.stat("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 =
            fields.get(11..13).context("times")?.iter().filter_map(|t| t.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// The most memory it has had.
    pub fn peak_megabytes(&self) -> anyhow::Result<f64> {
        let status = self.stat("status")?;
        let line = status.lines().find(|line| line.starts_with("VmHWM")).context("VmHWM")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Memory now.
    pub fn megabytes(&self) -> anyhow::Result<f64> {
        let status = self.stat("status")?;
        let line = status.lines().find(|line| line.starts_with("VmRSS")).context("VmRSS")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Kills it and starts it again on the same data; answers how long it took to be ready.
    pub async fn kill_and_restart(mut self, binary: &Path) -> anyhow::Result<(Flare, Duration)> {
        self.child.kill().await?;
        let began = std::time::Instant::now();
        let authenticates = !self.authorization.is_empty();
        let flare = Flare::start_on(binary, self.data, self.authority, self.store, authenticates).await?;
        let flare = Flare { authorization: self.authorization, ..flare };
        Ok((flare, began.elapsed()))
    }

    /// Kills it, and leaves nothing of it.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        std::fs::remove_dir_all(&self.data)?;
        Ok(())
    }

    pub async fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.child.id().context("flare has ended")?;
        let told = std::process::Command::new("kill").args(["-TERM", &pid.to_string()]).status()?;
        if !told.success() || !self.child.wait().await?.success() {
            bail!("flare did not stop cleanly");
        }
        std::fs::remove_dir_all(&self.data)?;
        Ok(())
    }
}
