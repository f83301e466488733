//! What the node tells a subscription that is served here: other settings, to stop or to go on, to record, to begin again.

use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;
use flare_model::time::Timestamp;
use tokio::sync::oneshot;

use crate::journey::reading::sweeping;
use crate::journey::subscriber::Standstill;
use crate::journey::thread::opening::select;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;
use crate::notification::compiled::Compiled;

impl Worker {
    /// The settings of a subscription have changed.
    pub(super) fn replace(&mut self, compiled: Arc<Compiled>) {
        let Some(place) = self.subscribers.find(compiled.number) else { return };
        let hosts = self.hosts.use_by(&compiled);
        // Its lanes stay where they are until they are sent elsewhere.
        let subscriber = &mut self.subscribers[place];
        subscriber.compiled = compiled;
        let keeps_state = subscriber.compiled.spec.keeps_state();
        subscriber.lanes.iter_mut().for_each(|lane| lane.feed.keep_states(keeps_state));
        self.share_concurrency(place);
        self.follow(place);
        let before = self.subscribers[place].hosts;
        if before != hosts {
            // The host it had may be left alone for long, and the one that it has now need not wait for that.
            self.quit_hosts(place);
            let subscriber = &mut self.subscribers[place];
            (subscriber.host, subscriber.hosts) = (hosts[1], hosts);
            self.join_hosts(place);
        }
        self.hosts.leave(before);
        let subscriber = &mut self.subscribers[place];
        select(&subscriber.compiled, &mut subscriber.lanes);
        for lane in subscriber.lanes.numbers() {
            self.mark_dirty(place, lane, false);
        }
        let was_passive = self.subscribers[place].passive.is_some();
        self.change_mode(place);
        if was_passive != self.subscribers[place].passive.is_some() {
            self.forgive(place);
        }
        sweeping::go_on(self, place);
        self.ready(place);
    }

    /// How a subscription fared says nothing any more, after a restart either.
    fn forgive(&mut self, place: Place) {
        for lane in self.subscribers[place].forgive() {
            self.mark_dirty(place, lane, false);
        }
    }

    /// A subscription is stopped, or let go.
    pub(in crate::journey) fn stand(
        &mut self,
        number: SubscriptionNumber,
        standstill: Standstill,
        paused_since: Option<Timestamp>,
    ) {
        let now = self.now();
        let Some(place) = self.subscribers.find(number) else { return };
        if standstill != Standstill::Paused {
            // It is durable, or somebody lets the subscription go on all the same.
            self.forget_decision(number);
        }
        let stood = self.subscribers[place].stand(standstill, now);
        self.subscribers[place].let_go_of_documents(None);
        self.drive_may_end(place);
        self.rest_when_quiet(place);
        let Some(stood) = stood else { return };
        self.forgive(place);
        if let Some(since) = paused_since {
            let paused = stood.lasted(now, since);
            for lane in self.subscribers[place].lanes.numbers() {
                let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
                slot.feed.prolong(paused);
                self.record_what_changed(place, lane);
            }
        }
        let lanes = self.subscribers.lanes(place);
        self.set_going(place, &lanes);
    }

    /// Once nothing of a subscription that stands still is in flight, its marks are taken back, with the record that
    /// has the last outcomes: what the origin changes from now on was not sent, even if the process is killed.
    pub(in crate::journey) fn rest_when_quiet(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        if subscriber.standstill == Standstill::None || subscriber.in_flight > 0 {
            return;
        }
        for lane in subscriber.lanes.numbers() {
            let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
            slot.feed.pause();
            self.record_what_changed(place, lane);
        }
    }

    /// Makes everything durable that is known of a subscription, and tells when it is.
    pub(in crate::journey) fn record_now(&mut self, number: SubscriptionNumber, reply: oneshot::Sender<()>) {
        let Some(place) = self.subscribers.find(number) else {
            let _ = reply.send(());
            return;
        };
        // The recorder writes all it has for whoever waits; a feed with nothing to record goes on meanwhile.
        for lane in self.subscribers.lanes(place) {
            self.record_what_changed(place, lane);
            #[cfg(feature = "planted")]
            if flare_model::planted::Bug::MarkFalls.is_planted() {
                self.mark_dirty(place, lane, true);
            }
        }
        self.unrecorded.tell_when_durable(reply);
    }

    /// Where several threads serve a subscription, some of them may do so while others have an attempt in flight and
    /// answer false. It is then still disabled, with all of this to be done, and to do it twice is as to do it once.
    pub(super) fn begin_again(&mut self, number: SubscriptionNumber) -> bool {
        let Some(place) = self.subscribers.find(number) else { return false };
        let subscriber = &mut self.subscribers[place];
        if subscriber.in_flight > 0 || subscriber.leases.is_some() {
            return false;
        }
        subscriber.due.clear();
        for slot in subscriber.lanes.iter_mut() {
            if let Some(aside) = slot.aside.any() {
                aside.swept.clear();
            }
            slot.feed.begin_again(slot.tail.head());
        }
        for lane in subscriber.lanes.numbers() {
            self.begin_era(place, lane);
            // Parked at the end of its lane, it would wait for the next change.
            self.subscribers[place].mark_unread(lane);
            self.mark_dirty(place, lane, false);
        }
        true
    }
}
