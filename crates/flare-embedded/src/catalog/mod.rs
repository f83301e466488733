//! The catalog: calls of the contract come in; changes go through the writer, readers answer the rest.

mod change;
mod changes;
mod rows;

use async_trait::async_trait;
use flare_provider::{Catalog, CatalogChanges, Entity, EntityKind, NewEntity, Result};

pub(crate) use rows::{list, scope, subscriptions_of};

use crate::engine::Engine;
use crate::meta;

/// What an entity takes of a commit beside its texts, about: the rows of its lanes or feeds.
const ENTITY_BYTES: usize = 4096;

#[async_trait]
impl Catalog for Engine {
    async fn create(&self, new: NewEntity) -> Result<Entity> {
        let bytes = ENTITY_BYTES + new.body.len();
        self.queue.work("catalog.create", bytes, move |desk| change::create(desk, new)).await
    }

    async fn replace(&self, entity: Entity) -> Result<Option<Entity>> {
        let bytes = ENTITY_BYTES + entity.body.len();
        self.queue.work("catalog.replace", bytes, move |desk| change::replace(desk, entity)).await
    }

    async fn delete(&self, kind: EntityKind, id: &str) -> Result<bool> {
        let id = id.to_owned();
        self.queue.work("catalog.delete", ENTITY_BYTES, move |desk| change::delete(desk, kind, &id)).await
    }

    async fn get(&self, kind: EntityKind, id: &str) -> Result<Option<Entity>> {
        let id = id.to_owned();
        self.read("catalog.get", move |reader| rows::get(&reader.connection, kind, &id)).await
    }

    async fn list(&self, kind: EntityKind, after: u64, limit: usize) -> Result<Vec<Entity>> {
        self.read("catalog.list", move |reader| rows::list(&reader.connection, kind, after, limit)).await
    }

    async fn version(&self) -> Result<u64> {
        let read = |reader: &mut crate::readers::Reader| meta::get(&reader.connection, "catalog_version");
        Ok(self.read("catalog.version", read).await? as u64)
    }

    async fn changes(&self, since: u64, limit: usize) -> Result<Option<CatalogChanges>> {
        self.read("catalog.changes", move |reader| changes::since(&reader.connection, since, limit)).await
    }

    async fn forget_deletions(&self, upto: u64) -> Result<u64> {
        const OPERATION: &str = "catalog.forget_deletions";
        self.queue.work(OPERATION, ENTITY_BYTES, move |desk| changes::forget(desk, upto)).await
    }
}
