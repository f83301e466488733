//! The documents as they really are, beneath all that goes wrong on the way to them: under which epoch that is removed which
//! nobody needs any more is noted.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use flare_model::document::{Document, Write};
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq};
use flare_model::time::Timestamp;
use flare_provider::{
    Committed, Documents, LaneState, Newest, OlderRevision, Page, Result, ScanLane, Witness,
};
use roaring::RoaringTreemap;

use crate::stage::Stage;

/// The documents, for one life of a node.
pub struct Swept {
    pub inner: Arc<dyn Documents>,
    pub stage: Weak<Stage>,
}

impl Swept {
    fn removed(&self, sweeper: u64) {
        if let Some(stage) = self.stage.upgrade() {
            stage.lock().removes(sweeper);
        }
    }
}

#[async_trait]
impl Documents for Swept {
    async fn begin_sweeping(&self, sweeper: u64) -> Result<()> {
        self.inner.begin_sweeping(sweeper).await?;
        if let Some(stage) = self.stage.upgrade() {
            stage.lock().sweeps(sweeper);
        }
        Ok(())
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
        let removed = self.inner.remove_tombstones(sweeper, lane, upto, accepted_before, keep, limit).await?;
        self.removed(sweeper);
        Ok(removed)
    }

    async fn remove_revisions(
        &self,
        sweeper: u64,
        lane: LaneId,
        revisions: &[(Ordinal, Seq)],
    ) -> Result<u64> {
        let removed = self.inner.remove_revisions(sweeper, lane, revisions).await?;
        self.removed(sweeper);
        Ok(removed)
    }

    async fn incarnation(&self) -> Result<u64> {
        self.inner.incarnation().await
    }

    fn sequences_from(&self) -> u64 {
        self.inner.sequences_from()
    }

    fn watch(&self, witness: Arc<dyn Witness>) {
        self.inner.watch(witness);
    }

    async fn commit(&self, batch: Vec<Write>) -> Result<Vec<Result<Committed>>> {
        self.inner.commit(batch).await
    }

    async fn get(&self, lane: LaneId, url: &str) -> Result<Option<Document>> {
        self.inner.get(lane, url).await
    }

    async fn fetch(&self, lane: LaneId, ordinals: &[Ordinal]) -> Result<(Vec<Option<Document>>, Seq)> {
        self.inner.fetch(lane, ordinals).await
    }

    async fn scan(&self, scan: ScanLane) -> Result<Page> {
        self.inner.scan(scan).await
    }

    async fn scan_revisions(&self, scan: ScanLane, since: Seq) -> Result<Page> {
        self.inner.scan_revisions(scan, since).await
    }

    async fn next_revisions(
        &self,
        lane: LaneId,
        since: Seq,
        wanted: &[(Ordinal, Seq)],
    ) -> Result<(Vec<Option<Document>>, Seq)> {
        self.inner.next_revisions(lane, since, wanted).await
    }

    async fn revisions(
        &self,
        lane: LaneId,
        after: Option<(Ordinal, Seq)>,
        limit: usize,
    ) -> Result<Vec<OlderRevision>> {
        self.inner.revisions(lane, after, limit).await
    }

    async fn newest(&self, lane: LaneId) -> Result<Newest> {
        self.inner.newest(lane).await
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        self.inner.lanes().await
    }

    async fn lanes_of(&self, resource: ResourceNumber) -> Result<Vec<LaneState>> {
        self.inner.lanes_of(resource).await
    }

    async fn tombstones(
        &self,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<Vec<(Ordinal, Seq)>> {
        self.inner.tombstones(lane, upto, accepted_before, keep, limit).await
    }
}
