//! Follow: committed changes come in, in order; every feed reads them here as long as it keeps up.
//!
//! One tail per lane, shared by all feeds of the lane, and one budget of bytes for all lanes. A feed is a
//! position; nothing is copied or queued for it. A feed that falls out of the tail reads pages of the store.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flare_model::document::Document;
use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_provider::{Changed, Newest, Witness};
use parking_lot::{Mutex, RwLock};

use crate::journey::bell::Bell;
use crate::journey::log::rows::{Beyond, Rows};
use crate::journey::tenancy::Tenancy;
use crate::notification::change::Change;
use crate::observe::Counts;
use crate::telemetry::Tracer;

/// The newest changes of one lane.
pub struct LaneTail {
    lane: LaneId,
    kept: Mutex<Kept>,
    /// The same as in `kept`, for a look without the lock.
    head: AtomicU64,
    /// One bit per delivery thread that has a feed parked at the end of this lane.
    parked: AtomicU64,
}

struct Kept {
    head: Seq,
    /// Every change beyond this one that was its document's newest is in `changes`.
    floor: Seq,
    /// Beyond this one there are no holes in `changes`. What other nodes wrote is read from the store, which has only
    /// what is newest: the changes that were replaced meanwhile are missing.
    whole: Seq,
    /// Of the tails' order, so many entries stand for changes that are no longer here.
    passed: usize,
    changes: VecDeque<Arc<Change>>,
    newest: HashMap<Ordinal, Arc<Change>>,
    rows: Rows,
}

/// What a feed finds beyond its position.
pub enum Next {
    /// The next change that is its document's newest.
    Change(Arc<Change>),
    /// Nothing: everything up to here is read.
    End(Seq),
    /// The tail does not reach back that far.
    Behind,
}

impl LaneTail {
    fn new(lane: LaneId, head: Seq) -> LaneTail {
        let kept = Kept {
            head,
            floor: head,
            whole: head,
            passed: 0,
            changes: VecDeque::new(),
            newest: HashMap::new(),
            rows: Rows::new(head),
        };
        LaneTail { lane, kept: Mutex::new(kept), head: AtomicU64::new(head.0), parked: AtomicU64::new(0) }
    }

    /// Which lane.
    pub fn lane(&self) -> LaneId {
        self.lane
    }

    /// The newest change.
    pub fn head(&self) -> Seq {
        Seq(self.head.load(Ordering::Acquire))
    }

    /// Every change beyond this one is at hand.
    pub fn floor(&self) -> Seq {
        self.kept.lock().floor
    }

    /// The first change beyond `position` that is still its document's newest.
    pub fn next(&self, position: Seq) -> Next {
        let kept = self.kept.lock();
        if position >= kept.head {
            return Next::End(kept.head);
        }
        if position < kept.floor {
            return Next::Behind;
        }
        for change in kept.changes.range(kept.beyond(position)..) {
            if !change.is_superseded() {
                return Next::Change(change.clone());
            }
        }
        Next::End(kept.head)
    }

    /// The first change beyond `position`, whether it is still its document's newest or not: for feeds that send
    /// every revision that was replaced after `since`.
    pub fn next_revision(&self, position: Seq, since: Seq) -> Next {
        let kept = self.kept.lock();
        if position >= kept.head {
            return Next::End(kept.head);
        }
        // Up to its mark such a feed sees what the store says it sees.
        if position < kept.floor.max(since).max(kept.whole) {
            return Next::Behind;
        }
        kept.changes.get(kept.beyond(position)).map_or(Next::Behind, |c| Next::Change(c.clone()))
    }

    /// The first change of a document at or beyond `from`, if there is one, and the head. `None`: the tail does not
    /// reach back that far, or it would take long to look.
    pub fn revision_from(
        &self,
        ordinal: Ordinal,
        from: Seq,
        since: Seq,
    ) -> Option<(Option<Arc<Change>>, Seq)> {
        const LOOK: usize = 4096;
        let kept = self.kept.lock();
        if from <= kept.floor.max(since).max(kept.whole) {
            return None;
        }
        let begin = kept.beyond(Seq(from.0 - 1)).min(kept.changes.len());
        let mut beyond = kept.changes.range(begin..).take(LOOK);
        let found = beyond.find(|change| change.row().ordinal == ordinal).cloned();
        (found.is_some() || kept.changes.len() - begin <= LOOK).then_some((found, kept.head))
    }

    /// Like [`LaneTail::next`] at the end: registers the delivery thread to be woken by the next change, unless
    /// there is one already. Returns whether the feed may sleep.
    pub fn park(&self, position: Seq, thread: usize) -> bool {
        let kept = self.kept.lock();
        if position < kept.head {
            return false;
        }
        self.parked.fetch_or(1 << thread, Ordering::Relaxed);
        true
    }

    /// The newest change of a document, if it is recent.
    pub fn newest(&self, ordinal: Ordinal) -> Option<Arc<Change>> {
        self.kept.lock().newest.get(&ordinal).cloned()
    }

    /// Whether a row read from the store is still known to be its document's newest. `None`: the snapshot it
    /// came from, of which `head` was the newest change, is too old to tell.
    pub fn still_newest(&self, ordinal: Ordinal, seq: Seq, head: Seq) -> Option<bool> {
        let kept = self.kept.lock();
        if head < kept.floor {
            return None;
        }
        Some(kept.newest.get(&ordinal).is_none_or(|change| change.row().seq <= seq))
    }

    /// How many documents have changed beyond `after`, and not beyond `upto`; `None` while that is not known.
    pub fn documents_between(&self, after: Seq, upto: Seq) -> Option<Beyond> {
        if after >= self.head().min(upto) {
            return Some(Beyond::default());
        }
        self.kept.lock().rows.between(after, upto)
    }

    /// Whether the store has to be asked which of its changes are the newest of their documents.
    pub fn is_partial(&self) -> bool {
        self.kept.lock().rows.is_partial()
    }

    /// A change that this node wrote, right after it was.
    fn push(&self, change: Arc<Change>, replaced: Seq) -> Pushed {
        let mut kept = self.kept.lock();
        let seq = change.row().seq;
        if seq <= kept.head {
            return Pushed::Known;
        }
        let is_beyond = seq.0 > kept.head.0 + 1;
        #[cfg(feature = "planted")]
        let is_beyond = is_beyond && !flare_model::planted::Bug::TailOverGap.is_planted();
        if is_beyond {
            return Pushed::Beyond;
        }
        kept.rows.change(seq, replaced, change.row().deleted);
        self.add(&mut kept, change);
        Pushed::Added
    }

    /// A change that another node wrote, as the store has it, of which all up to it is known that is newest.
    fn follow(&self, change: Arc<Change>) -> bool {
        let mut kept = self.kept.lock();
        let seq = change.row().seq;
        if seq <= kept.head {
            return false;
        }
        if seq.0 > kept.head.0 + 1 {
            kept.whole = Seq(seq.0 - 1);
        }
        kept.rows.lose_track();
        self.add(&mut kept, change);
        true
    }

    fn add(&self, kept: &mut Kept, change: Arc<Change>) {
        kept.head = change.row().seq;
        self.head.store(kept.head.0, Ordering::Release);
        if let Some(older) = kept.newest.insert(change.row().ordinal, change.clone()) {
            older.supersede();
        }
        kept.changes.push_back(change);
    }

    /// All up to here is known that is newest, and what lies between was replaced.
    fn followed(&self, upto: Seq) {
        let mut kept = self.kept.lock();
        if upto > kept.head {
            (kept.head, kept.whole) = (upto, upto);
            kept.rows.lose_track();
            self.head.store(upto.0, Ordering::Release);
        }
    }

    /// The lane has changes up to here which are not known: who is behind them reads the store.
    fn reach(&self, head: Seq) -> Option<Passed> {
        let mut kept = self.kept.lock();
        if head <= kept.head {
            return None;
        }
        let passed = kept.jump(head);
        self.head.store(head.0, Ordering::Release);
        Some(passed)
    }

    /// Passes over tombstones that are about to leave the store: a document of the same url that comes after
    /// one is another document, and nobody is to be told of the two in the wrong order.
    fn pass_over(&self, gone: impl Fn(&Document) -> bool) {
        let mut kept = self.kept.lock();
        let Kept { changes, newest, .. } = &mut *kept;
        for change in changes.iter().filter(|change| !change.is_superseded() && gone(&change.document)) {
            change.supersede();
            newest.remove(&change.row().ordinal);
        }
    }

    /// Forgets the oldest change, for room.
    fn forget_oldest(&self) -> usize {
        let mut kept = self.kept.lock();
        if kept.passed > 0 {
            kept.passed -= 1;
            return 0;
        }
        let Some(change) = kept.changes.pop_front() else { return 0 };
        kept.floor = change.row().seq;
        let ordinal = change.row().ordinal;
        if kept.newest.get(&ordinal).is_some_and(|newest| newest.row().seq == change.row().seq) {
            kept.newest.remove(&ordinal);
        }
        change.weight()
    }
}

impl Kept {
    /// Where the changes beyond a position begin, which is not below the floor.
    fn beyond(&self, position: Seq) -> usize {
        if self.whole <= self.floor {
            // Seqs are contiguous, so the position is an index.
            return (position.0 - self.floor.0) as usize;
        }
        self.changes.partition_point(|change| change.row().seq <= position)
    }

    /// Everything up to here is left to the store.
    fn jump(&mut self, head: Seq) -> Passed {
        let passed = Passed {
            changes: self.changes.len(),
            weight: self.changes.iter().map(|change| change.weight()).sum(),
        };
        self.changes.clear();
        self.newest.clear();
        self.passed += passed.changes;
        (self.head, self.floor, self.whole) = (head, head, head);
        self.rows.lose_track();
        passed
    }
}

/// What became of a change of this node's own.
enum Pushed {
    /// It is the newest.
    Added,
    /// It was read from the store, beside what others wrote.
    Known,
    /// Others wrote between: it has to be read from the store together with theirs.
    Beyond,
}

/// Changes that were passed over at once.
#[derive(Default)]
struct Passed {
    changes: usize,
    weight: usize,
}

/// All tails of the node.
pub struct Tails {
    lanes: RwLock<HashMap<LaneId, Arc<LaneTail>>>,
    bells: Vec<Arc<Bell>>,
    /// Touched by the engine's thread only.
    order: Mutex<Order>,
    /// Bound of all tails together. When full: the oldest change is forgotten, and feeds behind it read the store.
    budget: usize,
    counts: Arc<Counts>,
    /// Knows the traces of changes, where telemetry is on.
    tracer: Option<Arc<Tracer>>,
    /// Who tells other nodes, if there are any.
    tenancy: Option<Arc<Tenancy>>,
}

#[derive(Default)]
struct Order {
    /// Bound: one for each change in memory, and as many that are passed.
    oldest: VecDeque<Arc<LaneTail>>,
    weight: usize,
    /// So many entries stand for changes that are no longer there.
    passed: usize,
}

impl Order {
    fn pass(&mut self, Passed { changes, weight }: Passed) {
        self.weight = self.weight.saturating_sub(weight);
        self.passed += changes;
        if self.passed > 1024 && self.passed > self.oldest.len() / 2 {
            self.passed = 0;
            self.oldest.retain(|tail| {
                let mut kept = tail.kept.lock();
                let stays = kept.passed == 0;
                kept.passed -= usize::from(!stays);
                stays
            });
        }
    }
}

impl Tails {
    /// No lanes yet; `bells` has one for each delivery thread (64 at most).
    pub fn new(bells: Vec<Arc<Bell>>, budget: usize, counts: Arc<Counts>) -> Tails {
        assert!(bells.len() <= 64, "a lane remembers its parked threads in 64 bits");
        Tails {
            lanes: RwLock::default(),
            bells,
            order: Mutex::default(),
            budget,
            counts,
            tracer: None,
            tenancy: None,
        }
    }

    /// The same, with what knows the traces of changes.
    pub fn traced(self, tracer: Option<Arc<Tracer>>) -> Tails {
        Tails { tracer, ..self }
    }

    /// The same, with who tells other nodes.
    pub fn among_others(self, tenancy: Option<Arc<Tenancy>>) -> Tails {
        Tails { tenancy, ..self }
    }

    /// The tail of a lane, made on first use; `head` is where the lane stands if it is not known yet.
    pub fn lane(&self, lane: LaneId, head: Seq) -> Arc<LaneTail> {
        if let Some(tail) = self.lanes.read().get(&lane) {
            return tail.clone();
        }
        self.lanes.write().entry(lane).or_insert_with(|| Arc::new(LaneTail::new(lane, head))).clone()
    }

    /// The tail of a lane for someone who has seen that it stands at `head` at least.
    pub fn lane_at(&self, lane: LaneId, head: Seq) -> Arc<LaneTail> {
        let tail = self.lane(lane, head);
        if tail.head() < head {
            self.reach(lane, head);
        }
        tail
    }

    /// A lane stands at `head` at least, as somebody says. Who is behind reads the store.
    pub fn reach(&self, lane: LaneId, head: Seq) {
        let Some(tail) = self.known(lane) else { return };
        let passed = {
            let mut order = self.order.lock();
            let passed = tail.reach(head);
            passed.map(|passed| order.pass(passed))
        };
        if passed.is_some() {
            self.wake(&tail);
        }
    }

    /// What was read of a lane that others write too: beyond `after`, all that is newest up to `upto`.
    pub fn follow(&self, lane: LaneId, after: Seq, upto: Seq, documents: Vec<Document>) {
        let Some(tail) = self.known(lane) else { return };
        if after > tail.head() {
            return self.reach(lane, upto);
        }
        let mut order = self.order.lock();
        for document in documents {
            let change = Change::new(document);
            let weight = change.weight();
            if tail.follow(change) {
                order.weight += weight;
                order.oldest.push_back(tail.clone());
            }
        }
        tail.followed(upto);
        self.keep_within_budget(&mut order);
        drop(order);
        self.wake(&tail);
    }

    /// Where a lane stands that somebody reads here.
    pub fn head(&self, lane: LaneId) -> Option<Seq> {
        self.known(lane).map(|tail| tail.head())
    }

    fn keep_within_budget(&self, order: &mut Order) {
        while order.weight > self.budget
            && let Some(tail) = order.oldest.pop_front()
        {
            order.weight = order.weight.saturating_sub(tail.forget_oldest());
        }
    }

    fn wake(&self, tail: &LaneTail) {
        let parked = tail.parked.swap(0, Ordering::AcqRel);
        for (thread, bell) in self.bells.iter().enumerate() {
            if parked & (1 << thread) != 0 {
                bell.ring(tail.lane);
            }
        }
    }

    /// The tail of a lane, if anyone has used it.
    fn known(&self, lane: LaneId) -> Option<Arc<LaneTail>> {
        self.lanes.read().get(&lane).cloned()
    }

    /// Changes of a lane that nobody is to read any more.
    pub fn pass_over(&self, lane: LaneId, gone: impl Fn(&Document) -> bool) {
        let tail = self.lanes.read().get(&lane).cloned();
        if let Some(tail) = tail {
            tail.pass_over(gone);
        }
    }

    /// The lanes of which the store has to be asked what it has.
    pub fn partial(&self) -> Vec<LaneId> {
        let lanes = self.lanes.read();
        let mut partial: Vec<LaneId> =
            lanes.values().filter(|tail| tail.is_partial()).map(|tail| tail.lane).collect();
        partial.sort_unstable();
        partial
    }

    /// What the store has of a lane.
    pub fn load(&self, lane: LaneId, stored: Newest) {
        if let Some(tail) = self.lanes.read().get(&lane) {
            tail.kept.lock().rows.load(stored);
        }
    }

    /// Tombstones of a lane are no more.
    pub fn removed(&self, lane: LaneId, tombstones: &[(Ordinal, Seq)]) {
        let tail = self.lanes.read().get(&lane).cloned();
        if let Some(tail) = tail {
            let mut kept = tail.kept.lock();
            tombstones.iter().for_each(|(_, seq)| kept.rows.remove(*seq));
        }
    }

    /// The resource is gone.
    pub fn forget(&self, lane: LaneId) {
        self.lanes.write().remove(&lane);
    }
}

impl Witness for Tails {
    fn committed(&self, changes: Vec<Changed>) {
        self.counts.engine.group.record(changes.len() as u64);
        let mut order = self.order.lock();
        let mut touched: Vec<(Arc<LaneTail>, Seq)> = Vec::new();
        let mut beyond = false;
        for Changed { document, replaced } in changes {
            let seq = document.row.seq;
            let known = touched.iter_mut().find(|(tail, _)| tail.lane == document.lane);
            let tail = match known {
                Some((tail, newest)) => {
                    *newest = seq;
                    tail.clone()
                }
                None => {
                    let tail = self.lane(document.lane, Seq(seq.0 - 1));
                    touched.push((tail.clone(), seq));
                    tail
                }
            };
            let trace = self.tracer.as_ref().and_then(|tracer| tracer.claim(&document));
            let change = Change::traced(document, trace);
            let weight = change.weight();
            match tail.push(change, replaced) {
                Pushed::Added => {
                    order.weight += weight;
                    order.oldest.push_back(tail);
                }
                Pushed::Known => {}
                Pushed::Beyond => beyond = true,
            }
        }
        self.keep_within_budget(&mut order);
        drop(order);
        touched.iter().for_each(|(tail, _)| self.wake(tail));
        let heads = || touched.iter().map(|(tail, newest)| (tail.lane, *newest));
        match &self.tenancy {
            Some(tenancy) => tenancy.moved(heads(), beyond),
            // Nobody else writes, as far as anybody knows: who is behind reads the store.
            None if beyond => heads().for_each(|(lane, newest)| self.reach(lane, newest)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use flare_model::document::Row;
    use flare_model::ids::ResourceNumber;
    use flare_model::revision::Revision;
    use flare_model::time::Timestamp;
    use futures_util::FutureExt as _;

    const LANE: LaneId = LaneId { resource: ResourceNumber(1), index: 0 };

    fn document(ordinal: u64, seq: u64) -> Changed {
        let document = Document {
            lane: LANE,
            row: Row {
                ordinal: Ordinal(ordinal),
                seq: Seq(seq),
                born: Seq(1),
                before: Seq(0),
                deleted: false,
            },
            url: "http://h/users/1".into(),
            revision: Revision::Integer(seq as i64),
            updated_at: Timestamp::from_millis(0),
            content: Bytes::from_static(b"{}"),
        };
        Changed { document, replaced: Seq(0) }
    }

    fn next_seq(tail: &LaneTail, position: u64) -> Option<u64> {
        match tail.next(Seq(position)) {
            Next::Change(change) => Some(change.row().seq.0),
            _ => None,
        }
    }

    #[test]
    fn a_superseded_change_is_passed_over() {
        let tails = Tails::new(vec![], 1 << 20, Arc::new(Counts::new(0)));
        tails.committed(vec![document(1, 1), document(2, 2), document(1, 3)]);
        let tail = tails.known(LANE).expect("touched");
        assert_eq!(next_seq(&tail, 0), Some(2));
        assert_eq!(next_seq(&tail, 2), Some(3));
        assert!(matches!(tail.next(Seq(3)), Next::End(Seq(3))));
    }

    #[test]
    fn what_is_passed_over_is_neither_read_nor_newest() {
        let tails = Tails::new(vec![], 1 << 20, Arc::new(Counts::new(0)));
        tails.committed(vec![document(1, 1), document(2, 2)]);
        tails.pass_over(LANE, |document| document.row.ordinal == Ordinal(1));
        let tail = tails.known(LANE).expect("touched");
        assert_eq!(next_seq(&tail, 0), Some(2));
        assert!(tail.newest(Ordinal(1)).is_none() && tail.newest(Ordinal(2)).is_some());
    }

    #[test]
    fn a_feed_that_is_too_far_behind_is_told_so() {
        let tails = Tails::new(vec![], 600, Arc::new(Counts::new(0)));
        tails.committed((1..=5).map(|seq| document(seq, seq)).collect());
        let tail = tails.known(LANE).expect("touched");
        assert!(matches!(tail.next(Seq(0)), Next::Behind));
        assert_eq!(next_seq(&tail, 4), Some(5));
        assert_eq!(tail.still_newest(Ordinal(1), Seq(1), Seq(1)), None, "the snapshot is too old");
        assert_eq!(tail.still_newest(Ordinal(1), Seq(1), Seq(5)), Some(true));
    }

    #[tokio::test]
    async fn a_parked_thread_hears_of_the_next_change_once() {
        let bell = Arc::new(Bell::default());
        let tails = Tails::new(vec![bell.clone()], 1 << 20, Arc::new(Counts::new(0)));
        let tail = tails.lane(LANE, Seq(0));
        assert!(tail.park(Seq(0), 0));
        tails.committed(vec![document(1, 1)]);
        assert_eq!(bell.heard().await.lanes, vec![LANE]);
        tails.committed(vec![document(2, 2)]);
        assert!(bell.heard().now_or_never().is_none(), "nobody is parked");
        assert!(!tail.park(Seq(1), 0), "there is a change already");
    }

    /// As the store has it: what was replaced meanwhile is missing.
    fn stored(seqs: &[(u64, u64)]) -> Vec<Document> {
        seqs.iter().map(|(ordinal, seq)| document(*ordinal, *seq).document).collect()
    }

    #[test]
    fn what_others_wrote_is_read_with_holes() {
        let tails = Tails::new(vec![], 1 << 20, Arc::new(Counts::new(0)));
        tails.committed(vec![document(1, 1), document(2, 2)]);
        tails.follow(LANE, Seq(2), Seq(9), stored(&[(1, 5), (3, 7)]));
        let tail = tails.known(LANE).expect("touched");
        assert_eq!((next_seq(&tail, 0), next_seq(&tail, 2), next_seq(&tail, 5)), (Some(2), Some(5), Some(7)));
        assert!(matches!(tail.next(Seq(7)), Next::End(Seq(9))), "up to 9 all was replaced");
        assert!(
            matches!(tail.next_revision(Seq(6), Seq(0)), Next::Behind),
            "each revision is the store's to say"
        );
        assert_eq!(tail.still_newest(Ordinal(1), Seq(1), Seq(2)), Some(false));
        tails.committed(vec![document(4, 10)]);
        assert_eq!(next_seq(&tail, 7), Some(10));
        assert!(
            matches!(tail.next_revision(Seq(9), Seq(0)), Next::Change(_)),
            "from here on there are no holes"
        );
    }

    #[test]
    fn a_change_of_our_own_behind_what_others_wrote_waits_to_be_read_with_theirs() {
        let (tenancy, _lost) = Tenancy::new();
        let tenancy = Arc::new(tenancy);
        let tails = Tails::new(vec![], 1 << 20, Arc::new(Counts::new(0))).among_others(Some(tenancy.clone()));
        tails.committed(vec![document(1, 1)]);
        tails.committed(vec![document(2, 4)]);
        let tail = tails.known(LANE).expect("touched");
        assert_eq!((tail.head(), next_seq(&tail, 1)), (Seq(1), None), "2 and 3 are not known");
        assert_eq!(tenancy.take_moved(), [(LANE, Seq(4))].into(), "and it is said how far the lane goes");
        tails.follow(LANE, Seq(1), Seq(4), stored(&[(3, 3), (2, 4)]));
        tails.committed(vec![document(2, 4)]);
        assert_eq!((next_seq(&tail, 1), next_seq(&tail, 3), tail.head()), (Some(3), Some(4), Seq(4)));
    }

    #[tokio::test]
    async fn who_is_behind_a_jump_reads_the_store_and_is_woken_for_it() {
        let bell = Arc::new(Bell::default());
        let tails = Tails::new(vec![bell.clone()], 1 << 20, Arc::new(Counts::new(0)));
        tails.committed(vec![document(1, 1)]);
        let tail = tails.lane_at(LANE, Seq(1));
        assert!(tail.park(Seq(1), 0));
        tails.lane_at(LANE, Seq(8));
        assert_eq!(bell.heard().await.lanes, vec![LANE]);
        assert!(matches!(tail.next(Seq(1)), Next::Behind));
        assert!(matches!(tail.next(Seq(8)), Next::End(Seq(8))));
        tails.committed(vec![document(2, 9)]);
        assert_eq!(next_seq(&tail, 8), Some(9));
    }
}
