//! `flare bench`: in: how many documents, clients and connections. Out: how many changes this machine takes and delivers in a second,
//! and how long each takes.
//!
//! The node is the one that `flare start` runs with its defaults, on a temporary store that is synced as ever. The origin and the
//! clients are in the same process, on threads of their own, and know the node by its HTTP API alone; so they take a part of the
//! processors that they would not take elsewhere.

mod measure;
mod spread;

use std::fmt;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context as _;
use flare_core::config::{self, Flag, Loaded, Sources};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::cli::{BenchArgs, Exit, Format};
use crate::demo::Scratch;
use crate::node::{self, Company};
use measure::Measuring;
use spread::Spread;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Documents that were put.
    pub documents: u32,
    /// Clients that were told of each.
    pub clients: u32,
    /// Connections of the origin.
    pub connections: u32,
    /// From the first PUT until every client had everything.
    pub seconds: f64,
    /// Changes accepted in a second, durably.
    pub accepted_per_second: f64,
    /// Deliveries in a second.
    pub deliveries_per_second: f64,
    /// How long a PUT took, in milliseconds.
    pub accept: Spread,
    /// How long it took from the beginning of a PUT until a client was told, in milliseconds.
    pub delivery: Spread,
}

/// Measures until every client has everything.
pub fn run(args: &BenchArgs, format: Format, scratch: &Scratch) -> anyhow::Result<Exit> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening on a free port of 127.0.0.1")?;
    let loaded = settings(scratch, &listener)?;
    let (end, over) = (CancellationToken::new(), CancellationToken::new());
    let (ready, readied) = tokio::sync::oneshot::channel();
    let measuring = Measuring { args: args.clone(), format, end: end.clone(), over: over.clone() };
    let measuring = std::thread::Builder::new()
        .name("flare-bench".into())
        // Without an address the node did not come up, and says why.
        .spawn(move || readied.blocking_recv().ok().map(|(addr, stopping)| measuring.run(addr, stopping)))?;
    let remover = scratch.remover();
    let served = node::run(
        loaded,
        Company {
            listener: Some(listener),
            ready: Box::new(move |addr, stopping| drop(ready.send((addr, stopping)))),
            end,
            abrupt: Box::new(remover),
            ..Company::none()
        },
    );
    over.cancel();
    let measured = measuring.join().map_err(|_| anyhow::anyhow!("a part of the measurement panicked"));
    served?;
    let report = measured?.transpose()?.flatten().context("it was stopped before everything was measured")?;
    match format {
        Format::Json => println!("{}", serde_json::to_string(&report).context("numbers are JSON")?),
        Format::Human => print!("{report}"),
    }
    Ok(Exit::Done)
}

/// The defaults, with the store in its temporary place.
fn settings(scratch: &Scratch, listener: &TcpListener) -> anyhow::Result<Loaded> {
    let data = scratch.data();
    let data = data.to_str().context("the directory for temporary files has a name that is not UTF-8")?;
    let flag = |key, flag, value: &str| Flag { key, flag, value: value.to_owned() };
    let flags = vec![
        flag("http.server.addr", "bench", &listener.local_addr()?.to_string()),
        flag("provider.embedded.path", "TMPDIR", data),
    ];
    // Not the working directory, which may have a flare.toml of another purpose.
    Ok(config::load(&Sources { directory: scratch.data(), flags, ..Sources::default() })?)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { documents, clients, connections, seconds, accept, delivery, .. } = self;
        writeln!(
            f,
            "{documents} documents over {connections} connections, {clients} clients, {seconds:.1} s"
        )?;
        writeln!(f, "accepted   {:>8.0} /s   {accept}", self.accepted_per_second)?;
        writeln!(f, "delivered  {:>8.0} /s   {delivery}", self.deliveries_per_second)
    }
}
