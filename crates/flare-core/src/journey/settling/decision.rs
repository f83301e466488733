//! Decisions of a delivery thread that have to be durable: a client that is gone, or has failed for too long, is to be
//! disabled. In: the reason. Out: nothing begins any more for it, from this moment on, and whoever asks how it stands is
//! told so; the node is told until it has stored it.
//!
//! A decision is kept where it was made, with its subscription, and the node comes for it: however many there are at
//! once, and for however long the store takes no changes, none is forgotten.

use flare_model::ids::{SubscriptionId, SubscriptionNumber};
use flare_model::time::Timestamp;

use crate::journey::subscriber::Standstill;
use crate::journey::subscriber::decision::Decision;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

impl Worker {
    /// A subscription begins nothing from now on and is to be disabled.
    pub(in crate::journey) fn decide(&mut self, place: Place, reason: String, at: Timestamp) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        subscriber.stand(Standstill::Disabled, at);
        subscriber.decision = Some(Box::new(Decision { reason, at }));
        self.decided.insert(subscriber.compiled.number);
        self.tools.report.decided();
    }

    /// The decision about a subscription is durable, or somebody overruled it, or the subscription is not here any more.
    pub(in crate::journey) fn forget_decision(&mut self, number: SubscriptionNumber) {
        if self.decided.remove(&number)
            && let Some(subscriber) = self.subscribers.of_mut(number)
        {
            subscriber.decision = None;
        }
    }

    /// What was decided about a subscription and is not durable yet.
    pub(in crate::journey) fn decision(&self, number: SubscriptionNumber) -> Option<Decision> {
        let subscriber = self.subscribers.of(number)?;
        subscriber.decision.as_deref().cloned()
    }

    /// The subscriptions about which something was decided that is not durable yet.
    pub(in crate::journey) fn decided(&self) -> Vec<SubscriptionId> {
        let decided = self.decided.iter().filter_map(|number| self.subscribers.of(*number));
        decided.map(|subscriber| subscriber.compiled.id.clone()).collect()
    }
}
