//! Behaviours of the ledger: documents that need more than a cursor, one by one and listed.

use flare_model::feed::{Action, Lent, Record, Sent, Standing, State, Trouble};
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;

use super::Factory;
use super::fixture::*;
use crate::catalog::{Entity, Start};
use crate::ledger::ListStandings;

async fn three_feeds(factory: &dyn Factory) -> (Stage, Entity, u64) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 3).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    let feeds: Vec<FeedId> = (0..3).map(|lane| feed(&subscription, lane)).collect();
    let epoch = stage.epoch().await;
    stage.store.ledger.open(&feeds, epoch).await.expect("opened");
    (stage, subscription, epoch)
}

fn standing(ordinal: u64, state: State) -> Standing {
    Standing {
        ordinal: Ordinal(ordinal),
        seq: Seq(ordinal + 1),
        doubt: false,
        state,
        replay: 0,
        trouble: None,
    }
}

fn waiting(ordinal: u64) -> Standing {
    standing(ordinal, State::Waiting { due: NOW })
}

fn dead(ordinal: u64) -> Standing {
    Standing { trouble: Some(Box::new(trouble())), ..standing(ordinal, State::GaveUp) }
}

fn trouble() -> Trouble {
    Trouble {
        attempts: u32::MAX,
        first_attempt_at: Timestamp::from_millis(0),
        last_attempt_at: NOW,
        action: Action::Delete,
        status: Some(599),
        error: None,
        response: Some("<h1>\u{0}\"kaputt\" \u{1F525}</h1>\r\n".to_owned()),
        unheard: true,
        has: Some("2026-01-02".to_owned()),
        lent: None,
    }
}

/// Of a lease that was extended, and sent on a stream.
fn lent() -> Trouble {
    let sent = Sent { stream: u64::MAX, position: 3, id: "msg_\"1\"".to_owned() };
    let revision = Revision::from_parts(i64::MIN, 999_999_999, Some("01.02.2026"));
    let before = Timestamp::from_millis(NOW.millis() - 1);
    Trouble { lent: Some(Box::new(Lent::new(before, Some(&revision), Some(sent)))), ..trouble() }
}

fn put(standings: Vec<Standing>) -> Record {
    Record { standings, ..Record::default() }
}

async fn list(
    stage: &Stage,
    subscription: &Entity,
    dead: bool,
    offset: u64,
    limit: u64,
) -> (u64, Vec<(u8, u64)>) {
    let subscription = feed(subscription, 0).subscription;
    let ask = ListStandings { subscription, dead, offset, limit };
    let (total, page) = stage.store.ledger.standings(ask).await.expect("the ledger answers");
    (total, page.iter().map(|(lane, standing)| (*lane, standing.ordinal.0)).collect())
}

/// Whatever its state, with all that is known of the attempts.
pub async fn a_standing_comes_back_as_it_was_written(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    let feed = feed(&subscription, 1);
    let refused =
        Trouble { status: None, error: Some("refused: ß\n".to_owned()), response: None, ..trouble() };
    let all = [
        waiting(0),
        Standing { doubt: true, replay: 7, trouble: Some(Box::new(refused)), ..waiting(1) },
        Standing { doubt: true, ..standing(2, State::Doubtful) },
        dead(3),
        Standing { doubt: true, ..dead(4) },
        standing(5, State::Waiting { due: Timestamp::from_millis(i64::MIN) }),
        Standing { trouble: Some(Box::new(lent())), ..standing(7, State::Leased { until: NOW }) },
    ];
    stage.write(feed, epoch, put(all.to_vec())).await;
    let stage = stage.crash().await;
    for expected in &all {
        assert_eq!(stage.standing(feed, expected.ordinal.0).await.as_ref(), Some(expected));
    }
    assert_eq!(stage.standing(feed, 6).await, None);
    assert_eq!(stage.standing(FeedId { lane: 2, ..feed }, 0).await, None, "another feed's");
    let mut saved = stage.saved(feed).await.standings;
    saved.sort_by_key(|standing| standing.ordinal);
    assert_eq!(saved, [0, 1, 2, 5, 6].map(|index: usize| all[index].clone()));
}

/// There is one for each document.
pub async fn a_standing_is_replaced_by_the_next_one(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    let feed = feed(&subscription, 0);
    let first = Standing { doubt: true, trouble: Some(Box::new(trouble())), replay: 3, ..waiting(5) };
    stage.write(feed, epoch, put(vec![first, waiting(6)])).await;
    let second = Standing { seq: Seq(90), ..standing(5, State::Waiting { due: Timestamp::from_millis(1) }) };
    stage.write(feed, epoch, put(vec![second.clone()])).await;
    let stage = stage.crash().await;
    assert_eq!(stage.standing(feed, 5).await, Some(second.clone()));
    let mut saved = stage.saved(feed).await.standings;
    saved.sort_by_key(|standing| standing.ordinal);
    assert_eq!(saved, [second, waiting(6)]);
}

/// Only in its own feed, and clearing what is not there is nothing.
pub async fn a_cleared_standing_is_gone(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    let feeds = [feed(&subscription, 0), feed(&subscription, 1)];
    for feed in feeds {
        stage.write(feed, epoch, put(vec![waiting(1), dead(2), waiting(3)])).await;
    }
    let cleared = Record { cleared: ordinals(&[1, 2, 77]), ..put(vec![waiting(4)]) };
    stage.write(feeds[0], epoch, cleared).await;
    let stage = stage.crash().await;
    assert_eq!(list(&stage, &subscription, false, 0, 9).await, (4, vec![(0, 3), (0, 4), (1, 1), (1, 3)]));
    assert_eq!(list(&stage, &subscription, true, 0, 9).await, (1, vec![(1, 2)]));
    let saved = stage.saved(feeds[0]).await;
    assert_eq!((saved.standings.len(), saved.dead.len()), (2, 0));
}

/// They may be many, so a feed gets their ordinals only.
pub async fn dead_letters_are_told_apart_by_doubt(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    let feed = feed(&subscription, 2);
    let letters = (0..100).map(|n| Standing { doubt: n % 3 == 0, ..dead(n) });
    stage.write(feed, epoch, put(letters.collect())).await;
    let stage = stage.crash().await;
    let saved = stage.saved(feed).await;
    assert_eq!(saved.dead, (0..100).collect());
    assert_eq!(saved.dead_in_doubt, (0..100).step_by(3).collect());
    assert_eq!(saved.standings, []);
}

/// A newer revision or a replay asks for it; and it may be given up again, without the doubt.
pub async fn a_revived_dead_letter_is_waiting_again(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    let feed = feed(&subscription, 0);
    stage.write(feed, epoch, put(vec![Standing { doubt: true, ..dead(1) }, dead(2)])).await;
    stage.write(feed, epoch, put(vec![Standing { doubt: true, ..waiting(1) }])).await;
    let saved = stage.open(feed, epoch).await.saved;
    assert_eq!(saved.dead, [2].into_iter().collect());
    assert!(saved.dead_in_doubt.is_empty());
    assert_eq!(saved.standings, [Standing { doubt: true, ..waiting(1) }]);

    stage.write(feed, epoch, put(vec![dead(1)])).await;
    let stage = stage.crash().await;
    let saved = stage.saved(feed).await;
    assert_eq!(saved.dead, [1, 2].into_iter().collect());
    assert!(saved.dead_in_doubt.is_empty() && saved.standings.is_empty());
}

/// A doubt for which nothing is owed is in neither list.
pub async fn dead_and_waiting_are_listed_apart(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    let other = stage.subscription("other", "users", Start::Now).await;
    stage.write(feed(&subscription, 2), epoch, put(vec![dead(9), waiting(8), dead(1)])).await;
    stage.write(feed(&subscription, 0), epoch, put(vec![standing(3, State::Doubtful), waiting(5)])).await;
    let foreign = feed(&other, 0);
    let own = stage.own(foreign).await;
    stage.write(foreign, own, put(vec![dead(1), waiting(2)])).await;
    assert_eq!(list(&stage, &subscription, true, 0, 9).await, (2, vec![(2, 1), (2, 9)]));
    assert_eq!(list(&stage, &subscription, false, 0, 9).await, (2, vec![(0, 5), (2, 8)]));
    let ask = ListStandings { subscription: foreign.subscription, dead: true, offset: 0, limit: 9 };
    let (_, page) = stage.store.ledger.standings(ask).await.expect("the ledger answers");
    assert_eq!(page, [(0, dead(1))], "listed whole");
}

/// By lane and ordinal, whatever the order in which they were written.
pub async fn a_list_of_standings_has_pages_and_a_total(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    for turn in 0..10_u64 {
        for lane in [2, 0, 1] {
            let ordinal = turn * 7 % 10;
            stage
                .write(feed(&subscription, lane), epoch, put(vec![dead(ordinal), waiting(100 + ordinal)]))
                .await;
        }
    }
    let expected: Vec<(u8, u64)> =
        (0..3).flat_map(|lane| (0..10).map(move |ordinal| (lane, ordinal))).collect();
    for limit in [1, 4, 15, 30, 31] {
        let mut met = Vec::new();
        for offset in (0..30).step_by(limit) {
            let (total, page) = list(&stage, &subscription, true, offset as u64, limit as u64).await;
            assert_eq!(total, 30);
            assert!(page.len() <= limit);
            met.extend(page);
        }
        assert_eq!(met, expected, "in pages of {limit}");
    }
    assert_eq!(list(&stage, &subscription, true, 0, 0).await, (30, vec![]), "a page of nothing has a total");
    assert_eq!(list(&stage, &subscription, true, 30, 5).await, (30, vec![]));
    assert_eq!(list(&stage, &subscription, true, u64::MAX, u64::MAX).await, (30, vec![]));
    assert_eq!(list(&stage, &subscription, false, 28, u64::MAX).await, (30, vec![(2, 108), (2, 109)]));
}

/// Nothing of it is listed any more.
pub async fn standings_go_with_their_subscription(factory: &dyn Factory) {
    let (stage, subscription, epoch) = three_feeds(factory).await;
    stage.write(feed(&subscription, 0), epoch, put(vec![dead(1), waiting(2)])).await;
    stage.delete(&subscription).await;
    let stage = stage.crash().await;
    assert_eq!(list(&stage, &subscription, true, 0, 9).await, (0, vec![]));
    assert_eq!(list(&stage, &subscription, false, 0, 9).await, (0, vec![]));
    assert_eq!(stage.standing(feed(&subscription, 0), 1).await, None);
}
