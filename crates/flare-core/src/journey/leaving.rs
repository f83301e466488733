//! A subscription leaves its thread, because its lanes are to be spread otherwise: it finishes what is in flight,
//! records, and goes. The next owner begins with what the store has.

use flare_model::ids::SubscriptionNumber;
use tokio::sync::oneshot;

use super::shard::Shard;
use super::subscriber::Leaving;

impl Shard {
    /// Begins nothing more for a subscription, and tells when nothing of it is in flight.
    pub fn drain(&mut self, number: SubscriptionNumber, reply: oneshot::Sender<()>) {
        let Some(&key) = self.by_number.get(&number) else {
            let _ = reply.send(());
            return;
        };
        self.subscribers[key].leaving = Some(Leaving { drained: Some(reply) });
        self.drive_may_end(key);
        self.leave_when_drained(key);
    }

    /// Tells whoever waits for a subscription to have nothing in flight, once that is so.
    pub fn leave_when_drained(&mut self, key: usize) {
        let Some(subscriber) = self.subscribers.get_mut(key) else { return };
        if subscriber.in_flight == 0
            && let Some(drained) = subscriber.leaving.as_mut().and_then(|leaving| leaving.drained.take())
        {
            let _ = drained.send(());
        }
    }

    /// Makes everything durable that is known of a drained subscription, and forgets it here.
    pub fn release(&mut self, number: SubscriptionNumber, reply: oneshot::Sender<()>) {
        let Some(&key) = self.by_number.get(&number) else {
            let _ = reply.send(());
            return;
        };
        self.subscribers[key].leaving.get_or_insert_default();
        self.subscribers[key].lanes.iter_mut().for_each(|lane| lane.feed.close());
        let (durable, is_durable) = oneshot::channel();
        self.record_now(number, durable);
        let handle = self.handle();
        self.tasks.spawn_local(async move {
            // An error means that the thread is stopping, which records everything itself.
            if is_durable.await.is_ok() {
                handle.borrow_mut().remove(number);
            }
            let _ = reply.send(());
        });
    }

    /// Whether no sweep of a subscription is under way.
    pub fn may_sweep(&self, number: SubscriptionNumber) -> bool {
        let Some(&key) = self.by_number.get(&number) else { return true };
        self.subscribers[key].lanes.iter().all(|lane| lane.feed.sweeping().is_none())
    }
}
