//! The binary: started with a directory of its own on a free port, stopped, killed, started again.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use tempfile::TempDir;

use super::{Api, until};

/// The operator's token of [`Setup::guarded`].
pub const OPERATOR: &str = "0123456789abcdef0123456789abcdef-op";

/// How a process is to be started.
#[derive(Clone, Default)]
pub struct Setup {
    variables: Vec<(String, String)>,
    data: Option<PathBuf>,
    listens_everywhere: bool,
}

impl Setup {
    /// With a key of the configuration, as its environment variable.
    pub fn with(mut self, variable: &str, value: &str) -> Setup {
        self.variables.push((variable.into(), value.into()));
        self
    }

    /// With data in this directory, which the caller keeps.
    pub fn data(mut self, path: &Path) -> Setup {
        self.data = Some(path.to_owned());
        self
    }

    /// On every address of the machine, so that others could reach it.
    pub fn listening_everywhere(mut self) -> Setup {
        self.listens_everywhere = true;
        self.with("FLARE_HTTP_SERVER_INSECURE", "true")
    }

    /// With authentication, and this token of the operator.
    pub fn guarded(self) -> Setup {
        self.with("FLARE_AUTH_MODE", "token").with("FLARE_AUTH_OPERATOR_TOKEN", OPERATOR)
    }

    /// Runs a command with the same configuration, to its end.
    pub async fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.args(words).env_clear().envs(variables).current_dir(std::env::temp_dir());
        let run = tokio::task::spawn_blocking(move || command.output().expect("the binary runs"));
        run.await.expect("it ends")
    }

    /// Starts it.
    pub async fn start(self) -> Flare {
        Flare::begin(self).await
    }
}

/// A running process. Dropping it kills it.
pub struct Flare {
    setup: Setup,
    directory: TempDir,
    child: Child,
    log: Log,
    addr: SocketAddr,
}

/// What a process writes, and who reads it, until there is no more.
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Log {
    fn of(stderr: ChildStderr) -> Log {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let read = lines.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                read.lock().expect("no reader panics").push(line);
            }
        });
        Log { lines, reader: Some(reader) }
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().expect("no reader panics")
    }

    /// Waits for the last line of a process that has ended: it may still be on its way from the pipe.
    fn complete(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no reader panics");
        }
    }
}

/// Whether what is stored outlives the process, as the tests are run.
pub fn store_is_durable() -> bool {
    store() == "embedded"
}

fn store() -> String {
    std::env::var("FLARE_TEST_STORE").unwrap_or_else(|_| "embedded".into())
}

impl Flare {
    /// A process with the default configuration.
    pub async fn start() -> Flare {
        Setup::default().start().await
    }

    async fn begin(setup: Setup) -> Flare {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let (child, log) = spawn(&setup, directory.path());
        let mut flare = Flare { setup, directory, child, log, addr: ([127, 0, 0, 1], 0).into() };
        flare.ready().await;
        flare
    }

    /// Starts it again, on the same data.
    pub async fn restart(&mut self) {
        assert!(store_is_durable(), "this needs a store on disk");
        self.kill();
        (self.child, self.log) = spawn(&self.setup, self.directory.path());
        self.ready().await;
    }

    async fn ready(&mut self) {
        let found = until("Flare is ready", || {
            let found = match self.child.try_wait().expect("a child can be asked") {
                Some(status) => Some(Err(status)),
                None => self.logged("Flare is ready").map(Ok),
            };
            std::future::ready(found)
        });
        match found.await {
            Ok(line) => {
                let line: serde_json::Value = serde_json::from_str(&line).expect("a log line is JSON");
                let address = find(&line, "address").expect("the log names the address");
                let address: SocketAddr = address.parse().expect("an address");
                self.addr = (Ipv4Addr::LOCALHOST, address.port()).into();
            }
            Err(status) => panic!("Flare ended with {status}:\n{}", self.tail()),
        }
    }

    /// Its API.
    pub fn api(&self) -> Api {
        Api::new(self.addr)
    }

    /// Its API, for the operator of one that is guarded.
    pub fn operator(&self) -> Api {
        self.api().with(OPERATOR)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The first line of the log that contains `words`.
    pub fn logged(&self, words: &str) -> Option<String> {
        self.log.lines().iter().find(|line| line.contains(words)).cloned()
    }

    /// How many lines of the log contain `words`.
    pub fn count_logged(&self, words: &str) -> usize {
        self.log.lines().iter().filter(|line| line.contains(words)).count()
    }

    /// All lines of the log so far.
    pub fn lines(&self) -> Vec<String> {
        self.log.lines().clone()
    }

    fn tail(&self) -> String {
        let log = self.log.lines();
        log[log.len().saturating_sub(40)..].join("\n")
    }

    /// How much memory it has, as the system counts it.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the system tells of its processes");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory is told");
        let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("in kilobytes");
        kilobytes * 1024
    }

    /// kill -9.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.log.complete();
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("there is a kill");
        assert!(sent.success());
    }

    /// Waits until the process has ended by itself, and its log is complete.
    pub async fn ended(&mut self) -> ExitStatus {
        let ended = until("the process ended", || {
            std::future::ready(self.child.try_wait().expect("a child can be asked"))
        });
        let ended = ended.await;
        self.log.complete();
        ended
    }

    /// SIGTERM, and waits for the end.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.ended().await
    }
}

impl Drop for Flare {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("the end of Flare's log:\n{}", self.tail());
        }
    }
}

fn spawn(setup: &Setup, directory: &Path) -> (Child, Log) {
    let data = setup.data.clone().unwrap_or_else(|| directory.join("data"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command
        .args([
            "start",
            "--addr",
            if setup.listens_everywhere { "0.0.0.0:0" } else { "127.0.0.1:0" },
            "--data",
        ])
        .arg(data)
        .current_dir(directory)
        .env_clear()
        .env("FLARE_LOG_FORMAT", "json")
        .env("FLARE_PROVIDER_STORE", store())
        .envs(setup.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let stderr = child.stderr.take().expect("it was piped");
    (child, Log::of(stderr))
}

/// A field of a log line, wherever the format puts it.
fn find(value: &serde_json::Value, name: &str) -> Option<String> {
    let object = value.as_object()?;
    if let Some(found) = object.get(name) {
        return found.as_str().map(ToOwned::to_owned);
    }
    object.values().find_map(|inner| find(inner, name))
}
