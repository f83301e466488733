//! Behaviours of the log: what is read of it, one by one and in pages.

use flare_model::document::Document;
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use super::Factory;
use super::fixture::*;
use crate::documents::{LaneState, Newest, Page, ScanLane};

/// A lane of ten documents at the seqs 1 to 10, of which 2, 3 and 7 then changed again, and 5 was deleted: the
/// log is 1, 4, 6, 8, 9, 10, 11 (2), 12 (3), 13 (7), 14 (5, deleted).
async fn a_lane_with_gaps(factory: &dyn Factory) -> (Stage, LaneId) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    stage.commit((1..=10).map(|n| put(lane, &url(n), 1)).collect()).await;
    stage.commit([2, 3, 7].map(|n| put(lane, &url(n), 2)).to_vec()).await;
    stage.commit(vec![delete(lane, &url(5), None)]).await;
    (stage, lane)
}

const SEQS: [u64; 10] = [1, 4, 6, 8, 9, 10, 11, 12, 13, 14];

fn url(number: u64) -> String {
    format!("http://api.company.com/users/{number}")
}

fn seqs(documents: &[Document]) -> Vec<u64> {
    documents.iter().map(|document| document.row.seq.0).collect()
}

fn all(lane: LaneId) -> ScanLane {
    ScanLane { lane, after: Seq(0), upto: Seq(u64::MAX), rows: usize::MAX, bytes: usize::MAX }
}

async fn scan(stage: &Stage, scan: ScanLane) -> Page {
    stage.store.documents.scan(scan).await.expect("the log is read")
}

/// An unknown lane reads as an empty one.
pub async fn nothing_is_found_where_nothing_is(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    assert_eq!(stage.store.documents.lanes().await.expect("read"), []);
    let empty = lane(&stage.resource("users", 1).await, 0);
    let unknown = LaneId { resource: ResourceNumber(empty.resource.0 + 1), index: 0 };
    for lane in [empty, unknown] {
        assert_eq!(stage.store.documents.get(lane, &url(1)).await.expect("read"), None);
        let fetched = stage.store.documents.fetch(lane, &ordinals(&[0, 1])).await.expect("read");
        assert_eq!(fetched, (vec![None, None], Seq(0)));
        assert_eq!(scan(&stage, all(lane)).await, Page::default());
    }
    let state = LaneState { lane: empty, head: Seq(0), documents: 0, tombstones: 0, revisions: 0 };
    assert_eq!(stage.store.documents.lanes().await.expect("read"), [state]);
}

/// One answer per ordinal asked for, in that order, however often.
pub async fn documents_are_fetched_as_asked_with_the_head(factory: &dyn Factory) {
    let (stage, lane) = a_lane_with_gaps(factory).await;
    let asked = ordinals(&[6, 99, 0, 4, 6]);
    let (fetched, head) = stage.store.documents.fetch(lane, &asked).await.expect("read");
    let found: Vec<Option<(u64, u64)>> =
        fetched.iter().map(|d| d.as_ref().map(|d| (d.row.ordinal.0, d.row.seq.0))).collect();
    assert_eq!(found, [Some((6, 13)), None, Some((0, 1)), Some((4, 14)), Some((6, 13))]);
    assert_eq!(head, Seq(14));
    assert_eq!(fetched[0], Some(stage.document(lane, &url(7)).await));
    assert!(fetched[3].as_ref().is_some_and(|document| document.row.deleted), "tombstones too");
    assert_eq!(stage.store.documents.fetch(lane, &[]).await.expect("read"), (vec![], Seq(14)));
}

/// Documents that moved on leave gaps, and only those.
pub async fn a_scan_meets_each_document_once_where_it_last_changed(factory: &dyn Factory) {
    let (stage, lane) = a_lane_with_gaps(factory).await;
    let page = scan(&stage, all(lane)).await;
    assert_eq!(seqs(&page.documents), SEQS);
    assert_eq!((page.upto, page.head), (Seq(14), Seq(14)));
    for document in &page.documents {
        assert_eq!(*document, stage.document(lane, &document.url).await);
    }
    let beyond = scan(&stage, ScanLane { after: Seq(6), ..all(lane) }).await;
    assert_eq!(seqs(&beyond.documents), SEQS[3..]);
    let stage = stage.crash().await;
    assert_eq!(scan(&stage, all(lane)).await, page);
}

/// Whatever the size of the page: `upto` leads on without a gap and without a repetition.
pub async fn a_scan_in_pages_of_rows_misses_nothing(factory: &dyn Factory) {
    let (stage, lane) = a_lane_with_gaps(factory).await;
    for rows in 1..=11 {
        let mut met = Vec::new();
        let mut after = Seq(0);
        loop {
            let page = scan(&stage, ScanLane { after, rows, ..all(lane) }).await;
            assert!(page.documents.len() <= rows);
            assert_eq!(page.head, Seq(14));
            met.extend(seqs(&page.documents));
            let next = SEQS.iter().find(|seq| !met.contains(seq));
            let last = met.last().copied().unwrap_or(0);
            let upto = page.upto.0;
            assert!(last <= upto && upto < *next.unwrap_or(&15), "{upto} lies between {last} and {next:?}");
            if upto == 14 {
                break;
            }
            assert!(page.upto > after, "a page that is not the last leads on");
            after = page.upto;
        }
        assert_eq!(met, SEQS);
    }
}

/// The document that reaches the size is the last of the page, so a large one alone still comes through.
pub async fn a_scan_in_pages_of_bytes_stops_with_the_document_that_fills_it(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    let sizes = [10, 10, 30, 500, 0, 10, 20];
    for (number, size) in sizes.into_iter().enumerate() {
        stage.commit(vec![put_content(lane, &url(number as u64), 1, vec![b' '; size].into())]).await;
    }
    let page = async |after, bytes| {
        let page = scan(&stage, ScanLane { after: Seq(after), bytes, ..all(lane) }).await;
        (seqs(&page.documents), page.upto)
    };
    assert_eq!(page(0, 20).await, (vec![1, 2], Seq(2)), "reached exactly");
    assert_eq!(page(0, 21).await, (vec![1, 2, 3], Seq(3)), "reached and passed");
    assert_eq!(page(3, 1).await, (vec![4], Seq(4)), "larger than the page");
    assert_eq!(page(4, 10).await, (vec![5, 6], Seq(6)), "an empty document fills nothing");
    assert_eq!(page(4, 1_000).await, (vec![5, 6, 7], Seq(7)), "all that is left");
    assert_eq!(page(0, 0).await, (vec![1], Seq(1)), "a page has at least one document");
}

/// The end of a page that was asked for is reached even if nothing lies there.
pub async fn a_scan_stops_at_upto_and_says_so(factory: &dyn Factory) {
    let (stage, lane) = a_lane_with_gaps(factory).await;
    for (after, upto, expected) in
        [(0, 7, &SEQS[..3]), (1, 6, &SEQS[1..3]), (1, 3, &[]), (4, 5, &[]), (3, 4, &[4])]
    {
        let page = scan(&stage, ScanLane { after: Seq(after), upto: Seq(upto), ..all(lane) }).await;
        assert_eq!(seqs(&page.documents), expected, "{after} to {upto}");
        assert_eq!((page.upto, page.head), (Seq(upto), Seq(14)), "{after} to {upto}");
    }
    let page = scan(&stage, ScanLane { upto: Seq(100), ..all(lane) }).await;
    assert_eq!((page.documents.len(), page.upto), (10, Seq(14)), "the head is nearer than upto");
}

/// A cursor from another log may lie there.
pub async fn a_scan_beyond_the_head_is_empty(factory: &dyn Factory) {
    let (stage, lane) = a_lane_with_gaps(factory).await;
    for after in [14, 15, 1 << 40] {
        let page = scan(&stage, ScanLane { after: Seq(after), ..all(lane) }).await;
        assert_eq!(page, Page { documents: vec![], upto: Seq(14), head: Seq(14) });
    }
}

/// Live documents and tombstones apart, over all resources.
pub async fn lanes_are_counted(factory: &dyn Factory) {
    let (stage, users) = a_lane_with_gaps(factory).await;
    let orders = stage.resource("orders", 2).await;
    stage.commit(vec![put(lane(&orders, 1), &url(1), 1), delete(lane(&orders, 1), &url(2), Some(1))]).await;
    stage.commit(vec![delete(lane(&orders, 1), &url(3), None), put(lane(&orders, 1), &url(4), 1)]).await;
    stage.commit(vec![delete(users, &url(1), None), put(users, &url(5), 9)]).await;
    let stage = stage.crash().await;
    let mut lanes = stage.store.documents.lanes().await.expect("read");
    lanes.sort_by_key(|state| state.lane);
    let state = |lane, head, documents, tombstones| LaneState {
        lane,
        head: Seq(head),
        documents,
        tombstones,
        revisions: 0,
    };
    let expected =
        [state(users, 16, 9, 1), state(lane(&orders, 0), 0, 0, 0), state(lane(&orders, 1), 3, 2, 1)];
    assert_eq!(lanes, expected);
    assert_eq!(stage.document(users, &url(5)).await.row.ordinal, Ordinal(4));
}

/// As a witness has heard it, after tombstones were removed and in the next life of the process too.
pub async fn the_newest_changes_are_those_that_nothing_has_replaced(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 2).await, 1);
    let recorder = Recorder::over(&stage.store);
    for round in 1..6 {
        stage.commit((0..20 * round).map(|n| put(lane, &url(n), round as i64)).collect()).await;
        stage.commit((0..20).step_by(3).map(|n| delete(lane, &url(n), Some(round as i64))).collect()).await;
    }
    stage.commit((30..34).map(|n| delete(lane, &url(n), None)).collect()).await;
    let mut expected = recorder.newest(lane);
    let newest = async |stage: &Stage| stage.store.documents.newest(lane).await.expect("read");
    assert_eq!(newest(&stage).await, expected);
    let stage = stage.crash().await;
    assert_eq!(newest(&stage).await, expected);
    let late = Timestamp::from_millis(NOW.millis() + 1);
    let documents = &stage.store.documents;
    let removed = documents.remove_tombstones(0, lane, Seq(u64::MAX), late, &RoaringTreemap::new(), 5).await;
    assert_eq!(removed.expect("removed"), 5);
    for _ in 0..5 {
        let oldest = expected.tombstones.min().expect("there are more");
        expected.tombstones.remove(oldest);
        expected.seqs.remove(oldest);
    }
    assert_eq!(newest(&stage).await, expected);
    let elsewhere = LaneId { index: 0, ..lane };
    assert_eq!(stage.store.documents.newest(elsewhere).await.expect("read"), Newest::default());
}
