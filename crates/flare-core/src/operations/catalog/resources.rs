//! Resources: created once, never updated, deleted when nobody follows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_model::access::Account;
use flare_model::ids::{LaneId, ResourceId, Seq};
use flare_model::pattern::Pattern;
use flare_model::resource::{Resource, ResourceDraft, ResourceView};
use flare_model::url::DocumentUrl;
use flare_provider::{Capture, Conflict, EntityKind, ErrorKind, NewEntity, ProviderError, ScanLane, Start};

use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::access::accounts::unknown_account;
use crate::operations::unknown_resource;

/// How often the documents that a new resource would take are looked through, each time those that came meanwhile, before
/// it is given up.
const LOOKS: usize = 10;

/// How far the lanes of resources that a new one takes urls from were looked through. Bound: those lanes.
type Seen = BTreeMap<LaneId, Seq>;

impl App {
    /// Creates a resource. What may take long, to look through the documents that it would take from others, is done
    /// before anybody has to wait for it; the commit looks at what came since.
    pub async fn create_resource(&self, account: &Account, draft: ResourceDraft) -> Done<Arc<Resource>> {
        let id = ResourceId::new(self.entropy.fresh_id("res"));
        let view = draft.check(id, self.config.domain.lanes, self.clock.now())?;
        let pattern = Pattern::parse(&view.endpoint).expect("it was checked");
        let mut seen = Seen::new();
        for _ in 0..LOOKS {
            self.refuse_same_shape(account, &pattern)?;
            for other in self.registry.captured_by(account, &pattern) {
                for lane in other.lanes() {
                    self.look_through((account, lane), &pattern, seen.entry(lane).or_default()).await?;
                }
            }
            if let Some(resource) = self.create_seen(account, &view, &pattern, &seen).await? {
                return Ok(resource);
            }
        }
        let detail = "documents that it would capture change faster than they can be looked through";
        Err(Failure::Store(ProviderError::new(ErrorKind::Unavailable, "catalog.create", detail)))
    }

    /// Creates it if what came to other resources since it was looked for is little, and nothing that it would take.
    async fn create_seen(
        &self,
        account: &Account,
        view: &ResourceView,
        pattern: &Pattern,
        seen: &Seen,
    ) -> Done<Option<Arc<Resource>>> {
        let _catalog = self.catalog.lock().await;
        self.refuse_same_shape(account, pattern)?;
        self.refuse_more_resources(account)?;
        let others = self.registry.captured_by(account, pattern);
        let lanes = others.iter().flat_map(|other| other.lanes());
        let seen = lanes.map(|lane| (lane, seen.get(&lane).copied().unwrap_or_default())).collect();
        let new = NewEntity {
            kind: EntityKind::Resource,
            id: view.id.to_string(),
            parent: account.parent(),
            keys: vec![pattern.shape()],
            body: serde_json::to_string(view).expect("a resource is plain data"),
            lanes: view.lanes,
            start: Start::Now,
            history: false,
            capture: (!others.is_empty()).then(|| Capture { pattern: pattern.clone(), seen }),
        };
        let entity = match self.store.catalog.create(new).await {
            Ok(entity) => entity,
            Err(error) if error.is(&Conflict::Unseen) => return Ok(None),
            Err(error) => {
                return Err(match &error.kind {
                    ErrorKind::Conflict(Conflict::Captured(url)) => self.would_capture(account, url),
                    // Deleted meanwhile.
                    ErrorKind::Conflict(Conflict::Parent) => unknown_account(account),
                    ErrorKind::Conflict(Conflict::Taken(other)) => {
                        // The registry knew nobody of that shape.
                        self.reload_resource(&ResourceId::new(other.as_str())).await;
                        same_shape(other, &view.endpoint)
                    }
                    _ => error.into(),
                });
            }
        };
        let resource = Arc::new(crate::operations::resource(&entity)?);
        self.registry.add_resource(resource.clone());
        self.registry.caught_up(entity.version);
        tracing::info!(resource.id = %resource.id(), endpoint = %resource.view.endpoint, "resource created");
        Ok(Some(resource))
    }

    fn refuse_same_shape(&self, account: &Account, pattern: &Pattern) -> Done<()> {
        match self.registry.same_shape(account, pattern) {
            Some(other) => Err(same_shape(other.id().as_str(), &other.view.endpoint)),
            None => Ok(()),
        }
    }

    /// Deletes a resource with its documents.
    pub async fn delete_resource(&self, id: &ResourceId) -> Done<()> {
        let _catalog = self.catalog.lock().await;
        let resource = self.registry.resource(id).ok_or_else(|| unknown_resource(id))?;
        let deleted = match self.store.catalog.delete(EntityKind::Resource, id.as_str()).await {
            Ok(deleted) => deleted,
            Err(error) if error.is(&Conflict::Children) => {
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
        // Writes that the catalog before this one routed are refused from now on. Without an answer the first of them finds
        // out.
        if let Ok(version) = self.store.catalog.version().await {
            self.registry.caught_up(version);
        }
        if !deleted {
            return Err(unknown_resource(id));
        }
        tracing::info!(resource.id = %id, "resource deleted");
        Ok(())
    }

    /// Looks through a lane, on from where it was seen, for a live document that a new pattern would take.
    async fn look_through(
        &self,
        (account, lane): (&Account, LaneId),
        pattern: &Pattern,
        seen: &mut Seq,
    ) -> Done<()> {
        loop {
            let scan = ScanLane { lane, after: *seen, upto: Seq(u64::MAX), rows: 1000, bytes: 8 << 20 };
            let page = self.store.documents.scan(scan).await?;
            for document in page.documents.iter().filter(|document| !document.row.deleted) {
                let url = DocumentUrl::parse(&document.url);
                if url.is_ok_and(|url| pattern.matches(&url)) {
                    return Err(self.would_capture(account, &document.url));
                }
            }
            let through = page.upto <= *seen || page.upto >= page.head;
            *seen = page.upto.max(*seen);
            if through {
                return Ok(());
            }
        }
    }

    fn would_capture(&self, account: &Account, url: &str) -> Failure {
        let owner = DocumentUrl::parse(url).ok().and_then(|url| self.registry.find(account, &url));
        let owner = owner.map_or_else(String::new, |owner| {
            format!(" of resource {} ({})", owner.id(), owner.view.endpoint)
        });
        Failure::Conflict(format!(
            "the new endpoint would capture documents{owner}, {url} for one; delete them first or choose another endpoint"
        ))
    }
}

fn same_shape(other: &str, endpoint: &str) -> Failure {
    Failure::Conflict(format!("resource {other} ({endpoint}) has the same endpoint but for wildcard names"))
}
