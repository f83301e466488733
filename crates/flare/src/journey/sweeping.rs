//! Sweeps: pages of older documents become standings, a page at a time, and are sent like any retry.

use std::time::Duration;

use flare_model::feed::Filled;
use flare_model::ids::{Seq, SubscriptionNumber};
use flare_provider::Page;

use super::change::Change;
use super::loading::may_try_again;
use super::shard::Shard;

/// A sweep hands over more when fewer than so many documents of the subscription wait.
const LOW_WATER: usize = 64;

/// A sweep that meets a document in flight looks again after this time.
const RECESS: Duration = Duration::from_millis(20);

/// Lets the sweep of a subscription go on, if there is one, it is not at work, and there is room. Its lanes are
/// swept one after the other, so that a sweep never fills the room that live work needs.
pub fn go_on(shard: &mut Shard, key: usize) {
    let stopping = shard.stopping;
    let Some(subscriber) = shard.subscribers.get_mut(key) else { return };
    let sweeping = subscriber.lanes.iter().find(|slot| slot.feed.sweeping().is_some());
    let Some(lane) = sweeping.map(|slot| slot.id.lane) else { return };
    let number = subscriber.compiled.number;
    let stands = subscriber.stands() || subscriber.fortune.struggling();
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
        let page = loop {
            match shared.pages.sweep(id, after, upto).await {
                Ok(page) => break page,
                Err(error) => {
                    if !may_try_again(&shared, error).await {
                        return;
                    }
                }
            }
        };
        let blocked = fill(&mut handle.borrow_mut(), key, number, lane, after, page);
        if blocked {
            tokio::time::sleep(RECESS).await;
        }
        let mut shard = handle.borrow_mut();
        if let Some(subscriber) = shard.subscriber(key, number) {
            if let Some(slot) = subscriber.lanes.get_mut(lane) {
                slot.sweeping = false;
            }
            go_on(&mut shard, key);
        }
    });
}

/// Hands a page over. Returns whether it stopped at a document that is in flight.
fn fill(shard: &mut Shard, key: usize, number: SubscriptionNumber, lane: u8, after: Seq, page: Page) -> bool {
    let now = shard.shared.clock.now();
    let Some(subscriber) = shard.subscriber(key, number) else { return false };
    let Some(slot) = subscriber.lanes.get_mut(lane) else { return false };
    if slot.feed.sweeping().is_none_or(|sweep| sweep.position != after) {
        return false;
    }
    let mut blocked = false;
    for document in page.documents {
        let row = document.row;
        // A document that moved on meanwhile belongs to the live cursor.
        if slot.tail.still_newest(row.ordinal, row.seq, page.head) == Some(false) {
            continue;
        }
        match slot.feed.sweep(&row, document.updated_at, now) {
            Filled::Passed => {}
            Filled::Taken => {
                slot.swept.push(row.ordinal);
                slot.fetched.insert(row.ordinal, (Change::new(document), page.head));
            }
            Filled::Blocked => {
                blocked = true;
                break;
            }
        }
    }
    if !blocked {
        slot.feed.sweep_to(page.upto);
    }
    let urgent = !slot.swept.is_empty();
    shard.mark_dirty(key, lane, urgent);
    blocked
}
