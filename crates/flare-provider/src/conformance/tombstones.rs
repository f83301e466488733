//! Behaviours of the log: what may be forgotten, and what is never given out again.

use flare_model::document::{Outcome::*, Row, Write};
use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use super::Factory;
use super::fixture::*;
use crate::error::Conflict;

/// Six tombstones with the ordinals 0 to 5 and the seqs 7 to 12, accepted a millisecond apart.
async fn six_tombstones(factory: &dyn Factory) -> (Stage, LaneId) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    stage.commit((0..6).map(|n| put(lane, &url(n), 1)).collect()).await;
    let deletes = (0..6).map(|n| Write { at: at(n), ..delete(lane, &url(n), None) });
    stage.commit(deletes.collect()).await;
    (stage, lane)
}

fn url(number: i64) -> String {
    format!("http://api.company.com/users/{number}")
}

fn at(number: i64) -> Timestamp {
    Timestamp::from_millis(NOW.millis() + number)
}

struct Remove {
    upto: Seq,
    before: Timestamp,
    keep: RoaringTreemap,
    limit: usize,
}

impl Default for Remove {
    fn default() -> Remove {
        Remove { upto: Seq(u64::MAX), before: at(1_000), keep: RoaringTreemap::new(), limit: usize::MAX }
    }
}

async fn remove(stage: &Stage, lane: LaneId, ask: Remove) -> u64 {
    let documents = &stage.store.documents;
    let removed = documents.remove_tombstones(0, lane, ask.upto, ask.before, &ask.keep, ask.limit);
    removed.await.expect("removed")
}

async fn left(stage: &Stage, lane: LaneId) -> Vec<u64> {
    let documents = stage.scan(lane).await;
    let state = stage.lane_state(lane).await.expect("the lane exists");
    assert_eq!(state.documents + state.tombstones, documents.len() as u64, "counted as read");
    documents.iter().map(|document| document.row.ordinal.0).collect()
}

/// In the same order, and within the same bounds; and listing them removes nothing.
pub async fn the_tombstones_that_would_go_are_listed(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    let list = async |ask: Remove| {
        let documents = &stage.store.documents;
        let listed = documents.tombstones(lane, ask.upto, ask.before, &ask.keep, ask.limit).await;
        listed.expect("read").into_iter().map(|(ordinal, seq)| (ordinal.0, seq.0)).collect::<Vec<_>>()
    };
    let keep = || [0, 3].into_iter().collect::<RoaringTreemap>();
    let all = list(Remove::default()).await;
    assert_eq!(all, [(0, 7), (1, 8), (2, 9), (3, 10), (4, 11), (5, 12)]);
    assert_eq!(list(Remove { keep: keep(), limit: 2, ..Remove::default() }).await, [(1, 8), (2, 9)]);
    assert_eq!(list(Remove { upto: Seq(9), before: at(2), ..Remove::default() }).await, [(0, 7), (1, 8)]);
    assert_eq!(list(Remove { limit: 0, ..Remove::default() }).await, []);
    assert_eq!(remove(&stage, lane, Remove { upto: Seq(9), keep: keep(), ..Remove::default() }).await, 2);
    assert_eq!(list(Remove::default()).await, [(0, 7), (3, 10), (4, 11), (5, 12)]);
}

/// Then a late put has nothing to be compared with, and the document is a new one.
pub async fn a_removed_tombstone_is_forgotten(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    assert_eq!(remove(&stage, lane, Remove::default()).await, 6);
    assert_eq!(left(&stage, lane).await, [0_u64; 0]);
    assert_eq!(stage.store.documents.get(lane, &url(0)).await.expect("read"), None);
    let fetched = stage.store.documents.fetch(lane, &ordinals(&[0])).await.expect("read");
    assert_eq!(fetched, (vec![None], Seq(12)));
    assert_eq!(remove(&stage, lane, Remove::default()).await, 0, "there is nothing left");

    let stage = stage.crash().await;
    assert_eq!(stage.commit(vec![put(lane, &url(0), 0)]).await, [Created]);
    let row = Row { ordinal: Ordinal(6), seq: Seq(13), born: Seq(13), before: Seq(0), deleted: false };
    assert_eq!(stage.document(lane, &url(0)).await.row, row);
}

/// Nor a document that was reborn.
pub async fn live_documents_are_never_removed(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    stage.commit(vec![put(lane, &url(9), 1), put(lane, &url(2), 2)]).await;
    assert_eq!(remove(&stage, lane, Remove::default()).await, 5);
    assert_eq!(left(&stage, lane).await, [6, 2]);
    let reborn = stage.document(lane, &url(2)).await.row;
    assert_eq!((reborn.before, reborn.deleted), (Seq(9), false));
}

/// The seq itself goes too.
pub async fn only_tombstones_up_to_a_seq_are_removed(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    assert_eq!(remove(&stage, lane, Remove { upto: Seq(6), ..Remove::default() }).await, 0);
    assert_eq!(remove(&stage, lane, Remove { upto: Seq(8), ..Remove::default() }).await, 2);
    assert_eq!(left(&stage, lane).await, [2, 3, 4, 5]);
}

/// The time itself does not.
pub async fn only_tombstones_accepted_before_a_time_are_removed(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    assert_eq!(remove(&stage, lane, Remove { before: at(0), ..Remove::default() }).await, 0);
    assert_eq!(remove(&stage, lane, Remove { before: at(2), ..Remove::default() }).await, 2);
    assert_eq!(left(&stage, lane).await, [2, 3, 4, 5]);
}

/// Some feed still holds them.
pub async fn kept_ordinals_are_not_removed(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    let keep: RoaringTreemap = [1, 4, 77, 1 << 40].into_iter().collect();
    assert_eq!(remove(&stage, lane, Remove { keep, ..Remove::default() }).await, 4);
    assert_eq!(left(&stage, lane).await, [1, 4]);
}

/// The limit counts what goes, not what is looked at.
pub async fn at_most_the_limit_is_removed_oldest_first(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    let keep: RoaringTreemap = [0, 1].into_iter().collect();
    assert_eq!(remove(&stage, lane, Remove { limit: 0, ..Remove::default() }).await, 0);
    assert_eq!(remove(&stage, lane, Remove { limit: 2, keep, ..Remove::default() }).await, 2);
    assert_eq!(left(&stage, lane).await, [0, 1, 4, 5]);
    assert_eq!(remove(&stage, lane, Remove { limit: 3, ..Remove::default() }).await, 3);
    assert_eq!(left(&stage, lane).await, [5]);
}

/// Even if the newest of each went, and the process with it.
pub async fn seqs_and_ordinals_are_not_reused_after_a_removal(factory: &dyn Factory) {
    let (stage, lane) = six_tombstones(factory).await;
    assert_eq!(remove(&stage, lane, Remove::default()).await, 6);
    let stage = stage.crash().await;
    assert_eq!(stage.lane_state(lane).await.expect("it exists").head, Seq(12));
    stage.commit(vec![put(lane, &url(10), 1), delete(lane, &url(10), None)]).await;
    assert_eq!(remove(&stage, lane, Remove::default()).await, 1);
    stage.commit(vec![put(lane, &url(11), 1)]).await;
    let row = stage.document(lane, &url(11)).await.row;
    assert_eq!((row.ordinal, row.seq), (Ordinal(7), Seq(15)));
}

/// All lanes and tombstones too, and the next resource begins anew.
pub async fn a_deleted_resource_takes_its_documents_along(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let (users, orders) = (stage.resource("users", 2).await, stage.resource("orders", 1).await);
    let lanes = [lane(&users, 0), lane(&users, 1), lane(&orders, 0)];
    for lane in lanes {
        stage.commit(vec![put(lane, &url(1), 1), put(lane, &url(2), 1), delete(lane, &url(2), None)]).await;
    }
    stage.delete(&users).await;
    let stage = stage.crash().await;
    for lane in [lanes[0], lanes[1]] {
        assert_eq!(stage.store.documents.get(lane, &url(1)).await.expect("read"), None);
        assert_eq!(stage.scan(lane).await, []);
        assert_eq!(remove(&stage, lane, Remove::default()).await, 0);
        let mut answers = stage.store.documents.commit(vec![put(lane, &url(1), 9)]).await.expect("taken");
        assert_eq!(conflict(answers.pop().expect("an answer per item")), Conflict::Lane);
    }
    let states = stage.store.documents.lanes().await.expect("read");
    assert_eq!(states.iter().map(|state| state.lane).collect::<Vec<_>>(), [lanes[2]]);
    assert_eq!(left(&stage, lanes[2]).await, [0, 1]);

    let again = lane(&stage.resource("customers", 1).await, 0);
    assert_eq!(stage.commit(vec![put(again, &url(1), 1)]).await, [Created]);
    assert_eq!(stage.document(again, &url(1)).await.row.ordinal, Ordinal(0));
}
