//! Reading the store for feeds that are behind the tail. Pages are shared between the feeds of a lane.

use std::collections::VecDeque;
use std::sync::Arc;

use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_provider::{Documents, Result, ScanLane};
use parking_lot::Mutex;

use super::change::Change;

/// A page of a lane, shared.
pub struct SharedPage {
    lane: LaneId,
    after: Seq,
    upto: Seq,
    /// The newest change its snapshot knew.
    pub head: Seq,
    /// Whether it has every revision that was replaced after a change, and after which.
    since: Option<Seq>,
    changes: Vec<Arc<Change>>,
    weight: usize,
}

/// A page as one feed walks through it.
#[derive(Clone)]
pub struct Loaded(pub Arc<SharedPage>);

impl Loaded {
    /// The first change beyond a position, or how far the page goes.
    pub fn next(&self, position: Seq) -> std::result::Result<&Arc<Change>, Seq> {
        let changes = &self.0.changes;
        let at = changes.partition_point(|change| change.row().seq <= position);
        changes.get(at).ok_or(self.0.upto)
    }
}

/// Reads pages and documents, and keeps the last pages for the next feed that is as far behind.
pub struct Pages {
    documents: Arc<dyn Documents>,
    /// Bound: `budget` bytes. When full: the oldest page goes.
    kept: Mutex<VecDeque<Arc<SharedPage>>>,
    rows: usize,
    budget: usize,
    /// One read of a lane at a time per node, so that feeds that are behind together share what is read.
    turn: tokio::sync::Mutex<()>,
}

impl Pages {
    /// Reads `rows` documents at a time and keeps up to `budget` bytes of pages.
    pub fn new(documents: Arc<dyn Documents>, rows: usize, budget: usize) -> Pages {
        Pages { documents, kept: Mutex::default(), rows, budget, turn: tokio::sync::Mutex::new(()) }
    }

    /// A page of what lies beyond `after`: the newest rows, of a snapshot that is no older than `newest_floor`, or
    /// with `since` every revision that was replaced after that, which is as good in any snapshot.
    pub async fn page(
        &self,
        lane: LaneId,
        after: Seq,
        newest_floor: Seq,
        since: Option<Seq>,
    ) -> Result<Loaded> {
        let newest_floor = if since.is_some() { Seq(0) } else { newest_floor };
        if let Some(page) = self.find(lane, after, newest_floor, since) {
            return Ok(Loaded(page));
        }
        let _turn = self.turn.lock().await;
        if let Some(page) = self.find(lane, after, newest_floor, since) {
            return Ok(Loaded(page));
        }
        let upto = Seq(u64::MAX);
        let bytes = self.budget / 4;
        let scan = ScanLane { lane, after, upto, rows: self.rows, bytes };
        let page = match since {
            None => self.documents.scan(scan).await?,
            Some(since) => self.documents.scan_revisions(scan, since).await?,
        };
        let changes: Vec<_> = page.documents.into_iter().map(Change::new).collect();
        let weight = changes.iter().map(|change| change.weight()).sum();
        let page =
            Arc::new(SharedPage { lane, after, upto: page.upto, head: page.head, since, changes, weight });
        let mut kept = self.kept.lock();
        kept.push_back(page.clone());
        let mut total: usize = kept.iter().map(|page| page.weight).sum();
        while total > self.budget
            && kept.len() > 1
            && let Some(gone) = kept.pop_front()
        {
            total -= gone.weight;
        }
        Ok(Loaded(page))
    }

    fn find(
        &self,
        lane: LaneId,
        after: Seq,
        newest_floor: Seq,
        since: Option<Seq>,
    ) -> Option<Arc<SharedPage>> {
        let kept = self.kept.lock();
        let fits = |page: &&Arc<SharedPage>| {
            page.since == since
                && page.lane == lane
                && page.after <= after
                && after < page.upto
                && page.head >= newest_floor
        };
        kept.iter().rev().find(fits).cloned()
    }

    /// One page of a sweep: rows only matter once, so it is not kept.
    pub async fn sweep(&self, lane: LaneId, after: Seq, upto: Seq) -> Result<flare_provider::Page> {
        let scan = ScanLane { lane, after, upto, rows: self.rows, bytes: self.budget / 4 };
        self.documents.scan(scan).await
    }

    /// The first revision of a document at or beyond a change, with the head its snapshot knew.
    pub async fn next_revision(
        &self,
        lane: LaneId,
        since: Seq,
        ordinal: Ordinal,
        from: Seq,
    ) -> Result<(Option<Arc<Change>>, Seq)> {
        let (mut found, head) = self.documents.next_revisions(lane, since, &[(ordinal, from)]).await?;
        Ok((found.pop().flatten().map(Change::new), head))
    }

    /// One document by its ordinal, with the head its snapshot knew.
    pub async fn document(&self, lane: LaneId, ordinal: Ordinal) -> Result<(Option<Arc<Change>>, Seq)> {
        let (mut found, head) = self.documents.fetch(lane, &[ordinal]).await?;
        Ok((found.pop().flatten().map(Change::new), head))
    }
}
