//! The number of a subscription's shards has changed: its lanes go to other delivery threads, while it works.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use flare_model::ids::{FeedId, SubscriptionId};
use flare_provider::{Opened, ProviderError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::journey::Reopened;
use crate::operations::App;
use crate::operations::standstill;
use crate::registry::Subscription;

/// A store that is unavailable now is asked again so often.
const PATIENCE: Duration = Duration::from_millis(100);

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
    pub(in crate::operations) async fn rearrange_if_needed(&self, subscription: &Subscription) {
        if self.member.is_some() {
            // Its units are others by now: the cluster gives them out anew.
            return self.tell_units();
        }
        let number = subscription.number();
        let other =
            self.journey.shards(number).is_some_and(|shards| shards != subscription.compiled.shards());
        if other || self.journey.is_moving(number) {
            // The receiver lasts as long as the node.
            let _ = self.rearrangements.sender.send(subscription.id().clone()).await;
        }
    }

    /// Spreads subscriptions anew, side by side, until the node stops: one whose client hangs holds up no other.
    pub(in crate::operations) async fn rearrange(
        self: Arc<App>,
        mut changed: mpsc::Receiver<SubscriptionId>,
    ) {
        // Bound of all three: each subscription once.
        let (mut moving, mut again) = (HashSet::new(), HashSet::new());
        let mut moves = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                id = changed.recv() => match id {
                    Some(id) if moving.contains(&id) => drop(again.insert(id)),
                    Some(id) => {
                        moving.insert(id.clone());
                        moves.push(self.spread_anew(id));
                    }
                    None => return,
                },
                Some(id) = moves.next() => match again.remove(&id) {
                    true => moves.push(self.spread_anew(id)),
                    false => drop(moving.remove(&id)),
                },
            }
        }
    }

    /// Opens feeds for their next threads, as soon as the store can: nobody serves them meanwhile, and whoever asks about
    /// them waits, but a disk that is full for a while is no reason to end the node.
    async fn open_again(&self, feeds: &[FeedId]) -> Result<(u64, Vec<Opened>), ProviderError> {
        loop {
            match self.open_feeds(feeds).await {
                Err(error) if error.is_passing() => tokio::time::sleep(PATIENCE).await,
                answer => return answer,
            }
        }
    }

    /// Spreads a subscription as its settings say by now.
    async fn spread_anew(&self, id: SubscriptionId) -> SubscriptionId {
        let Some(subscription) = self.registry.subscription_by_id(&id) else { return id };
        let number = subscription.number();
        if self.journey.shards(number) == Some(subscription.compiled.shards()) {
            return id;
        }
        let reopen = |lanes: Vec<u8>| {
            let id = &id;
            async move {
                // As it is by now: it may have been paused, changed again or deleted meanwhile.
                let subscription = self.registry.subscription_by_id(id)?;
                let feeds: Vec<FeedId> =
                    lanes.into_iter().map(|lane| FeedId { subscription: number, lane }).collect();
                let opened = self.open_again(&feeds).await;
                #[cfg(feature = "planted")]
                let opened = opened.map(|(epoch, opened)| (epoch, drop_standings(opened)));
                match opened {
                    Ok((epoch, opened)) if opened.len() == feeds.len() => Some(Reopened {
                        epoch,
                        compiled: subscription.compiled.clone(),
                        feeds: opened,
                        standstill: standstill(&subscription.stored),
                    }),
                    Ok(_) => None,
                    Err(error) => {
                        // Nobody serves it now. Only a restart, which reads everything anew, is certain to help.
                        self.journey.give_up(error);
                        None
                    }
                }
            }
        };
        if self.journey.rearrange(&subscription.compiled, reopen).await.is_some() {
            tracing::info!(
                subscription.id = %id,
                shards = self.journey.shards(number),
                "subscription is served by another number of shards"
            );
        }
        id
    }
}

/// The bug that it is: what waits is not handed over.
#[cfg(feature = "planted")]
fn drop_standings(mut opened: Vec<Opened>) -> Vec<Opened> {
    if flare_model::planted::Bug::ShardsDropStanding.is_planted() {
        opened.iter_mut().for_each(|opened| opened.saved.standings.clear());
    }
    opened
}
