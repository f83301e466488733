//! Behaviours of the log: what a commit compares, what it leaves, and who hears of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use flare_model::document::{Intent, Outcome, Outcome::*, Row, Write};
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq, url_hash};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;

use super::Factory;
use super::fixture::*;
use crate::error::Conflict;

const URL: &str = "http://api.company.com/users/1";

async fn one_lane(factory: &dyn Factory) -> (Stage, LaneId) {
    let stage = Stage::fresh(factory).await;
    let resource = stage.resource("users", 1).await;
    (stage, lane(&resource, 0))
}

/// The first revision creates, a higher one updates and moves the document to the tail.
pub async fn a_newer_revision_wins(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    assert_eq!(stage.commit(vec![put(lane, URL, 7)]).await, [Created]);
    let later = Write { at: Timestamp::from_millis(-1), ..put(lane, URL, 8) };
    assert_eq!(stage.commit(vec![later]).await, [Updated]);
    let document = stage.document(lane, URL).await;
    assert_eq!(document.lane, lane);
    assert_eq!(&*document.url, URL);
    assert_eq!(document.revision, Revision::Integer(8));
    assert_eq!(document.content, content(URL, 8));
    assert_eq!(document.updated_at, Timestamp::from_millis(-1), "when it was asked, whatever the clock said");
    let row = Row { ordinal: Ordinal(0), seq: Seq(2), born: Seq(1), before: Seq(0), deleted: false };
    assert_eq!(document.row, row);
}

/// Whatever the content says: the revision is what counts.
pub async fn an_equal_revision_changes_nothing(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    stage.commit(vec![put(lane, URL, 7)]).await;
    let before = stage.document(lane, URL).await;
    let again = put_content(lane, URL, 7, Bytes::from_static(b"{}"));
    assert_eq!(stage.commit(vec![again]).await, [Unchanged]);
    assert_eq!(stage.document(lane, URL).await, before);
    assert_eq!(stage.lane_state(lane).await.expect("it exists").head, Seq(1));
}

/// A document keeps to integers or to dates, whichever it began with: compared with the other kind, a delete would bury
/// it for good.
pub async fn a_revision_of_another_kind_is_refused(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let date = || Revision::from_parts(1_700_000_000, 0, Some("2023-11-14T22:13:20Z"));
    let put_date = |url: &str| Write {
        intent: Intent::Put { revision: date(), content: content(url, 1) },
        ..put(lane, url, 1)
    };
    let delete_date =
        |url: &str| Write { intent: Intent::Delete { revision: Some(date()) }, ..put(lane, url, 1) };
    let other = "http://api.company.com/users/2";
    stage.commit(vec![put(lane, URL, 7), put_date(other)]).await;
    for (write, url) in [(put_date(URL), URL), (delete_date(URL), URL), (put(lane, other, i64::MAX), other)] {
        let before = stage.document(lane, url).await;
        let mut answers = stage.store.documents.commit(vec![write]).await.expect("the log takes it");
        assert_eq!(conflict(answers.pop().expect("an answer per item")), Conflict::RevisionKind);
        assert_eq!(stage.document(lane, url).await, before, "nothing changed");
    }
    assert_eq!(stage.commit(vec![put(lane, URL, 8)]).await, [Updated], "others go on");
}

/// Old news reach nobody.
pub async fn an_older_revision_is_stale(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    stage.commit(vec![put(lane, URL, 7)]).await;
    let before = stage.document(lane, URL).await;
    assert_eq!(stage.commit(vec![put(lane, URL, 6), put(lane, URL, i64::MIN)]).await, [Stale, Stale]);
    assert_eq!(stage.document(lane, URL).await, before);
    assert_eq!(stage.lane_state(lane).await.expect("it exists").head, Seq(1));
}

/// The tombstone is the next change of the document and has no content.
pub async fn a_delete_without_a_revision_takes_the_current_one(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    stage.commit(vec![put(lane, URL, 7)]).await;
    assert_eq!(stage.commit(vec![delete(lane, URL, None)]).await, [Deleted]);
    let tombstone = stage.document(lane, URL).await;
    assert_eq!(tombstone.revision, Revision::Integer(7));
    assert_eq!(tombstone.content, Bytes::new());
    let row = Row { ordinal: Ordinal(0), seq: Seq(2), born: Seq(1), before: Seq(0), deleted: true };
    assert_eq!(tombstone.row, row);
    assert_eq!(stage.commit(vec![delete(lane, URL, None)]).await, [Absent], "there is nothing to delete");
    assert_eq!(stage.document(lane, URL).await, tombstone);
}

/// Lower is stale; equal and higher delete, and a tombstone too takes a higher one.
pub async fn a_delete_with_a_revision_is_compared_by_it(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let cases: [(Option<i64>, i64, Outcome, i64); 5] = [
        (None, 6, Stale, 7),
        (None, 7, Deleted, 7),
        (None, 8, Deleted, 8),
        (Some(9), 9, Absent, 9),
        (Some(9), 12, Absent, 12),
    ];
    for (number, (deleted, asked, expected, revision)) in cases.into_iter().enumerate() {
        let url = format!("{URL}{number}");
        stage.commit(vec![put(lane, &url, 7)]).await;
        if deleted.is_some() {
            stage.commit(vec![delete(lane, &url, deleted)]).await;
        }
        let head = stage.lane_state(lane).await.expect("it exists").head;
        assert_eq!(stage.commit(vec![delete(lane, &url, Some(asked))]).await, [expected], "{url}");
        let document = stage.document(lane, &url).await;
        assert_eq!(document.revision, Revision::Integer(revision), "{url}");
        assert_eq!(document.row.deleted, expected != Stale, "{url}");
        let moved = !matches!((expected, asked), (Stale, _) | (Absent, 9));
        assert_eq!(document.row.seq > head, moved, "{url}: only a change gets a seq");
    }
}

/// A delete that overtakes its put leaves a tombstone, so that the put comes too late.
pub async fn a_delete_of_an_unknown_document_leaves_a_tombstone_only_with_a_revision(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    assert_eq!(stage.commit(vec![delete(lane, URL, None)]).await, [Absent]);
    assert_eq!(stage.store.documents.get(lane, URL).await.expect("read"), None);
    assert_eq!(stage.commit(vec![delete(lane, URL, Some(3))]).await, [Absent]);
    let row = Row { ordinal: Ordinal(0), seq: Seq(1), born: Seq(1), before: Seq(0), deleted: true };
    assert_eq!(stage.document(lane, URL).await.row, row);
    assert_eq!(stage.commit(vec![put(lane, URL, 3), put(lane, URL, 2)]).await, [Unchanged, Stale]);
    assert_eq!(stage.document(lane, URL).await.row, row);
}

/// Also after a restart, for as long as the tombstone is there.
pub async fn a_tombstone_ignores_older_and_equal_revisions(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    stage.commit(vec![put(lane, URL, 7), delete(lane, URL, Some(9))]).await;
    let stage = stage.crash().await;
    let late = vec![put(lane, URL, 8), put(lane, URL, 9)];
    assert_eq!(stage.commit(late).await, [Stale, Unchanged]);
    assert!(stage.document(lane, URL).await.row.deleted);
    assert_eq!(stage.commit(vec![put(lane, URL, 10)]).await, [Created]);
}

/// `before` is the last delete, `born` the change after it; a tombstone keeps those of the life it ended.
pub async fn a_rebirth_remembers_the_delete_before_it(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let row = |seq, born, before, deleted| Row {
        ordinal: Ordinal(0),
        seq: Seq(seq),
        born: Seq(born),
        before: Seq(before),
        deleted,
    };
    let life = [
        (put(lane, URL, 1), Created, row(1, 1, 0, false)),
        (put(lane, URL, 2), Updated, row(2, 1, 0, false)),
        (delete(lane, URL, None), Deleted, row(3, 1, 0, true)),
        (put(lane, URL, 3), Created, row(4, 4, 3, false)),
        (put(lane, URL, 4), Updated, row(5, 4, 3, false)),
        (delete(lane, URL, Some(5)), Deleted, row(6, 4, 3, true)),
        (delete(lane, URL, Some(6)), Absent, row(7, 4, 3, true)),
        (put(lane, URL, 7), Created, row(8, 8, 7, false)),
    ];
    for (write, outcome, expected) in life {
        assert_eq!(stage.commit(vec![write]).await, [outcome]);
        assert_eq!(stage.document(lane, URL).await.row, expected);
    }
}

/// Each item sees what those before it left, and each change has a seq of its own.
pub async fn a_batch_is_applied_in_order(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let witness = Recorder::over(&stage.store);
    let other = "http://api.company.com/users/2";
    let batch = vec![
        put(lane, URL, 1),
        put(lane, other, 5),
        put(lane, URL, 3),
        put(lane, URL, 2),
        delete(lane, URL, None),
        put(lane, URL, 3),
        put(lane, URL, 4),
        delete(lane, other, Some(4)),
    ];
    let outcomes = stage.commit(batch).await;
    assert_eq!(outcomes, [Created, Created, Updated, Stale, Deleted, Unchanged, Created, Stale]);
    let row = Row { ordinal: Ordinal(0), seq: Seq(5), born: Seq(5), before: Seq(4), deleted: false };
    assert_eq!(stage.document(lane, URL).await.row, row);
    let heard: Vec<(u64, String)> =
        witness.heard(lane).iter().map(|d| (d.row.seq.0, d.revision.to_string())).collect();
    let expected = [(1, "1"), (2, "5"), (3, "3"), (4, "3"), (5, "4")];
    assert_eq!(heard, expected.map(|(seq, revision)| (seq, revision.to_owned())));
}

/// There is nothing to wait for.
pub async fn an_empty_batch_is_answered_with_nothing(factory: &dyn Factory) {
    let (stage, _) = one_lane(factory).await;
    assert_eq!(stage.commit(Vec::new()).await, []);
}

/// A node with an old catalog learns it item by item, and the others do not suffer.
pub async fn an_unknown_lane_refuses_its_own_items_only(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let beyond = LaneId { index: 1, ..lane };
    let nobodys = LaneId { resource: ResourceNumber(lane.resource.0 + 1), index: 0 };
    let batch =
        vec![put(beyond, URL, 1), put(lane, URL, 1), delete(nobodys, URL, Some(1)), put(lane, URL, 2)];
    let mut answers = stage.store.documents.commit(batch).await.expect("taken").into_iter();
    let mut next = || answers.next().expect("an answer per item");
    assert_eq!(conflict(next()), Conflict::Lane);
    assert_eq!(next().expect("its lane exists").outcome, Created);
    assert_eq!(conflict(next()), Conflict::Lane);
    assert_eq!(next().expect("its lane exists").outcome, Updated);
    assert_eq!(stage.store.documents.lanes().await.expect("read").len(), 1, "no lane was made by the way");
    let only = vec![put(beyond, URL, 1)];
    let answers = stage.store.documents.commit(only).await.expect("the call itself does not fail");
    assert_eq!(answers.len(), 1);
}

/// Seqs from 1, ordinals from 0; what changes nothing takes neither.
pub async fn seqs_and_ordinals_are_dense_within_each_lane(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let resource = stage.resource("users", 3).await;
    for round in 1..=3 {
        for index in 0..3 {
            let batch = (0..40).map(|n| put(lane(&resource, index), &format!("{URL}/{n}"), round / 2));
            stage.commit(batch.collect()).await;
        }
    }
    for index in 0..3 {
        let documents = stage.scan(lane(&resource, index)).await;
        let numbers: Vec<(u64, u64)> = documents.iter().map(|d| (d.row.ordinal.0, d.row.seq.0)).collect();
        let expected: Vec<(u64, u64)> = (0..40).map(|n| (n, n + 41)).collect();
        assert_eq!(numbers, expected, "every document changed twice, in turn");
    }
}

/// Before the writer is answered, and in the order of the log.
pub async fn the_witness_hears_of_each_change_once_and_in_order(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let resource = stage.resource("users", 2).await;
    let lanes = [lane(&resource, 0), lane(&resource, 1)];
    stage.commit(vec![put(lanes[0], "http://h/before", 1)]).await;
    let witness = Recorder::over(&stage.store);
    let mut expected: BTreeMap<LaneId, Vec<u64>> = BTreeMap::from([(lanes[0], vec![]), (lanes[1], vec![])]);
    let mut next = BTreeMap::from([(lanes[0], 2), (lanes[1], 1)]);
    for round in 0..20_i64 {
        let batch =
            lanes.iter().flat_map(|lane| (0..=round % 3).map(|n| put(*lane, &format!("{URL}/{n}"), round)));
        let batch: Vec<Write> = batch.collect();
        for write in &batch {
            let seq = next.get_mut(&write.lane).expect("one of the two");
            expected.get_mut(&write.lane).expect("one of the two").push(*seq);
            *seq += 1;
        }
        stage.commit(batch).await;
        stage.commit(lanes.iter().map(|lane| delete(*lane, "http://h/unknown", None)).collect()).await;
        for lane in lanes {
            let heard: Vec<u64> = witness.heard(lane).iter().map(|d| d.row.seq.0).collect();
            assert_eq!(heard, expected[&lane], "heard when the writer is answered");
        }
    }
    let last = witness.heard(lanes[1]).pop().expect("something was heard");
    assert_eq!(stage.document(lanes[1], &last.url).await, last, "a change is heard as it is stored");
}

/// There is one at a time.
pub async fn a_second_witness_replaces_the_first(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let first = Recorder::over(&stage.store);
    stage.commit(vec![put(lane, URL, 1)]).await;
    let second = Recorder::over(&stage.store);
    stage.commit(vec![put(lane, URL, 2)]).await;
    assert_eq!(first.heard(lane).len(), 1);
    assert_eq!(second.heard(lane).len(), 1);
}

/// The whole range of integers, and dates with their own text.
pub async fn revisions_come_back_as_they_were_written(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let ascending = [
        (i64::MIN, 0, None),
        (-1, 0, None),
        ((1 << 53) + 1, 0, None),
        (i64::MAX - 1, 0, None),
        (i64::MAX, 0, None),
        (-62_135_596_800, 0, Some("0001-01-01T00:00:00Z")),
        (1_767_323_045, 0, Some("2026-01-02T03:04:05Z")),
        (1_767_323_045, 1, Some("2026-01-02T03:04:05.000000001Z")),
        (1_767_323_045, 999_999_999, Some("Fri, 2 Jan 2026 04:04:05.999999999 \"MEZ\"")),
    ];
    // A document keeps to one kind.
    let url = |text: Option<&str>| if text.is_none() { URL } else { "http://api.company.com/dated/1" };
    let put = |(value, nanos, text)| {
        let intent = Intent::Put {
            revision: Revision::from_parts(value, nanos, text),
            content: Bytes::from_static(b"{}"),
        };
        Write { lane, url: Arc::from(url(text)), intent, at: NOW, routed_by: NEWEST }
    };
    for (number, parts) in ascending.into_iter().enumerate() {
        let expected = if matches!(number, 0 | 5) { Created } else { Updated };
        assert_eq!(stage.commit(vec![put(parts)]).await, [expected], "{parts:?}");
        assert_eq!(stage.document(lane, url(parts.2)).await.revision.to_parts(), parts);
    }
    // The same moment in other words is the same revision, and the first words stay.
    let again = put((1_767_323_045, 999_999_999, Some("just before 03:04:06")));
    assert_eq!(stage.commit(vec![again]).await, [Unchanged]);
    let dated = url(ascending[8].2);
    stage.commit(vec![delete(lane, dated, None)]).await;
    let stage = stage.crash().await;
    assert_eq!(stage.document(lane, dated).await.revision.to_parts(), ascending[8]);
}

/// Nothing, every byte, a megabyte.
pub async fn contents_of_any_size_come_back_byte_for_byte(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let every: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..1 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let contents = [Bytes::new(), Bytes::from(every), Bytes::from(large)];
    for (revision, content) in contents.iter().enumerate() {
        stage.commit(vec![put_content(lane, URL, revision as i64, content.clone())]).await;
        assert_eq!(stage.document(lane, URL).await.content, content);
    }
    let batch = (0..4).map(|n| put_content(lane, &format!("{URL}/{n}"), 1, contents[2].clone()));
    stage.commit(batch.collect()).await;
    let stage = stage.crash().await;
    let documents = stage.scan(lane).await;
    assert_eq!(documents.len(), 5);
    assert!(documents.iter().all(|document| document.content == contents[2]));
}

/// An engine may look for urls by their hash, but not stop there.
pub async fn urls_of_the_same_hash_are_different_documents(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let urls = ["http://api.company.com/users/pOxYoRs284N", "http://api.company.com/users/IPJVVJgMDXI"];
    assert_eq!(url_hash(urls[0]), url_hash(urls[1]), "two urls that were searched for to collide");
    assert_eq!(stage.commit(vec![put(lane, urls[0], 5)]).await, [Created]);
    assert_eq!(stage.store.documents.get(lane, urls[1]).await.expect("read"), None);
    assert_eq!(stage.commit(vec![put(lane, urls[1], 3), put(lane, urls[1], 4)]).await, [Created, Updated]);
    assert_eq!(stage.commit(vec![delete(lane, urls[0], None)]).await, [Deleted]);
    assert!(stage.document(lane, urls[0]).await.row.deleted);
    let other = stage.document(lane, urls[1]).await;
    assert_eq!((&*other.url, other.row.ordinal, other.row.deleted), (urls[1], Ordinal(1), false));
}

/// No collation, no trimming, no length that is too long.
pub async fn urls_are_compared_byte_for_byte(factory: &dyn Factory) {
    let (stage, lane) = one_lane(factory).await;
    let long = format!("{URL}/{}", "a".repeat(4_000));
    let urls =
        [URL, "http://api.company.com/Users/1", "http://api.company.com/users/%31", &long, &long[..4_000]];
    let batch = |revision| urls.iter().map(|url| put(lane, url, revision)).collect();
    assert_eq!(stage.commit(batch(1)).await, [Created; 5]);
    assert_eq!(stage.commit(batch(2)).await, [Updated; 5]);
    for url in urls {
        assert_eq!(stage.document(lane, url).await.content, content(url, 2));
    }
}
