//! Drives the life of a node: what happens comes in, each with the time; questions are asked, orders about units go out, and
//! what is known is published after each step.

use std::sync::Arc;
use std::time::Duration;

use flare_model::cluster::UnitId;
use flare_model::cluster::life::{Action, Answer, Event, Exit, Life, Moment, Settings, Tenure, Then};
use flare_provider::Seen as Noticed;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::{mpsc, oneshot, watch};

use crate::cluster::asking::Asker;
use crate::cluster::seen::Seen;
use crate::cluster::{Joining, Rerouted, Rerouting, Word};
use crate::door::Clock;
use crate::journey::Tenancy;

/// Changes that come close to each other are one word: everything is listed for it.
const GATHER: Duration = Duration::from_millis(20);

/// A leader that has something under way is asked again so often to move what a user wants moved, and so long.
const AGAIN: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);

/// What is to be done about a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Open it under this epoch.
    Open(UnitId, u64),
    /// Begin nothing new of it, finish what is in flight, record it.
    Drain(UnitId),
    /// Stop it at once: what is open is in doubt, and nothing more is written.
    Cut(UnitId),
}

/// What drives a node.
pub struct Driver {
    life: Life,
    settings: Settings,
    asker: Arc<Asker>,
    clock: Arc<dyn Clock>,
    tenancy: Arc<Tenancy>,
    words: mpsc::UnboundedSender<Word>,
    told: mpsc::UnboundedReceiver<Word>,
    orders: mpsc::UnboundedSender<Order>,
    seen: Seen,
    publish: watch::Sender<Arc<Seen>>,
    asked: FuturesUnordered<BoxFuture<'static, Event>>,
    /// What users want moved, and until when that is tried.
    rerouting: Vec<(Rerouting, Duration)>,
}

impl Driver {
    pub(super) fn new(
        joining: Joining,
        asker: Arc<Asker>,
        words: mpsc::UnboundedSender<Word>,
        told: mpsc::UnboundedReceiver<Word>,
        orders: mpsc::UnboundedSender<Order>,
        publish: watch::Sender<Arc<Seen>>,
    ) -> Driver {
        let Joining { settings, record, clock, tenancy, .. } = joining;
        let now = Moment { monotonic: clock.monotonic(), wall: clock.now() };
        Driver {
            life: Life::new(settings.clone(), record, now),
            settings,
            asker,
            clock,
            tenancy,
            words,
            told,
            orders,
            seen: Seen::default(),
            publish,
            asked: FuturesUnordered::new(),
            rerouting: Vec::new(),
        }
    }

    /// The same on a thread of its own: a renewal does not wait for what the API is asked, however long that takes. Dropped
    /// midway, the thread ends.
    pub async fn run_apart(self) -> std::io::Result<Exit> {
        let (mut tell, told) = oneshot::channel();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return tracing::error!(%error, "nothing can be waited for"),
            };
            let exit = runtime.block_on(async {
                tokio::select! {
                    exit = self.run() => Some(exit),
                    () = tell.closed() => None,
                }
            });
            if let Some(exit) = exit {
                let _nobody_waits = tell.send(exit);
            }
        };
        std::thread::Builder::new().name("flare-cluster".to_owned()).spawn(run)?;
        told.await.map_err(|_| std::io::Error::other("the thread that lives in the cluster has ended"))
    }

    /// Lives until the node is out of the cluster for good; says why.
    pub async fn run(mut self) -> Exit {
        let (asker, words) = (self.asker.clone(), self.words.clone());
        let mut watching = watch_keys(asker, words).boxed();
        loop {
            let wake = self.life.wakes_at().saturating_sub(self.clock.monotonic());
            let wake = if self.rerouting.is_empty() { wake } else { wake.min(AGAIN) };
            let word = tokio::select! {
                biased;
                Some(event) = self.asked.next() => Word::Event(event),
                Some(word) = self.told.recv() => word,
                () = &mut watching => Word::Event(Event::Woke),
                () = tokio::time::sleep(wake) => Word::Event(Event::Woke),
            };
            let exit = match word {
                Word::Event(event) => self.step(event),
                Word::Reroute(rerouting) => {
                    let until = self.clock.monotonic() + PATIENCE;
                    self.rerouting.push((rerouting, until));
                    None
                }
            };
            if exit.is_some() {
                self.publish();
            }
            if let Some(exit) = exit {
                return exit;
            }
            self.reroute();
            self.publish();
        }
    }

    fn moment(&self) -> Moment {
        Moment { monotonic: self.clock.monotonic(), wall: self.clock.now() }
    }

    fn step(&mut self, event: Event) -> Option<Exit> {
        match &event {
            Event::Units(units) => self.seen.has_units(units.clone()),
            Event::Answered { answer, .. } if !matches!(answer, Answer::Failed | Answer::Unknown) => {
                self.seen.heard_at = Some(self.clock.monotonic());
            }
            _ => {}
        }
        let actions = self.life.step(self.moment(), event);
        self.act(actions)
    }

    fn act(&mut self, actions: Vec<Action>) -> Option<Exit> {
        let mut exit = None;
        // Before anything is opened: the threads look at it.
        self.extend();
        for action in actions {
            let order = match action {
                Action::Ask { ask, request } => {
                    let asker = self.asker.clone();
                    self.asked.push(async move { asker.ask(ask, request).await }.boxed());
                    continue;
                }
                Action::Exit(why) => {
                    exit = Some(why);
                    continue;
                }
                Action::Open { unit, epoch } => Order::Open(unit, epoch),
                Action::Drain(unit) => Order::Drain(unit),
                Action::Cut(unit) => Order::Cut(unit),
            };
            tracing::debug!(?order, "the cluster says");
            // Whoever obeys lasts as long as the node.
            let _ = self.orders.send(order);
        }
        exit
    }

    /// Tells delivery threads how long they may begin something. Until all that a lost session had is closed, that is not at
    /// all: what is not cut yet may be another node's, however good the next session is.
    fn extend(&self) {
        let closes = |tenure: &Tenure| matches!(tenure, Tenure::Closing { then: Then::Forget });
        let closing = self.life.tenures().values().any(closes);
        let acts_until = self.life.acts_until().filter(|_| !closing).unwrap_or_default();
        self.tenancy.extend(acts_until, acts_until + self.settings.margin);
    }

    fn reroute(&mut self) {
        for (rerouting, until) in std::mem::take(&mut self.rerouting) {
            let moment = self.moment();
            match self.life.reroute(moment, &rerouting.commands, rerouting.dry_run) {
                Some((planned, actions)) => {
                    self.act(actions);
                    let _nobody_waits = rerouting.reply.send(planned.map_err(Rerouted::Refused));
                }
                None if self.life.leads().is_some() && moment.monotonic < until => {
                    self.rerouting.push((rerouting, until));
                }
                None => {
                    let _nobody_waits = rerouting.reply.send(Err(Rerouted::NotLeading));
                }
            }
        }
    }

    fn publish(&mut self) {
        let Moment { monotonic, wall } = self.moment();
        self.seen.follow(&self.life, monotonic, wall, self.settings.lease);
        self.publish.send_replace(Arc::new(self.seen.clone()));
    }
}

/// Says again and again that there is something to look at, when there is.
async fn watch_keys(asker: Arc<Asker>, words: mpsc::UnboundedSender<Word>) {
    loop {
        if let Ok(mut watch) = asker.cluster().watch(asker.prefix()).await {
            // From the time before it was watched something may have been missed.
            let _ = words.send(Word::Event(Event::Changed));
            while let Ok(Noticed::Changed | Noticed::LostTrack) = watch.next().await {
                tokio::time::sleep(GATHER).await;
                let _ = words.send(Word::Event(Event::Changed));
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
