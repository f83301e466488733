//! Resources: created once, never updated, deleted when nobody follows them.

use std::sync::Arc;

use flare_model::ids::{LaneId, ResourceId, Seq};
use flare_model::pattern::Pattern;
use flare_model::resource::{Resource, ResourceDraft};
use flare_model::url::DocumentUrl;
use flare_provider::{EntityKind, ErrorKind, NewEntity, ScanLane, Start};

use super::{App, Done, Failure, unknown_resource};
use crate::door::fresh_id;

impl App {
    /// Creates a resource.
    pub async fn create_resource(&self, draft: ResourceDraft) -> Done<Arc<Resource>> {
        let id = ResourceId::new(fresh_id("res"));
        let view = draft.check(id, self.config.domain.lanes, self.clock.now())?;
        let pattern = Pattern::parse(&view.endpoint).expect("it was checked");
        let _catalog = self.catalog.lock().await;
        if let Some(other) = self.registry.same_shape(&pattern) {
            return Err(same_shape(other.id().as_str(), &other.view.endpoint));
        }
        for other in self.registry.captured_by(&pattern) {
            if let Some(url) = self.captured_document(&other, &pattern).await? {
                return Err(Failure::Conflict(format!(
                    "the new endpoint would capture documents of resource {} ({}), {url} for one; delete them first or choose another endpoint",
                    other.id(),
                    other.view.endpoint,
                )));
            }
        }
        let new = NewEntity {
            kind: EntityKind::Resource,
            id: view.id.to_string(),
            parent: None,
            keys: vec![pattern.shape()],
            body: serde_json::to_string(&view).expect("a resource is plain data"),
            lanes: view.lanes,
            start: Start::Now,
            history: false,
        };
        let entity = match self.store.catalog.create(new).await {
            Ok(entity) => entity,
            Err(error) if error.kind == ErrorKind::Conflict => {
                // The registry knew nobody of that shape.
                self.reload_resource(&ResourceId::new(error.detail.as_str())).await;
                return Err(same_shape(&error.detail, &view.endpoint));
            }
            Err(error) => return Err(error.into()),
        };
        let resource = Arc::new(super::resource(&entity)?);
        self.registry.add_resource(resource.clone());
        tracing::info!(resource.id = %resource.id(), endpoint = %resource.view.endpoint, "resource created");
        Ok(resource)
    }

    /// Deletes a resource with its documents.
    pub async fn delete_resource(&self, id: &ResourceId) -> Done<()> {
        let _catalog = self.catalog.lock().await;
        let resource = self.registry.resource(id).ok_or_else(|| unknown_resource(id))?;
        let deleted = match self.store.catalog.delete(EntityKind::Resource, id.as_str()).await {
            Ok(deleted) => deleted,
            Err(error) if error.kind == ErrorKind::Conflict => {
                if self.registry.subscriptions(id, 0, 0).total == 0 {
                    self.reload_subscriptions_of(&resource).await?;
                }
                let quantity = self.registry.subscriptions(id, 0, 0).total;
                let detail = format!("resource {id} still has subscriptions ({quantity}); delete them first");
                return Err(Failure::Conflict(detail));
            }
            Err(error) => return Err(error.into()),
        };
        self.registry.remove_resource(id);
        resource.lanes().for_each(|lane| self.journey.forget(lane));
        if !deleted {
            return Err(unknown_resource(id));
        }
        tracing::info!(resource.id = %id, "resource deleted");
        Ok(())
    }

    /// A document of `resource` that a new pattern would take from it.
    async fn captured_document(&self, resource: &Resource, pattern: &Pattern) -> Done<Option<String>> {
        for lane in resource.lanes() {
            if let Some(url) = self.captured_in(lane, pattern).await? {
                return Ok(Some(url));
            }
        }
        Ok(None)
    }

    async fn captured_in(&self, lane: LaneId, pattern: &Pattern) -> Done<Option<String>> {
        let (mut after, upto) = (Seq(0), Seq(u64::MAX));
        loop {
            let scan = ScanLane { lane, after, upto, rows: 1000, bytes: 8 << 20 };
            let page = self.store.documents.scan(scan).await?;
            for document in &page.documents {
                let url = DocumentUrl::parse(&document.url);
                if url.is_ok_and(|url| pattern.matches(&url)) {
                    return Ok(Some(document.url.to_string()));
                }
            }
            if page.upto <= after || page.upto >= page.head {
                return Ok(None);
            }
            after = page.upto;
        }
    }
}

fn same_shape(other: &str, endpoint: &str) -> Failure {
    Failure::Conflict(format!("resource {other} ({endpoint}) has the same endpoint but for wildcard names"))
}
