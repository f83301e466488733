//! A PostgreSQL server for the tests of one program: that of FLARE_TEST_POSTGRESQL_URL, or one that is started on a free
//! port, with a folder of its own, and ends with the program.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server that runs.
pub struct Server {
    pub url: String,
    /// Where it was started by us.
    pub own: Option<Own>,
}

/// A server of our own, and what is needed to stop it and start it again.
pub struct Own {
    folder: PathBuf,
    port: u16,
    bin: PathBuf,
    /// Ends the server when our end of its standard input is closed, however this program ends.
    keeper: std::sync::Mutex<Option<Child>>,
}

/// The server of this program; `None` where there is none, which was said.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(find).as_ref()
}

/// A server that nobody else uses, to be stopped and started at will.
pub fn own_server() -> Option<Server> {
    let bin = find_programs()?;
    Some(Server::start(bin))
}

/// A name for a schema that nobody else has.
pub fn fresh_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("flare_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn find() -> Option<Server> {
    if let Ok(url) = std::env::var("FLARE_TEST_POSTGRESQL_URL") {
        return Some(Server { url, own: None });
    }
    find_programs().map(Server::start)
}

fn find_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    let found = found.pop().or_else(|| {
        let paths = std::env::var_os("PATH")?;
        std::env::split_paths(&paths).find(|path| path.join("initdb").exists())
    });
    if found.is_none() {
        leave_out();
    }
    found
}

/// Says that the tests had no server. In CI that is a failure.
fn leave_out() {
    let why = "the engine over PostgreSQL: there is no PostgreSQL (package postgresql), nor an address of one in \
               FLARE_TEST_POSTGRESQL_URL";
    eprintln!("LEFT OUT: {why}");
    if let Some(list) = std::env::var_os("FLARE_TEST_LEFT_OUT") {
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).expect("the list");
        writeln!(list, "{why}").expect("the list takes a line");
    }
    assert!(std::env::var_os("CI").is_none(), "in CI nothing may be left out: {why}");
}

impl Server {
    fn start(bin: PathBuf) -> Server {
        let folder = std::env::temp_dir().join(format!("flare-pg-{}", fresh_schema()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder));
        }
        let mut initdb = as_postgres(&bin.join("initdb"));
        initdb.arg("-D").arg(folder.join("data")).args([
            "-U",
            "flare",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
        ]);
        run(initdb.args(["--locale", "C"]).stdout(Stdio::null()));
        let own = Own { folder, port, bin, keeper: std::sync::Mutex::default() };
        own.start();
        Server { url: format!("postgres://flare@127.0.0.1:{port}/postgres"), own: Some(own) }
    }
}

impl Own {
    /// Starts it, and waits until it answers.
    pub fn start(&self) {
        let data = self.folder.join("data");
        let _there = std::fs::remove_file(self.folder.join("keep"));
        let postgres = as_postgres(&self.bin.join("postgres"));
        let words: Vec<String> = std::iter::once(postgres.get_program())
            .chain(postgres.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        // The server is ended, and its folder removed, when nobody holds the other end of the shell's input.
        let script = format!(
            "{} -D {} -h 127.0.0.1 -p {} -k {} -c fsync=off -c max_connections=400 -c logging_collector=off \
             </dev/null >{}/log 2>&1 & P=$!; cat >/dev/null; kill -QUIT $P 2>/dev/null; wait $P; \
             [ -e {}/keep ] || rm -rf {}; exit 0",
            words.join(" "),
            data.display(),
            self.port,
            self.folder.display(),
            self.folder.display(),
            self.folder.display(),
            self.folder.display()
        );
        let keeper = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("a shell");
        *self.keeper.lock().expect("nobody panicked") = Some(keeper);
        for _ in 0..600 {
            let asked = Command::new(self.bin.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status();
            if asked.is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    /// The next start is as a standby, which can be promoted: then it is on another timeline.
    #[allow(dead_code, reason = "for the engine's own tests")]
    pub fn become_standby(&self) {
        std::fs::write(self.folder.join("data/standby.signal"), "").expect("the folder is there");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(self.folder.join("data/standby.signal")));
        }
    }

    /// Ends it at once, as a crash would; what it has stays.
    pub fn stop(&self) {
        std::fs::write(self.folder.join("keep"), "").expect("the folder is there");
        self.end();
    }

    fn end(&self) {
        if let Some(mut keeper) = self.keeper.lock().expect("nobody panicked").take() {
            drop(keeper.stdin.take());
            let _ended = keeper.wait();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _there = std::fs::remove_file(self.folder.join("keep"));
        self.end();
        let _removed = std::fs::remove_dir_all(&self.folder);
    }
}

/// PostgreSQL refuses to be run by root.
fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id is everywhere");
    id.stdout.trim_ascii() == b"0"
}

fn run(command: &mut Command) {
    assert!(command.status().expect("it can be run").success(), "{command:?}");
}
