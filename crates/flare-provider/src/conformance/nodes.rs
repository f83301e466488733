//! Behaviours that several nodes on one store build on: following the catalog and the log, and sweeping what nobody needs. The
//! last ones are of two processes; an engine that is for one has nothing to show there.

use flare_model::document::Outcome::*;
use flare_model::feed::{Ahead, Record, Standing, State, Sweep, SweepKind, Tally};
use flare_model::ids::{FeedId, LaneId, Ordinal, ResourceNumber, Seq, SubscriptionNumber};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use super::Factory;
use super::fixture::*;
use crate::catalog::{CatalogChange, CatalogChanges, Deletion, Entity, EntityKind, NewEntity, Start};
use crate::documents::ScanLane;
use crate::ledger::{FeedNeeds, FeedOwes};

async fn changes(stage: &Stage, since: u64, limit: usize) -> CatalogChanges {
    stage.store.catalog.changes(since, limit).await.expect("read").expect("it is not too old")
}

fn gone(entity: &Entity, version: u64) -> CatalogChange {
    let Entity { kind, id, number, .. } = entity.clone();
    CatalogChange::Deleted(Deletion { kind, id, number, version })
}

/// Each entity once, where it changed last.
pub async fn changes_of_the_catalog_come_in_order_of_version(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    assert_eq!(changes(&stage, 0, 10).await, CatalogChanges::default());
    let users = stage.resource("users", 1).await;
    let orders = stage.resource("orders", 1).await;
    let brief = stage.subscription("brief", "users", Start::Now).await;
    let long = stage.subscription("long", "users", Start::Now).await;
    stage.delete(&brief).await;
    let asked = Entity { body: "another".to_owned(), ..users.clone() };
    let replaced = stage.store.catalog.replace(asked).await.expect("taken").expect("it exists");
    let version = stage.store.catalog.version().await.expect("read");
    assert_eq!(replaced.version, version);
    let put = CatalogChange::Put;
    let all = vec![put(orders), put(long), gone(&brief, version - 1), put(replaced)];
    let expected = CatalogChanges { changes: all, upto: version, more: false };
    assert_eq!(changes(&stage, 0, 10).await, expected);
    let stage = stage.crash().await;
    assert_eq!(changes(&stage, 0, 10).await, expected);
    let late = CatalogChanges { changes: expected.changes[2..].to_vec(), ..expected };
    assert_eq!(changes(&stage, version - 2, 10).await, late);
    let nothing = CatalogChanges { changes: Vec::new(), upto: version, more: false };
    assert_eq!(changes(&stage, version, 10).await, nothing);
}

/// Whatever the size of a page, also of none.
pub async fn changes_of_the_catalog_come_in_pages_that_miss_nothing(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    for number in 0..5 {
        let resource = stage.resource(&format!("r{number}"), 1).await;
        if number % 2 == 1 {
            stage.delete(&resource).await;
        }
    }
    let whole = changes(&stage, 0, 99).await;
    assert_eq!((whole.changes.len(), whole.upto, whole.more), (5, 7, false));
    for limit in [0, 1, 2, 3, 5] {
        let (mut since, mut met) = (0, Vec::new());
        loop {
            let page = changes(&stage, since, limit).await;
            assert!(page.changes.len() <= limit.max(1));
            let last = page.changes.last().map(CatalogChange::version);
            assert!(!page.more || last == Some(page.upto), "it goes on where it ended");
            (since, _) = (page.upto, met.extend(page.changes));
            if !page.more {
                break;
            }
        }
        assert_eq!((since, met), (7, whole.changes.clone()));
    }
}

/// From then on whoever has not seen it lists anew, and whoever has goes on.
pub async fn a_deletion_leaves_a_trace_until_that_is_forgotten(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let (users, orders) = (stage.resource("users", 1).await, stage.resource("orders", 1).await);
    stage.delete(&users).await;
    stage.delete(&orders).await;
    let catalog = &stage.store.catalog;
    assert_eq!(catalog.forget_deletions(2).await.expect("done"), 0, "nothing was deleted up to there");
    assert_eq!(catalog.changes(1, 10).await.expect("read"), None);
    assert_eq!(changes(&stage, 2, 10).await.changes, [gone(&users, 3), gone(&orders, 4)]);
    assert_eq!(catalog.forget_deletions(3).await.expect("done"), 1);
    assert_eq!(catalog.forget_deletions(1).await.expect("done"), 0, "nothing comes back");
    let stage = stage.crash().await;
    let catalog = &stage.store.catalog;
    assert_eq!(catalog.changes(2, 10).await.expect("read"), None);
    assert_eq!(changes(&stage, 3, 10).await.changes, [gone(&orders, 4)]);
    assert_eq!(catalog.forget_deletions(u64::MAX).await.expect("done"), 1, "as far as there are any");
    let customers = stage.resource("customers", 1).await;
    assert_eq!(changes(&stage, 4, 10).await.changes, [CatalogChange::Put(customers)]);
}

/// A backup was restored: what the caller knows was never there.
pub async fn a_version_that_the_catalog_has_not_come_to_is_listed_anew(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 1).await;
    assert_eq!(stage.store.catalog.changes(2, 10).await.expect("read"), None);
    assert_eq!(stage.store.catalog.changes(u64::MAX, 10).await.expect("read"), None);
}

/// For each write, those of the same batch before it included.
pub async fn a_commit_tells_the_heads_that_it_found_and_left(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let users = stage.resource("users", 2).await;
    let (zero, one) = (lane(&users, 0), lane(&users, 1));
    let batch = vec![
        put(zero, "http://h/1", 2),
        put(one, "http://h/2", 1),
        put(zero, "http://h/1", 1),
        delete(zero, "http://h/1", None),
    ];
    let heads = async |batch| {
        let answers = stage.store.documents.commit(batch).await.expect("taken");
        let each = answers.into_iter().map(|answer| answer.expect("the lane exists"));
        each.map(|done| (done.outcome, done.before.0, done.after.0)).collect::<Vec<_>>()
    };
    let expected = [(Created, 0, 1), (Created, 0, 1), (Stale, 1, 1), (Deleted, 1, 2)];
    assert_eq!(heads(batch.clone()).await, expected);
    let again = heads(batch).await;
    assert!(again.iter().all(|(_, before, after)| before == after), "{again:?}");
    assert_eq!(again.iter().map(|(_, before, _)| *before).collect::<Vec<_>>(), [2, 1, 2, 2]);
}

/// By their index, with their counts.
pub async fn the_lanes_of_one_resource_are_told_apart(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let (users, orders) = (stage.resource("users", 3).await, stage.resource("orders", 1).await);
    stage.commit(vec![put(lane(&users, 2), "http://h/1", 1), put(lane(&orders, 0), "http://h/2", 1)]).await;
    let lanes = async |number| stage.store.documents.lanes_of(ResourceNumber(number)).await.expect("read");
    let own = lanes(users.number).await;
    assert_eq!(own.iter().map(|state| state.lane.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((own[2].head, own[2].documents, own[0].head), (Seq(1), 1, Seq(0)));
    assert_eq!(lanes(orders.number).await.len(), 1);
    assert_eq!(lanes(orders.number + 1).await, []);
    stage.delete(&orders).await;
    assert_eq!(lanes(orders.number).await, []);
}

/// A resource with one lane of five documents, and a feed of it.
async fn a_feed(stage: &Stage, new: NewEntity) -> (LaneId, FeedId, u64) {
    let users = match stage.store.catalog.get(EntityKind::Resource, "users").await.expect("read") {
        Some(users) => users,
        None => stage.resource("users", 1).await,
    };
    let (lane, feed) = (lane(&users, 0), feed(&stage.create(new).await, 0));
    stage.commit((0..5).map(|n| put(lane, &format!("http://h/{n}"), 1)).collect()).await;
    (lane, feed, stage.own(feed).await)
}

fn standing(ordinal: u64, doubt: bool, state: State) -> Standing {
    Standing { ordinal: Ordinal(ordinal), seq: Seq(ordinal + 1), doubt, state, replay: 0, trouble: None }
}

/// Held by the client, in doubt, waiting, on a lease, or given up.
fn a_record() -> Record {
    let due = Timestamp::from_millis(NOW.millis() + 7);
    Record {
        cursor: Seq(3),
        issued: Seq(5),
        ahead: Ahead { horizon: Seq(4), holes: vec![], extras: vec![Seq(5)] },
        held: ordinals(&[9, 1 << 33]),
        standings: vec![
            standing(0, false, State::Waiting { due }),
            standing(1, true, State::GaveUp),
            standing(2, false, State::GaveUp),
            standing(3, true, State::Doubtful),
            standing(4, false, State::Leased { until: due }),
            standing(5, false, State::Passed),
        ],
        tally: Tally { delivered: 7, last_success_at: Some(NOW), ..Tally::default() },
        ..Record::default()
    }
}

fn set(ordinals: &[u64]) -> RoaringTreemap {
    ordinals.iter().collect()
}

const NOBODY: SubscriptionNumber = SubscriptionNumber(0);

/// As last recorded: a record that is not written yet is not known.
pub async fn a_feed_needs_what_its_client_has_and_what_stands(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let (lane, feed, epoch) = a_feed(&stage, NewEntity { history: true, ..subscription("s", "users") }).await;
    let needs = async |stage: &Stage| stage.store.ledger.needs(lane, NOBODY, 9).await.expect("read");
    let none = RoaringTreemap::new();
    let mut expected = FeedNeeds {
        feed,
        cursor: Seq(0),
        documents: none.clone(),
        has: none,
        moved_at: None,
        strange: false,
    };
    assert_eq!(needs(&stage).await, std::slice::from_ref(&expected));
    stage.write(feed, epoch, a_record()).await;
    expected.cursor = Seq(3);
    expected.documents = set(&[0, 1, 2, 3, 4, 5, 9, 1 << 33]);
    expected.has = set(&[1, 3, 9, 1 << 33]);
    expected.moved_at = Some(NOW);
    assert_eq!(needs(&stage).await, std::slice::from_ref(&expected));
    let elsewhere = LaneId { index: 1, ..lane };
    assert_eq!(stage.store.ledger.needs(elsewhere, NOBODY, 9).await.expect("read"), []);
    let stage = stage.crash().await;
    assert_eq!(needs(&stage).await, [expected]);
}

/// Beyond the cursor all that is not settled, and of what waits all from a change on.
pub async fn only_feeds_that_send_every_revision_owe_some(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let (lane, last, epoch) = a_feed(&stage, subscription("last", "users")).await;
    stage.write(last, epoch, a_record()).await;
    let (_, feed, epoch) = a_feed(&stage, NewEntity { history: true, ..subscription("all", "users") }).await;
    let record = Record { since: Some(Seq(2)), ..a_record() };
    stage.write(feed, epoch, record.clone()).await;
    let owed = [(0, 1), (4, 5), (5, 7)].map(|(ordinal, seq)| (Ordinal(ordinal), Seq(seq))).to_vec();
    let (since, cursor, ahead) = (Seq(2), Seq(3), record.ahead);
    let expected = FeedOwes { feed, since, cursor, ahead, owed, strange: false };
    let owes = async |after, limit| stage.store.ledger.owes(lane, after, limit).await.expect("read");
    assert_eq!(owes(NOBODY, 1).await, [expected], "those that do not are not counted");
    assert_eq!(owes(feed.subscription, 9).await, []);
}

/// By subscription; and an owner writes on.
pub async fn needs_come_in_pages_and_take_nothing_over(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let mut feeds = Vec::new();
    let mut lane = None;
    for number in 0..5 {
        let (of, feed, epoch) = a_feed(&stage, subscription(&format!("s{number}"), "users")).await;
        feeds.push((feed, epoch));
        lane = Some(of);
    }
    stage.resource("orders", 1).await;
    stage.subscription("elsewhere", "orders", Start::Now).await;
    let lane = lane.expect("there are some");
    let (mut after, mut met) = (NOBODY, Vec::new());
    loop {
        let page = stage.store.ledger.needs(lane, after, 2).await.expect("read");
        let Some(last) = page.last() else { break };
        after = last.feed.subscription;
        met.extend(page.iter().map(|needs| needs.feed));
    }
    assert_eq!(met, feeds.iter().map(|(feed, _)| *feed).collect::<Vec<_>>());
    for (feed, epoch) in feeds {
        stage.write(feed, epoch, Record::default()).await;
    }
}

/// Counters, where it stands, and how many wait or were given up.
pub async fn a_summary_has_what_was_recorded(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let (_, feed, epoch) = a_feed(&stage, subscription("s", "users")).await;
    let (kind, position, end) = (SweepKind::Replay { since: NOW }, Seq(1), Seq(4));
    let sweep = Some(Sweep { replay: 3, kind, position, end, met: 1 });
    let record = Record { sweep: sweep.clone(), ..a_record() };
    stage.write(feed, epoch, record.clone()).await;
    let summary = stage.store.ledger.summary(feed.subscription).await.expect("read");
    assert_eq!(summary.len(), 1);
    let summary = &summary[0];
    assert_eq!((summary.feed, summary.epoch, summary.strange), (feed, epoch, false));
    assert_eq!((summary.cursor, summary.head), (Seq(3), Seq(5)));
    assert_eq!((summary.waiting, summary.dead), (1, 2));
    assert_eq!((&summary.sweep, &summary.tally), (&sweep, &record.tally));
    let nobody = SubscriptionNumber(feed.subscription.0 + 1);
    assert_eq!(stage.store.ledger.summary(nobody).await.expect("read"), []);
}

/// Of tombstones and of revisions, whoever it is and however often it tries.
pub async fn a_sweeper_is_fenced_by_the_next_one(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    stage.create(NewEntity { history: true, ..subscription("all", "users") }).await;
    let urls = ["http://h/1", "http://h/2"];
    stage.commit(urls.iter().flat_map(|url| [put(lane, url, 1), delete(lane, url, None)]).collect()).await;
    let (first, second) = (stage.epoch().await, stage.epoch().await);
    let late = Timestamp::from_millis(NOW.millis() + 1);
    let none = RoaringTreemap::new();
    let tombstones = async |stage: &Stage, sweeper| {
        stage.store.documents.remove_tombstones(sweeper, lane, Seq(u64::MAX), late, &none, 1).await
    };
    let revisions = async |stage: &Stage, sweeper, seq| {
        stage.store.documents.remove_revisions(sweeper, lane, &[(Ordinal(seq / 2), Seq(seq))]).await
    };
    assert_fenced(tombstones(&stage, first).await);
    stage.store.documents.begin_sweeping(first).await.expect("nobody stands against it");
    stage.store.documents.begin_sweeping(first).await.expect("the same again is fine");
    assert_eq!(tombstones(&stage, first).await.expect("removed"), 1);
    assert_eq!(revisions(&stage, first, 1).await.expect("removed"), 1);
    stage.store.documents.begin_sweeping(second).await.expect("it is newer");
    let stage = stage.crash().await;
    assert_fenced(stage.store.documents.begin_sweeping(first).await);
    assert_fenced(tombstones(&stage, first).await);
    assert_fenced(revisions(&stage, first, 3).await);
    assert_eq!(stage.lane_state(lane).await.expect("it exists").tombstones, 1, "nothing went");
    assert_eq!(tombstones(&stage, second).await.expect("removed"), 1);
    assert_eq!(revisions(&stage, second, 3).await.expect("removed"), 1);
}

/// A copy in memory that applies what it is told is at all times what a list would give.
pub async fn a_process_follows_the_catalog_of_another(factory: &dyn Factory) {
    let one = Stage::fresh(factory).await;
    let Some(other) = one.join().await else { return };
    let mut copy = std::collections::BTreeMap::new();
    let mut since = 0;
    let users = one.resource("users", 1).await;
    for round in 0..12_u64 {
        let stage = if round % 2 == 0 { &one } else { &other };
        let id = format!("s{}", round % 3);
        match stage.store.catalog.get(EntityKind::Subscription, &id).await.expect("read") {
            Some(there) if round % 4 == 3 => stage.delete(&there).await,
            Some(there) => {
                let asked = Entity { body: round.to_string(), ..there };
                stage.store.catalog.replace(asked).await.expect("taken").expect("it exists");
            }
            None => drop(stage.create(subscription(&id, &users.id)).await),
        }
        for change in changes(&other, since, 99).await.changes {
            assert!(change.version() > since, "nothing comes twice");
            since = change.version();
            match change {
                CatalogChange::Put(entity) => drop(copy.insert((entity.kind, entity.number), entity)),
                CatalogChange::Deleted(gone) => drop(copy.remove(&(gone.kind, gone.number))),
            }
        }
        let list = one.store.catalog.list(EntityKind::Subscription, 0, 99).await.expect("read");
        let known = copy.values().filter(|entity| entity.kind == EntityKind::Subscription);
        assert_eq!(known.cloned().collect::<Vec<_>>(), list);
    }
}

/// A process hears of it by its own commit, even by one that changes nothing.
pub async fn a_commit_finds_what_another_process_has_written(factory: &dyn Factory) {
    let one = Stage::fresh(factory).await;
    let Some(other) = one.join().await else { return };
    let lane = lane(&one.resource("users", 1).await, 0);
    let heads = async |stage: &Stage, url: &str, revision| {
        let answers = stage.store.documents.commit(vec![put(lane, url, revision)]).await.expect("taken");
        let done = answers.into_iter().next().expect("an answer").expect("the lane exists");
        (done.before.0, done.after.0)
    };
    assert_eq!(heads(&one, "http://h/1", 1).await, (0, 1));
    assert_eq!(heads(&other, "http://h/1", 2).await, (1, 2));
    assert_eq!(heads(&other, "http://h/2", 1).await, (2, 3));
    assert_eq!(heads(&one, "http://h/1", 1).await, (3, 3));
    assert_eq!(heads(&one, "http://h/3", 1).await, (3, 4));
}

/// The head before its own changes is where the others have come to, and a scan finds what they left.
pub async fn a_witness_can_tell_what_it_has_not_heard(factory: &dyn Factory) {
    let one = Stage::fresh(factory).await;
    let Some(other) = one.join().await else { return };
    let lane = lane(&one.resource("users", 1).await, 0);
    let witness = Recorder::over(&one.store);
    one.commit(vec![put(lane, "http://h/1", 1)]).await;
    other.commit(vec![put(lane, "http://h/2", 1), put(lane, "http://h/2", 2)]).await;
    one.commit(vec![put(lane, "http://h/3", 1), put(lane, "http://h/4", 1)]).await;
    let heads: Vec<(u64, u64)> = witness.heads(lane).iter().map(|(before, seq)| (before.0, seq.0)).collect();
    assert_eq!(heads, [(0, 1), (3, 4), (4, 5)], "between 1 and 3 there is something that it has not heard");
    let gap = ScanLane { lane, after: Seq(1), upto: Seq(3), rows: 9, bytes: 1 << 20 };
    let page = one.store.documents.scan(gap).await.expect("read");
    let found: Vec<u64> = page.documents.iter().map(|document| document.row.seq.0).collect();
    assert_eq!((found, page.upto), (vec![3], Seq(3)), "what was replaced is not there any more");
}

/// Whoever sweeps need not own them.
pub async fn the_needs_of_feeds_are_known_to_every_process(factory: &dyn Factory) {
    let one = Stage::fresh(factory).await;
    let Some(other) = one.join().await else { return };
    let (lane, feed, epoch) = a_feed(&one, subscription("s", "users")).await;
    one.write(feed, epoch, a_record()).await;
    let needs = other.store.ledger.needs(lane, NOBODY, 9).await.expect("read");
    assert_eq!(needs, one.store.ledger.needs(lane, NOBODY, 9).await.expect("read"));
    assert_eq!((needs[0].cursor, &needs[0].has), (Seq(3), &set(&[1, 3, 9, 1 << 33])));
    let (mine, theirs) = (one.epoch().await, other.epoch().await);
    one.store.documents.begin_sweeping(mine).await.expect("nobody stands against it");
    other.store.documents.begin_sweeping(theirs).await.expect("it is newer");
    assert_fenced(one.store.documents.remove_revisions(mine, lane, &[(Ordinal(0), Seq(1))]).await);
}
