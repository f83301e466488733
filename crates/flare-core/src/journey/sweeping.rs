//! Sweeps: pages of older documents become standings, a page at a time, and are sent like any retry.

use std::time::Duration;

use flare_model::feed::Filled;
use flare_model::ids::{Seq, SubscriptionNumber};

use super::change::Change;
use super::interest::{self, Turn};
use super::loading::insist;
use super::shard::Shard;
use super::subscriber::FeedLane;

/// A sweep hands over more when fewer than so many documents of the subscription wait.
const LOW_WATER: usize = 64;

/// A sweep that meets a document in flight looks again after this time.
const RECESS: Duration = Duration::from_millis(20);

/// Lets the sweep of a subscription go on, if there is one, it is not at work, and there is room. Its lanes are
/// swept one after the other, so that a sweep never fills the room that live work needs.
pub fn go_on(shard: &mut Shard, key: usize) {
    let stopping = shard.stopping;
    let Some(subscriber) = shard.subscribers.get_mut(key) else { return };
    if subscriber.lanes.noted().sweeping == 0 {
        return;
    }
    let stays = |slot: &&FeedLane| slot.leaving.is_none() && slot.feed.sweeping().is_some();
    let sweeping = subscriber.lanes.iter().find(stays);
    let Some(lane) = sweeping.map(|slot| slot.id.lane) else { return };
    let number = subscriber.compiled.number;
    let struggling = subscriber.fortune.struggling() && subscriber.passive.is_none();
    let stands = subscriber.stands() || struggling;
    let full = subscriber.waiting() >= LOW_WATER;
    let slot = &mut subscriber.lanes[usize::from(lane)];
    let Some(sweep) = slot.feed.sweeping() else { return };
    if stopping || stands || slot.sweeping || slot.wants_record || full {
        return;
    }
    slot.sweeping = true;
    let (after, upto, id) = (sweep.position, sweep.end, slot.tail.lane());
    let (handle, shared) = (shard.handle(), shard.shared.clone());
    shard.tasks.spawn_local(async move {
        let read = || shared.pages.sweep(id, after, upto);
        let Some(page) = insist(&shared, read).await else { return };
        let filled = fill(&mut handle.borrow_mut(), key, number, lane, after, page);
        if filled == Page::Busy {
            tokio::time::sleep(RECESS).await;
        }
        let mut shard = handle.borrow_mut();
        if let Some(subscriber) = shard.subscriber(key, number) {
            if let Some(slot) = subscriber.lanes.get_mut(lane) {
                slot.sweeping = false;
            }
            match filled {
                // The end of the lease, which may be far, has it go on. Whoever asks now need not wait for that.
                Page::Leased => shard.ready(key),
                Page::Whole | Page::Busy => go_on(&mut shard, key),
            }
        }
    });
}

/// How far a page was handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Whole,
    /// Up to a document that is being sent.
    Busy,
    /// Up to a document that a client has on a lease.
    Leased,
}

/// Hands a page over, up to the first document that is in flight, or until its expressions have had the thread for
/// long enough.
fn fill(
    shard: &mut Shard,
    key: usize,
    number: SubscriptionNumber,
    lane: u8,
    after: Seq,
    page: flare_provider::Page,
) -> Page {
    let now = shard.now();
    let clock = shard.shared.clock.clone();
    let Some(subscriber) = shard.subscriber(key, number) else { return Page::Whole };
    let compiled = subscriber.compiled.clone();
    let Some(slot) = subscriber.lanes.get_mut(lane) else { return Page::Whole };
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
                slot.swept.push(row.ordinal);
                if !in_turn {
                    slot.fetched.insert(row.ordinal, (change, page.head));
                }
            }
            Filled::Blocked => {
                let leased = slot.feed.leased(row.ordinal).is_some();
                filled = if leased { Page::Leased } else { Page::Busy };
                break;
            }
        }
    }
    if filled == Page::Whole {
        slot.feed.sweep_to(page.upto);
    }
    // A sweep that stands still has nothing to record, and a record would only have it look again.
    let moved = slot.feed.sweeping().is_none_or(|sweep| sweep.position != after);
    let urgent = !slot.swept.is_empty();
    if moved || urgent {
        shard.mark_dirty(key, lane, urgent);
    }
    filled
}
