//! A queue in memory as a source, by acknowledgements or by positions.

use std::time::Duration;

use async_trait::async_trait;

use super::queue::{Given, Part};
use super::{MemoryBroker, State, listed, missing};
use crate::bridge::{
    Batch, BridgeError, BridgeErrorKind, BridgeResult, Lag, Message, Nature, Partition, Progress, Receipt,
    Source, Stream,
};

/// A queue as a source.
pub struct MemorySource {
    broker: MemoryBroker,
    queue: String,
    progress: Progress,
}

impl MemorySource {
    pub(super) fn new(broker: MemoryBroker, queue: &str, progress: Progress) -> MemorySource {
        MemorySource { broker, queue: queue.to_owned(), progress }
    }
}

fn number(position: Option<&str>) -> BridgeResult<Option<u64>> {
    let read = |position: &str| position.parse().ok();
    match position.map(read) {
        None => Ok(None),
        Some(Some(number)) => Ok(Some(number)),
        Some(None) => {
            Err(BridgeError::new(BridgeErrorKind::Forgotten, "the position is none of this queue's"))
        }
    }
}

#[async_trait]
impl Source for MemorySource {
    fn nature(&self) -> Nature {
        Nature {
            ordered: true,
            progress: self.progress,
            counts_deliveries: self.progress == Progress::Acknowledgements,
            names_messages: true,
        }
    }

    async fn partitions(&self) -> BridgeResult<Vec<Partition>> {
        let mut state = self.broker.reach()?;
        Ok(listed(&state.queue(&self.queue)?.parts))
    }

    async fn open(&self, partition: &str, after: Option<&str>) -> BridgeResult<Box<dyn Stream>> {
        let after = number(after)?;
        let mut state = self.broker.reach()?;
        state.streams += 1;
        let (stream, connections) = (state.streams, state.connections);
        let queue = state.queue(&self.queue)?;
        let part = queue.part(partition).ok_or_else(|| missing(&self.queue))?;
        if self.progress == Progress::Positions && !part.follows(after.unwrap_or(u64::MAX - 1)) {
            return Err(BridgeError::new(
                BridgeErrorKind::Forgotten,
                "what follows the position was forgotten",
            ));
        }
        Ok(Box::new(MemoryStream {
            broker: self.broker.clone(),
            queue: self.queue.clone(),
            partition: partition.to_owned(),
            progress: self.progress,
            number: stream,
            connections,
            read: after.unwrap_or(0),
            began: after.unwrap_or(0),
        }))
    }

    async fn lag(&self, partition: &str, after: Option<&str>) -> BridgeResult<Lag> {
        let after = number(after)?;
        let now = (self.broker.now)();
        let mut state = self.broker.reach()?;
        let part = state.queue(&self.queue)?.part(partition).ok_or_else(|| missing(&self.queue))?;
        let (messages, since) = part.behind(after.unwrap_or(0));
        Ok(Lag { messages: Some(messages), oldest: since.map(|since| now.saturating_sub(since)) })
    }
}

struct MemoryStream {
    broker: MemoryBroker,
    queue: String,
    partition: String,
    progress: Progress,
    number: u64,
    /// After which position it was opened.
    began: u64,
    /// Of which connections it is; with others it is broken.
    connections: u64,
    /// By positions: what was read.
    read: u64,
}

impl MemoryStream {
    /// Its partition, if the stream is what it was.
    fn part<'s>(&self, state: &'s mut State) -> BridgeResult<&'s mut Part> {
        if state.connections != self.connections {
            return Err(BridgeError::new(BridgeErrorKind::Broken, "the connection broke"));
        }
        state.queue(&self.queue)?.part(&self.partition).ok_or_else(|| missing(&self.queue))
    }

    /// What there is now, and when to look again where that is known.
    fn look(&mut self, most: usize) -> BridgeResult<(Vec<Given>, bool, Option<Duration>)> {
        let now = (self.broker.now)();
        let lease = self.broker.lease;
        let broker = self.broker.clone();
        let mut state = broker.shared.state.lock();
        let part = self.part(&mut state)?;
        let given = match self.progress {
            Progress::Acknowledgements => part.take(self.number, most, now, now + lease),
            Progress::Positions => part.read(self.read, most),
        };
        let all_read = match self.progress {
            Progress::Acknowledgements => part.contents().next().is_none(),
            Progress::Positions => self.read >= part.newest(),
        };
        let over = given.is_empty() && part.ended && all_read;
        let due = part.next_due().map(|due| due.saturating_sub(now));
        Ok((given, over, due))
    }

    fn settle(&self, what: impl FnOnce(&mut Part)) -> BridgeResult<()> {
        if self.progress == Progress::Positions {
            return Ok(());
        }
        let lost = {
            let mut state = self.broker.shared.state.lock();
            what(self.part(&mut state)?);
            state.loses_answer()
        };
        self.broker.shared.moved.notify_waiters();
        match lost {
            true => Err(BridgeError::new(BridgeErrorKind::Unavailable, "the answer was lost")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Stream for MemoryStream {
    fn began(&self) -> Option<String> {
        (self.progress == Progress::Positions).then(|| self.began.to_string())
    }

    async fn next(&mut self, most: usize) -> BridgeResult<Batch> {
        let broker = self.broker.clone();
        loop {
            let moved = broker.shared.moved.notified();
            let mut moved = std::pin::pin!(moved);
            // From here on nothing that changes is missed.
            moved.as_mut().enable();
            let (given, over, due) = self.look(most)?;
            if over {
                return Ok(Batch::End);
            }
            if let Some(last) = given.last() {
                self.read = last.number;
                let counts = self.progress == Progress::Acknowledgements;
                return Ok(Batch::Messages(given.into_iter().map(|given| message(given, counts)).collect()));
            }
            match due {
                Some(due) => {
                    // Whichever comes first, it looks again.
                    let _ = tokio::time::timeout(due, moved).await;
                }
                None => moved.await,
            }
        }
    }

    async fn acknowledge(&mut self, receipts: &[Receipt]) -> BridgeResult<()> {
        let stream = self.number;
        self.settle(|part| receipts.iter().for_each(|receipt| part.settle(stream, receipt.0)))
    }

    async fn reject(&mut self, receipt: Receipt, delay: Duration) -> BridgeResult<()> {
        let due = (self.broker.now)() + delay;
        self.settle(|part| part.reject(self.number, receipt.0, due))
    }

    async fn keep(&mut self) -> BridgeResult<()> {
        let until = (self.broker.now)() + self.broker.lease;
        let mut state = self.broker.shared.state.lock();
        self.part(&mut state)?.keep(self.number, until);
        Ok(())
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        let mut state = self.broker.shared.state.lock();
        if let Ok(part) = self.part(&mut state) {
            part.release(self.number);
        }
        drop(state);
        self.broker.shared.moved.notify_waiters();
    }
}

fn message(given: Given, counts: bool) -> Message {
    Message {
        receipt: Receipt(given.number),
        position: given.number.to_string(),
        order: i64::try_from(given.number).unwrap_or(i64::MAX),
        payload: given.payload,
        deliveries: counts.then_some(given.deliveries),
        sent_at: None,
    }
}
