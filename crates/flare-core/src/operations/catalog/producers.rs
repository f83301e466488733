//! Producers: created, replaced and patched. In: what their users say, in the words of producers. Out: subscriptions of a consumer,
//! which is all they are from then on; whatever else is done with them is done with subscriptions.

use std::sync::Arc;

use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::producer::{ProducerDraft, in_words_of_producers};
use flare_model::resource::Resource;
use flare_model::subscription::{Draft, Secret};
use serde_json::value::RawValue;

use crate::operations::catalog::subscriptions::{patched, refuse_what_is_fixed};
use crate::operations::{App, Done, Failure};
use crate::registry::Subscription;

impl App {
    /// Creates a producer; from this commit on nothing is missed. Also answers its secret, which is shown nowhere else.
    pub async fn create_producer(
        &self,
        consumer: &ResourceId,
        draft: ProducerDraft,
    ) -> Done<(Arc<Subscription>, Secret)> {
        let consumer = self.consumer_as_resource(consumer)?;
        self.create_follower(consumer, draft.into_draft()?).await.map_err(said)
    }

    /// Makes a producer what a draft says. Its start, which cannot be changed, need not be said again.
    pub async fn replace_producer(
        &self,
        consumer: &ResourceId,
        id: &SubscriptionId,
        draft: ProducerDraft,
    ) -> Done<Arc<Subscription>> {
        let mut draft = draft.into_draft()?;
        if draft.secret.is_some() {
            let problem = "cannot be replaced; POST .../secret/rotate gives the producer another one";
            return Err(Invalid::new("secret", problem).into());
        }
        let _catalog = self.hold_catalog().await?;
        let current = self.producer(consumer, id)?;
        let Draft { start, .. } = current.stored.draft;
        if draft.start.is_some_and(|wanted| wanted != start.unwrap_or_default()) {
            return Err(Invalid::new("start", "cannot be changed; create another producer").into());
        }
        draft.start = start;
        self.change(&current, draft).await.map_err(said)
    }

    /// Applies a JSON Merge Patch.
    pub async fn patch_producer(
        &self,
        consumer: &ResourceId,
        id: &SubscriptionId,
        patch: &RawValue,
    ) -> Done<Arc<Subscription>> {
        refuse_what_is_fixed(patch, id)?;
        let _catalog = self.hold_catalog().await?;
        let current = self.producer(consumer, id)?;
        let draft = patched(&ProducerDraft::of(current.stored.draft.clone()), patch)?;
        self.change(&current, draft.into_draft()?).await.map_err(said)
    }

    /// One producer of a consumer.
    fn producer(&self, consumer: &ResourceId, id: &SubscriptionId) -> Done<Arc<Subscription>> {
        self.consumer_as_resource(consumer)?;
        self.subscription(consumer, id)
    }

    /// A consumer as what it is to those who follow it.
    pub fn consumer_as_resource(&self, id: &ResourceId) -> Done<Arc<Resource>> {
        let found = self.registry.tracked(id).filter(|found| found.consumer().is_some());
        found.ok_or_else(|| Failure::NotFound(format!("there is no consumer {id}")))
    }
}

/// What is wrong with a producer, in its own words.
fn said(failure: Failure) -> Failure {
    match failure {
        Failure::Invalid(invalid) => Failure::Invalid(in_words_of_producers(invalid)),
        other => other,
    }
}
