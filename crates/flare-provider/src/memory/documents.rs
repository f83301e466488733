//! The log in memory: writes come in, and are compared by the model's own rule; outcomes go out, and changes go
//! to the witness.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use flare_model::document::{Document, Effect, Outcome, Write, apply};
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use super::Engine;
use super::history::History;
use crate::catalog::{Capture, MOST_UNSEEN};
use crate::documents::{
    Changed, Committed, Documents, LaneState, Newest, OlderRevision, Page, ScanLane, Witness,
};
use crate::error::{Conflict, ErrorKind, ProviderError, Result};

/// All lanes of all resources.
#[derive(Clone)]
pub(super) struct Log {
    pub incarnation: u64,
    /// The epoch under which is swept.
    pub sweeper: u64,
    pub lanes: BTreeMap<LaneId, Lane>,
}

/// One lane. Head and next ordinal are counted apart from the documents, since removing a tombstone must not
/// give its numbers out again.
#[derive(Clone, Default)]
pub(super) struct Lane {
    head: Seq,
    next_ordinal: Ordinal,
    by_seq: BTreeMap<Seq, Document>,
    by_url: HashMap<Arc<str>, Seq>,
    by_ordinal: BTreeMap<Ordinal, Seq>,
    tombstones: u64,
    /// Whether what is replaced is kept.
    pub keeps: bool,
    pub(super) history: History,
}

impl Log {
    pub fn create(&mut self, lane: LaneId) {
        self.lanes.insert(lane, Lane::default());
    }

    pub fn delete(&mut self, lane: LaneId) {
        self.lanes.remove(&lane);
    }

    /// Whether a new resource may take what it would: no live document, of those its creator has not seen.
    pub fn check(&self, capture: &Capture) -> Result<()> {
        const OPERATION: &str = "catalog.create";
        let lanes = || capture.seen.iter().filter_map(|(id, seen)| Some((self.lanes.get(id)?, *seen)));
        let unseen: u64 = lanes().map(|(lane, seen)| lane.head.0.saturating_sub(seen.0)).sum();
        if unseen > MOST_UNSEEN {
            return Err(ProviderError::conflict(OPERATION, Conflict::Unseen));
        }
        for (lane, seen) in lanes() {
            let beyond = lane.by_seq.range(Seq(seen.0.saturating_add(1))..).map(|(_, document)| document);
            let mut live = beyond.filter(|document| !document.row.deleted);
            if let Some(document) = live.find(|document| capture.takes(&document.url)) {
                return Err(ProviderError::conflict(OPERATION, Conflict::Captured(document.url.to_string())));
            }
        }
        Ok(())
    }

    pub fn head(&self, lane: LaneId) -> Seq {
        self.lanes.get(&lane).map_or(Seq(0), |lane| lane.head)
    }

    /// Whether someone else sweeps by now.
    fn refuse_other_sweepers(&self, operation: &'static str, sweeper: u64) -> Result<()> {
        if self.sweeper == sweeper {
            return Ok(());
        }
        #[cfg(feature = "planted")]
        if flare_model::planted::Bug::StaleSweeper.is_planted() {
            return Ok(());
        }
        let detail = format!("epoch {sweeper} sweeps no more: {} does", self.sweeper);
        Err(ProviderError::new(ErrorKind::Fenced, operation, detail))
    }
}

impl Lane {
    fn by_url(&self, url: &str) -> Option<&Document> {
        self.by_seq.get(self.by_url.get(url)?)
    }

    fn by_ordinal(&self, ordinal: Ordinal) -> Option<&Document> {
        self.by_seq.get(self.by_ordinal.get(&ordinal)?)
    }

    /// The oldest tombstones that may go.
    fn tombstones(
        &self,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Vec<(Ordinal, Seq)> {
        let goes = |document: &&Document| {
            let row = &document.row;
            row.deleted && document.updated_at < accepted_before && !keep.contains(row.ordinal.0)
        };
        let found = self.by_seq.range(..=upto).map(|(_, document)| document).filter(goes);
        found.take(limit).map(|document| (document.row.ordinal, document.row.seq)).collect()
    }

    fn state(&self, lane: LaneId) -> LaneState {
        LaneState {
            lane,
            head: self.head,
            documents: self.by_seq.len() as u64 - self.tombstones,
            tombstones: self.tombstones,
            revisions: self.history.len() as u64,
        }
    }

    fn apply(&mut self, write: Write) -> Result<(Outcome, Option<Changed>)> {
        let current = self.by_url(&write.url);
        let next_seq = Seq(self.head.0 + 1);
        let known = current.map(|document| (&document.row, &document.revision));
        let (outcome, row, revision, content) = match apply(known, &write.intent, next_seq, self.next_ordinal)
        {
            Effect::Nothing(outcome) => return Ok((outcome, None)),
            Effect::OtherKind => {
                return Err(ProviderError::conflict("documents.commit", Conflict::RevisionKind));
            }
            Effect::Change { outcome, row, revision, content } => (outcome, row, revision, content),
        };
        let moved = current.map(|document| document.row.seq);
        match moved {
            Some(moved) => {
                let replaced = self.remove(moved).filter(|_| self.keeps);
                self.history.extend(replaced, row.seq, write.at);
            }
            None => self.next_ordinal.0 += 1,
        }
        self.head = row.seq;
        let Write { lane, url, at: updated_at, .. } = write;
        let document = Document { lane, row, url, revision, updated_at, content };
        self.insert(document.clone());
        Ok((outcome, Some(Changed { document, replaced: moved.unwrap_or_default() })))
    }

    fn newest(&self) -> Newest {
        let deleted = self.by_seq.values().filter(|document| document.row.deleted);
        Newest {
            seqs: self.by_seq.keys().map(|seq| seq.0).collect(),
            tombstones: deleted.map(|document| document.row.seq.0).collect(),
        }
    }

    fn insert(&mut self, document: Document) {
        self.tombstones += u64::from(document.row.deleted);
        self.by_url.insert(document.url.clone(), document.row.seq);
        self.by_ordinal.insert(document.row.ordinal, document.row.seq);
        self.by_seq.insert(document.row.seq, document);
    }

    fn remove(&mut self, seq: Seq) -> Option<Document> {
        let document = self.by_seq.remove(&seq)?;
        self.tombstones -= u64::from(document.row.deleted);
        self.by_url.remove(&document.url);
        self.by_ordinal.remove(&document.row.ordinal);
        Some(document)
    }

    fn scan(&self, scan: &ScanLane, since: Option<Seq>) -> Page {
        let mut page = Page { documents: Vec::new(), upto: scan.upto.min(self.head), head: self.head };
        let mut bytes = 0;
        let beyond = Seq(scan.after.0.saturating_add(1));
        let older = since.into_iter().flat_map(|since| self.history.beyond(beyond, since));
        let mut found: BTreeMap<Seq, &Document> =
            older.map(|document| (document.row.seq, document)).collect();
        found.extend(self.by_seq.range(beyond..).map(|(seq, document)| (*seq, document)));
        for (seq, document) in found {
            if seq > scan.upto {
                break;
            }
            if page.documents.len() >= scan.rows || (bytes >= scan.bytes && !page.documents.is_empty()) {
                page.upto = page.documents.last().map_or(scan.after, |last| last.row.seq);
                break;
            }
            bytes += document.content.len();
            page.documents.push(document.clone());
        }
        page
    }
}

#[async_trait]
impl Documents for Engine {
    async fn incarnation(&self) -> Result<u64> {
        Ok(self.durable("documents.incarnation")?.log.incarnation)
    }

    fn watch(&self, witness: Arc<dyn Witness>) {
        *self.witness.lock() = Some(witness);
    }

    async fn commit(&self, batch: Vec<Write>) -> Result<Vec<Result<Committed>>> {
        const OPERATION: &str = "documents.commit";
        let mut durable = self.durable(OPERATION)?;
        if batch.iter().any(|write| write.routed_by < durable.entities.routing) {
            return Err(ProviderError::conflict(OPERATION, Conflict::Routing));
        }
        let mut answers = Vec::with_capacity(batch.len());
        let mut changes = Vec::new();
        for write in batch {
            let Some(lane) = durable.log.lanes.get_mut(&write.lane) else {
                answers.push(Err(ProviderError::conflict(OPERATION, Conflict::Lane)));
                continue;
            };
            let before = lane.head;
            answers.push(lane.apply(write).map(|(outcome, change)| {
                let after = change.as_ref().map_or(before, |change| change.document.row.seq);
                changes.extend(change);
                Committed { outcome, before, after }
            }));
        }
        // Called under the lock: released, the next commit could reach the witness before this one does.
        let witness = self.witness.lock().clone();
        if let Some(witness) = witness.filter(|_| !changes.is_empty()) {
            witness.committed(changes);
        }
        Ok(answers)
    }

    async fn get(&self, lane: LaneId, url: &str) -> Result<Option<Document>> {
        let durable = self.durable("documents.get")?;
        Ok(durable.log.lanes.get(&lane).and_then(|lane| lane.by_url(url)).cloned())
    }

    async fn fetch(&self, lane: LaneId, ordinals: &[Ordinal]) -> Result<(Vec<Option<Document>>, Seq)> {
        let durable = self.durable("documents.fetch")?;
        let lane = durable.log.lanes.get(&lane);
        let document = |ordinal: &Ordinal| lane.and_then(|lane| lane.by_ordinal(*ordinal)).cloned();
        Ok((ordinals.iter().map(document).collect(), lane.map_or(Seq(0), |lane| lane.head)))
    }

    async fn scan(&self, scan: ScanLane) -> Result<Page> {
        let durable = self.durable("documents.scan")?;
        Ok(durable.log.lanes.get(&scan.lane).map_or_else(Page::default, |lane| lane.scan(&scan, None)))
    }

    async fn scan_revisions(&self, scan: ScanLane, since: Seq) -> Result<Page> {
        let durable = self.durable("documents.scan_revisions")?;
        Ok(durable.log.lanes.get(&scan.lane).map_or_else(Page::default, |lane| lane.scan(&scan, Some(since))))
    }

    async fn next_revisions(
        &self,
        lane: LaneId,
        since: Seq,
        wanted: &[(Ordinal, Seq)],
    ) -> Result<(Vec<Option<Document>>, Seq)> {
        let durable = self.durable("documents.next_revisions")?;
        let Some(lane) = durable.log.lanes.get(&lane) else { return Ok((vec![None; wanted.len()], Seq(0))) };
        let first = |(ordinal, from): &(Ordinal, Seq)| {
            let older = lane.history.first(*ordinal, *from, since);
            let newest = || lane.by_ordinal(*ordinal).filter(|newest| newest.row.seq >= *from);
            older.or_else(newest).cloned()
        };
        Ok((wanted.iter().map(first).collect(), lane.head))
    }

    async fn revisions(
        &self,
        lane: LaneId,
        after: Option<(Ordinal, Seq)>,
        limit: usize,
    ) -> Result<Vec<OlderRevision>> {
        let durable = self.durable("documents.revisions")?;
        Ok(durable.log.lanes.get(&lane).map_or_else(Vec::new, |lane| lane.history.kept(after, limit)))
    }

    async fn remove_revisions(
        &self,
        sweeper: u64,
        lane: LaneId,
        revisions: &[(Ordinal, Seq)],
    ) -> Result<u64> {
        const OPERATION: &str = "documents.remove_revisions";
        let mut durable = self.durable(OPERATION)?;
        durable.log.refuse_other_sweepers(OPERATION, sweeper)?;
        let Some(lane) = durable.log.lanes.get_mut(&lane) else { return Ok(0) };
        Ok(revisions.iter().filter(|revision| lane.history.remove(revision)).count() as u64)
    }

    async fn newest(&self, lane: LaneId) -> Result<Newest> {
        let durable = self.durable("documents.newest")?;
        Ok(durable.log.lanes.get(&lane).map(Lane::newest).unwrap_or_default())
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        let durable = self.durable("documents.lanes")?;
        Ok(durable.log.lanes.iter().map(|(id, lane)| lane.state(*id)).collect())
    }

    async fn lanes_of(&self, resource: ResourceNumber) -> Result<Vec<LaneState>> {
        let durable = self.durable("documents.lanes_of")?;
        let lanes = LaneId { resource, index: 0 }..=LaneId { resource, index: u8::MAX };
        Ok(durable.log.lanes.range(lanes).map(|(id, lane)| lane.state(*id)).collect())
    }

    async fn begin_sweeping(&self, sweeper: u64) -> Result<()> {
        const OPERATION: &str = "documents.begin_sweeping";
        let mut durable = self.durable(OPERATION)?;
        if sweeper < durable.log.sweeper {
            return durable.log.refuse_other_sweepers(OPERATION, sweeper);
        }
        durable.log.sweeper = sweeper;
        Ok(())
    }

    async fn tombstones(
        &self,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<Vec<(Ordinal, Seq)>> {
        let durable = self.durable("documents.tombstones")?;
        let Some(lane) = durable.log.lanes.get(&lane) else { return Ok(Vec::new()) };
        Ok(lane.tombstones(upto, accepted_before, keep, limit))
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
        let mut durable = self.durable(OPERATION)?;
        durable.log.refuse_other_sweepers(OPERATION, sweeper)?;
        let Some(lane) = durable.log.lanes.get_mut(&lane) else { return Ok(0) };
        let gone = lane.tombstones(upto, accepted_before, keep, limit);
        gone.iter().for_each(|(_, seq)| drop(lane.remove(*seq)));
        Ok(gone.len() as u64)
    }
}
