//! Behaviours of the ledger: documents as a client last got them, written and forgotten with their records.

use std::sync::Arc;

use bytes::Bytes;
use flare_model::feed::{Kept, Record};
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::layout::Instant;
use flare_model::revision::{Date, Revision};

use super::Factory;
use super::fixture::*;
use crate::catalog::{Entity, Start};
use crate::error::Conflict;

async fn one_feed(factory: &dyn Factory) -> (Stage, Entity, FeedId, u64) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 2).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    let feed = feed(&subscription, 1);
    let epoch = stage.own(feed).await;
    (stage, subscription, feed, epoch)
}

fn state(revision: i64) -> Kept {
    Kept { revision: Revision::Integer(revision), content: content("http://h/1", revision) }
}

/// A record that says that the client has document 1 in this revision.
fn keeps(life: u64, revision: i64) -> Record {
    let kept = vec![(Ordinal(1), Arc::new(state(revision)))];
    Record { cursor: Seq(revision as u64), held: ordinals(&[1]), life, kept, ..Record::default() }
}

async fn read(stage: &Stage, feed: FeedId, life: u64) -> Option<Kept> {
    stage.store.ledger.state(feed, life, Ordinal(1)).await.expect("the ledger answers")
}

/// Byte for byte and with the revision as it was written, in the next life of the process too.
pub async fn a_state_comes_back_as_it_was_kept(factory: &dyn Factory) {
    let (stage, _, feed, epoch) = one_feed(factory).await;
    assert_eq!(read(&stage, feed, 3).await, None);
    let text = "2026-01-02T03:04:05.1+01:00";
    let date = Date::new(Instant { seconds: -7, nanos: 999_999_999 }, text);
    let large: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
    let dated = Kept { revision: Revision::Date(date), content: Bytes::from(large) };
    let empty = Kept { revision: Revision::Integer(i64::MIN), content: Bytes::new() };
    let kept =
        vec![(Ordinal(1), Arc::new(dated.clone())), (Ordinal(u64::MAX >> 24), Arc::new(empty.clone()))];
    stage.write(feed, epoch, Record { life: 3, kept, ..Record::default() }).await;
    let stage = stage.crash().await;
    let found = read(&stage, feed, 3).await.expect("it was kept");
    assert_eq!(found, dated);
    assert_eq!(found.revision.to_string(), text);
    let other = stage.store.ledger.state(feed, 3, Ordinal(u64::MAX >> 24)).await;
    assert_eq!(other.expect("the ledger answers"), Some(empty));
    assert_eq!(stage.saved(feed).await.life, 3);
}

/// The last word counts; a document that is forgotten has no state.
pub async fn a_state_is_replaced_and_forgotten_with_its_record(factory: &dyn Factory) {
    let (stage, _, feed, epoch) = one_feed(factory).await;
    stage.write(feed, epoch, keeps(0, 1)).await;
    stage.write(feed, epoch, keeps(0, 2)).await;
    stage.write(feed, epoch, keeps(0, 2)).await;
    assert_eq!(read(&stage, feed, 0).await, Some(state(2)));
    stage.write(feed, epoch, Record { cursor: Seq(3), ..Record::default() }).await;
    let stage = stage.crash().await;
    assert_eq!(read(&stage, feed, 0).await, Some(state(2)), "a record without it leaves it");
    let epoch = stage.own(feed).await;
    let forgets = Record { cursor: Seq(4), forgotten: ordinals(&[1, 9]), ..Record::default() };
    stage.write(feed, epoch, forgets.clone()).await;
    stage.write(feed, epoch, forgets).await;
    assert_eq!(read(&stage, feed, 0).await, None);
    let stage = stage.crash().await;
    assert_eq!(read(&stage, feed, 0).await, None);
}

/// Neither older nor newer ones are found; what this life keeps takes their place.
pub async fn a_state_of_another_life_is_not_there(factory: &dyn Factory) {
    let (stage, _, feed, epoch) = one_feed(factory).await;
    stage.write(feed, epoch, keeps(7, 1)).await;
    assert_eq!((read(&stage, feed, 6).await, read(&stage, feed, 8).await), (None, None));
    stage.write(feed, epoch, Record { life: 8, ..Record::default() }).await;
    assert_eq!((stage.saved(feed).await.life, read(&stage, feed, 8).await), (8, None));
    let epoch = stage.own(feed).await;
    stage.write(feed, epoch, keeps(8, 2)).await;
    assert_eq!((read(&stage, feed, 8).await, read(&stage, feed, 7).await), (Some(state(2)), None));
}

/// A record that is refused writes no state either, whoever asks.
pub async fn a_refused_record_keeps_nothing(factory: &dyn Factory) {
    let (stage, _, feed, epoch) = one_feed(factory).await;
    stage.write(feed, epoch, keeps(0, 1)).await;
    let newer = stage.own(feed).await;
    assert_fenced(stage.try_write(feed, epoch, keeps(0, 2)).await);
    let forgets = Record { forgotten: ordinals(&[1]), ..Record::default() };
    assert_fenced(stage.try_write(feed, epoch, forgets).await);
    assert_eq!(read(&stage, feed, 0).await, Some(state(1)));
    assert_eq!(stage.open(feed, newer).await.saved.cursor, Seq(1));
}

/// Feeds know nothing of each other's, and nothing is found of one that is gone.
pub async fn states_go_with_their_subscription(factory: &dyn Factory) {
    let (stage, subscription, mine, epoch) = one_feed(factory).await;
    stage.write(mine, epoch, keeps(0, 1)).await;
    assert_eq!(read(&stage, feed(&subscription, 0), 0).await, None);
    let other = stage.subscription("t", "users", Start::Now).await;
    assert_eq!(read(&stage, feed(&other, 1), 0).await, None);
    stage.delete(&subscription).await;
    assert_eq!(conflict(stage.try_write(mine, epoch, keeps(0, 2)).await), Conflict::Feed);
    let stage = stage.crash().await;
    assert_eq!(read(&stage, mine, 0).await, None);
}
