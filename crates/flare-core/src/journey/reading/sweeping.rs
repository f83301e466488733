//! Sweeps: pages of older documents become standings, a page at a time, and are sent like any retry.

use std::time::Duration;

use flare_model::feed::{Filled, SweepKind};
use flare_model::ids::{Ordinal, Seq, SubscriptionNumber};
use flare_model::pace::WAITING_WHILE_STRUGGLING;

use crate::journey::reading::insist::insist;
use crate::journey::reading::interest::{self, Turn};
use crate::journey::subscriber::lane::Era;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::subscriber::lane::Sweeping;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::FeedPlace;
use crate::journey::worker::subscribers::Place;
use crate::notification::change::Change;

/// A sweep hands over more when fewer than so many documents of the subscription wait to be taken.
const LOW_WATER: usize = 64;

/// A sweep that meets a document which is soon to be decided looks again after this time.
const RECESS: Duration = Duration::from_millis(20);

/// Why a sweep does not go on now. Whoever stands still has something that wakes him: each says what it is that calls
/// [`go_on`] again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// The thread stops: the next life looks when the subscription is opened (`Worker::set_going`).
    Stopping,
    /// Paused or disabled: `Worker::set_going` again, when it is resumed.
    StandsStill,
    /// The page that is being read, when it is handed over: below.
    Reads,
    /// What was handed over, or a mark, that is to be durable first: `Worker::recorded`.
    Records,
    /// Documents that wait, as many as may, or one that is due, of a client that struggles. Each of them is due at some time, and then it is sent (`Worker::conclude`
    /// at the end of the attempt) or ceases to wait (`Worker::take_due`, `Worker::take_revision`, the reader at the end
    /// of its lane, `Worker::gone` if there is no such document any more, `Worker::let_go` if its lane leaves). One on a
    /// lease ends with it (`Worker::expire_leases`, `Worker::settle_leases`).
    Full,
}

/// What decides whether a sweep goes on.
#[derive(Clone, Copy, Debug)]
struct Circumstances {
    stopping: bool,
    stands: bool,
    reads: bool,
    records: bool,
    /// Nothing has succeeded lately, so that one thing at a time is tried.
    struggling: bool,
    /// Documents of the subscription that wait.
    waiting: usize,
    /// Those of them that are due, and what is in flight.
    tried: usize,
    /// Those of them that are on a lease.
    leased: usize,
    /// How many may wait.
    limit: usize,
}

impl Circumstances {
    /// How many documents may be handed over, or what is waited for.
    ///
    /// A client that struggles is handed few, and only when nothing of it is due: what is due is tried, and a success
    /// ends the struggle. But if there is nothing to be tried, nothing can: so then the sweep gives something. What waits
    /// for a retry that is far is not waited for: whoever asks for a replay wants to know now.
    fn room(self) -> Result<usize, Rest> {
        let limit = if self.struggling { WAITING_WHILE_STRUGGLING.min(self.limit) } else { self.limit };
        match self {
            Circumstances { stopping: true, .. } => Err(Rest::Stopping),
            Circumstances { stands: true, .. } => Err(Rest::StandsStill),
            Circumstances { reads: true, .. } => Err(Rest::Reads),
            Circumstances { records: true, .. } => Err(Rest::Records),
            Circumstances { struggling: true, tried, .. } if tried > 0 => Err(Rest::Full),
            // What a client has on a lease it has taken: it may ask for more.
            _ if self.waiting.saturating_sub(self.leased) >= LOW_WATER => Err(Rest::Full),
            _ => limit.checked_sub(self.waiting).filter(|room| *room > 0).ok_or(Rest::Full),
        }
    }
}

/// Lets the sweep of a subscription go on, if there is one, it is not at work, and there is room. Its lanes are
/// swept one after the other, so that a sweep never fills the room that live work needs.
pub fn go_on(worker: &mut Worker, place: Place) {
    let (stopping, limits) = (worker.stopping, worker.tools.limits);
    let Some(subscriber) = worker.subscribers.get_mut(place) else { return };
    if subscriber.lanes.noted().sweeping == 0 {
        return;
    }
    let Some(lane) = subscriber.lanes.iter().find(|slot| slot.may_sweep()).map(|slot| slot.id.lane) else {
        // Each sweep stands before a document in flight: the end of that attempt or lease comes here, as above. Or its
        // lane is about to leave: whoever serves it next looks, and here `Worker::let_go` for the others.
        return;
    };
    let circumstances = Circumstances {
        stopping,
        stands: subscriber.stands(),
        reads: subscriber.lanes[lane].aside.sweeping == Sweeping::Reads,
        records: subscriber.lanes[lane].wants_record,
        struggling: subscriber.fortune.struggling() && subscriber.passive.is_none(),
        waiting: subscriber.waiting(),
        tried: subscriber.due.len() + subscriber.in_flight as usize,
        leased: subscriber.leases.as_ref().map_or(0, |leases| leases.out()),
        limit: limits.waiting_limit,
    };
    let Ok(room) = circumstances.room() else { return };
    let slot = &mut subscriber.lanes[lane];
    let Some(sweep) = slot.feed.sweeping() else { return };
    slot.aside.sweeping = Sweeping::Reads;
    let (after, upto, id, era) = (sweep.position, sweep.end, slot.tail.lane(), slot.era);
    let (handle, tools) = (worker.handle(), worker.tools.clone());
    worker.tasks.spawn_local(async move {
        let read = || tools.pages.sweep(id, after, upto, room);
        let Some(page) = insist(&tools, read).await else { return };
        let filled = fill(&mut handle.borrow_mut(), place.feed(lane), era, after, page);
        if filled == Page::Busy {
            tokio::time::sleep(RECESS).await;
        }
        let mut worker = handle.borrow_mut();
        let Some(slot) = worker.slot_of_era(place.feed(lane), era) else { return };
        slot.aside.sweeping = match filled {
            Page::Whole | Page::Busy => Sweeping::Rests,
            Page::Before(ordinal) => Sweeping::Before(ordinal),
        };
        slot.aside.tidy();
        #[cfg(feature = "planted")]
        if flare_model::planted::Bug::SweepStandsStill.is_planted() {
            return;
        }
        go_on(&mut worker, place);
        // The end of a lease may be far. Whoever asks now need not wait for that.
        if matches!(filled, Page::Before(_)) {
            worker.ready(place);
        }
    });
}

impl Worker {
    /// Begins a sweep over all lanes; false while another one is under way.
    pub(in crate::journey) fn begin_sweep(
        &mut self,
        number: SubscriptionNumber,
        kind: SweepKind,
        replay: u64,
    ) -> bool {
        let Some(place) = self.subscribers.find(number) else { return false };
        let lanes = &mut self.subscribers[place].lanes;
        if lanes.iter().any(|lane| lane.feed.sweeping().is_some()) {
            return false;
        }
        for lane in lanes.iter_mut().filter(|lane| lane.feed.position() > Seq(0)) {
            lane.feed.start_sweep(kind, replay);
        }
        for lane in lanes.numbers() {
            self.mark_dirty(place, lane, false);
        }
        go_on(self, place);
        true
    }
}

impl FeedLane {
    /// Whether there is a sweep here, which stays, and the document that it stood before, if any, is out of its way.
    fn may_sweep(&self) -> bool {
        let in_the_way =
            matches!(self.aside.sweeping, Sweeping::Before(ordinal) if self.feed.is_open(ordinal));
        self.feed.sweeping().is_some() && self.aside.leaving.is_none() && !in_the_way
    }
}

/// How far a page was handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Whole,
    /// Up to a document that nobody can tell of now, but soon; or the expressions have had the thread for long enough.
    Busy,
    /// Up to this document, which is being sent, or which a client has on a lease.
    Before(Ordinal),
}

/// Hands a page over, up to the first document that is in flight, or until its expressions have had the thread for
/// long enough.
fn fill(worker: &mut Worker, feed: FeedPlace, era: Era, after: Seq, page: flare_provider::Page) -> Page {
    let FeedPlace { place, lane } = feed;
    let now = worker.now();
    let (clock, tools) = (worker.tools.clock.clone(), worker.tools.clone());
    let Some(subscriber) = worker.subscribers.get_mut(place) else { return Page::Whole };
    let compiled = subscriber.compiled.clone();
    let Some(slot) = subscriber.lanes.get_mut(lane).filter(|slot| slot.era == era) else {
        return Page::Whole;
    };
    if slot.feed.sweeping().is_none_or(|sweep| sweep.position != after) {
        return Page::Whole;
    }
    let turn = Turn::begin(&compiled, &*clock);
    let mut filled = Page::Whole;
    for document in page.documents {
        let row = document.row;
        if turn.is_over(&*clock).is_some() {
            filled = Page::Busy;
            break;
        }
        // A document that moved on meanwhile belongs to the live cursor.
        let newest = slot.tail.still_newest(row.ordinal, row.seq, page.head);
        if newest == Some(false) {
            continue;
        }
        let in_turn = slot.feed.is_in_turn();
        // An older revision must not follow a newer one: the page is read again if nobody can tell.
        if in_turn && newest.is_none() {
            filled = Page::Busy;
            break;
        }
        let change = Change::new(document);
        match interest::sweep(&compiled, &mut slot.feed, &change, now, &*clock) {
            Filled::Passed => {}
            Filled::Taken => {
                slot.aside.swept.push(row.ordinal);
                // Where there is no room for it, it is read again when its turn comes.
                if !in_turn && let Some(fetched) = tools.pages.keep(change, page.head) {
                    slot.aside.fetched.insert(row.ordinal, fetched);
                }
            }
            Filled::Blocked => {
                let open = slot.feed.is_open(row.ordinal);
                filled = if open { Page::Before(row.ordinal) } else { Page::Busy };
                break;
            }
        }
    }
    if filled == Page::Whole {
        let prepares = slot.feed.sweeping().is_some_and(|sweep| sweep.kind == SweepKind::Beginning);
        if slot.feed.sweep_to(page.upto) && prepares {
            slot.feed.tally_mut().health_mut().prepared_at = Some(now);
        }
    }
    // A sweep that stands still has nothing to record, and a record would only have it look again.
    let moved = slot.feed.sweeping().is_none_or(|sweep| sweep.position != after);
    let urgent = !slot.aside.swept.is_empty();
    if moved || urgent {
        worker.mark_dirty(place, lane, urgent);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ease() -> Circumstances {
        Circumstances {
            stopping: false,
            stands: false,
            reads: false,
            records: false,
            struggling: false,
            waiting: 0,
            tried: 0,
            leased: 0,
            limit: 1024,
        }
    }

    #[test]
    fn each_reason_alone_has_a_sweep_rest() {
        assert_eq!(at_ease().room(), Ok(1024));
        for (rests, why) in [
            (Circumstances { stopping: true, ..at_ease() }, Rest::Stopping),
            (Circumstances { stands: true, ..at_ease() }, Rest::StandsStill),
            (Circumstances { reads: true, ..at_ease() }, Rest::Reads),
            (Circumstances { records: true, ..at_ease() }, Rest::Records),
            (Circumstances { waiting: LOW_WATER, ..at_ease() }, Rest::Full),
            (Circumstances { waiting: 1, limit: 1, ..at_ease() }, Rest::Full),
            (Circumstances { waiting: 1, tried: 1, struggling: true, ..at_ease() }, Rest::Full),
            (Circumstances { waiting: WAITING_WHILE_STRUGGLING, struggling: true, ..at_ease() }, Rest::Full),
            (Circumstances { waiting: 9, leased: 9, limit: 9, ..at_ease() }, Rest::Full),
        ] {
            assert_eq!(rests.room(), Err(why), "{rests:?}");
        }
    }

    #[test]
    fn what_waits_for_a_retry_that_is_far_keeps_nothing_from_being_tried() {
        let struggling = Circumstances { waiting: 1, struggling: true, ..at_ease() };
        assert_eq!(struggling.room(), Ok(WAITING_WHILE_STRUGGLING - 1));
    }

    #[test]
    fn what_is_on_a_lease_does_not_keep_a_client_from_more() {
        let leased = Circumstances { waiting: 500, leased: 500, ..at_ease() };
        assert_eq!(leased.room(), Ok(524));
        assert_eq!(Circumstances { waiting: 500 + LOW_WATER, ..leased }.room(), Err(Rest::Full));
    }

    /// A sweep that is full is woken by one of those that wait: so there has to be one.
    #[test]
    fn a_sweep_is_never_full_when_nothing_waits_and_never_hands_over_more_than_may_wait() {
        for struggling in [false, true] {
            for limit in [1, 2, WAITING_WHILE_STRUGGLING, LOW_WATER, 1024] {
                for waiting in 0..=limit {
                    let room = Circumstances { struggling, limit, waiting, ..at_ease() }.room();
                    let least = usize::from(waiting == 0);
                    let room = room.unwrap_or(0);
                    assert!(
                        room >= least && room + waiting <= limit,
                        "{struggling} {limit} {waiting}: {room}"
                    );
                    assert!(!struggling || room <= WAITING_WHILE_STRUGGLING, "{limit} {waiting}: {room}");
                }
            }
        }
    }
}
