//! Behaviours of the ledger: why clients lack what nobody owes them.

use flare_model::feed::{Action, Left, Note, Record, Trouble};
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::time::Timestamp;

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

fn note(ordinal: u64, left: Left) -> Note {
    Note { ordinal: Ordinal(ordinal), seq: Seq(ordinal + 1), left, story: None }
}

fn notes(notes: Vec<Note>) -> Record {
    Record { notes, ..Record::default() }
}

async fn read(stage: &Stage, feed: FeedId, ordinal: u64) -> Option<Note> {
    stage.store.ledger.note(feed, Ordinal(ordinal)).await.expect("the ledger answers")
}

/// Whatever it is about, with its story, in the next life of the process too; which ones there are is told with the feed.
pub async fn a_note_comes_back_as_it_was_written(factory: &dyn Factory) {
    let (stage, subscription, mine, epoch) = one_feed(factory).await;
    let story = Trouble {
        attempts: 3,
        first_attempt_at: Timestamp::from_millis(-1),
        last_attempt_at: NOW,
        action: Action::Update,
        status: Some(500),
        error: Some("\u{0}\"ß\"".to_owned()),
        response: None,
        unheard: true,
        has: Some("7".to_owned()),
        lent: None,
    };
    let all = [
        Note { story: Some(Box::new(story)), ..note(0, Left::Discarded) },
        note(1, Left::Dropped),
        note(2, Left::HeldBack),
        note(3, Left::Unclear),
        note(u64::MAX >> 24, Left::Asked),
        note(5, Left::LeaveDiscarded),
        note(6, Left::LeaveDropped),
    ];
    stage.write(mine, epoch, notes(all.to_vec())).await;
    let stage = stage.crash().await;
    for expected in &all {
        assert_eq!(read(&stage, mine, expected.ordinal.0).await.as_ref(), Some(expected));
    }
    assert_eq!(read(&stage, mine, 4).await, None);
    assert_eq!(read(&stage, feed(&subscription, 0), 0).await, None, "another feed's");
    let saved = stage.saved(mine).await;
    assert_eq!(saved.noted, all.iter().map(|note| note.ordinal.0).collect());
    assert_eq!(saved.untold, [2, 3].into_iter().collect());
    assert!(saved.standings.is_empty() && saved.dead.is_empty());
}

/// The last word counts.
pub async fn a_note_is_replaced_and_taken_back_with_its_record(factory: &dyn Factory) {
    let (stage, _, mine, epoch) = one_feed(factory).await;
    for left in [Left::HeldBack, Left::Discarded, Left::Discarded] {
        stage.write(mine, epoch, notes(vec![note(1, left), note(2, left)])).await;
    }
    let goes = Record { unnoted: ordinals(&[2, 9]), ..Record::default() };
    stage.write(mine, epoch, goes.clone()).await;
    stage.write(mine, epoch, goes).await;
    let stage = stage.crash().await;
    assert_eq!(read(&stage, mine, 1).await, Some(note(1, Left::Discarded)));
    assert_eq!(read(&stage, mine, 2).await, None);
    let saved = stage.saved(mine).await;
    assert_eq!((saved.noted, saved.untold.is_empty()), ([1].into_iter().collect(), true));
}

/// Nothing of it is written.
pub async fn a_refused_record_writes_no_note(factory: &dyn Factory) {
    let (stage, _, mine, epoch) = one_feed(factory).await;
    stage.write(mine, epoch, notes(vec![note(1, Left::Dropped)])).await;
    stage.own(mine).await;
    assert_fenced(stage.try_write(mine, epoch, notes(vec![note(1, Left::Discarded)])).await);
    let goes = Record { unnoted: ordinals(&[1]), ..Record::default() };
    assert_fenced(stage.try_write(mine, epoch, goes).await);
    assert_eq!(read(&stage, mine, 1).await, Some(note(1, Left::Dropped)));
}

/// Nothing is found of a feed that is gone.
pub async fn notes_go_with_their_subscription(factory: &dyn Factory) {
    let (stage, subscription, mine, epoch) = one_feed(factory).await;
    stage.write(mine, epoch, notes(vec![note(1, Left::Dropped)])).await;
    stage.delete(&subscription).await;
    let late = stage.try_write(mine, epoch, notes(vec![note(2, Left::Dropped)])).await;
    assert_eq!(conflict(late), Conflict::Feed);
    let stage = stage.crash().await;
    assert_eq!((read(&stage, mine, 1).await, read(&stage, mine, 2).await), (None, None));
}
