//! The log: calls of the contract come in; batches go through the writer, readers answer the rest.

mod capture;
mod commit;
mod history;
mod newest;
mod read;
pub(crate) mod row;
mod scan;
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

pub(crate) use capture::check as check_capture;
pub(crate) use commit::commit_all;

use crate::desk::Desk;
use crate::engine::Engine;
use crate::readers::Reader;
use tombstones::{SLICE, Search};

#[async_trait]
impl Documents for Engine {
    async fn incarnation(&self) -> Result<u64> {
        // The folder is this process's alone: nobody can change it.
        Ok(self.incarnation)
    }

    fn sequences_from(&self) -> u64 {
        self.sequences_from
    }

    fn watch(&self, witness: Arc<dyn Witness>) {
        self.witness.set(witness);
    }

    async fn commit(&self, batch: Vec<Write>) -> Result<Vec<Result<Committed>>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let answered = self.queue.push_commit(batch)?;
        answered.await.unwrap_or_else(|_dropped| Err(self.queue.ended("documents.commit")))
    }

    async fn get(&self, lane: LaneId, url: &str) -> Result<Option<Document>> {
        let url = url.to_owned();
        let read = move |reader: &mut Reader| read::get(&reader.connection, &reader.recent, lane, &url);
        self.read("documents.get", read).await
    }

    async fn fetch(&self, lane: LaneId, ordinals: &[Ordinal]) -> Result<(Vec<Option<Document>>, Seq)> {
        let ordinals = ordinals.to_vec();
        let read =
            move |reader: &mut Reader| read::fetch(&reader.connection, &reader.recent, lane, &ordinals);
        self.read("documents.fetch", read).await
    }

    async fn scan(&self, scan: ScanLane) -> Result<Page> {
        let read = move |reader: &mut Reader| scan::scan(&reader.connection, &reader.recent, scan);
        self.read("documents.scan", read).await
    }

    async fn scan_revisions(&self, scan: ScanLane, since: Seq) -> Result<Page> {
        let read = move |reader: &mut Reader| {
            let newest = scan::scan(&reader.connection, &reader.recent, scan)?;
            history::merge(&reader.connection, scan, since, newest)
        };
        self.read("documents.scan_revisions", read).await
    }

    async fn next_revisions(
        &self,
        lane: LaneId,
        since: Seq,
        wanted: &[(Ordinal, Seq)],
    ) -> Result<(Vec<Option<Document>>, Seq)> {
        let wanted = wanted.to_vec();
        let read = move |reader: &mut Reader| {
            let ordinals: Vec<Ordinal> = wanted.iter().map(|(ordinal, _)| *ordinal).collect();
            let (newest, head) = read::fetch(&reader.connection, &reader.recent, lane, &ordinals)?;
            Ok((history::next(&reader.connection, lane, since, &wanted, newest)?, head))
        };
        self.read("documents.next_revisions", read).await
    }

    async fn revisions(
        &self,
        lane: LaneId,
        after: Option<(Ordinal, Seq)>,
        limit: usize,
    ) -> Result<Vec<OlderRevision>> {
        let read = move |reader: &mut Reader| history::list(&reader.connection, lane, after, limit);
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
            let work = move |desk: &mut Desk<'_>| {
                sweeping::refuse_others(desk, OPERATION, sweeper)?;
                history::remove(desk, lane, &slice)
            };
            removed += self.queue.work(OPERATION, SLICE * 64, work).await?;
        }
        Ok(removed)
    }

    async fn newest(&self, lane: LaneId) -> Result<Newest> {
        let read = move |reader: &mut Reader| newest::newest(&reader.connection, &reader.recent, lane);
        self.read("documents.newest", read).await
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        self.read("documents.lanes", |reader| read::lane_states(&reader.connection, None)).await
    }

    async fn lanes_of(&self, resource: ResourceNumber) -> Result<Vec<LaneState>> {
        let read = move |reader: &mut Reader| read::lane_states(&reader.connection, Some(resource));
        self.read("documents.lanes_of", read).await
    }

    async fn begin_sweeping(&self, sweeper: u64) -> Result<()> {
        const OPERATION: &str = "documents.begin_sweeping";
        self.queue.work(OPERATION, 64, move |desk| sweeping::begin(desk, OPERATION, sweeper)).await
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
        let (mut after, mut listed) = (Seq(0), Vec::new());
        while listed.len() < limit {
            let limit = (limit - listed.len()).min(SLICE);
            let keep = keep.clone();
            let find = move |reader: &mut Reader| {
                let search = Search { lane, after, upto, accepted_before, keep: &keep, limit };
                tombstones::find(&reader.connection, &search)
            };
            let (found, more) = self.read("documents.tombstones", find).await?;
            listed.extend(found.iter().map(|found| (Ordinal(found.ordinal), Seq(found.seq as u64))));
            match more {
                Some(last) => after = last,
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
        let (mut after, mut removed) = (Seq(0), 0);
        while removed < limit as u64 {
            let limit = (limit - removed as usize).min(SLICE);
            let keep = keep.clone();
            let find = move |reader: &mut Reader| {
                let search = Search { lane, after, upto, accepted_before, keep: &keep, limit };
                tombstones::find(&reader.connection, &search)
            };
            let (found, more) = self.read(OPERATION, find).await?;
            if !found.is_empty() {
                let bytes = SLICE * 64;
                let work = move |desk: &mut Desk<'_>| {
                    sweeping::refuse_others(desk, OPERATION, sweeper)?;
                    tombstones::remove(desk, lane, &found)
                };
                removed += self.queue.work(OPERATION, bytes, work).await?;
            }
            match more {
                Some(last) => after = last,
                None => break,
            }
        }
        Ok(removed)
    }
}
