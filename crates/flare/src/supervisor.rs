//! Words to a supervisor such as systemd (`sd_notify`): that the node is ready, that it stops, and, where it wants to
//! know, that it still lives. In: the environment of the process. Out: datagrams on the socket it names, if it names one.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::node::Company;

/// A node by itself that tells the supervisor of this process how it is.
pub fn company() -> Company {
    let Some(supervisor) = Supervisor::of_process().map(Arc::new) else { return Company::none() };
    let companion = supervisor.clone();
    let ready = move |_, stop| {
        companion.tell("READY=1");
        // It belongs to the node's runtime, and ends with it: as long as it speaks, that runs.
        TaskTracker::new().spawn(async move { companion.accompany(stop).await });
    };
    // Not by that task: a node with nothing to finish is gone before the task has its turn.
    let stopping = move || supervisor.tell("STOPPING=1");
    Company { ready: Box::new(ready), stopping: Box::new(stopping), ..Company::none() }
}

struct Supervisor {
    socket: UnixDatagram,
    address: SocketAddr,
    /// How long it waits for a sign of life, if it does.
    patience: Option<Duration>,
}

impl Supervisor {
    fn of_process() -> Option<Supervisor> {
        let address = address(&std::env::var_os("NOTIFY_SOCKET")?);
        let opened = address.and_then(|address| Ok((UnixDatagram::unbound()?, address)));
        let (socket, address) = opened
            .inspect_err(|error| tracing::warn!(%error, "NOTIFY_SOCKET is no socket; nobody is told that Flare is ready"))
            .ok()?;
        // A supervisor that does not read must not hold up the node.
        socket.set_nonblocking(true).ok()?;
        Some(Supervisor { socket, address, patience: patience() })
    }

    fn tell(&self, words: &str) {
        if let Err(error) = self.socket.send_to_addr(words.as_bytes(), &self.address) {
            tracing::warn!(%error, words, "the supervisor could not be told");
        }
    }

    /// Gives signs of life, twice as often as they are asked for, until the node stops.
    async fn accompany(&self, stop: CancellationToken) {
        let Some(patience) = self.patience else { return };
        while stop.run_until_cancelled(tokio::time::sleep(patience / 2)).await.is_some() {
            self.tell("WATCHDOG=1");
        }
    }
}

/// A path, or after `@` a name that no file has.
fn address(text: &OsString) -> io::Result<SocketAddr> {
    match text.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
    }
}

/// `WATCHDOG_USEC`, unless `WATCHDOG_PID` says that it is another process's.
fn patience() -> Option<Duration> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_other = number("WATCHDOG_PID").is_some_and(|process| process != u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|micros| *micros > 0 && !is_other).map(Duration::from_micros)
}
