//! Lanes of a subscription leave their thread, because they are to be spread otherwise: each finishes what is in flight,
//! records, and goes. The next owner begins with what the store has. The other lanes are served meanwhile.

use flare_model::ids::SubscriptionNumber;
use tokio::sync::oneshot;

use crate::journey::reading::sweeping;
use crate::journey::subscriber::decision::Decision;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::subscriber::lane::Leaving;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

impl Worker {
    /// Begins nothing more of some lanes, and tells of each when nothing of it is in flight; never, if the subscription
    /// is gone.
    pub fn drain(&mut self, number: SubscriptionNumber, lanes: Vec<(u8, oneshot::Sender<()>)>) {
        let Some(place) = self.subscribers.find(number) else { return };
        for (lane, drained) in lanes {
            if let Some(slot) = self.subscribers.lane_mut(place, lane) {
                slot.aside.leaving = Some(Leaving { drained: Some(drained) });
                self.leave_when_drained(place, lane);
            }
        }
        // What it was about to take may have been of these alone.
        self.drive_may_end(place);
    }

    /// Tells whoever waits for a lane to have nothing in flight, once that is so.
    pub fn leave_when_drained(&mut self, place: Place, lane: u8) {
        let slot = self.subscribers.get_mut(place).and_then(|subscriber| subscriber.lanes.get_mut(lane));
        let Some(slot) = slot.filter(|slot| slot.in_flight == 0) else { return };
        let leaving = slot.aside.any().and_then(|aside| aside.leaving.as_mut());
        if let Some(drained) = leaving.and_then(|leaving| leaving.drained.take()) {
            let _ = drained.send(());
        }
    }

    /// Makes everything durable that is known of drained lanes, and forgets them here.
    pub fn release(
        &mut self,
        number: SubscriptionNumber,
        lanes: Vec<u8>,
        reply: oneshot::Sender<Option<Decision>>,
    ) {
        let Some(place) = self.subscribers.find(number) else { return };
        for lane in &lanes {
            if let Some(slot) = self.subscribers.lane_mut(place, *lane) {
                slot.aside.leaving.get_or_insert_default();
                slot.feed.close();
            }
        }
        let (durable, is_durable) = oneshot::channel();
        self.record_now(number, durable);
        let handle = self.handle();
        self.tasks.spawn_local(async move {
            // An error means that the thread is stopping, which records everything itself.
            if is_durable.await.is_ok() {
                let mut worker = handle.borrow_mut();
                // Wherever lanes of it go, nothing begins.
                let decision = worker.decision(number);
                worker.let_go(number, &lanes);
                let _ = reply.send(decision);
            }
        });
    }

    /// Forgets lanes at once, because another node may have them: whoever sends something of them stops, what they wait to
    /// have recorded is not, and whoever waits for that hears nothing.
    pub fn cut(&mut self, number: SubscriptionNumber, lanes: &[u8]) {
        let Some(place) = self.subscribers.find(number) else { return };
        let subscriber = &mut self.subscribers[place];
        if let Some(leases) = &mut subscriber.leases {
            leases.cut(lanes);
        }
        let open: u32 =
            lanes.iter().filter_map(|lane| subscriber.lanes.get(*lane)).map(|slot| slot.in_flight).sum();
        if let Some(tenancy) = &self.tools.tenancy {
            tenancy.cut(u64::from(open), self.tools.clock.monotonic());
        }
        self.let_go(number, lanes);
        self.cuts.notify_waiters();
    }

    fn let_go(&mut self, number: SubscriptionNumber, lanes: &[u8]) {
        let Some(place) = self.subscribers.find(number) else { return };
        let subscriber = &mut self.subscribers[place];
        subscriber.due.retain(|(lane, _)| !lanes.contains(lane));
        subscriber.unread.retain(|lane| !lanes.contains(lane));
        let gone: Vec<FeedLane> = lanes.iter().filter_map(|lane| subscriber.lanes.remove(*lane)).collect();
        if subscriber.leases.as_mut().is_some_and(|leases| leases.let_go(lanes)) {
            subscriber.leases = None;
        }
        // Only of lanes that are cut is anything open.
        subscriber.in_flight -= gone.iter().map(|slot| slot.in_flight).sum::<u32>();
        gone.iter().for_each(|slot| self.wake_no_more(slot));
        if self.subscribers[place].lanes.is_empty() {
            self.remove(number);
        } else {
            self.give_back(place);
            // What waited in those lanes made no room for the others.
            sweeping::go_on(self, place);
            self.ready(place);
        }
    }

    /// Forgets a subscription: it was deleted, or is served elsewhere.
    pub(in crate::journey) fn remove(&mut self, number: SubscriptionNumber) {
        self.forget_decision(number);
        let Some(place) = self.subscribers.find(number) else { return };
        self.quit_hosts(place);
        let Some((_, removed)) = self.subscribers.remove(number) else { return };
        removed.lanes.iter().for_each(|slot| self.wake_no_more(slot));
        self.hosts.leave(removed.hosts);
        if let Some(borrowed) = removed.borrowed {
            self.borrow_no_more(number, &borrowed);
        }
    }

    /// A lane that was let go sleeps at no end.
    fn wake_no_more(&mut self, slot: &FeedLane) {
        let Some(place) = slot.parked else { return };
        let moved = self.parked.leave(slot.tail.lane(), place);
        if let Some(moved) = moved.and_then(|place| self.subscribers.lane_mut(place, slot.id.lane)) {
            moved.parked = Some(place);
        }
    }

    /// Whether no sweep of a subscription is under way.
    pub fn may_sweep(&self, number: SubscriptionNumber) -> bool {
        let Some(place) = self.subscribers.find(number) else { return true };
        self.subscribers[place].lanes.iter().all(|lane| lane.feed.sweeping().is_none())
    }
}
