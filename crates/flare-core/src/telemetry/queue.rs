//! Between the hot path and whoever sends: spans go in without waiting, batches come out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::span::Span;

/// Spans that wait to be sent. Bound: `limit`. When full: the span that comes is dropped and counted, and nobody waits.
pub struct Queue {
    spans: Mutex<VecDeque<Span>>,
    limit: usize,
    batch: usize,
    enough: Notify,
    /// What became of spans so far.
    pub tally: Tally,
}

/// What became of spans and metrics so far.
#[derive(Default)]
pub struct Tally {
    /// Spans that the collector took.
    pub exported: AtomicU64,
    /// Spans that found no room, or that could not be sent before the end.
    pub dropped: AtomicU64,
    /// Spans that the collector refused.
    pub rejected: AtomicU64,
    /// How often the collector took metrics.
    pub metrics: AtomicU64,
    /// Why the collector takes nothing now: of traces, and of metrics.
    pub failing: [Mutex<Option<String>>; 2],
}

impl Queue {
    /// Holds so many, and calls for whoever sends when there is a batch.
    pub fn new(limit: usize, batch: usize) -> Queue {
        let (spans, enough) = (Mutex::default(), Notify::new());
        Queue { spans, limit, batch: batch.min(limit), enough, tally: Tally::default() }
    }

    /// Leaves a span to be sent.
    pub fn push(&self, span: Span) {
        let mut spans = self.spans.lock();
        if spans.len() >= self.limit {
            self.tally.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        spans.push_back(span);
        if spans.len() == self.batch {
            self.enough.notify_one();
        }
    }

    /// The oldest ones, a batch at most.
    pub fn take(&self) -> Vec<Span> {
        let mut spans = self.spans.lock();
        let count = spans.len().min(self.batch);
        spans.drain(..count).collect()
    }

    /// Whether a batch is there.
    pub fn has_batch(&self) -> bool {
        self.spans.lock().len() >= self.batch
    }

    /// Waits until a batch is there.
    pub async fn batch_is_there(&self) {
        while !self.has_batch() {
            self.enough.notified().await;
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.spans.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::span::What;
    use super::*;
    use crate::trace::{SpanId, TraceId};

    fn span(id: u64) -> Span {
        Span {
            trace: TraceId(1),
            id: SpanId(id),
            parent: None,
            state: None,
            began: Duration::ZERO,
            ended: Duration::ZERO,
            what: What::Commit { changes: 1 },
        }
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_oldest_come_first() {
        let queue = Queue::new(3, 2);
        (1..=5).for_each(|id| queue.push(span(id)));
        assert_eq!((queue.waiting(), queue.tally.dropped.load(Ordering::Relaxed)), (3, 2));
        let ids = |spans: Vec<Span>| spans.iter().map(|span| span.id.0).collect::<Vec<_>>();
        assert_eq!((ids(queue.take()), ids(queue.take()), ids(queue.take())), (vec![1, 2], vec![3], vec![]));
    }

    #[tokio::test]
    async fn whoever_sends_is_called_when_there_is_a_batch() {
        let queue = Queue::new(8, 2);
        queue.push(span(1));
        assert!(!queue.has_batch());
        queue.push(span(2));
        queue.batch_is_there().await;
    }
}
