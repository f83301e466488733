//! The log: calls of the contract come in; batches go through the committers, sessions of the pool answer the rest.

mod columns;
pub(crate) mod commit;
mod history;
pub(crate) mod lanes;
mod read;
pub(crate) mod row;
mod sweeping;
mod tombstones;

use std::sync::Arc;

use async_trait::async_trait;
use flare_model::document::{Document, Write};
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq};
use flare_model::time::Timestamp;
use flare_provider::{
    Committed, Documents, LaneState, Newest, OlderRevision, Page, Result, ScanLane, Witness,
};
use roaring::RoaringTreemap;

use crate::engine::Engine;
use crate::numbers;
use crate::pool::Borrowed;
use tombstones::{SLICE, Search};

#[async_trait]
impl Documents for Engine {
    async fn incarnation(&self) -> Result<u64> {
        self.read(
            "documents.incarnation",
            |session| async move { numbers::get(&session, "incarnation").await },
        )
        .await
    }

    fn watch(&self, witness: Arc<dyn Witness>) {
        self.witness.set(witness);
    }

    async fn commit(&self, batch: Vec<Write>) -> Result<Vec<Result<Committed>>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.committers.commit(batch).await
    }

    async fn get(&self, lane: LaneId, url: &str) -> Result<Option<Document>> {
        let url = url.to_owned();
        self.read("documents.get", move |session| async move { read::get(&session, lane, &url).await }).await
    }

    async fn fetch(&self, lane: LaneId, ordinals: &[Ordinal]) -> Result<(Vec<Option<Document>>, Seq)> {
        let ordinals = ordinals.to_vec();
        let read = move |session: Arc<Borrowed>| async move { read::fetch(&session, lane, &ordinals).await };
        self.read("documents.fetch", read).await
    }

    async fn scan(&self, scan: ScanLane) -> Result<Page> {
        let read = move |session: Arc<Borrowed>| async move { read::scan(&session, scan, None).await };
        self.read("documents.scan", read).await
    }

    async fn scan_revisions(&self, scan: ScanLane, since: Seq) -> Result<Page> {
        let read = move |session: Arc<Borrowed>| async move { read::scan(&session, scan, Some(since)).await };
        self.read("documents.scan_revisions", read).await
    }

    async fn next_revisions(
        &self,
        lane: LaneId,
        since: Seq,
        wanted: &[(Ordinal, Seq)],
    ) -> Result<(Vec<Option<Document>>, Seq)> {
        let wanted = wanted.to_vec();
        let read =
            move |session: Arc<Borrowed>| async move { history::next(&session, lane, since, &wanted).await };
        self.read("documents.next_revisions", read).await
    }

    async fn revisions(
        &self,
        lane: LaneId,
        after: Option<(Ordinal, Seq)>,
        limit: usize,
    ) -> Result<Vec<OlderRevision>> {
        let read =
            move |session: Arc<Borrowed>| async move { history::list(&session, lane, after, limit).await };
        self.read("documents.revisions", read).await
    }

    async fn remove_revisions(
        &self,
        sweeper: u64,
        lane: LaneId,
        revisions: &[(Ordinal, Seq)],
    ) -> Result<u64> {
        const OPERATION: &str = "documents.remove_revisions";
        let mut removed = 0;
        for slice in revisions.chunks(SLICE) {
            let slice = slice.to_vec();
            removed += self
                .change(OPERATION, move |session| {
                    Box::pin(async move {
                        sweeping::refuse_others(session, OPERATION, sweeper).await?;
                        history::remove(session, lane, &slice).await
                    })
                })
                .await?;
        }
        Ok(removed)
    }

    async fn newest(&self, lane: LaneId) -> Result<Newest> {
        let read = move |session: Arc<Borrowed>| async move { read::newest(&session, lane).await };
        self.read("documents.newest", read).await
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        self.read("documents.lanes", |session| async move { read::lanes(&session, None).await }).await
    }

    async fn lanes_of(&self, resource: ResourceNumber) -> Result<Vec<LaneState>> {
        let read = move |session: Arc<Borrowed>| async move { read::lanes(&session, Some(resource)).await };
        self.read("documents.lanes_of", read).await
    }

    async fn begin_sweeping(&self, sweeper: u64) -> Result<()> {
        const OPERATION: &str = "documents.begin_sweeping";
        self.change(OPERATION, move |session| Box::pin(sweeping::begin(session, OPERATION, sweeper))).await
    }

    async fn tombstones(
        &self,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<Vec<(Ordinal, Seq)>> {
        let keep = Arc::new(keep.clone());
        let mut search = Search { lane, after: Seq(0), upto, accepted_before, limit };
        let mut listed = Vec::new();
        while listed.len() < limit {
            search.limit = (limit - listed.len()).min(SLICE);
            let (found, more) = self.find_tombstones("documents.tombstones", &search, &keep).await?;
            listed.extend(found);
            match more {
                Some(last) => search.after = last,
                None => break,
            }
        }
        Ok(listed)
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
        const OPERATION: &str = "documents.remove_tombstones";
        let keep = Arc::new(keep.clone());
        let mut search = Search { lane, after: Seq(0), upto, accepted_before, limit };
        let mut removed = 0;
        while removed < limit as u64 {
            search.limit = (limit - removed as usize).min(SLICE);
            let (found, more) = self.find_tombstones(OPERATION, &search, &keep).await?;
            if !found.is_empty() {
                removed += self
                    .change(OPERATION, move |session| {
                        Box::pin(async move {
                            sweeping::refuse_others(session, OPERATION, sweeper).await?;
                            tombstones::remove(session, lane, &found).await
                        })
                    })
                    .await?;
            }
            match more {
                Some(last) => search.after = last,
                None => break,
            }
        }
        Ok(removed)
    }
}

impl Engine {
    async fn find_tombstones(
        &self,
        operation: &'static str,
        search: &Search,
        keep: &Arc<RoaringTreemap>,
    ) -> Result<(Vec<(Ordinal, Seq)>, Option<Seq>)> {
        let (search, keep) = (search.clone(), keep.clone());
        let find =
            move |session: Arc<Borrowed>| async move { tombstones::find(&session, &search, &keep).await };
        self.read(operation, find).await
    }
}
