//! Consumers of the catalog as the node knows them: stored ones come in, checked and with their credentials they go to the registry.

use std::collections::BTreeSet;
use std::sync::Arc;

use flare_model::access::Account;
use flare_model::consumer::StoredConsumer;
use flare_model::ids::{ResourceId, ResourceNumber, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::resource::Resource;
use flare_model::subscription::credentials::has_credentials;
use flare_provider::{Entity, EntityKind, ProviderError};

use crate::operations::{App, corrupt};
use crate::registry::Consumer;
use crate::vault::Vault;

impl App {
    /// Reads all consumers again, and says which there are; the caller holds the catalog, or is the first to use it.
    pub(in crate::operations) async fn reload_consumers(
        &self,
        stored: &mut BTreeSet<u64>,
    ) -> Result<(), ProviderError> {
        const BATCH: usize = 200;
        let mut after = 0;
        loop {
            let entities = self.store.catalog.list(EntityKind::Consumer, after, BATCH).await?;
            let Some(last) = entities.last() else { return Ok(()) };
            after = last.number;
            for entity in &entities {
                stored.insert(entity.number);
                self.apply_consumer(entity)?;
            }
        }
    }

    /// A consumer is there, or is another one.
    pub(in crate::operations) fn apply_consumer(&self, entity: &Entity) -> Result<(), ProviderError> {
        let known = self.registry.consumer(&ResourceId::new(entity.id.as_str()));
        if known.is_none_or(|known| known.version < entity.version) {
            self.registry.put_consumer(self.known_consumer(entity)?);
        }
        Ok(())
    }

    /// A consumer as the node knows it.
    pub(in crate::operations) fn known_consumer(
        &self,
        entity: &Entity,
    ) -> Result<Arc<Consumer>, ProviderError> {
        let id = ResourceId::new(entity.id.as_str());
        let stored = opened(&self.vault, &id, &entity.body).map_err(|why| corrupt(entity, &why))?;
        let settings = stored.check(&id).map_err(|why| corrupt(entity, &why))?;
        let number = ResourceNumber(entity.number);
        let resource = Resource::of_consumer(id, number, settings, entity.lanes, stored.created_at);
        let resource = Arc::new(resource.of(Account::of_parent(entity.parent.as_deref())));
        Ok(Arc::new(Consumer { stored, version: entity.version, resource }))
    }
}

/// A consumer as it is stored: what it polls has credentials only sealed.
pub(in crate::operations) fn at_rest(vault: &Vault, id: &ResourceId, consumer: &StoredConsumer) -> String {
    let mut sealed = consumer.clone();
    let endpoint = consumer.draft.source.endpoint();
    if has_credentials(&endpoint) {
        let whole = serde_json::to_string(&endpoint).expect("an endpoint is plain data");
        sealed.sealed = Some(vault.seal_endpoint(&SubscriptionId::new(id.as_str()), &whole));
        sealed.draft.source = consumer.draft.source.redacted();
    }
    serde_json::to_string(&sealed).expect("a consumer is plain data")
}

/// The reverse of [`at_rest`]. Credentials that stay closed are not a reason to know nothing of it: its source refuses the word that
/// stands for them, and says so.
fn opened(vault: &Vault, id: &ResourceId, body: &str) -> Result<StoredConsumer, Invalid> {
    let mut stored: StoredConsumer = serde_json::from_str(body).map_err(|e| Invalid::new("consumer", e))?;
    let Some(sealed) = stored.sealed.take() else { return Ok(stored) };
    match vault.unseal_endpoint(&SubscriptionId::new(id.as_str()), &sealed) {
        Ok(whole) => {
            let endpoint = serde_json::from_str(&whole).map_err(|e| Invalid::new("source", e))?;
            stored.draft.source = stored.draft.source.with_endpoint(endpoint);
        }
        Err(closed) => {
            tracing::error!(consumer.id = %id, error = %closed, "the credentials of a consumer cannot be opened");
            // It is written back as it was.
            stored.sealed = Some(sealed);
        }
    }
    Ok(stored)
}
