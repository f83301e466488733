//! Reads of the store for feeds that are behind the tail, and for retries of documents that are not recent.

use flare_model::ids::{Ordinal, Seq};

use crate::journey::reading::insist::insist;
use crate::journey::reading::sweeping;
use crate::journey::subscriber::lane::Era;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::FeedPlace;
use crate::journey::worker::subscribers::Place;

impl Worker {
    /// Reads a page of a lane beyond a feed's position; the feed is ready again when it is there.
    pub fn load_page(&mut self, place: Place, lane: u8) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        if slot.aside.loading {
            return;
        }
        slot.aside.loading = true;
        let (position, tail, since) = (slot.feed.position(), slot.tail.clone(), slot.feed.since());
        let era = slot.era;
        let (worker, tools) = (self.handle(), self.tools.clone());
        self.tasks.spawn_local(async move {
            let read = || tools.pages.page(tail.lane(), position, tail.floor(), since);
            let Some(page) = insist(&tools, read).await else { return };
            let mut worker = worker.borrow_mut();
            // Whoever began another era looks for himself.
            let Some(slot) = worker.slot_of_era(place.feed(lane), era) else { return };
            slot.aside.loading = false;
            // A page that begins beyond the reader would have it pass by what lies between.
            debug_assert!(page.begins_at(slot.feed.position()), "within an era a reader never goes back");
            slot.aside.page = Some(page).filter(|page| page.begins_at(slot.feed.position()));
            worker.subscribers[place].mark_unread(lane);
            worker.ready(place);
        });
    }

    /// A lane as it was when a read was begun for it; `None` if it is another one by now, or what is needed is.
    pub fn slot_of_era(&mut self, FeedPlace { place, lane }: FeedPlace, era: Era) -> Option<&mut FeedLane> {
        let slot = self.subscribers.get_mut(place)?.lanes.get_mut(lane)?;
        Some(slot).filter(|slot| slot.era == era)
    }

    /// Another era begins for a lane: what was read for it goes, and what is being read will tell nothing.
    pub fn begin_era(&mut self, place: Place, lane: u8) {
        self.eras.0 += 1;
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        slot.era = self.eras;
        slot.aside.forget_what_was_read();
    }

    /// Reads a document that waits; it is due again when it is there.
    pub fn fetch(&mut self, place: Place, lane: u8, ordinal: Ordinal) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        slot.aside.fetching += 1;
        let (id, era) = (slot.tail.lane(), slot.era);
        let (worker, tools) = (self.handle(), self.tools.clone());
        self.tasks.spawn_local(async move {
            let read = || tools.pages.document(id, ordinal);
            let Some((change, head)) = insist(&tools, read).await else { return };
            let mut worker = worker.borrow_mut();
            if let Some(slot) = worker.slot_of_era(place.feed(lane), era) {
                slot.aside.fetching -= 1;
                match change {
                    Some(change) => {
                        slot.aside.fetched.insert(ordinal, tools.pages.keep_for_its_turn(change, head));
                    }
                    None => worker.gone(place, lane, ordinal, head),
                }
            }
            worker.due_again(place, lane, ordinal);
        });
    }

    /// A document whose turn had come, and for which something was read, has its turn again.
    pub fn due_again(&mut self, place: Place, lane: u8, ordinal: Ordinal) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        if subscriber.lanes.get(lane).is_some() {
            subscriber.due.push_front((lane, ordinal));
            self.ready(place);
        }
    }

    /// A document that waits is not in the store, of which the newest change was `head`: its tombstone was removed,
    /// because no feed needed it, and then somebody asked for it; or this feed did not, and a crash came before that
    /// was recorded. Nothing can be told of it, and it must not keep its place among those that wait.
    fn gone(&mut self, place: Place, lane: u8, ordinal: Ordinal, head: Seq) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        if slot.feed.gone(ordinal, head) {
            self.mark_dirty(place, lane, false);
            sweeping::go_on(self, place);
        }
    }
}
