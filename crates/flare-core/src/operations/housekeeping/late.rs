//! A start on a store that takes no writes: whatever only reads is served at once; subscriptions are handed to their
//! threads as soon as there is room for what that writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flare_provider::ProviderError;

use crate::operations::{App, BATCH, FOLLOWING};
use crate::registry::Subscription;

/// How often it is tried.
const AGAIN: Duration = Duration::from_secs(1);

impl App {
    /// Reads the catalog, so that whatever only reads is served. Nothing is delivered until
    /// [`App::take_over_what_is_left`] has succeeded, which a chore sees to.
    pub async fn load_to_read(&self) -> Result<(), ProviderError> {
        self.late.store(true, Ordering::Release);
        self.learn_incarnation().await?;
        self.reload_access().await?;
        self.reload_resources().await?;
        for kind in FOLLOWING {
            let mut after = 0;
            while let Some(batch) = self.next_subscriptions(kind, &mut after).await? {
                for subscription in batch.into_iter().filter(|one| !self.journey.serves(one.number())) {
                    self.registry.put_subscription(subscription);
                }
            }
        }
        Ok(())
    }

    /// Whether subscriptions wait to be taken over, because the store takes no writes since the node began.
    pub fn is_late(&self) -> bool {
        self.late.load(Ordering::Acquire)
    }

    /// Whether nobody serves a subscription yet, because of that.
    pub(in crate::operations) fn awaits_the_start(&self, subscription: &Subscription) -> bool {
        self.is_late() && !self.journey.serves(subscription.number())
    }

    /// Takes over what nobody serves yet, again and again until it is done.
    pub(in crate::operations) async fn catch_up_with_the_start(self: Arc<App>) {
        while self.is_late() {
            tokio::time::sleep(AGAIN).await;
            match self.take_over_what_is_left().await {
                Ok(()) => {
                    self.late.store(false, Ordering::Release);
                    tracing::info!("the store takes writes again; deliveries begin");
                }
                Err(error) if error.is_passing() => {}
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "subscriptions could not be taken over after all; it is tried again"
                    );
                }
            }
        }
        // What a node does by itself ends with it, and not before.
        std::future::pending().await
    }

    async fn take_over_what_is_left(&self) -> Result<(), ProviderError> {
        // Nobody is created, changed or deleted meanwhile.
        let _catalog = self.catalog.lock().await;
        self.journey.epoch().await?;
        let left: Vec<Arc<Subscription>> = self
            .registry
            .all_subscriptions(0, usize::MAX)
            .entries
            .into_iter()
            .filter(|subscription| !self.journey.serves(subscription.number()))
            .collect();
        for batch in left.chunks(BATCH) {
            self.take_over(batch.to_vec(), false).await?;
        }
        Ok(())
    }
}
