//! Who has something to take: lanes that moved come in, subscriptions that stand in the queue of their host go out, each
//! once. Feeds that have nothing to read are put to sleep.

use flare_model::ids::LaneId;

use crate::journey::bell::Rung;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

impl Worker {
    /// The bell was rung.
    pub fn rung(&mut self, rung: Rung) {
        self.lanes_moved(rung.lanes);
        for call in rung.calls {
            self.called(call);
        }
    }

    /// Lanes have moved: whoever is parked at their end has something to read.
    fn lanes_moved(&mut self, lanes: Vec<LaneId>) {
        for lane in lanes {
            for place in self.parked.wake(lane) {
                let Some(subscriber) = self.subscribers.get_mut(place) else { continue };
                let Some(slot) = subscriber.lanes.get_mut(lane.index) else { continue };
                slot.parked = None;
                subscriber.mark_unread(lane.index);
                self.ready(place);
            }
        }
    }

    /// Puts a feed to sleep at the end of its lane. False when there is something to read after all.
    pub fn park(&mut self, place: Place, lane: u8) -> bool {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return true };
        if slot.parked.is_some() {
            return true;
        }
        if !slot.tail.park(slot.feed.position(), self.thread) {
            return false;
        }
        slot.parked = Some(self.parked.park(slot.tail.lane(), place));
        true
    }

    /// A subscription may have something to take: it stands in its host's queue, once, and a courier is called.
    pub fn ready(&mut self, place: Place) {
        if let Some(host) = self.enqueue(place) {
            self.summon(host);
        }
    }

    /// The same by a courier of host `mine`, who is about to look into that queue itself.
    pub fn ready_for(&mut self, place: Place, mine: usize) {
        if let Some(host) = self.enqueue(place)
            && (host != mine || self.hosts[host].queue.len() > 1)
        {
            self.summon(host);
        }
    }

    fn enqueue(&mut self, place: Place) -> Option<usize> {
        if self.subscribers.get(place)?.passive.is_some() && !self.passive_turn(place) {
            return None;
        }
        let subscriber = self.subscribers.get_mut(place)?;
        let nothing = subscriber.unread.is_empty() && subscriber.due.is_empty();
        let stands = subscriber.stands() || self.stopping;
        let full = subscriber.in_flight >= subscriber.room() || subscriber.waits_for_concurrency();
        let full = full || subscriber.waits.is_some();
        if nothing || stands || full || subscriber.queued {
            self.rest(place);
            return None;
        }
        let host = subscriber.host;
        if self.hosts[host].is_left_alone() {
            // It is tried for when the host is asked again: until then it is kept from nobody.
            self.return_share(place);
        } else if !self.may_share(place) {
            self.rest(place);
            return None;
        }
        self.stand_in_queue(place);
        Some(host)
    }
}
