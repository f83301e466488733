//! `flare demo`: in: a few words about how. Out: a node on a temporary store, a shop that changes documents, six clients
//! that are told of them, and a view of it all, until ctrl-C. With `--bridge` the shop has a list of its orders that the node polls,
//! and two clients are told of those.
//!
//! The node is the one that `flare start` runs, on this thread. The shop, the clients and the view live on a thread of
//! their own and know the node by its HTTP API alone, as anybody else would.

mod bridge;
mod inbox;
mod origin;
mod play;
mod puller;
mod receiver;
mod role;
mod scratch;
mod screen;
mod shop;
mod thing;
mod world;

use std::fmt;
use std::net::TcpListener;

use anyhow::Context as _;
use flare_core::config::{self, Flag, Loaded, Sources};
use flare_core::door::random_bytes;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::cli::{DemoArgs, Exit, Format};
use crate::logging;
use crate::node::{self, Company};
use play::{Ended, Stage};
use role::Role;
pub use scratch::Scratch;
use world::{Polled, Snapshot};

/// How a demo ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Why it ended.
    pub ended: Ended,
    /// Whether every client has what it should; nothing where the shop was not closed first.
    pub complete: Option<bool>,
    /// How everything stood.
    #[serde(flatten)]
    pub snapshot: Snapshot,
}

/// Runs the demo until it is interrupted or its time is over.
pub fn run(args: &DemoArgs, format: Format, scratch: &Scratch) -> anyhow::Result<Exit> {
    let listener = listen(args)?;
    let loaded = settings(args, scratch, &listener)?;
    let _guard = args.log.is_some().then(|| logging::init(&loaded.config.log)).transpose()?;
    let seed = args.seed.unwrap_or_else(|| u64::from(u32::from_le_bytes(random_bytes())));
    let (end, over) = (CancellationToken::new(), CancellationToken::new());
    let (ready, readied) = tokio::sync::oneshot::channel();
    let stage = Stage {
        seed,
        rate: args.rate,
        bridge: args.bridge,
        duration: args.duration,
        format,
        end: end.clone(),
        over: over.clone(),
    };
    let play = std::thread::Builder::new()
        .name("flare-demo".into())
        // Without an address the node did not come up, and says why.
        .spawn(move || {
            readied.blocking_recv().ok().map(|(addr, stopping)| play::run(stage, addr, stopping))
        })?;
    let remover = scratch.remover();
    let served = node::run(
        loaded,
        Company {
            listener: Some(listener),
            ready: Box::new(move |addr, stopping| drop(ready.send((addr, stopping)))),
            end,
            abrupt: Box::new(move || {
                screen::leave();
                remover();
            }),
            ..Company::none()
        },
    );
    over.cancel();
    let played = play.join().map_err(|_| anyhow::anyhow!("a part of the demo panicked"));
    served?;
    match played?.transpose()? {
        Some(Summary { complete: Some(false), .. }) => Ok(Exit::Failed),
        _ => Ok(Exit::Done),
    }
}

/// Opens the first address that is free.
fn listen(args: &DemoArgs) -> anyhow::Result<TcpListener> {
    let addresses = args.addresses();
    let mut last = None;
    for addr in &addresses {
        match TcpListener::bind(addr) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(anyhow::Error::from(error).context(format!("listening on {addr}"))),
        }
    }
    let error = last.unwrap_or_else(|| anyhow::anyhow!("there is no address to listen on"));
    Err(error).context("the demo needs a free port: --addr 127.0.0.1:0 takes any")
}

/// The defaults, with the store in its temporary place. Deleted documents are forgotten soon, so that a demo that is left
/// alone overnight does not fill the disk.
fn settings(args: &DemoArgs, scratch: &Scratch, listener: &TcpListener) -> anyhow::Result<Loaded> {
    let data = scratch.data();
    let data = data.to_str().context("the directory for temporary files has a name that is not UTF-8")?;
    let flag = |key, flag, value: &str| Flag { key, flag, value: value.to_owned() };
    let mut flags = vec![
        flag("http.server.addr", "--addr", &listener.local_addr()?.to_string()),
        flag("provider.embedded.path", "TMPDIR", data),
        flag("domain.retention.tombstones", "demo", "5m"),
        flag("delivery.failing-after", "demo", "2s"),
    ];
    if let Some(log) = &args.log {
        flags.push(flag("log.output", "--log", log.to_str().context("--log: a path in UTF-8")?));
    }
    // Not the working directory, which may have a flare.toml of another purpose.
    Ok(config::load(&Sources { directory: scratch.data(), flags, ..Sources::default() })?)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot { seconds, changes, documents, clients, .. } = &self.snapshot;
        writeln!(
            f,
            "\n{}: {changes} changes in {seconds} s, and {documents} documents are left.\n",
            self.ended
        )?;
        writeln!(
            f,
            "{:<12}  {:>9}  {:>7}  {:>7}  {:>7}  {:>6}  {:>4}  {:>8}",
            "client", "documents", "created", "updated", "deleted", "failed", "dead", "latency"
        )?;
        for client in clients {
            let [creates, updates, deletes] = client.actions;
            writeln!(
                f,
                "{:<12}  {:>9}  {creates:>7}  {updates:>7}  {deletes:>7}  {:>6}  {:>4}  {:>8}",
                client.client,
                client.documents,
                client.failures,
                client.dead_letters,
                screen::latency(client.latency_ms),
            )?;
        }
        writeln!(f)?;
        if let Some(Polled { asked, unchanged }) = self.snapshot.polls {
            writeln!(
                f,
                "Flare asked for the list of orders {asked} times, and fed what had changed.\n\
                 {unchanged} answers said that nothing had (304), and had no body."
            )?;
        }
        self.say_what_is_missing(f)?;
        self.say_what_was_given_up(f)
    }
}

impl Summary {
    fn say_what_is_missing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taking = self.snapshot.clients.iter().filter(|client| client.role != Role::Failing);
        let mut complete = true;
        for client in taking.filter(|client| !client.gap.is_none()) {
            complete = false;
            let (name, gap) = (client.client, &client.gap);
            match self.complete {
                None => writeln!(f, "{name} was still to be told of some.")?,
                Some(_) => writeln!(
                    f,
                    "{name} LACKS {}, has {} in another version and {} too many.",
                    gap.missing, gap.outdated, gap.surplus
                )?,
            }
        }
        match (self.complete, complete) {
            (Some(true), _) | (None, true) => writeln!(f, "Every client that answers has what it should."),
            (Some(false), _) => writeln!(f, "Not every client has what it should."),
            (None, false) => Ok(()),
        }
    }

    fn say_what_was_given_up(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(failing) = self.snapshot.clients.iter().find(|client| client.role == Role::Failing) else {
            return Ok(());
        };
        match failing.dead_letters {
            0 => Ok(()),
            dead => writeln!(
                f,
                "{} answered 500 to everything, and its policy allows one attempt:\n\
                 {dead} documents are dead letters, kept until they are replayed or discarded.",
                failing.client
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flare_core::door::ManualClock;
    use serde_json::json;

    use super::*;
    use world::World;

    #[test]
    fn what_is_said_in_the_end_fits_a_terminal_and_names_what_was_given_up() {
        let world = World::new(Arc::new(ManualClock::default()), 1, &Role::ALL);
        let status = json!({"status": "failing", "delivered": 123_456, "failed": 65_432,
            "feed": {"lagging": 2, "deadLetters": 24}});
        let snapshot = world.snapshot(|_| Some(&status));
        for (ended, complete) in
            [(Ended::InTime, Some(true)), (Ended::InTime, Some(false)), (Ended::Interrupted, None)]
        {
            let text = Summary { ended, complete, snapshot: snapshot.clone() }.to_string();
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains("24 documents are dead letters"), "{text}");
        }
    }

    #[test]
    fn what_is_said_of_a_bridge_in_the_end_fits_a_terminal_and_says_how_often_it_was_asked() {
        let world = World::new(Arc::new(ManualClock::default()), 1, &Role::BRIDGED);
        world.polls.asked.store(123_456, std::sync::atomic::Ordering::Relaxed);
        let mut snapshot = world.snapshot(|_| None);
        snapshot.changes = 12_345_678;
        let text = Summary { ended: Ended::InTime, complete: Some(true), snapshot }.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("asked for the list of orders 123456 times"), "{text}");
        assert!(text.contains("Every client that answers has what it should."), "{text}");
    }
}
