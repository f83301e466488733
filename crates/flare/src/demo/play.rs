//! In: the address of a node, and how long to play. Out: a [`Summary`], after a shop was open, clients were told, and it
//! was shown how that went.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use flare_core::door::SystemClock;
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::role::Role;
use super::screen::Screen;
use super::shop::Shop;
use super::thing::Kind;
use super::world::{Snapshot, World};
use super::{Summary, bridge, origin, puller, receiver};
use crate::cli::Format;
use crate::cli::remote::client::{Client, parse_url};
use crate::cli::remote::is_broken_pipe;

/// How long everybody may take to catch up once the shop is closed.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a play needs to know.
pub struct Stage {
    /// What happens depends on it.
    pub seed: u64,
    /// Changes per second.
    pub rate: u32,
    /// Whether Flare polls a list and tells targets, instead of being told and telling subscribers.
    pub bridge: bool,
    /// How long the shop is open; nothing for as long as nobody ends it.
    pub duration: Option<Duration>,
    /// How it is shown.
    pub format: Format,
    /// Cancelled when the play is over, so that the node stops.
    pub end: CancellationToken,
    /// Cancelled when the node has stopped, and no client is needed any more.
    pub over: CancellationToken,
}

/// Why a play ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// Its time was over.
    InTime,
    /// It was told to stop.
    Interrupted,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ended::InTime => "The shop is closed",
            Ended::Interrupted => "Stopped",
        })
    }
}

/// Plays until the time is over, or until the node is `stopping`.
pub fn run(stage: Stage, addr: SocketAddr, stopping: CancellationToken) -> anyhow::Result<Summary> {
    // However this ends, the node does too.
    let _end = stage.end.clone().drop_guard();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut cast = Cast::gather(&stage, addr).await.context("preparing the demo")?;
        let played = cast.play(&stage, &stopping).await;
        // The node finishes what is in flight, and for that the clients must answer.
        stage.end.cancel();
        stage.over.cancelled().await;
        match played {
            Ok(summary) => {
                // A reader that had enough is no failure.
                let _ = cast.screen.close(&summary);
                Ok(summary)
            }
            Err(error) if is_broken_pipe(&error) => Ok(cast.summary(Ended::Interrupted, None)),
            Err(error) => Err(error),
        }
    })
}

/// Everybody who takes part.
struct Cast {
    world: Arc<World>,
    screen: Screen,
    api: Client,
    /// The clients' subscriptions by their ids, or their producers by their paths.
    followers: HashMap<Role, String>,
    /// What Flare last said of each.
    said: HashMap<Role, Value>,
    bridge: bool,
    /// The shop's, cancelled when it closes.
    closing: CancellationToken,
    /// Those who are not to end before the play does. Dropping it ends them all.
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Cast {
    async fn gather(stage: &Stage, addr: SocketAddr) -> anyhow::Result<Cast> {
        let url = parse_url(&format!("http://{addr}")).map_err(anyhow::Error::msg)?;
        let cast: &[Role] = if stage.bridge { &Role::BRIDGED } else { &Role::ALL };
        let world = Arc::new(World::new(Arc::new(SystemClock::of_process()), stage.seed, cast));
        let mut gathered = Cast {
            world,
            screen: Screen::of_process(stage.format),
            api: Client::new(url.clone()),
            followers: HashMap::new(),
            said: HashMap::new(),
            bridge: stage.bridge,
            closing: CancellationToken::new(),
            tasks: JoinSet::new(),
        };
        match stage.bridge {
            true => gathered.gather_bridge(stage).await?,
            false => gathered.gather_shop(stage, || Client::new(url.clone())).await?,
        }
        gathered.screen.open(addr, stage.seed, cast)?;
        Ok(gathered)
    }

    /// A shop that tells Flare, and clients that subscribe.
    async fn gather_shop(&mut self, stage: &Stage, client: impl Fn() -> Client) -> anyhow::Result<()> {
        let mut resources = HashMap::new();
        for kind in Kind::ALL {
            let created = self.api.post("/resources", &kind.resource()).await?;
            resources.insert(kind, id(&created)?);
        }
        for role in Role::ALL {
            let (listener, endpoint) = address(role.name()).await?;
            let all = format!("/resources/{}/subscriptions", resources[&role.kind()]);
            let subscription = id(&self.api.post(&all, &role.subscription(&endpoint)).await?)?;
            if role == Role::Passive {
                let path = format!("{all}/{subscription}");
                let pulling = puller::run(self.world.clone(), client(), path, stage.end.clone());
                self.tasks.spawn(async {
                    pulling.await;
                    Ok(())
                });
            }
            // The passive one, too: somebody may make it an active one, or ask for a delivery.
            self.serve(role, listener);
            self.followers.insert(role, subscription);
        }
        let shop = Shop::open(stage.seed);
        let shop = origin::run(self.world.clone(), client(), shop, stage.rate, self.closing.clone());
        self.tasks.spawn(async {
            shop.await;
            Ok(())
        });
        Ok(())
    }

    /// A shop with a list of its orders, a consumer that polls it, and targets of producers.
    async fn gather_bridge(&mut self, stage: &Stage) -> anyhow::Result<()> {
        let list = bridge::List::new(self.world.clone());
        let (listener, url) = address("orders").await?;
        let served = list.clone().serve(listener);
        self.tasks.spawn(async { served.await.map(|never| match never {}).context("the list of the demo") });
        let consumer = id(&self.api.post("/consumers", &bridge::consumer(&url)).await?)?;
        for role in Role::BRIDGED {
            let (listener, target) = address(role.name()).await?;
            self.serve(role, listener);
            let all = format!("/consumers/{consumer}/producers");
            let producer = id(&self.api.post(&all, &role.producer(&target)).await?)?;
            self.followers.insert(role, format!("{all}/{producer}"));
        }
        let filled = list.fill(Shop::open(stage.seed), stage.rate, self.closing.clone());
        self.tasks.spawn(async {
            filled.await;
            Ok(())
        });
        Ok(())
    }

    fn serve(&mut self, role: Role, listener: TcpListener) {
        let served = receiver::serve(self.world.clone(), role, listener);
        self.tasks.spawn(async { served.await.map(|never| match never {}).context("a client of the demo") });
    }

    async fn play(&mut self, stage: &Stage, stopping: &CancellationToken) -> anyhow::Result<Summary> {
        // A terminal that is closed is a wish to stop.
        let mut hangup = signal(SignalKind::hangup())?;
        let mut closed = false;
        loop {
            let open_for = stage.duration.map(|duration| duration.saturating_sub(self.world.elapsed()));
            let pause = match open_for {
                Some(left) if !closed => left.min(self.screen.interval()),
                // Whether everybody has caught up is worth looking at more often.
                Some(_) => Duration::from_millis(50),
                None => self.screen.interval(),
            };
            let interrupted = tokio::select! {
                () = stopping.cancelled() => true,
                _ = hangup.recv() => true,
                Some(ended) = self.tasks.join_next(), if !closed => {
                    ended.context("a part of the demo panicked")??;
                    anyhow::bail!("a part of the demo ended before its time");
                }
                () = tokio::time::sleep(pause) => false,
            };
            if interrupted {
                self.closing.cancel();
                return Ok(self.summary(Ended::Interrupted, None));
            }
            self.ask().await;
            let snapshot = self.snapshot();
            if let Some(duration) = stage.duration {
                let late = self.world.elapsed().checked_sub(duration);
                if late.is_some() && !closed {
                    closed = true;
                    self.closing.cancel();
                    self.world.end();
                }
                let complete = closed && self.world.is_complete() && is_quiet(&snapshot);
                if complete || late.is_some_and(|late| late > PATIENCE) {
                    self.screen.show(&snapshot)?;
                    return Ok(self.summary(Ended::InTime, Some(complete)));
                }
            }
            if !closed {
                self.screen.show(&snapshot)?;
            }
        }
    }

    fn summary(&self, ended: Ended, complete: Option<bool>) -> Summary {
        Summary { ended, complete, snapshot: self.snapshot() }
    }

    /// How everything stands, with what Flare last said.
    fn snapshot(&self) -> Snapshot {
        self.world.snapshot(|role| self.said.get(&role))
    }

    /// Asks Flare how the clients stand; where it does not answer, what it said before holds.
    async fn ask(&mut self) {
        if self.bridge {
            for (role, producer) in &self.followers {
                if let Ok(said) = self.api.get(&format!("{producer}/status")).await {
                    self.said.insert(*role, said);
                }
            }
            return;
        }
        let Ok(said) = self.api.get("/subscriptions?limit=100").await else { return };
        for entry in said["subscriptions"].as_array().map_or(&[][..], Vec::as_slice) {
            let role = self.followers.iter().find(|(_, id)| entry["id"] == id.as_str());
            if let Some((role, _)) = role {
                self.said.insert(*role, entry.clone());
            }
        }
    }
}

/// A free port, and an address there.
async fn address(name: &str) -> anyhow::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}/{name}", listener.local_addr()?);
    Ok((listener, url))
}

/// Whether Flare has nothing more to tell anybody who listens, and has given up who does not.
fn is_quiet(snapshot: &Snapshot) -> bool {
    snapshot.clients.iter().all(|client| match client.role {
        Role::Failing => client.dead_letters > 0 || client.refused == 0 && client.waiting == 0,
        _ => client.waiting == 0,
    })
}

fn id(created: &Value) -> anyhow::Result<String> {
    let id = created["id"].as_str().map(str::to_owned);
    id.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)).context("the answer has no id")
}
