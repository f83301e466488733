//! Behaviours of the history: older revisions are kept while someone wants them, and read in order.

use flare_model::document::Write;
use flare_model::ids::{LaneId, Ordinal, Seq};

use super::Factory;
use super::fixture::*;
use crate::catalog::{Entity, EntityKind, NewEntity};
use crate::documents::{OlderRevision, ScanLane};

const ONE: &str = "http://h/1";
const TWO: &str = "http://h/2";

fn every(id: &str) -> NewEntity {
    NewEntity { history: true, ..subscription(id, "users") }
}

async fn stage(factory: &dyn Factory) -> (Stage, LaneId) {
    let stage = Stage::fresh(factory).await;
    let users = stage.resource("users", 1).await;
    (stage, lane(&users, 0))
}

/// Each of them in a commit of its own, as they mostly come.
async fn write(stage: &Stage, writes: Vec<Write>) {
    for one in writes {
        stage.commit(vec![one]).await;
    }
}

/// What a feed with this mark reads from a position on, in pages of so many rows.
async fn read(stage: &Stage, lane: LaneId, after: u64, since: u64, rows: usize) -> Vec<(u64, u64)> {
    let (mut found, mut after) = (Vec::new(), Seq(after));
    loop {
        let scan = ScanLane { lane, after, upto: Seq(u64::MAX), rows, bytes: 1 << 20 };
        let page = stage.store.documents.scan_revisions(scan, Seq(since)).await.expect("the log is read");
        found.extend(page.documents.iter().map(|document| (document.row.ordinal.0, document.row.seq.0)));
        if page.upto >= page.head {
            return found;
        }
        assert!(page.upto > after, "a page that is not the last leads on");
        after = page.upto;
    }
}

async fn kept(stage: &Stage, lane: LaneId) -> Vec<(u64, u64, u64)> {
    let kept = stage.store.documents.revisions(lane, None, 100).await.expect("the history is read");
    let state = stage.lane_state(lane).await.expect("the lane exists");
    assert_eq!(state.revisions, kept.len() as u64, "they are counted");
    kept.iter().map(|kept| (kept.ordinal.0, kept.seq.0, kept.until.0)).collect()
}

/// From the commit on that creates the first such subscription, until the last one is gone.
pub async fn what_is_replaced_is_kept_while_a_subscription_wants_it(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    stage.create(subscription("newest", "users")).await;
    write(&stage, vec![put(lane, ONE, 1), put(lane, ONE, 2)]).await;
    assert_eq!(kept(&stage, lane).await, []);
    let first = stage.create(every("first")).await;
    let second = stage.create(every("second")).await;
    write(&stage, vec![put(lane, ONE, 3), put(lane, TWO, 1), delete(lane, ONE, None), put(lane, ONE, 4)])
        .await;
    let expected = [(0, 2, 3), (0, 3, 5), (0, 5, 6)];
    assert_eq!(kept(&stage, lane).await, expected);
    stage.delete(&first).await;
    write(&stage, vec![put(lane, TWO, 2)]).await;
    stage.delete(&second).await;
    write(&stage, vec![put(lane, TWO, 3), put(lane, ONE, 5)]).await;
    assert_eq!(kept(&stage, lane).await, [(0, 2, 3), (0, 3, 5), (0, 5, 6), (1, 4, 7)]);
}

/// Its feeds have the mark of that commit.
pub async fn a_subscription_that_wants_every_revision_sees_all_from_its_creation_on(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    write(&stage, vec![put(lane, ONE, 1), put(lane, ONE, 2)]).await;
    let every = stage.create(every("every")).await;
    let newest = stage.create(subscription("newest", "users")).await;
    assert_eq!(stage.saved(feed(&every, 0)).await.since, Some(Seq(2)));
    assert_eq!(stage.saved(feed(&newest, 0)).await.since, None);
    stage.commit(vec![put(lane, ONE, 3), put(lane, ONE, 4), delete(lane, ONE, None)]).await;
    assert_eq!(read(&stage, lane, 2, 2, 10).await, [(0, 3), (0, 4), (0, 5)]);
    let scan = ScanLane { lane, after: Seq(2), upto: Seq(9), rows: 10, bytes: 1 << 20 };
    let page = stage.store.documents.scan_revisions(scan, Seq(2)).await.expect("the log is read");
    let revisions: Vec<bool> = page.documents.iter().map(|document| document.row.deleted).collect();
    assert_eq!(revisions, [false, false, true]);
    assert_eq!(page.documents[0].content, content(ONE, 3), "with its own content");
}

/// A replacement says it, and that commit decides.
pub async fn a_subscription_may_change_its_mind_about_the_history(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    let subscribed = stage.create(subscription("s", "users")).await;
    let ask = async |entity: Entity, history| {
        let asked = Entity { history, ..entity };
        stage.store.catalog.replace(asked).await.expect("taken").expect("it is there")
    };
    write(&stage, vec![put(lane, ONE, 1), put(lane, ONE, 2)]).await;
    let every = ask(subscribed, true).await;
    assert!(every.history);
    write(&stage, vec![put(lane, ONE, 3)]).await;
    let newest = ask(every, false).await;
    write(&stage, vec![put(lane, ONE, 4)]).await;
    assert_eq!(kept(&stage, lane).await, [(0, 2, 3)]);
    let found = stage.store.catalog.get(EntityKind::Subscription, "s").await.expect("read");
    assert_eq!(found, Some(newest));
}

/// Whatever the size of the pages.
pub async fn a_scan_of_revisions_in_pages_misses_nothing(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    stage.create(every("every")).await;
    let mut expected = Vec::new();
    for turn in 0..40_u64 {
        let document = turn * turn % 7;
        write(&stage, vec![put(lane, &format!("http://h/{document}"), turn as i64 + 1)]).await;
        let ordinal = stage.document(lane, &format!("http://h/{document}")).await.row.ordinal;
        expected.push((ordinal.0, turn + 1));
    }
    for rows in [1, 2, 7, 39, 1000] {
        assert_eq!(read(&stage, lane, 0, 0, rows).await, expected, "{rows} at a time");
    }
    assert_eq!(read(&stage, lane, 33, 0, 3).await, expected[33..]);
}

/// It is as if nothing had been kept before the mark.
pub async fn a_scan_of_revisions_leaves_out_what_was_replaced_before(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    stage.create(every("every")).await;
    let writes = vec![put(lane, ONE, 1), put(lane, ONE, 2), put(lane, TWO, 1), put(lane, ONE, 3)];
    write(&stage, writes).await;
    assert_eq!(read(&stage, lane, 0, 0, 10).await, [(0, 1), (0, 2), (1, 3), (0, 4)]);
    assert_eq!(read(&stage, lane, 0, 2, 10).await, [(0, 2), (1, 3), (0, 4)]);
    assert_eq!(read(&stage, lane, 0, 4, 10).await, [(1, 3), (0, 4)]);
}

/// Also the newest one, which is not among the older ones.
pub async fn the_next_revision_of_a_document_is_the_first_at_or_beyond_a_seq(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    stage.create(every("every")).await;
    let writes = vec![put(lane, ONE, 1), put(lane, TWO, 1), put(lane, ONE, 2), put(lane, ONE, 3)];
    write(&stage, writes).await;
    let next = async |since, wanted: &[(u64, u64)]| {
        let wanted: Vec<_> = wanted.iter().map(|(ordinal, seq)| (Ordinal(*ordinal), Seq(*seq))).collect();
        let documents = &stage.store.documents;
        let (found, head) = documents.next_revisions(lane, Seq(since), &wanted).await.expect("read");
        assert_eq!(head, Seq(4));
        found.iter().map(|found| found.as_ref().map_or(0, |found| found.row.seq.0)).collect::<Vec<_>>()
    };
    assert_eq!(next(0, &[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]).await, [1, 3, 3, 4, 0]);
    assert_eq!(next(0, &[(1, 0), (1, 2), (1, 3), (7, 0)]).await, [2, 2, 0, 0]);
    assert_eq!(next(3, &[(0, 1), (1, 0)]).await, [3, 2], "the first one was replaced before");
    let nowhere = LaneId { index: 9, ..lane };
    let found = stage.store.documents.next_revisions(nowhere, Seq(0), &[(Ordinal(0), Seq(0))]).await;
    assert_eq!(found.expect("read"), (vec![None], Seq(0)));
}

/// Those that are not there are not counted.
pub async fn removed_revisions_are_gone_and_the_newest_stays(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    stage.create(every("every")).await;
    write(&stage, vec![put(lane, ONE, 1), put(lane, ONE, 2), put(lane, ONE, 3)]).await;
    let documents = &stage.store.documents;
    let gone: Vec<_> = [1, 3, 7].map(|seq| (Ordinal(0), Seq(seq))).to_vec();
    assert_eq!(documents.remove_revisions(0, lane, &gone).await.expect("removed"), 1);
    assert_eq!(documents.remove_revisions(0, lane, &gone).await.expect("removed"), 0);
    assert_eq!(read(&stage, lane, 0, 0, 10).await, [(0, 2), (0, 3)]);
    assert_eq!(kept(&stage, lane).await, [(0, 2, 3)]);
    let stage = stage.crash().await;
    assert_eq!(kept(&stage, lane).await, [(0, 2, 3)]);
}

/// With every field, and it goes on being kept.
pub async fn a_history_survives_a_crash(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    let every = stage.create(every("every")).await;
    write(&stage, vec![put(lane, ONE, 1), delete(lane, ONE, None), put(lane, ONE, 2)]).await;
    let scan = ScanLane { lane, after: Seq(0), upto: Seq(9), rows: 10, bytes: 1 << 20 };
    let before = stage.store.documents.scan_revisions(scan, Seq(0)).await.expect("read");
    let stage = stage.crash().await;
    assert_eq!(stage.store.documents.scan_revisions(scan, Seq(0)).await.expect("read"), before);
    assert_eq!(stage.saved(feed(&every, 0)).await.since, Some(Seq(0)));
    write(&stage, vec![put(lane, ONE, 3)]).await;
    let kept = stage.store.documents.revisions(lane, Some((Ordinal(0), Seq(2))), 1).await.expect("read");
    let (ordinal, seq, until, replaced_at) = (Ordinal(0), Seq(3), Seq(4), NOW);
    assert_eq!(kept, [OlderRevision { ordinal, seq, until, replaced_at }]);
}

/// And a new resource has none of it.
pub async fn a_history_goes_with_its_resource(factory: &dyn Factory) {
    let (stage, lane) = stage(factory).await;
    let every = stage.create(every("every")).await;
    write(&stage, vec![put(lane, ONE, 1), put(lane, ONE, 2)]).await;
    stage.delete(&every).await;
    let users = stage.store.catalog.get(EntityKind::Resource, "users").await.expect("read").expect("there");
    stage.delete(&users).await;
    assert_eq!(stage.store.documents.revisions(lane, None, 10).await.expect("read"), []);
    assert_eq!(read(&stage, lane, 0, 0, 10).await, []);
}
