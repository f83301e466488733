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
use flare_model::ids::{FeedId, LaneId, Ordinal, ResourceNumber, Seq, SubscriptionNumber};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

pub use cluster::FaultyCluster;
pub use plan::{Fault, Odds, Plan};

use crate::Store;
use crate::acts::{Act, Acts, ActsPage, ListActs};
use crate::catalog::{Catalog, CatalogChanges, Entity, EntityKind, NewEntity};
use crate::documents::{Committed, Documents, LaneState, Newest, OlderRevision, Page, ScanLane, Witness};
use crate::error::{ProviderError, Result};
use crate::intake::{Intake, Letter, ListLetters, NewLetter, Reading};
use crate::ledger::{FeedNeeds, FeedOwes, FeedSummary, FeedWrite, Ledger, ListStandings, Opened};

/// A store whose calls go by a plan.
pub struct Faulty {
    inner: Store,
    plan: Plan,
}

impl Faulty {
    /// Wraps a store. The plan stays in the caller's hands too, to be changed while the store is in use.
    pub fn wrap(store: Store, plan: Plan) -> Store {
        let faulty = Arc::new(Faulty { inner: store, plan });
        Store {
            catalog: faulty.clone(),
            documents: faulty.clone(),
            ledger: faulty.clone(),
            acts: faulty.clone(),
            intake: faulty,
        }
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

    async fn changes(&self, since: u64, limit: usize) -> Result<Option<CatalogChanges>> {
        self.meet("catalog.changes", self.inner.catalog.changes(since, limit)).await
    }

    async fn forget_deletions(&self, upto: u64) -> Result<u64> {
        self.meet("catalog.forget_deletions", self.inner.catalog.forget_deletions(upto)).await
    }
}

#[async_trait]
impl Intake for Faulty {
    async fn take(&self, consumer: ResourceNumber, partition: &str, epoch: u64) -> Result<Option<String>> {
        self.meet("intake.take", self.inner.intake.take(consumer, partition, epoch)).await
    }

    async fn advance(
        &self,
        consumer: ResourceNumber,
        partition: &str,
        epoch: u64,
        progress: String,
        letters: Vec<NewLetter>,
    ) -> Result<()> {
        let advance = self.inner.intake.advance(consumer, partition, epoch, progress, letters);
        self.meet("intake.advance", advance).await
    }

    async fn readings(&self, consumer: ResourceNumber) -> Result<Vec<Reading>> {
        self.meet("intake.readings", self.inner.intake.readings(consumer)).await
    }

    async fn letters(&self, list: ListLetters) -> Result<(u64, Vec<Letter>)> {
        self.meet("intake.letters", self.inner.intake.letters(list)).await
    }

    async fn remove_letters(&self, consumer: ResourceNumber, numbers: Option<Vec<u64>>) -> Result<u64> {
        self.meet("intake.remove_letters", self.inner.intake.remove_letters(consumer, numbers)).await
    }
}

#[async_trait]
impl Acts for Faulty {
    async fn append(&self, act: Act) -> Result<()> {
        self.meet("acts.append", self.inner.acts.append(act)).await
    }

    async fn list(&self, wanted: ListActs) -> Result<ActsPage> {
        self.meet("acts.list", self.inner.acts.list(wanted)).await
    }

    async fn trim(&self, before: Timestamp, limit: usize) -> Result<u64> {
        self.meet("acts.trim", self.inner.acts.trim(before, limit)).await
    }
}

#[async_trait]
impl Documents for Faulty {
    async fn incarnation(&self) -> Result<u64> {
        self.meet("documents.incarnation", self.inner.documents.incarnation()).await
    }

    fn sequences_from(&self) -> u64 {
        self.inner.documents.sequences_from()
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

    async fn remove_revisions(
        &self,
        sweeper: u64,
        lane: LaneId,
        revisions: &[(Ordinal, Seq)],
    ) -> Result<u64> {
        let call = self.inner.documents.remove_revisions(sweeper, lane, revisions);
        self.meet("documents.remove_revisions", call).await
    }

    async fn newest(&self, lane: LaneId) -> Result<Newest> {
        self.meet("documents.newest", self.inner.documents.newest(lane)).await
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        self.meet("documents.lanes", self.inner.documents.lanes()).await
    }

    async fn lanes_of(&self, resource: ResourceNumber) -> Result<Vec<LaneState>> {
        self.meet("documents.lanes_of", self.inner.documents.lanes_of(resource)).await
    }

    async fn begin_sweeping(&self, sweeper: u64) -> Result<()> {
        self.meet("documents.begin_sweeping", self.inner.documents.begin_sweeping(sweeper)).await
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
        sweeper: u64,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<u64> {
        let call = self.inner.documents.remove_tombstones(sweeper, lane, upto, accepted_before, keep, limit);
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

    async fn needs(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedNeeds>> {
        self.meet("ledger.needs", self.inner.ledger.needs(lane, after, limit)).await
    }

    async fn owes(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedOwes>> {
        self.meet("ledger.owes", self.inner.ledger.owes(lane, after, limit)).await
    }

    async fn summary(&self, subscription: SubscriptionNumber) -> Result<Vec<FeedSummary>> {
        self.meet("ledger.summary", self.inner.ledger.summary(subscription)).await
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
