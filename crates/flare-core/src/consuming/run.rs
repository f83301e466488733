//! A consumer that runs here: its partitions are found again and again, and each that may begin is read by a task of its own. It ends
//! when it is told to, or when somebody else has taken it over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use flare_model::bridge;
use flare_model::consumer::Condition;
use flare_model::resource::Resource;
use flare_provider::bridge::{BridgeErrorKind, BridgeResult, Partition, Progress, Source};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::poll::Poll;
use super::reading::{Ended, Reading};
use super::unit::{Stopped, Unit};
use super::{Tools, backoff};

/// How often partitions are looked for, and how far behind they are; and how soon for the second time, so that whoever asks hears early
/// how much waits.
const LOOK: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(1);

/// How long the answer to how far behind a partition is may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait after a failure, at first and at most; and for something that does not exist.
const FIRST: Duration = Duration::from_millis(250);
const MOST: Duration = Duration::from_secs(30);
const SELDOM: Duration = Duration::from_secs(5);

/// The one partition of what is polled.
pub(super) const WHOLE: &str = "0";

/// A consumer that runs here.
pub struct Run {
    /// What it takes.
    pub tools: Arc<Tools>,
    /// The consumer.
    pub resource: Arc<Resource>,
    /// The epoch under which it reads.
    pub epoch: u64,
    /// What is known of it.
    pub board: Arc<Board>,
    /// Cancelled when it is to stop.
    pub stop: CancellationToken,
}

/// The tasks that read, by partition. Owner: the consumer's own task; whoever drops that drops these.
#[derive(Default)]
struct Readers {
    tasks: JoinSet<(String, Ended)>,
    running: BTreeSet<String>,
    over: BTreeSet<String>,
}

impl Run {
    /// Reads until it is told to stop.
    pub async fn run(self) -> Ended {
        let settings = self.resource.consumer().expect("only consumers are read").clone();
        if let bridge::Source::HttpPoll(poll) = &settings.source {
            return self.poll(poll).await;
        }
        let mut readers = Readers::default();
        let (mut failures, mut source, mut pause) = (0, None, SOON);
        loop {
            let found = self.find(&settings.source, &mut source).await;
            let wait = match found {
                Ok(partitions) => {
                    failures = 0;
                    self.board.finding(Condition::Active, self.tools.clock.now(), None);
                    if let Some(source) = &source
                        && let Some(ended) = self.begin(source, &partitions, &mut readers).await
                    {
                        return ended;
                    }
                    std::mem::replace(&mut pause, LOOK)
                }
                Err(error) => {
                    failures += 1;
                    let (condition, wait) = match error.kind {
                        BridgeErrorKind::Missing | BridgeErrorKind::Refused => {
                            (Condition::Disabled, backoff(1, SELDOM, SELDOM, &self.tools.chance))
                        }
                        _ => (Condition::Failing, backoff(failures, FIRST, MOST, &self.tools.chance)),
                    };
                    self.board.finding(condition, self.tools.clock.now(), Some(error.to_string()));
                    wait
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    // Each stores what it was given.
                    while readers.tasks.join_next().await.is_some() {}
                    return Ended::Told;
                }
                Some(ended) = readers.tasks.join_next() => if let Some(ended) = readers.ended(ended) {
                    return ended;
                },
                () = tokio::time::sleep(wait) => if let Some(source) = &source {
                    self.look_behind(source, &readers.running).await;
                },
            }
        }
    }

    /// The partitions of the source, which is opened first where it is not.
    async fn find(
        &self,
        settings: &bridge::Source,
        source: &mut Option<Arc<dyn Source>>,
    ) -> BridgeResult<Vec<Partition>> {
        let opened = match source {
            Some(opened) => opened.clone(),
            None => {
                let opened = self.tools.bridges.source(self.resource.id().as_str(), settings)?;
                source.insert(opened).clone()
            }
        };
        opened.partitions().await
    }

    /// Begins to read whatever may begin: those before it have been read to their end, or are not there any more.
    async fn begin(
        &self,
        source: &Arc<dyn Source>,
        partitions: &[Partition],
        readers: &mut Readers,
    ) -> Option<Ended> {
        let listed: BTreeMap<&str, &Partition> =
            partitions.iter().map(|partition| (partition.id.as_str(), partition)).collect();
        for partition in partitions {
            // One that is not listed any more may still be read.
            let over = |before: &String| {
                let is_known = listed.contains_key(before.as_str()) || readers.running.contains(before);
                readers.over.contains(before) || !is_known
            };
            let begun = readers.running.contains(&partition.id) || readers.over.contains(&partition.id);
            if begun || !partition.after.iter().all(over) {
                continue;
            }
            let comes_again = source.nature().progress == Progress::Acknowledgements;
            let taken =
                Unit::take(&self.tools, &self.board, &self.resource, &partition.id, self.epoch, comes_again);
            let unit = match taken.await {
                Ok(unit) => unit,
                Err(Stopped::Fenced) => return Some(Ended::Fenced),
                Err(stopped) => {
                    self.board.finding(Condition::Failing, self.tools.clock.now(), Some(stopped.to_string()));
                    return None;
                }
            };
            if unit.progress.ended {
                readers.over.insert(partition.id.clone());
                continue;
            }
            let reading = Reading {
                tools: self.tools.clone(),
                source: source.clone(),
                partition: partition.id.clone(),
                stop: self.stop.clone(),
                size: 1024,
            };
            let id = partition.id.clone();
            readers.running.insert(id.clone());
            readers.tasks.spawn(async move { (id, reading.run(unit).await) });
        }
        None
    }

    async fn look_behind(&self, source: &Arc<dyn Source>, running: &BTreeSet<String>) {
        for partition in running {
            let position = self.board.position(partition);
            let asked = source.lag(partition, position.as_deref());
            if let Ok(Ok(lag)) = tokio::time::timeout(PATIENCE, asked).await {
                self.board.lags(partition, lag);
            }
        }
    }

    async fn poll(&self, settings: &bridge::HttpPollSource) -> Ended {
        let mut failures = 0;
        loop {
            let taken = Unit::take(&self.tools, &self.board, &self.resource, WHOLE, self.epoch, true);
            match taken.await {
                Ok(unit) => {
                    self.board.finding(Condition::Active, self.tools.clock.now(), None);
                    let poll = Poll {
                        tools: self.tools.clone(),
                        resource: self.resource.clone(),
                        settings: settings.clone(),
                        stop: self.stop.clone(),
                    };
                    return poll.run(unit).await;
                }
                Err(Stopped::Fenced) => return Ended::Fenced,
                Err(stopped) => {
                    failures += 1;
                    self.board.finding(Condition::Failing, self.tools.clock.now(), Some(stopped.to_string()));
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return Ended::Told,
                () = tokio::time::sleep(backoff(failures, FIRST, MOST, &self.tools.chance)) => {}
            }
        }
    }
}

impl Readers {
    /// A reader has ended; if the consumer has to, how.
    fn ended(&mut self, ended: Result<(String, Ended), tokio::task::JoinError>) -> Option<Ended> {
        match ended {
            Ok((partition, Ended::Over)) => {
                self.running.remove(&partition);
                self.over.insert(partition);
                None
            }
            Ok((_, ended)) => Some(ended),
            // A reader that panics cannot be vouched for; the node goes on, and whoever owns the consumer begins it anew.
            Err(error) => {
                tracing::error!(error = %error, "a reader of a consumer failed");
                Some(Ended::Told)
            }
        }
    }
}
