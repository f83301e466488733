//! Reading the store for feeds that are behind the tail. Pages are shared between the feeds of a lane.

use std::collections::VecDeque;
use std::sync::Arc;

use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_provider::{Documents, Result, ScanLane};
use parking_lot::Mutex;

use crate::journey::permits::room::{Held, Room};
use crate::notification::change::Change;

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
    /// Whoever still walks through it: it counts.
    _room: Held,
}

/// A page as one feed walks through it.
#[derive(Clone)]
pub struct Loaded(pub Arc<SharedPage>);

impl Loaded {
    /// Whether it has all that lies beyond a position, as far as it goes.
    pub fn begins_at(&self, position: Seq) -> bool {
        self.0.after <= position
    }

    /// The first change beyond a position, or how far the page goes.
    pub fn next(&self, position: Seq) -> std::result::Result<&Arc<Change>, Seq> {
        let changes = &self.0.changes;
        let at = changes.partition_point(|change| change.row().seq <= position);
        changes.get(at).ok_or(self.0.upto)
    }
}

/// A document that was read for its turn, with the head that its snapshot knew.
pub struct Fetched {
    /// The document.
    pub change: Arc<Change>,
    /// The newest change that was known then.
    pub head: Seq,
    _room: Held,
}

/// Reads pages and documents, and keeps the last pages for the next feed that is as far behind.
pub struct Pages {
    documents: Arc<dyn Documents>,
    /// Bound: `room`. When full: the oldest page goes.
    kept: Mutex<VecDeque<Arc<SharedPage>>>,
    rows: usize,
    /// For pages, kept here or walked through by a feed. When full: a page has one document.
    room: Room,
    /// For documents that wait for their turn. When full: what a sweep reads is not kept, and read again.
    fetched: Room,
    /// One read of a lane at a time per node, so that feeds that are behind together share what is read.
    turn: tokio::sync::Mutex<()>,
}

impl Pages {
    /// Reads `rows` documents at a time, and has `budget` bytes for pages, and as many for documents that wait.
    pub fn new(documents: Arc<dyn Documents>, rows: usize, budget: usize) -> Pages {
        let (room, fetched) = (Room::new(budget), Room::new(budget));
        Pages { documents, kept: Mutex::default(), rows, room, fetched, turn: tokio::sync::Mutex::new(()) }
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
        let bytes = self.make_room();
        let scan = ScanLane { lane, after, upto, rows: self.rows, bytes };
        let page = match since {
            None => self.documents.scan(scan).await?,
            Some(since) => self.documents.scan_revisions(scan, since).await?,
        };
        let changes: Vec<_> = page.documents.into_iter().map(Change::new).collect();
        let weight = changes.iter().map(|change| change.weight()).sum();
        let (upto, head, room) = (page.upto, page.head, self.room.insist(weight));
        let page = Arc::new(SharedPage { lane, after, upto, head, since, changes, weight, _room: room });
        let mut kept = self.kept.lock();
        kept.push_back(page.clone());
        let mut total: usize = kept.iter().map(|page| page.weight).sum();
        while total > self.room.budget()
            && kept.len() > 1
            && let Some(gone) = kept.pop_front()
        {
            total -= gone.weight;
        }
        Ok(Loaded(page))
    }

    /// How many bytes the next page may have. Pages that only wait for another feed go first; what feeds are at work
    /// with stays, and many of them have to make do with less at a time: in the end with a document each.
    fn make_room(&self) -> usize {
        let share = self.room.budget() / 4;
        let mut kept = self.kept.lock();
        while self.room.left() < share && kept.pop_front().is_some() {}
        share.min(self.room.left()).max(1)
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

    /// One page of a sweep, with so many rows at most: they only matter once, so it is not kept.
    pub async fn sweep(
        &self,
        lane: LaneId,
        after: Seq,
        upto: Seq,
        rows: usize,
    ) -> Result<flare_provider::Page> {
        let scan = ScanLane { lane, after, upto, rows: self.rows.min(rows), bytes: self.room.budget() / 4 };
        self.documents.scan(scan).await
    }

    /// Keeps a document that a sweep has read until its turn comes, if there is room for it.
    pub fn keep(&self, change: Arc<Change>, head: Seq) -> Option<Fetched> {
        let room = self.fetched.take(change.weight())?;
        Some(Fetched { change, head, _room: room })
    }

    /// Keeps a document that was read because its turn has come, whether there is room for it or not: it is sent next.
    /// Bound: what may be sent at once, see [`Subscriber::may_fetch`](crate::journey::subscriber::Subscriber::may_fetch).
    pub fn keep_for_its_turn(&self, change: Arc<Change>, head: Seq) -> Fetched {
        let room = self.fetched.insist(change.weight());
        Fetched { change, head, _room: room }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journey::testing::world::{Small, World};

    const SMALL: Small = Small { limit: 100, lanes: 1, bytes: 10_000 };

    #[test]
    fn feeds_at_work_with_pages_share_the_room_and_in_the_end_have_a_document_each() {
        World::run(SMALL, async |world| {
            for document in 0..40 {
                world.say(document, Some(1)).await;
            }
            let lane = world.resource.lane_of("http://h/1");
            let pages = Pages::new(world.store.documents.clone(), 4, 4_000);
            let mut walked = Vec::new();
            for after in (0..40).step_by(4) {
                walked.push(pages.page(lane, Seq(after), Seq(0), None).await.expect("it is read"));
            }
            let rows: Vec<usize> = walked.iter().map(|page| page.0.changes.len()).collect();
            assert_eq!((rows[0], rows[9]), (4, 1), "{rows:?}");
            let held: usize = walked.iter().map(|page| page.0.weight).sum();
            assert!(held < 4_000 + 10 * walked[0].0.weight / 2, "{held} bytes: {rows:?}");
            drop(walked);
            let page = pages.page(lane, Seq(35), Seq(0), None).await.expect("it is read");
            assert!(page.0.changes.len() > 1, "what was let go makes room again");
        });
    }

    #[test]
    fn what_a_sweep_reads_is_kept_within_the_room_and_what_has_its_turn_in_any_case() {
        World::run(SMALL, async |world| {
            world.say(1, Some(1)).await;
            let lane = world.resource.lane_of("http://h/1");
            let tools = world.worker.borrow().tools.clone();
            let (change, head) = tools.pages.document(lane, Ordinal(0)).await.expect("it is read");
            let change = change.expect("it is there");
            let pages = Pages::new(world.store.documents.clone(), 100, change.weight() * 5 / 2);
            let kept: Vec<_> = (0..9).filter_map(|_| pages.keep(change.clone(), head)).collect();
            assert_eq!(kept.len(), 2);
            let turn = pages.keep_for_its_turn(change.clone(), head);
            drop(kept);
            assert!(pages.keep(change.clone(), head).is_some());
            drop(turn);
            assert_eq!(pages.fetched.left(), change.weight() * 5 / 2);
        });
    }
}
