//! Subscriptions that Flare stops itself. In: what delivery threads have decided, or housekeeping. Out: it is stored why
//! and since when, and the threads are told that it is.

use std::sync::Arc;
use std::time::Duration;

use flare_model::ids::SubscriptionId;
use flare_model::subscription::Disabled;

use crate::journey::{Command, Decision};
use crate::operations::App;
use crate::operations::Done;
use crate::registry::Subscription;

/// What could not be stored is tried again after this, then less and less often.
const SOON: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_secs(10);

impl App {
    /// Stores what delivery threads decide, until the node stops. They keep each decision until they hear that it is
    /// durable. One that cannot be stored holds up no other: it is left for the next round.
    pub async fn carry_out_decisions(self: Arc<App>) {
        let mut pause = SOON;
        loop {
            let (mut left, mut why) = (0_usize, None);
            for id in self.journey.decisions().await {
                if let Err(failure) = self.carry_out_decision(&id).await {
                    left += 1;
                    why = Some((id, failure));
                }
            }
            let Some((id, failure)) = why else {
                pause = SOON;
                self.journey.decided().await;
                continue;
            };
            tracing::warn!(subscription.id = %id, error = %failure, left, "subscriptions could not be disabled yet");
            // Others that are decided meanwhile need not wait for it.
            let _ = tokio::time::timeout(pause, self.journey.decided()).await;
            pause = (pause * 2).min(SELDOM);
        }
    }

    async fn carry_out_decision(&self, id: &SubscriptionId) -> Done<()> {
        let _catalog = self.hold_catalog().await?;
        let Some(current) = self.registry.subscription_by_id(id) else { return Ok(()) };
        // Under the lock it is asked again: somebody may have overruled it.
        let Some(Decision { reason, at }) = self.decision(&current).await else { return Ok(()) };
        self.disable_now(&current, Disabled { since: at, reason, start_over: false }).await
    }

    /// What was decided about a subscription and is not stored yet.
    pub(in crate::operations) async fn decision(&self, subscription: &Subscription) -> Option<Decision> {
        let number = subscription.number();
        self.journey.ask(number, |reply| Command::Decision(number, reply)).await.flatten()
    }

    /// An operator lets a subscription go on; the caller holds the catalog. What was decided and is not stored yet does
    /// not count any more.
    pub(in crate::operations) async fn overrule(&self, subscription: &Subscription) {
        if let Some(decision) = self.decision(subscription).await {
            self.stand(subscription, Some(decision.at)).await;
        }
    }

    /// Stops a subscription for a reason of Flare's own.
    pub(in crate::operations) async fn disable(&self, id: &SubscriptionId, disabled: Disabled) -> Done<()> {
        let _catalog = self.hold_catalog().await?;
        let Some(current) = self.registry.subscription_by_id(id) else { return Ok(()) };
        self.disable_now(&current, disabled).await
    }

    async fn disable_now(&self, current: &Subscription, disabled: Disabled) -> Done<()> {
        match &current.stored.disabled {
            // The first reason stays, but what it missed since is missed all the same.
            Some(already) if disabled.start_over && !already.start_over => {
                let both = Disabled { start_over: true, ..already.clone() };
                self.keep(current, |stored| stored.disabled = Some(both)).await?;
            }
            // A thread that came to it by itself hears that it is durable.
            Some(_) => self.stand(current, None).await,
            None => {
                let (since, reason) = (disabled.since, disabled.reason.clone());
                let disabled = self.keep(current, |stored| stored.disabled = Some(disabled)).await?;
                self.stand(&disabled, None).await;
                self.trouble.report(current.id().clone(), since);
                self.tell_disabled(current.id().clone(), since, reason);
            }
        }
        Ok(())
    }
}
