//! Records: what the feeds of this thread have to make durable goes to the ledger, many feeds in one commit.
//!
//! Outcomes wait a little, so that one commit carries many; the busier the ledger, the longer. A feed that
//! cannot go on without its record (a higher mark, a sweep's page) does not wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use flare_model::feed::{Receipt, Taken};
use flare_provider::{Conflict, ErrorKind, FeedWrite};

use crate::journey::tenancy::Lost;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::FeedPlace;
use crate::journey::worker::unrecorded::Batch;

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
pub async fn recorder(worker: Rc<RefCell<Worker>>) {
    let (tools, rung, hurry) = {
        let worker = worker.borrow();
        let (rung, hurry) = worker.unrecorded.bells();
        (worker.tools.clone(), rung, hurry)
    };
    let mut not_before = Duration::ZERO;
    loop {
        let nothing = {
            let worker = worker.borrow();
            if worker.closing {
                return;
            }
            worker.unrecorded.is_empty()
        };
        if nothing {
            rung.notified().await;
            // The first outcome of a burst waits for the others.
            not_before = not_before.max(tools.clock.monotonic() + tools.limits.record_interval);
        }
        let wait = not_before.saturating_sub(tools.clock.monotonic());
        let urgent = worker.borrow().unrecorded.is_urgent();
        // What is not urgent has its turn in its time, however much is urgent meanwhile.
        let due = wait.is_zero();
        if !urgent && !due {
            tokio::select! {
                biased;
                () = hurry.notified() => continue,
                () = tokio::time::sleep(wait) => {}
            }
            continue;
        }
        let began = tools.clock.monotonic();
        let Batch { feeds, all, waiters } = worker.borrow_mut().unrecorded.take(due);
        for batch in feeds.chunks(BATCH) {
            if !write(&worker, batch, all).await {
                // The node ends. Whoever waits is told nothing: it is not durable.
                return;
            }
        }
        for waiter in waiters {
            let _ = waiter.send(());
        }
        if due {
            let ended = tools.clock.monotonic();
            let pause = (ended - began).saturating_mul(SHARE).min(LONGEST);
            not_before = ended + pause.max(tools.limits.record_interval);
        }
    }
}

/// Lets the recorder finish the write it is at, and ends it.
pub async fn finish(worker: &Rc<RefCell<Worker>>, recorder: tokio::task::JoinHandle<()>) {
    {
        let mut worker = worker.borrow_mut();
        worker.closing = true;
        worker.unrecorded.wake();
    }
    if let Err(error) = recorder.await {
        tracing::error!(error = %error, "the recorder ended badly");
    }
}

/// Writes everything that is left: the end of a clean stop.
pub async fn write_all(worker: &Rc<RefCell<Worker>>) {
    let entries: Vec<FeedPlace> = {
        let worker = worker.borrow();
        let lanes = worker.subscribers.iter().flat_map(|(place, subscriber)| {
            subscriber.lanes.iter().map(move |lane| place.feed(lane.id.lane))
        });
        lanes.collect()
    };
    for batch in entries.chunks(BATCH) {
        write(worker, batch, true).await;
    }
}

/// Returns whether it is durable; if not, nothing ever will be, and the node was told. `all`: none of these feeds is in
/// the recorder's list any more.
async fn write(worker: &Rc<RefCell<Worker>>, batch: &[FeedPlace], all: bool) -> bool {
    let tools = worker.borrow().tools.clone();
    let (writes, entries) = collect(&mut worker.borrow_mut(), batch, all);
    if writes.is_empty() {
        return true;
    }
    let epochs: Vec<u64> = writes.iter().map(|write| write.epoch).collect();
    let mut warned = false;
    let began = tools.clock.monotonic();
    let outcomes = loop {
        match tools.ledger.write(writes.clone()).await {
            Ok(outcomes) => break outcomes,
            Err(error) if error.is_passing() => {
                tools.desk.records(false);
                if !warned {
                    tracing::warn!(error = %error, "outcomes cannot be recorded now, trying until they can");
                    warned = true;
                }
                tokio::time::sleep(PATIENCE).await;
            }
            Err(error) => {
                tools.report.fatal(error);
                return false;
            }
        }
    };
    if warned {
        tools.desk.records(true);
    }
    tools.desk.counts.recorded(entries.len(), tools.clock.monotonic().saturating_sub(began));
    let mut worker = worker.borrow_mut();
    for ((feed, receipt), (epoch, outcome)) in entries.into_iter().zip(epochs.into_iter().zip(outcomes)) {
        match outcome {
            Ok(()) => worker.recorded(feed, receipt),
            // The subscription was deleted, and whoever deletes it may wait for those who ask it something: they are not
            // left to wait for a record that there will never be.
            Err(error) if error.is(&Conflict::Feed) => worker.remove(feed.place.number()),
            Err(error) if error.kind == ErrorKind::Fenced && tools.tenancy.is_some() => {
                worker.fenced(feed, epoch)
            }
            Err(error) => {
                tools.report.fatal(error);
                return false;
            }
        }
    }
    true
}

/// The records of some feeds, and what says for each that it was taken.
fn collect(
    worker: &mut Worker,
    batch: &[FeedPlace],
    all: bool,
) -> (Vec<FeedWrite>, Vec<(FeedPlace, Receipt)>) {
    let mut writes = Vec::with_capacity(batch.len());
    let mut entries = Vec::with_capacity(batch.len());
    for entry in batch {
        let FeedPlace { place, lane } = *entry;
        let Some(subscriber) = worker.subscribers.get_mut(place) else { continue };
        let Some(slot) = subscriber.lanes.get_mut(lane) else { continue };
        // Where it stays in the list, it is found there with nothing to record, or with what comes until then.
        slot.dirty &= !all;
        slot.hurries = false;
        match slot.feed.take_record() {
            Some(Taken { record, receipt }) => {
                writes.push(FeedWrite { feed: slot.id, epoch: slot.epoch, record });
                entries.push((*entry, receipt));
            }
            #[cfg(feature = "planted")]
            None if slot.wants_record && flare_model::planted::Bug::MarkFalls.is_planted() => {
                slot.feed.recorded_though_nothing_was_taken();
                worker.goes_on(*entry);
            }
            // All of it is durable: it was recorded meanwhile with the urgent ones, or there was nothing.
            None if slot.wants_record && slot.feed.is_durable() => worker.goes_on(*entry),
            None => {}
        }
    }
    (writes, entries)
}

impl Worker {
    /// The ledger refused a record: somebody has the lane under a later epoch. If that is not this thread itself, nothing of
    /// it begins any more here, and the node is told.
    fn fenced(&mut self, FeedPlace { place, lane }: FeedPlace, epoch: u64) {
        let Some(slot) = self.subscribers.lane_mut(place, lane).filter(|slot| slot.epoch == epoch) else {
            return;
        };
        slot.aside.leaving.get_or_insert_default();
        if let Some(tenancy) = &self.tools.tenancy {
            tenancy.fenced(Lost { number: place.number(), lane, epoch });
        }
    }

    /// A feed's record is durable: whatever waited for it goes on.
    fn recorded(&mut self, feed: FeedPlace, receipt: Receipt) {
        let FeedPlace { place, lane } = feed;
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let Some(slot) = subscriber.lanes.get_mut(lane) else { return };
        slot.feed.recorded(receipt);
        self.record_what_changed(place, lane);
        self.goes_on(feed);
    }

    /// All that something of a feed waited for is durable.
    fn goes_on(&mut self, FeedPlace { place, lane }: FeedPlace) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let Some(slot) = subscriber.lanes.get_mut(lane) else { return };
        // What was asked for while the record was under way waits for the next one.
        if let Some(aside) = slot.aside.any() {
            let feed = &slot.feed;
            let now = aside.swept.extract_if(.., |ordinal| !feed.is_unrecorded(*ordinal));
            subscriber.due.extend(now.map(|ordinal| (lane, ordinal)));
            slot.aside.tidy();
        }
        if slot.wants_record {
            slot.wants_record = false;
            subscriber.mark_unread(lane);
        }
        if subscriber.leases.is_some() {
            self.leases_recorded(place, lane);
        }
        #[cfg(feature = "planted")]
        if flare_model::planted::Bug::SweepStandsStill.is_planted() {
            return self.ready(place);
        }
        crate::journey::reading::sweeping::go_on(self, place);
        self.ready(place);
    }
}

#[cfg(test)]
mod tests {
    use flare_model::feed::{Action, Feed, Saved, Standing, State, Trouble};
    use flare_model::ids::{Ordinal, Seq};
    use flare_model::time::Timestamp;
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;
    use crate::journey::subscriber::Standstill;
    use crate::journey::testing::fixture::{Thread, marked};

    fn feed(worker: &mut Worker, FeedPlace { place, lane }: FeedPlace) -> &mut Feed {
        &mut worker.subscribers[place].lanes[lane].feed
    }

    /// What the recorder would write now.
    fn next(worker: &mut Worker) -> (Vec<FeedWrite>, Vec<(FeedPlace, Receipt)>) {
        let Batch { feeds, all, .. } = worker.unrecorded.take(true);
        collect(worker, &feeds, all)
    }

    #[tokio::test]
    async fn asking_for_a_record_of_a_lane_with_nothing_to_record_leaves_its_mark() {
        let all = async {
            let thread = Thread::new();
            let entry = thread.open(1, marked(50), Standstill::None);
            let mut worker = thread.worker.borrow_mut();
            let (reply, mut told) = oneshot::channel();
            worker.record_now(entry.place.number(), reply);
            let Batch { feeds, all, waiters } = worker.unrecorded.take(true);
            assert!(collect(&mut worker, &feeds, all).0.is_empty(), "nothing has changed");
            waiters.into_iter().for_each(|waiter| waiter.send(()).expect("someone waits"));
            assert_eq!(told.try_recv(), Ok(()));
            let subscriber = &worker.subscribers[entry.place];
            assert!(!subscriber.lanes[0].wants_record, "and nothing waits for it");
            feed(&mut worker, entry).tally_mut().failed += 1;
            worker.mark_dirty(entry.place, 0, true);
            assert_eq!(next(&mut worker).0[0].record.issued, Seq(50));
        };
        LocalSet::new().run_until(all).await;
    }

    #[tokio::test]
    async fn a_lane_that_is_let_go_while_a_record_is_under_way_goes_without_a_mark() {
        let all = async {
            let thread = Thread::new();
            let entry = thread.open(1, Saved::default(), Standstill::None);
            let mut worker = thread.worker.borrow_mut();
            feed(&mut worker, entry).want_issue(Seq(100));
            worker.mark_dirty(entry.place, 0, false);
            let (_, mut receipts) = next(&mut worker);
            let (reply, _told) = oneshot::channel();
            worker.release(entry.place.number(), vec![0], reply);
            let (entry, receipt) = receipts.pop().expect("a mark is asked for");
            worker.recorded(entry, receipt);
            let (writes, _) = next(&mut worker);
            assert_eq!(writes[0].record.issued, Seq(0), "or its next owner would doubt what it has sent");
        };
        LocalSet::new().run_until(all).await;
    }

    #[tokio::test]
    async fn a_subscription_that_is_paused_takes_its_marks_back_with_what_else_there_is_to_record() {
        let all = async {
            let thread = Thread::new();
            let entry = thread.open(1, Saved::default(), Standstill::None);
            let mut worker = thread.worker.borrow_mut();
            feed(&mut worker, entry).want_issue(Seq(100));
            worker.mark_dirty(entry.place, 0, false);
            let (_, mut receipts) = next(&mut worker);
            let (entry, receipt) = receipts.pop().expect("a mark is asked for");
            worker.recorded(entry, receipt);
            worker.stand(entry.place.number(), Standstill::Paused, None);
            let (writes, _) = next(&mut worker);
            assert_eq!(writes.iter().map(|write| write.record.issued).collect::<Vec<_>>(), [Seq(0)]);
        };
        LocalSet::new().run_until(all).await;
    }

    #[tokio::test]
    async fn the_time_of_a_pause_is_recorded() {
        let all = async {
            let thread = Thread::new();
            let (ordinal, began) = (Ordinal(1), Timestamp::from_millis(1_000));
            let trouble = Trouble {
                attempts: 1,
                first_attempt_at: began,
                last_attempt_at: began,
                action: Action::Create,
                status: Some(503),
                error: None,
                response: None,
                unheard: false,
                has: None,
                lent: None,
            };
            let standing = Standing {
                ordinal,
                seq: Seq(1),
                doubt: false,
                state: State::Waiting { due: began },
                replay: 0,
                trouble: Some(Box::new(trouble)),
            };
            let saved = Saved { cursor: Seq(1), standings: vec![standing], ..Saved::default() };
            let entry = thread.open(1, saved, Standstill::Paused);
            let mut worker = thread.worker.borrow_mut();
            // As the thread has it: the wall clock is rounded elsewhere.
            let now = worker.now();
            worker.stand(entry.place.number(), Standstill::None, Some(began));
            let (writes, _) = next(&mut worker);
            let standing = writes[0].record.standings[0].trouble.as_ref().expect("it was tried");
            assert!(standing.first_attempt_at >= now, "a crash now must not have it given up");
        };
        LocalSet::new().run_until(all).await;
    }

    #[tokio::test]
    async fn what_is_not_urgent_has_its_turn_behind_what_is_and_each_feed_is_written_once() {
        let all = async {
            let thread = Thread::new();
            let patient = thread.open(1, Saved::default(), Standstill::None);
            let urgent = thread.open(2, Saved::default(), Standstill::None);
            let mut worker = thread.worker.borrow_mut();
            let change = |worker: &mut Worker, entry: FeedPlace| {
                feed(worker, entry).tally_mut().failed += 1;
                worker.mark_dirty(entry.place, 0, entry == urgent);
            };
            change(&mut worker, patient);
            for _ in 0..3 {
                change(&mut worker, urgent);
                let Batch { feeds, all, .. } = worker.unrecorded.take(false);
                assert_eq!(feeds, [urgent], "it is not time for the other");
                let (_, receipts) = collect(&mut worker, &feeds, all);
                receipts.into_iter().for_each(|(entry, receipt)| worker.recorded(entry, receipt));
            }
            change(&mut worker, urgent);
            let Batch { feeds, all, .. } = worker.unrecorded.take(true);
            assert_eq!(feeds, [urgent, patient]);
            assert_eq!(collect(&mut worker, &feeds, all).0.len(), 2);
            assert!(worker.unrecorded.is_empty());
        };
        LocalSet::new().run_until(all).await;
    }
}
