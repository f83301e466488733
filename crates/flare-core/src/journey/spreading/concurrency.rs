//! How many attempts of a subscription may be open: what it costs a thread to begin one, of the subscription's own
//! concurrency and rate where several threads share them.

use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;

use crate::journey::bell::Call;
use crate::journey::permits::concurrency::{Borrowed, Common};
use crate::journey::subscriber::placement::Placement;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

impl Worker {
    /// Whether the concurrency of a subscription has room for one more attempt. If so it is taken, and what is not used
    /// after all goes back when the subscription [rests](Worker::rest).
    pub(in crate::journey) fn may_begin(&mut self, place: Place) -> bool {
        let thread = self.thread;
        let subscriber = &mut self.subscribers[place];
        match &mut subscriber.borrowed {
            None => true,
            Some(borrowed) => borrowed.take(thread, subscriber.in_flight),
        }
    }

    /// An attempt has ended: what the thread has beyond its part goes back.
    pub(in crate::journey) fn give_back(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let number = place.number();
        let Some(borrowed) = &mut subscriber.borrowed else { return };
        if let Some(threads) = borrowed.give_back(subscriber.in_flight) {
            self.tools.caps.call(threads, || Call::Concurrency(number));
        }
    }

    /// A subscription that does not stand in its host's queue keeps nothing that another thread could use.
    pub(in crate::journey) fn rest(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        if subscriber.queued {
            return;
        }
        let number = subscriber.compiled.number;
        let Some(borrowed) = &mut subscriber.borrowed else { return };
        let caps = &self.tools.caps;
        if let Some(threads) = borrowed.give_spare(subscriber.in_flight) {
            caps.call(threads, || Call::Concurrency(number));
        }
        if let Some(threads) = borrowed.decline(self.thread) {
            caps.call(threads, || Call::Concurrency(number));
        }
    }

    /// A courier came for a subscription and there was nothing to take: whatever it was called for, others may have.
    pub(in crate::journey) fn took_nothing(&mut self, place: Place) {
        self.rest(place);
        self.return_share(place);
    }

    /// A thread serves a subscription no more; nothing of it is in flight.
    pub(in crate::journey) fn borrow_no_more(&mut self, number: SubscriptionNumber, borrowed: &Borrowed) {
        let caps = &self.tools.caps;
        for threads in borrowed.leave(self.thread) {
            caps.call(threads, || Call::Concurrency(number));
        }
    }

    /// A subscription is served by other threads from now on, with which this one shares from now on if it did not.
    pub fn placed(&mut self, placement: Placement, common: Option<Arc<Common>>) {
        let Some(place) = self.subscribers.find(placement.number) else { return };
        let subscriber = &mut self.subscribers[place];
        subscriber.placement = placement;
        if subscriber.borrowed.is_none()
            && let Some(common) = common
        {
            *common.bucket.lock() = subscriber.bucket.take();
            subscriber.borrowed = Some(Box::new(Borrowed::new(common, subscriber.in_flight, 0)));
            subscriber.share_fortune();
        }
        self.share_concurrency(place);
    }

    /// The concurrency of a subscription may be another one, and so may be the part of it that falls to this thread.
    pub(in crate::journey) fn share_concurrency(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let (number, concurrency) = (subscriber.compiled.number, subscriber.compiled.spec.concurrency);
        if let Some(borrowed) = &mut subscriber.borrowed {
            let part = subscriber.placement.share(concurrency, self.thread);
            self.tools.caps.call(borrowed.resize(concurrency, part), || Call::Concurrency(number));
        }
    }

    /// There may be room for one more attempt of a subscription.
    pub(in crate::journey) fn called_for_concurrency(&mut self, number: SubscriptionNumber) {
        let Some(place) = self.subscribers.find(number) else { return };
        if let Some(borrowed) = &mut self.subscribers[place].borrowed {
            borrowed.called();
        }
        self.ready(place);
    }
}
