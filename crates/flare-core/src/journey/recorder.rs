//! Records: what the feeds of this thread have to make durable goes to the ledger, many feeds in one commit.
//!
//! Outcomes wait a little, so that one commit carries many; the busier the ledger, the longer. A feed that
//! cannot go on without its record (a higher mark, a sweep's page) does not wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use flare_model::ids::SubscriptionNumber;
use flare_provider::{ErrorKind, FeedWrite};

use super::shard::{FeedKey, Shard};

/// Feeds in one write: small enough that documents committed beside it do not wait long.
const BATCH: usize = 256;

/// Records take at most one part in so many of the time, unless that would make outcomes wait for [`LONGEST`]: with
/// thousands of feeds at work a record each is dear, and what is not recorded is only repeated, and only after a crash.
const SHARE: u32 = 16;

/// No outcome waits longer for its turn.
const LONGEST: Duration = Duration::from_secs(1);

/// While the ledger cannot be written (a full disk), it is asked again so often.
const PATIENCE: Duration = Duration::from_millis(200);

/// Writes records until the thread stops.
pub async fn recorder(shard: Rc<RefCell<Shard>>) {
    let (shared, rung, hurry) = {
        let shard = shard.borrow();
        (shard.shared.clone(), shard.unrecorded.rung.clone(), shard.unrecorded.hurry.clone())
    };
    let mut not_before = Duration::ZERO;
    loop {
        let nothing = {
            let shard = shard.borrow();
            if shard.closing {
                return;
            }
            shard.unrecorded.feeds.is_empty() && !shard.unrecorded.is_urgent()
        };
        if nothing {
            rung.notified().await;
            // The first outcome of a burst waits for the others.
            not_before = not_before.max(shared.clock.monotonic() + shared.limits.record_interval);
        }
        let wait = not_before.saturating_sub(shared.clock.monotonic());
        let urgent = shard.borrow().unrecorded.is_urgent();
        if !urgent && !wait.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = hurry.notified() => continue,
            }
            continue;
        }
        let began = shared.clock.monotonic();
        let (entries, waiters) = shard.borrow_mut().unrecorded.take();
        for batch in entries.chunks(BATCH) {
            if !write(&shard, batch).await {
                // The node ends. Whoever waits is told nothing: it is not durable.
                return;
            }
        }
        for waiter in waiters {
            let _ = waiter.send(());
        }
        if !urgent {
            let ended = shared.clock.monotonic();
            let pause = (ended - began).saturating_mul(SHARE).min(LONGEST);
            not_before = ended + pause.max(shared.limits.record_interval);
        }
    }
}

/// Lets the recorder finish the write it is at, and ends it.
pub async fn finish(shard: &Rc<RefCell<Shard>>, recorder: tokio::task::JoinHandle<()>) {
    {
        let mut shard = shard.borrow_mut();
        shard.closing = true;
        shard.unrecorded.rung.notify_one();
        shard.unrecorded.hurry.notify_one();
    }
    if let Err(error) = recorder.await {
        tracing::error!(error = %error, "the recorder ended badly");
    }
}

/// Writes everything that is left: the end of a clean stop.
pub async fn write_all(shard: &Rc<RefCell<Shard>>) {
    let entries: Vec<FeedKey> = {
        let shard = shard.borrow();
        let lanes = shard.subscribers.iter().flat_map(|(key, subscriber)| {
            let number = subscriber.compiled.number;
            subscriber.lanes.iter().map(move |lane| (key, number, lane.id.lane))
        });
        lanes.collect()
    };
    for batch in entries.chunks(BATCH) {
        write(shard, batch).await;
    }
}

/// Returns whether it is durable; if not, nothing ever will be, and the node was told.
async fn write(shard: &Rc<RefCell<Shard>>, batch: &[FeedKey]) -> bool {
    let shared = shard.borrow().shared.clone();
    let (writes, entries) = collect(&mut shard.borrow_mut(), batch);
    if writes.is_empty() {
        return true;
    }
    let mut warned = false;
    let began = shared.clock.monotonic();
    let outcomes = loop {
        match shared.ledger.write(writes.clone()).await {
            Ok(outcomes) => break outcomes,
            Err(error) if error.kind == ErrorKind::Unavailable => {
                if !warned {
                    tracing::warn!(error = %error, "outcomes cannot be recorded now, trying until they can");
                    warned = true;
                }
                tokio::time::sleep(PATIENCE).await;
            }
            Err(error) => {
                shared.report.fatal(error);
                return false;
            }
        }
    };
    shared.desk.counts.recorded(entries.len(), shared.clock.monotonic().saturating_sub(began));
    let mut shard = shard.borrow_mut();
    for ((key, number, lane), outcome) in entries.into_iter().zip(outcomes) {
        match outcome {
            Ok(()) => shard.recorded(key, number, lane),
            // The subscription was deleted; the command that removes it here is on its way.
            Err(error) if error.kind == ErrorKind::Conflict => {}
            Err(error) => {
                shared.report.fatal(error);
                return false;
            }
        }
    }
    true
}

fn collect(shard: &mut Shard, batch: &[FeedKey]) -> (Vec<FeedWrite>, Vec<FeedKey>) {
    let epoch = shard.shared.epoch;
    let mut writes = Vec::with_capacity(batch.len());
    let mut entries = Vec::with_capacity(batch.len());
    for (key, number, lane) in batch {
        let Some(subscriber) = shard.subscriber(*key, *number) else { continue };
        let Some(slot) = subscriber.lanes.get_mut(*lane) else { continue };
        (slot.dirty, slot.hurries) = (false, false);
        match slot.feed.take_record() {
            Some(record) => {
                writes.push(FeedWrite { feed: slot.id, epoch, record });
                entries.push((*key, *number, *lane));
            }
            // Recorded meanwhile with the urgent ones.
            None if slot.wants_record => shard.recorded(*key, *number, *lane),
            None => {}
        }
    }
    (writes, entries)
}

impl Shard {
    /// A feed's record is durable: whatever waited for it goes on.
    fn recorded(&mut self, key: usize, number: SubscriptionNumber, lane: u8) {
        let Some(subscriber) = self.subscriber(key, number) else { return };
        let Some(slot) = subscriber.lanes.get_mut(lane) else { return };
        slot.feed.recorded();
        // What was asked for while the record was under way waits for the next one.
        let (later, now) = slot.swept.drain(..).partition(|ordinal| slot.feed.is_unrecorded(*ordinal));
        slot.swept = later;
        subscriber.due.extend(Vec::into_iter(now).map(|ordinal| (lane, ordinal)));
        if slot.wants_record {
            slot.wants_record = false;
            subscriber.mark_unread(lane);
        }
        if subscriber.leases.is_some() {
            self.leases_recorded(key, lane);
        }
        super::sweeping::go_on(self, key);
        self.ready(key);
    }
}
