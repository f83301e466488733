//! The number of a subscription's shards has changed: its lanes go to other delivery threads, while it works.

use flare_model::ids::{FeedId, SubscriptionId};
use tokio::sync::mpsc;

use super::{App, standstill};
use crate::registry::Subscription;

/// The way to the task that spreads subscriptions anew.
pub struct Rearrangements {
    /// Bound: 1024. When full: whoever changes shards waits.
    sender: mpsc::Sender<SubscriptionId>,
}

impl Rearrangements {
    /// The way, and its end for [`App::rearrange`].
    pub fn new() -> (Rearrangements, mpsc::Receiver<SubscriptionId>) {
        let (sender, receiver) = mpsc::channel(1024);
        (Rearrangements { sender }, receiver)
    }
}

impl App {
    /// Has a subscription spread anew if its number of shards is another one by now. It takes as long as what is in
    /// flight, so nobody waits for it.
    pub(super) async fn rearrange_if_needed(&self, subscription: &Subscription) {
        let serving = self.journey.shards(subscription.number());
        if serving.is_some_and(|shards| shards != subscription.compiled.shards()) {
            // The receiver lasts as long as the node.
            let _ = self.rearrangements.sender.send(subscription.id().clone()).await;
        }
    }

    /// Spreads subscriptions anew, one after the other, until the node stops.
    pub async fn rearrange(&self, mut changed: mpsc::Receiver<SubscriptionId>) {
        while let Some(id) = changed.recv().await {
            let Some(subscription) = self.registry.subscription_by_id(&id) else { continue };
            let number = subscription.number();
            if self.journey.shards(number) == Some(subscription.compiled.shards()) {
                continue;
            }
            let reopen = || async {
                // As it is by now: it may have been paused, changed again or deleted meanwhile.
                let subscription = self.registry.subscription_by_id(&id)?;
                let lanes = subscription.compiled.resource.view.lanes;
                let feeds: Vec<FeedId> =
                    (0..lanes).map(|lane| FeedId { subscription: number, lane: lane as u8 }).collect();
                match self.store.ledger.open(&feeds, self.journey.epoch()).await {
                    Ok(opened) if opened.len() == feeds.len() => {
                        let standstill = standstill(&subscription.stored);
                        Some((subscription.compiled.clone(), opened, standstill))
                    }
                    Ok(_) => None,
                    Err(error) => {
                        // Nobody serves it now. Only a restart, which reads everything anew, is certain to help.
                        self.journey.give_up(error);
                        None
                    }
                }
            };
            self.journey.rearrange(number, reopen).await;
            tracing::info!(
                subscription.id = %id,
                shards = self.journey.shards(number),
                "subscription is served by another number of shards"
            );
        }
    }
}
