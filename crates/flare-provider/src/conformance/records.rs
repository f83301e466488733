//! Behaviours of the ledger: what a record writes comes back, added to what was there before.

use std::collections::BTreeSet;

use flare_model::feed::{
    Ahead, Example, Failure, Filtering, Health, Record, Saved, Standing, State, Sweep, SweepKind, Tally,
};
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::time::Timestamp;

use super::Factory;
use super::fixture::*;
use crate::catalog::Start;
use crate::ledger::FeedWrite;

async fn two_feeds(factory: &dyn Factory) -> (Stage, [FeedId; 2]) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 2).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    (stage, [feed(&subscription, 0), feed(&subscription, 1)])
}

fn seqs(numbers: &[u64]) -> Vec<Seq> {
    numbers.iter().copied().map(Seq).collect()
}

/// A record that uses everything it can.
fn everything() -> Record {
    Record {
        cursor: Seq(100),
        issued: Seq(4_000),
        judging: Seq(350),
        unjudged: [4, 70_000, 1 << 40].into_iter().collect(),
        judged: [5, 70_001, 1 << 39].into_iter().collect(),
        ahead: Ahead { horizon: Seq(200), holes: seqs(&[101, 150, 199]), extras: seqs(&[250, 900]) },
        held: ordinals(&[0, 5, 70_000]),
        dropped: ordinals(&[3]),
        standings: vec![doubtful(5)],
        cleared: ordinals(&[4]),
        since: Some(Seq(77)),
        sweep: Some(Sweep {
            replay: 42,
            kind: SweepKind::Replay { since: Timestamp::from_millis(-5) },
            position: Seq(12),
            end: Seq(90),
            met: 11,
        }),
        tally: Tally {
            delivered: 1 << 40,
            discarded: 2,
            failed: 3,
            skipped: 4,
            last_success_at: Some(NOW),
            last_failure: Some(Box::new(Failure {
                at: Timestamp::from_millis(-1),
                status: Some(503),
                error: "connection \"reset\" by peer\n\u{0} ß \u{1F525}".to_owned(),
            })),
            health: Some(Box::new(Health {
                failing_since: Some(Timestamp::from_millis(-2)),
                last_discard_at: Some(Timestamp::from_millis(i64::MAX)),
                recovered_at: Some(Timestamp::from_millis(i64::MIN)),
                prepared_at: Some(NOW),
            })),
        },
        filtering: Some(Box::new(Filtering {
            swept: 3,
            selective: true,
            excluded: 1 << 41,
            not_told: 5,
            errors: 6,
            last_error: Some(Example {
                at: Timestamp::from_millis(-7),
                document: "http://api.company.com/users/ß".to_owned(),
                error: "there is no field `\u{1F525}`".to_owned(),
            }),
        })),
        life: 9,
        ..Record::default()
    }
}

fn doubtful(ordinal: u64) -> Standing {
    let (ordinal, seq) = (Ordinal(ordinal), Seq(7));
    Standing { ordinal, seq, doubt: true, state: State::Doubtful, replay: 0, trouble: None }
}

fn as_saved(record: &Record) -> Saved {
    Saved {
        cursor: record.cursor,
        issued: record.issued,
        judging: record.judging,
        unjudged: record.unjudged.clone(),
        judged: record.judged.clone(),
        ahead: record.ahead.clone(),
        held: record.held.iter().map(|ordinal| ordinal.0).collect(),
        standings: record.standings.clone(),
        since: record.since,
        sweep: record.sweep.clone(),
        tally: record.tally.clone(),
        life: record.life,
        filtering: record.filtering.clone(),
        ..Saved::default()
    }
}

/// Every field of it, in the next life too; other feeds know nothing of it.
pub async fn a_record_comes_back_as_it_was_written(factory: &dyn Factory) {
    let (stage, [mine, other]) = two_feeds(factory).await;
    let epoch = stage.own(mine).await;
    let record = everything();
    stage.write(mine, epoch, record.clone()).await;
    assert_eq!(stage.saved(mine).await, as_saved(&record));
    let stage = stage.crash().await;
    assert_eq!(stage.saved(mine).await, as_saved(&record));
    assert_eq!(stage.saved(other).await, Saved::default());
}

/// Absolute values are replaced, by nothing too; sets are added to and taken from.
pub async fn a_record_replaces_all_but_what_is_held_and_standing(factory: &dyn Factory) {
    let (stage, [feed, _]) = two_feeds(factory).await;
    let epoch = stage.own(feed).await;
    stage.write(feed, epoch, everything()).await;
    let next = Record { cursor: Seq(300), issued: Seq(4_000), dropped: ordinals(&[5]), ..Record::default() };
    stage.write(feed, epoch, next.clone()).await;
    let stage = stage.crash().await;
    let held = [0, 70_000].into_iter().collect();
    let expected = Saved { held, standings: vec![doubtful(5)], ..as_saved(&next) };
    assert_eq!(stage.saved(feed).await, expected);
}

/// One call after the other, or twice in one call.
pub async fn a_record_written_twice_is_the_same_as_once(factory: &dyn Factory) {
    let (stage, [feed, other]) = two_feeds(factory).await;
    let epoch = stage.own(feed).await;
    stage
        .write(
            feed,
            epoch,
            Record { held: ordinals(&[3, 8]), standings: vec![doubtful(4)], ..Record::default() },
        )
        .await;
    let record = everything();
    stage.write(feed, epoch, record.clone()).await;
    let once = stage.open(feed, epoch).await;
    stage.write(feed, epoch, record.clone()).await;
    assert_eq!(stage.open(feed, epoch).await, once);
    stage.open(other, epoch).await;
    let write = |feed| FeedWrite { feed, epoch, record: record.clone() };
    stage.store.ledger.write(vec![write(feed), write(other), write(feed)]).await.expect("taken");
    let stage = stage.crash().await;
    assert_eq!(stage.open(feed, epoch).await, once);
    assert_eq!(once.saved.held, [0, 5, 8, 70_000].into_iter().collect());
}

/// The later one has the last word.
pub async fn records_of_one_call_are_written_in_order(factory: &dyn Factory) {
    let (stage, [feed, other]) = two_feeds(factory).await;
    let epoch = stage.own(feed).await;
    stage.open(other, epoch).await;
    let record = |cursor, held: &[u64], dropped: &[u64]| Record {
        cursor: Seq(cursor),
        held: ordinals(held),
        dropped: ordinals(dropped),
        ..Record::default()
    };
    let writes = vec![
        FeedWrite { feed, epoch, record: record(1, &[1, 2, 3], &[]) },
        FeedWrite { feed: other, epoch, record: record(9, &[9], &[1]) },
        FeedWrite { feed, epoch, record: record(2, &[4], &[1, 2]) },
        FeedWrite { feed, epoch, record: record(3, &[2], &[3]) },
    ];
    for answer in stage.store.ledger.write(writes).await.expect("taken") {
        answer.expect("written");
    }
    assert_eq!(stage.saved(feed).await, as_saved(&record(3, &[2, 4], &[])));
    assert_eq!(stage.saved(other).await, as_saved(&record(9, &[9], &[])));
}

/// Thousands of bits over hundreds of records, against a set that is kept beside it.
pub async fn what_is_held_adds_up_over_many_records(factory: &dyn Factory) {
    let (mut stage, [feed, _]) = two_feeds(factory).await;
    let mut epoch = stage.own(feed).await;
    let mut oracle: BTreeSet<u64> = BTreeSet::new();
    let mut chance: u64 = 1;
    let mut roll = move |below: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % below
    };
    for turn in 0..240_u64 {
        // Dense runs, strays far apart, and a few beyond what 32 bits hold: a bitmap keeps each otherwise.
        let mut touched = BTreeSet::new();
        for _ in 0..=roll(40) {
            touched.insert(match roll(8) {
                0 => roll(1 << 31),
                1 => (1 << 33) + roll(64),
                _ => roll(2_000),
            });
        }
        let (dropped, held): (Vec<u64>, Vec<u64>) = touched.into_iter().partition(|_| roll(3) == 0);
        for ordinal in &held {
            oracle.insert(*ordinal);
        }
        for ordinal in &dropped {
            oracle.remove(ordinal);
        }
        let (held, dropped) = (ordinals(&held), ordinals(&dropped));
        stage.write(feed, epoch, Record { cursor: Seq(turn), held, dropped, ..Record::default() }).await;
        if turn % 60 == 59 {
            stage = stage.crash().await;
        }
        if turn % 40 == 39 {
            epoch = stage.epoch().await;
            let saved = stage.open(feed, epoch).await.saved;
            assert_eq!(saved.held.iter().collect::<Vec<_>>(), oracle.iter().copied().collect::<Vec<_>>());
        }
    }
    assert!(oracle.len() > 1_000, "enough to mean something");
    assert_eq!(stage.saved(feed).await.held, oracle.into_iter().collect());
}

/// A clean stop takes `issued` back, and the end of judging `judging`; a strange log takes the cursor back to 0.
pub async fn marks_may_go_back(factory: &dyn Factory) {
    let (stage, [feed, _]) = two_feeds(factory).await;
    let epoch = stage.own(feed).await;
    stage.write(feed, epoch, everything()).await;
    let back = Record { cursor: Seq(40), issued: Seq(40), ..Record::default() };
    stage.write(feed, epoch, back).await;
    let saved = stage.saved(feed).await;
    assert_eq!((saved.cursor, saved.issued), (Seq(40), Seq(40)));
    assert_eq!((saved.judging, saved.unjudged.len(), saved.judged.len()), (Seq(0), 0, 0));
}

/// Numbers that a float or a 32-bit column would bend.
pub async fn numbers_come_back_in_full(factory: &dyn Factory) {
    let (stage, [feed, _]) = two_feeds(factory).await;
    let epoch = stage.own(feed).await;
    let large = (1 << 62) + 1;
    let record = Record {
        cursor: Seq(large),
        issued: Seq(large + 1),
        judging: Seq(large + 3),
        ahead: Ahead { horizon: Seq(large + 2), holes: seqs(&[large + 1]), extras: seqs(&[large + 9]) },
        held: ordinals(&[(1 << 40) + 1]),
        standings: vec![Standing {
            ordinal: Ordinal((1 << 40) + 1),
            seq: Seq(large),
            doubt: false,
            state: State::Waiting { due: Timestamp::from_millis(i64::MAX) },
            replay: large,
            trouble: None,
        }],
        tally: Tally { delivered: large, discarded: large, failed: large, ..Tally::default() },
        ..Record::default()
    };
    stage.write(feed, epoch, record.clone()).await;
    let stage = stage.crash().await;
    assert_eq!(stage.saved(feed).await, as_saved(&record));
}
