//! A wrapper that fails on purpose: a store and a [`Plan`] come in, and a store goes out whose calls meet what
//! the plan has for them. For tests of everything that stands above an engine.

mod cluster;
mod plan;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::document::{Document, Write};
use flare_model::feed::{Kept, Note, Standing};
use flare_model::ids::{FeedId, LaneId, Ordinal, Seq};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

pub use cluster::FaultyCluster;
pub use plan::{Fault, Odds, Plan};

use crate::Store;
use crate::catalog::{Catalog, Entity, EntityKind, NewEntity};
use crate::documents::{Committed, Documents, LaneState, Newest, OlderRevision, Page, ScanLane, Witness};
use crate::error::{ProviderError, Result};
use crate::ledger::{FeedWrite, Ledger, ListStandings, Opened};

/// A store whose calls go by a plan.
pub struct Faulty {
    inner: Store,
    plan: Plan,
}

impl Faulty {
    /// Wraps a store. The plan stays in the caller's hands too, to be changed while the store is in use.
    pub fn wrap(store: Store, plan: Plan) -> Store {
        let faulty = Arc::new(Faulty { inner: store, plan });
        Store { catalog: faulty.clone(), documents: faulty.clone(), ledger: faulty }
    }

    async fn meet<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        meet(&self.plan, operation, call).await
    }
}

/// A call meets what the plan has for it.
async fn meet<T>(
    plan: &Plan,
    operation: &'static str,
    call: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    let failed = |kind, detail| Err(ProviderError::new(kind, operation, detail));
    match plan.draw(operation) {
        None => call.await,
        Some(Fault::Before(kind)) => failed(kind, "planned to fail before it was done"),
        Some(Fault::After(kind)) => {
            call.await?;
            failed(kind, "planned to fail after it was done")
        }
        Some(Fault::Cancelled(kind)) => {
            let mut call = pin!(call);
            poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
            failed(kind, "planned to be given up while it was under way")
        }
        Some(Fault::Delayed(time)) => {
            tokio::time::sleep(time).await;
            call.await
        }
        Some(Fault::Slow { before, after }) => slowly(call, before, after).await,
        Some(Fault::Lost { before, after, kind }) => {
            slowly(call, before, after).await?;
            failed(kind, "planned to be done, and its answer to be lost")
        }
    }
}

/// A call that takes its time before and after it is done.
async fn slowly<T>(
    call: impl Future<Output = Result<T>> + Send,
    before: Duration,
    after: Duration,
) -> Result<T> {
    tokio::time::sleep(before).await;
    let done = call.await;
    tokio::time::sleep(after).await;
    done
}

#[async_trait]
impl Catalog for Faulty {
    async fn create(&self, new: NewEntity) -> Result<Entity> {
        self.meet("catalog.create", self.inner.catalog.create(new)).await
    }

    async fn replace(&self, entity: Entity) -> Result<Option<Entity>> {
        self.meet("catalog.replace", self.inner.catalog.replace(entity)).await
    }

    async fn delete(&self, kind: EntityKind, id: &str) -> Result<bool> {
        self.meet("catalog.delete", self.inner.catalog.delete(kind, id)).await
    }

    async fn get(&self, kind: EntityKind, id: &str) -> Result<Option<Entity>> {
        self.meet("catalog.get", self.inner.catalog.get(kind, id)).await
    }

    async fn list(&self, kind: EntityKind, after: u64, limit: usize) -> Result<Vec<Entity>> {
        self.meet("catalog.list", self.inner.catalog.list(kind, after, limit)).await
    }

    async fn version(&self) -> Result<u64> {
        self.meet("catalog.version", self.inner.catalog.version()).await
    }
}

#[async_trait]
impl Documents for Faulty {
    fn incarnation(&self) -> u64 {
        self.inner.documents.incarnation()
    }

    fn watch(&self, witness: Arc<dyn Witness>) {
        self.inner.documents.watch(witness);
    }

    async fn commit(&self, batch: Vec<Write>) -> Result<Vec<Result<Committed>>> {
        self.meet("documents.commit", self.inner.documents.commit(batch)).await
    }

    async fn get(&self, lane: LaneId, url: &str) -> Result<Option<Document>> {
        self.meet("documents.get", self.inner.documents.get(lane, url)).await
    }

    async fn fetch(&self, lane: LaneId, ordinals: &[Ordinal]) -> Result<(Vec<Option<Document>>, Seq)> {
        self.meet("documents.fetch", self.inner.documents.fetch(lane, ordinals)).await
    }

    async fn scan(&self, scan: ScanLane) -> Result<Page> {
        self.meet("documents.scan", self.inner.documents.scan(scan)).await
    }

    async fn scan_revisions(&self, scan: ScanLane, since: Seq) -> Result<Page> {
        self.meet("documents.scan_revisions", self.inner.documents.scan_revisions(scan, since)).await
    }

    async fn next_revisions(
        &self,
        lane: LaneId,
        since: Seq,
        wanted: &[(Ordinal, Seq)],
    ) -> Result<(Vec<Option<Document>>, Seq)> {
        let call = self.inner.documents.next_revisions(lane, since, wanted);
        self.meet("documents.next_revisions", call).await
    }

    async fn revisions(
        &self,
        lane: LaneId,
        after: Option<(Ordinal, Seq)>,
        limit: usize,
    ) -> Result<Vec<OlderRevision>> {
        self.meet("documents.revisions", self.inner.documents.revisions(lane, after, limit)).await
    }

    async fn remove_revisions(&self, lane: LaneId, revisions: &[(Ordinal, Seq)]) -> Result<u64> {
        let call = self.inner.documents.remove_revisions(lane, revisions);
        self.meet("documents.remove_revisions", call).await
    }

    async fn newest(&self, lane: LaneId) -> Result<Newest> {
        self.meet("documents.newest", self.inner.documents.newest(lane)).await
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        self.meet("documents.lanes", self.inner.documents.lanes()).await
    }

    async fn tombstones(
        &self,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<Vec<(Ordinal, Seq)>> {
        let call = self.inner.documents.tombstones(lane, upto, accepted_before, keep, limit);
        self.meet("documents.tombstones", call).await
    }

    async fn remove_tombstones(
        &self,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<u64> {
        let call = self.inner.documents.remove_tombstones(lane, upto, accepted_before, keep, limit);
        self.meet("documents.remove_tombstones", call).await
    }
}

#[async_trait]
impl Ledger for Faulty {
    async fn open(&self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>> {
        self.meet("ledger.open", self.inner.ledger.open(feeds, epoch)).await
    }

    async fn next_epoch(&self) -> Result<u64> {
        self.meet("ledger.next_epoch", self.inner.ledger.next_epoch()).await
    }

    async fn write(&self, writes: Vec<FeedWrite>) -> Result<Vec<Result<()>>> {
        self.meet("ledger.write", self.inner.ledger.write(writes)).await
    }

    async fn standings(&self, list: ListStandings) -> Result<(u64, Vec<(u8, Standing)>)> {
        self.meet("ledger.standings", self.inner.ledger.standings(list)).await
    }

    async fn standing(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Standing>> {
        self.meet("ledger.standing", self.inner.ledger.standing(feed, ordinal)).await
    }

    async fn note(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Note>> {
        self.meet("ledger.note", self.inner.ledger.note(feed, ordinal)).await
    }

    async fn state(&self, feed: FeedId, life: u64, ordinal: Ordinal) -> Result<Option<Kept>> {
        self.meet("ledger.state", self.inner.ledger.state(feed, life, ordinal)).await
    }
}

#[cfg(test)]
mod tests;
