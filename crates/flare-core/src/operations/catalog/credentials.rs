//! Credentials of subscriptions, in headers and urls, on their way to the store and back.

use flare_model::ids::SubscriptionId;
use flare_model::invalid::Invalid;
use flare_model::subscription::{Disabled, Stored};
use flare_provider::{Conflict, Entity, ProviderError};

use crate::operations::App;
use crate::operations::Done;
use crate::registry::Subscription;
use crate::sealing::{self, Unknowable};

impl App {
    /// A stored subscription as the node knows it.
    pub(in crate::operations) fn known(&self, id: &SubscriptionId, body: &str) -> Done<Stored> {
        match sealing::from_rest(&self.vault, id, body) {
            Ok(stored) => Ok(stored),
            Err(Unknowable::Invalid(invalid)) => Err(invalid.into()),
            Err(Unknowable::Closed(stored, closed)) if self.config.auth.discard_lost_secrets => {
                tracing::warn!(
                    subscription.id = %id, error = %closed,
                    "the credentials of a subscription cannot be opened; it is disabled until they are given again"
                );
                let reason =
                    "its credentials are lost with the key that sealed them: patch the endpoint, and resume";
                let since = self.clock.now();
                let lost = || Disabled { since, reason: reason.to_owned(), start_over: false };
                let disabled = Some(stored.disabled.clone().unwrap_or_else(lost));
                Ok(Stored { disabled, ..*stored })
            }
            Err(Unknowable::Closed(_, closed)) => Err(Invalid::new("endpoint", closed).into()),
        }
    }

    /// Seals what an earlier version has stored as it was given.
    pub(in crate::operations) async fn seal_if_open(
        &self,
        entity: Entity,
        subscription: &Subscription,
    ) -> Result<Option<Entity>, ProviderError> {
        if !sealing::is_open(&entity.body) {
            return Ok(None);
        }
        let (kind, id) = (entity.kind, entity.id.clone());
        let body = sealing::at_rest(&self.vault, subscription.id(), &subscription.stored);
        let keys = sealing::keys_at_rest(&self.vault, &subscription.compiled.spec);
        match self.store.catalog.replace(Entity { body, keys, ..entity }).await {
            Ok(sealed) => {
                tracing::info!(
                    subscription.id = id,
                    "credentials that were stored as they were given are sealed"
                );
                Ok(sealed)
            }
            // Another node was there first.
            Err(error) if error.is(&Conflict::Version) => self.store.catalog.get(kind, &id).await,
            // Whoever can only read goes on with what there is, and the next start seals it.
            Err(error) if error.is_passing() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
