//! Behaviours of the ledger: where feeds begin, who may write them, and when they go.

use flare_model::feed::{Record, Saved, Sweep, SweepKind};
use flare_model::ids::{FeedId, Seq, SubscriptionNumber};

use super::Factory;
use super::fixture::*;
use crate::catalog::{Entity, Start};
use crate::error::Conflict;
use crate::ledger::FeedWrite;

const URL: &str = "http://api.company.com/users/1";

/// A resource of two lanes, the first with three changes of two documents, the second empty.
async fn two_lanes(factory: &dyn Factory) -> (Stage, Entity) {
    let stage = Stage::fresh(factory).await;
    let resource = stage.resource("users", 2).await;
    let first = lane(&resource, 0);
    stage.commit(vec![put(first, URL, 1), put(first, "http://h/2", 1), put(first, URL, 2)]).await;
    (stage, resource)
}

/// A record that can be told from others by its cursor.
fn at(cursor: u64) -> Record {
    Record { cursor: Seq(cursor), issued: Seq(cursor), ..Record::default() }
}

/// Nothing that was there before is owed, and nothing after it is missed.
pub async fn a_subscription_from_now_begins_at_the_tail(factory: &dyn Factory) {
    let (stage, resource) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    stage.commit(vec![put(lane(&resource, 0), URL, 3), put(lane(&resource, 1), URL, 1)]).await;
    let stage = stage.crash().await;
    let expected = Saved { cursor: Seq(3), issued: Seq(3), ..Saved::default() };
    assert_eq!(stage.saved(feed(&subscription, 0)).await, expected);
    assert_eq!(stage.saved(feed(&subscription, 1)).await, Saved::default());
}

/// The sweep ends where the cursor begins.
pub async fn a_subscription_from_the_beginning_sweeps_up_to_the_tail(factory: &dyn Factory) {
    let (stage, resource) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Beginning).await;
    stage.commit(vec![put(lane(&resource, 0), URL, 3)]).await;
    let sweep = Sweep { replay: 0, kind: SweepKind::Beginning, position: Seq(0), end: Seq(3), met: 0 };
    let expected = Saved { cursor: Seq(3), issued: Seq(3), sweep: Some(sweep), ..Saved::default() };
    assert_eq!(stage.saved(feed(&subscription, 0)).await, expected);
    let stage = stage.crash().await;
    assert_eq!(stage.saved(feed(&subscription, 0)).await, expected);
}

/// A sweep of nothing would never be met by a row that ends it.
pub async fn a_subscription_to_empty_lanes_has_nothing_to_sweep(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Beginning).await;
    assert_eq!(stage.saved(feed(&subscription, 1)).await, Saved::default());
}

/// What the former owner wrote before is read, what it writes after is not written.
pub async fn opening_a_feed_fences_its_former_owner(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    let (mine, other) = (feed(&subscription, 0), feed(&subscription, 1));
    let old = stage.own(mine).await;
    stage.write(mine, old, at(10)).await;
    let new = stage.epoch().await;
    assert_eq!(stage.open(mine, new).await.saved.cursor, Seq(10));
    assert_fenced(stage.try_write(mine, old, Record { held: ordinals(&[1]), ..at(11) }).await);
    stage.write(mine, new, at(12)).await;
    assert_fenced(stage.try_write(mine, old, at(13)).await);

    let stage = stage.crash().await;
    assert_fenced(stage.try_write(mine, old, at(14)).await);
    assert_eq!(stage.saved(mine).await, Saved { cursor: Seq(12), issued: Seq(12), ..Saved::default() });
    assert_eq!(stage.saved(other).await, Saved::default(), "each feed has an epoch of its own");
}

/// Fenced, and then no other feed of the call is taken from its owner.
pub async fn a_feed_of_a_newer_owner_cannot_be_opened(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    let (free, taken) = (feed(&subscription, 0), feed(&subscription, 1));
    let (oldest, old, new) = (stage.epoch().await, stage.epoch().await, stage.epoch().await);
    stage.open(free, oldest).await;
    stage.open(taken, new).await;
    assert_fenced(stage.store.ledger.open(&[free, taken], old).await);
    let stage = stage.crash().await;
    assert_fenced(stage.store.ledger.open(&[taken], old).await);
    stage.write(free, oldest, at(5)).await;
    stage.write(taken, new, at(6)).await;
}

/// Without opening, nobody was fenced.
pub async fn an_epoch_nobody_opened_writes_nothing(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let feed = feed(&stage.subscription("s", "users", Start::Now).await, 0);
    let owner = stage.own(feed).await;
    let higher = stage.epoch().await;
    assert_fenced(stage.try_write(feed, higher, at(20)).await);
    stage.write(feed, owner, at(4)).await;
    assert_eq!(stage.saved(feed).await.cursor, Seq(4));
}

/// An owner whose answer was lost asks again.
pub async fn the_same_epoch_may_open_again(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let feed = feed(&stage.subscription("s", "users", Start::Now).await, 0);
    let epoch = stage.own(feed).await;
    stage.write(feed, epoch, at(9)).await;
    assert_eq!(stage.open(feed, epoch).await.saved.cursor, Seq(9));
    let stage = stage.crash().await;
    assert_eq!(stage.open(feed, epoch).await.saved.cursor, Seq(9));
    stage.write(feed, epoch, at(10)).await;
}

/// The head is that of the moment of opening, and of the feed's own lane.
pub async fn an_opened_feed_knows_the_head_of_its_lane(factory: &dyn Factory) {
    let (stage, resource) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    stage.commit(vec![put(lane(&resource, 1), URL, 1)]).await;
    let epoch = stage.epoch().await;
    let feeds = [feed(&subscription, 1), feed(&subscription, 0)];
    let mut opened = stage.store.ledger.open(&feeds, epoch).await.expect("opened");
    opened.sort_by_key(|opened| opened.feed);
    let heads: Vec<_> = opened.iter().map(|opened| (opened.feed, opened.head)).collect();
    assert_eq!(heads, [(feeds[1], Seq(3)), (feeds[0], Seq(1))]);
}

/// A subscription may go while its owner is being told about it.
pub async fn feeds_that_do_not_exist_are_left_out(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    let unknown = FeedId { subscription: SubscriptionNumber(subscription.number + 1), lane: 0 };
    let beyond = feed(&subscription, 2);
    let epoch = stage.epoch().await;
    let asked = [unknown, feed(&subscription, 0), beyond];
    let opened = stage.store.ledger.open(&asked, epoch).await.expect("opened");
    assert_eq!(opened.iter().map(|opened| opened.feed).collect::<Vec<_>>(), [feed(&subscription, 0)]);
    assert_eq!(stage.store.ledger.open(&[], epoch).await.expect("opened"), []);
}

/// And the next subscription of the resource begins with nothing.
pub async fn feeds_go_with_their_subscription(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    let gone = feed(&subscription, 0);
    let epoch = stage.own(gone).await;
    stage.write(gone, epoch, Record { held: ordinals(&[0, 1]), ..at(2) }).await;
    stage.delete(&subscription).await;
    assert_eq!(stage.store.ledger.open(&[gone], epoch).await.expect("answered"), []);
    let next = stage.subscription("t", "users", Start::Now).await;
    let stage = stage.crash().await;
    assert_eq!(stage.store.ledger.open(&[gone], epoch).await.expect("answered"), []);
    let expected = Saved { cursor: Seq(3), issued: Seq(3), ..Saved::default() };
    assert_eq!(stage.saved(feed(&next, 0)).await, expected);
}

/// An open attempt may finish after its subscription is gone, and recreates nothing.
pub async fn a_vanished_feed_refuses_its_own_record_only(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let stays = stage.subscription("stays", "users", Start::Now).await;
    let goes = stage.subscription("goes", "users", Start::Now).await;
    let feeds = [feed(&goes, 0), feed(&stays, 0), feed(&stays, 1)];
    let epoch = stage.epoch().await;
    assert_eq!(stage.store.ledger.open(&feeds, epoch).await.expect("opened").len(), 3);
    stage.open(feeds[2], epoch + 1).await;
    stage.delete(&goes).await;
    let writes = feeds.map(|feed| FeedWrite { feed, epoch, record: at(7) });
    let mut answers = stage.store.ledger.write(writes.to_vec()).await.expect("taken").into_iter();
    let mut next = || answers.next().expect("an answer per record");
    assert_eq!(conflict(next()), Conflict::Feed);
    next().expect("written");
    assert_fenced(next());
    assert_eq!(stage.store.ledger.open(&feeds[..1], epoch).await.expect("answered"), []);
    assert_eq!(stage.saved(feeds[1]).await.cursor, Seq(7));
    assert_eq!(stage.saved(feeds[2]).await.cursor, Seq(0));
    assert!(stage.store.ledger.write(Vec::new()).await.expect("taken").is_empty());
}

/// Than those given out, and those that were used without being given out; also when all feeds are gone.
pub async fn every_epoch_is_higher_than_all_before(factory: &dyn Factory) {
    let (stage, _) = two_lanes(factory).await;
    let first = stage.epoch().await;
    assert!(first > 0, "0 is the epoch of a feed that nobody has opened");
    let second = stage.epoch().await;
    assert!(second > first);
    let stage = stage.crash().await;
    let third = stage.epoch().await;
    assert!(third > second, "one that was given out is not given out again after a crash");

    let subscription = stage.subscription("s", "users", Start::Now).await;
    stage.open(feed(&subscription, 0), third + 100).await;
    let fourth = stage.epoch().await;
    assert!(fourth > third + 100);
    stage.open(feed(&subscription, 1), fourth + 100).await;
    stage.delete(&subscription).await;
    let stage = stage.crash().await;
    assert!(stage.epoch().await > fourth + 100);
}
