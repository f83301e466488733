//! A node in its namespace: started, killed, suspended, stopped, started again; and asked.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::process::Child;

use super::network::{Network, Place};
use crate::bench::Connection;

const PORT: u16 = 8080;

/// How long a start or an orderly stop may take.
const PATIENCE: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(20);

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(3);

/// One life after the other of a node.
pub struct Node {
    pub place: Place,
    pub name: String,
    network: Network,
    binary: PathBuf,
    folder: PathBuf,
    variables: Vec<(&'static str, String)>,
    lives: u32,
    child: Option<Child>,
}

/// An answer that came in time.
pub struct Answer {
    pub status: u16,
    pub json: Value,
}

impl Node {
    /// One that is not started yet.
    pub fn new(
        network: &Network,
        number: usize,
        binary: &Path,
        folder: &Path,
        variables: &[(&'static str, String)],
    ) -> Node {
        Node {
            place: Place::Node(number),
            name: format!("node-{number}"),
            network: network.clone(),
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            variables: variables.to_vec(),
            lives: 0,
            child: None,
        }
    }

    /// Where it is asked.
    pub fn address(&self) -> String {
        format!("{}:{PORT}", self.place.address())
    }

    /// Starts it, and waits until it is ready.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        self.lives += 1;
        let log = self.folder.join(format!("{}-{}.log", self.name, self.lives));
        let mut command = self.network.command(self.place, &self.binary.display().to_string());
        command.args(["start", "--addr", &self.address(), "--data"]).arg(self.folder.join(&self.name));
        command.current_dir(&self.folder).env("FLARE_CLUSTER_NODE", &self.name);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
        let mut command = tokio::process::Command::from(command);
        self.child = Some(command.kill_on_drop(true).spawn().context("starting Flare")?);
        let began = Instant::now();
        while !self.get("/readyz").await.is_ok_and(|answer| answer.status == 200) {
            if let Some(status) = self.ended() {
                bail!("{} did not start: {status}; see {}", self.name, log.display());
            }
            if began.elapsed() > PATIENCE {
                bail!("{} was not ready within {PATIENCE:?}; see {}", self.name, log.display());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// kill -9.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill().await.context("killing Flare")?;
        }
        Ok(())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let pid = self.child.as_ref().and_then(Child::id).context("the node has ended by itself")?;
        if !Command::new("kill").args([signal, &pid.to_string()]).status()?.success() {
            bail!("{} takes no signal", self.name);
        }
        Ok(())
    }

    /// Waits for the end of one that was told to stop; fails if it does not end well.
    pub async fn stopped(&mut self) -> anyhow::Result<()> {
        let mut child = self.child.take().context("it was not running")?;
        let status = tokio::time::timeout(PATIENCE, child.wait()).await;
        let status = status.with_context(|| format!("{} does not stop", self.name))??;
        if !status.success() {
            bail!("{} stopped with {status}", self.name);
        }
        Ok(())
    }

    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send("GET", path, "").await
    }

    pub async fn send(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
        send(&self.address(), Said { method, path, headers: "", body }, ANSWER).await
    }

    /// How many entries a list has.
    pub async fn total(&self, path: &str) -> anyhow::Result<u64> {
        let list = self.get(path).await?.json;
        list["pagination"]["total"].as_u64().with_context(|| format!("{path} is no list: {list}"))
    }

    /// What is in it.
    pub async fn list(&self, path: &str, name: &str) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut offset) = (Vec::new(), 0);
        loop {
            let page = self.get(&format!("{path}{}limit=100&offset={offset}", separator(path))).await?.json;
            let entries = page[name].as_array().with_context(|| format!("{path} is no list: {page}"))?;
            if entries.is_empty() {
                return Ok(all);
            }
            offset += entries.len();
            all.extend(entries.iter().cloned());
        }
    }
}

fn separator(path: &str) -> char {
    if path.contains('?') { '&' } else { '?' }
}

/// What is said to a node.
#[derive(Clone, Copy)]
pub struct Said<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// More of them, each with its end of line.
    pub headers: &'a str,
    pub body: &'a str,
}

/// Says it to whoever is there, over a connection of its own.
pub async fn send(address: &str, said: Said<'_>, patience: Duration) -> anyhow::Result<Answer> {
    let Said { method, path, headers, body } = said;
    let asked = async {
        let mut connection = Connection::open(address).await?;
        let answer = connection.send_with(method, path, headers, body).await?;
        let json = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        anyhow::Ok(Answer { status: answer.status, json })
    };
    tokio::time::timeout(patience, asked).await.with_context(|| format!("{method} {path} is not answered"))?
}
