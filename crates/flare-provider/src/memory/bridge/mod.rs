//! A broker within one process: queues with partitions behind one lock. What an outside world would do comes in by the methods
//! here (putting messages, deleting queues, being away, losing answers); sources and sinks go out, which answer as those of any
//! other engine would.
//!
//! Settings of any type name a queue here: those of Kinesis and of `http.poll` are read by positions, all others by acknowledgements. So
//! whatever works over a [`Bridge`] can be tried without a server.

mod queue;
mod sink;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::bridge;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

pub use queue::Kept;
use queue::{Part, Queue};
pub use sink::MemorySink;
pub use source::MemorySource;

use super::Now;
use crate::bridge::{Bridge, BridgeError, BridgeErrorKind, BridgeResult, Partition, Progress, Sink, Source};
use crate::upkeep::{Action, Change};

/// A broker. Clones are the same one, as another process would see it.
#[derive(Clone)]
pub struct MemoryBroker {
    now: Now,
    lease: Duration,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Told of everything that changes, for those who wait in `next`.
    moved: Notify,
}

#[derive(Default)]
struct State {
    queues: BTreeMap<String, Queue>,
    /// Nobody gets through.
    away: bool,
    /// Streams of another one are broken: raised when connections break.
    connections: u64,
    /// So many answers are lost: what was asked for is done, and nobody hears of it.
    answers_to_lose: u32,
    /// Numbers streams, so that each knows what it has given out.
    streams: u64,
}

impl MemoryBroker {
    /// One without queues. What was given out and is neither settled nor kept for `lease` comes again.
    pub fn new(now: Now, lease: Duration) -> MemoryBroker {
        MemoryBroker {
            now,
            lease,
            shared: Arc::new(Shared { state: Mutex::default(), moved: Notify::new() }),
        }
    }

    /// Makes a queue with these partitions; one that is there stays as it is.
    pub fn create(&self, queue: &str, partitions: &[&str]) {
        let parts = || Queue::of(partitions.iter().map(|id| Part::new(id, Vec::new())).collect());
        self.change(|state| {
            state.queues.entry(queue.to_owned()).or_insert_with(parts);
        })
    }

    /// Puts messages into a partition of a queue, one behind the other.
    pub fn put(&self, queue: &str, partition: &str, payloads: Vec<Bytes>) {
        let now = (self.now)();
        self.change(|state| {
            let part = state.queues.get_mut(queue).and_then(|queue| queue.part(partition));
            let part = part.expect("messages are put into queues that were made");
            for payload in payloads {
                part.put(Kept::plain(payload), now);
            }
        })
    }

    /// Deletes a queue and all that is in it. Whoever reads it hears of it.
    pub fn delete(&self, queue: &str) {
        self.change(|state| {
            state.queues.remove(queue);
        })
    }

    /// A partition is over, and these follow it.
    pub fn end(&self, queue: &str, partition: &str, followed_by: &[&str]) {
        self.change(|state| {
            let Some(queue) = state.queues.get_mut(queue) else { return };
            if let Some(part) = queue.part(partition) {
                part.ended = true;
            }
            queue.parts.extend(followed_by.iter().map(|id| Part::new(id, vec![partition.to_owned()])));
        })
    }

    /// The oldest messages of a partition are forgotten, so many of them.
    pub fn forget(&self, queue: &str, partition: &str, messages: usize) {
        self.change(|state| {
            if let Some(part) = state.queues.get_mut(queue).and_then(|queue| queue.part(partition)) {
                part.forget(messages);
            }
        })
    }

    /// All connections break, as when the broker is started again: streams are broken, queues stay.
    pub fn cut(&self) {
        self.change(State::cut)
    }

    /// Whether it can be reached. What is connected when it goes away breaks.
    pub fn set_away(&self, away: bool) {
        self.change(|state| {
            state.away = away;
            if away {
                state.cut();
            }
        })
    }

    /// The next so many answers to a send or an acknowledgement are lost: they are done, and nobody hears of it.
    pub fn lose_answers(&self, answers: u32) {
        self.change(|state| state.answers_to_lose = answers)
    }

    /// What a queue has, partition by partition; nothing when it does not exist.
    pub fn contents(&self, queue: &str) -> Option<Vec<Kept>> {
        let state = self.shared.state.lock();
        let queue = state.queues.get(queue)?;
        Some(queue.parts.iter().flat_map(Part::contents).collect())
    }

    fn change<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        let done = what(&mut self.shared.state.lock());
        self.shared.moved.notify_waiters();
        done
    }

    /// The state, if the broker can be reached.
    fn reach(&self) -> BridgeResult<MutexGuard<'_, State>> {
        let state = self.shared.state.lock();
        if state.away {
            return Err(BridgeError::new(BridgeErrorKind::Unavailable, "the broker is away"));
        }
        Ok(state)
    }
}

impl State {
    fn cut(&mut self) {
        self.connections += 1;
        self.queues.values_mut().flat_map(|queue| &mut queue.parts).for_each(Part::release_all);
    }

    fn queue(&mut self, name: &str) -> BridgeResult<&mut Queue> {
        self.queues.get_mut(name).ok_or_else(|| missing(name))
    }

    /// Whether the answer to what was just done is lost.
    fn loses_answer(&mut self) -> bool {
        let loses = self.answers_to_lose > 0;
        self.answers_to_lose -= u32::from(loses);
        loses
    }
}

fn missing(queue: &str) -> BridgeError {
    BridgeError::new(BridgeErrorKind::Missing, format!("there is no queue \"{queue}\""))
}

/// The queue that settings name, and how it is read.
fn named(settings: &bridge::Source) -> (&str, Progress) {
    match settings {
        bridge::Source::Sqs(sqs) => (&sqs.queue, Progress::Acknowledgements),
        bridge::Source::Kinesis(kinesis) => (&kinesis.stream, Progress::Positions),
        bridge::Source::RabbitMq(rabbitmq) => (&rabbitmq.queue, Progress::Acknowledgements),
        bridge::Source::Nats(nats) => (&nats.stream, Progress::Acknowledgements),
        bridge::Source::HttpPoll(poll) => (&poll.url, Progress::Positions),
    }
}

#[async_trait]
impl Bridge for MemoryBroker {
    fn source(&self, _consumer: &str, settings: &bridge::Source) -> BridgeResult<Arc<dyn Source>> {
        let (queue, progress) = named(settings);
        Ok(Arc::new(MemorySource::new(self.clone(), queue, progress)))
    }

    fn sink(&self, settings: &bridge::Target) -> BridgeResult<Arc<dyn Sink>> {
        Ok(Arc::new(MemorySink::new(self.clone(), settings)))
    }

    async fn missing(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        let state = self.reach()?;
        let lacking = sources.iter().filter(|(_, source)| !state.queues.contains_key(named(source).0));
        let change = |(consumer, source): &(String, bridge::Source)| Change {
            action: Action::Create,
            kind: "queue",
            name: named(source).0.to_owned(),
            detail: format!("consumer {consumer} reads it"),
        };
        Ok(lacking.map(change).collect())
    }

    async fn left_over(&self, _sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        // Queues here are made by whoever runs the process, and carry no mark.
        self.reach().map(|_| Vec::new())
    }

    async fn apply(&self, _sources: &[(String, bridge::Source)], change: &Change) -> BridgeResult<()> {
        drop(self.reach()?);
        if change.action == Action::Create {
            self.create(&change.name, &[ONLY]);
        }
        Ok(())
    }
}

/// The partition of a queue that has one.
pub const ONLY: &str = "0";

fn listed(parts: &[Part]) -> Vec<Partition> {
    parts.iter().map(|part| Partition { id: part.id.clone(), after: part.after.clone() }).collect()
}
