//! The catalog: calls of the contract come in; each change is one transaction.

mod change;
mod changes;
mod rows;

use async_trait::async_trait;
use flare_provider::{Catalog, CatalogChanges, Entity, EntityKind, NewEntity, Result};

pub(crate) use rows::subscriptions_of;

use crate::engine::Engine;
use crate::numbers;
use crate::pool::Borrowed;

#[async_trait]
impl Catalog for Engine {
    async fn create(&self, new: NewEntity) -> Result<Entity> {
        self.change("catalog.create", move |session| Box::pin(change::create(session, new))).await
    }

    async fn replace(&self, entity: Entity) -> Result<Option<Entity>> {
        self.change("catalog.replace", move |session| Box::pin(change::replace(session, entity))).await
    }

    async fn delete(&self, kind: EntityKind, id: &str) -> Result<bool> {
        let id = id.to_owned();
        let deleted = self
            .change("catalog.delete", move |session| {
                Box::pin(async move { change::delete(session, kind, &id).await })
            })
            .await;
        // Also when it is not known: looking for leavings where there are none costs nothing.
        self.leavings.notify_one();
        deleted
    }

    async fn get(&self, kind: EntityKind, id: &str) -> Result<Option<Entity>> {
        let id = id.to_owned();
        self.read("catalog.get", move |session| async move { rows::get(&session, kind, &id).await }).await
    }

    async fn list(&self, kind: EntityKind, after: u64, limit: usize) -> Result<Vec<Entity>> {
        let list = move |session: std::sync::Arc<Borrowed>| async move {
            rows::list(&session, kind, after, limit).await
        };
        self.read("catalog.list", list).await
    }

    async fn version(&self) -> Result<u64> {
        self.read("catalog.version", |session| async move { numbers::get(&session, "catalog").await }).await
    }

    async fn changes(&self, since: u64, limit: usize) -> Result<Option<CatalogChanges>> {
        let read = move |session: std::sync::Arc<Borrowed>| async move {
            changes::since(&session, since, limit).await
        };
        self.read("catalog.changes", read).await
    }

    async fn forget_deletions(&self, upto: u64) -> Result<u64> {
        self.change("catalog.forget_deletions", move |session| Box::pin(changes::forget(session, upto))).await
    }
}
