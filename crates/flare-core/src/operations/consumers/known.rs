//! Consumers of the catalog as the node knows them: stored ones come in, checked and with their credentials they go to the registry.

use std::collections::BTreeSet;
use std::sync::Arc;

use flare_model::access::Account;
use flare_model::ids::{ResourceId, ResourceNumber};
use flare_model::resource::Resource;
use flare_provider::{Entity, EntityKind, ProviderError};

use crate::operations::{App, corrupt};
use crate::registry::Consumer;
use crate::sealing::{self, Unknowable};

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
        let stored = match sealing::consumer_from_rest(&self.vault, &id, &entity.body) {
            Ok(stored) => stored,
            Err(Unknowable::Closed(stored, closed)) if self.config.auth.discard_lost_secrets => {
                tracing::warn!(
                    consumer.id = %id, error = %closed,
                    "the credentials of a consumer cannot be opened; it is not read until they are given again"
                );
                *stored
            }
            Err(why) => return Err(corrupt(entity, &why)),
        };
        let settings = stored.check(&id).map_err(|why| corrupt(entity, &why))?;
        let number = ResourceNumber(entity.number);
        let resource = Resource::of_consumer(id, number, settings, entity.lanes, stored.created_at);
        let resource = Arc::new(resource.of(Account::of_parent(entity.parent.as_deref())));
        Ok(Arc::new(Consumer { stored, version: entity.version, resource }))
    }
}
