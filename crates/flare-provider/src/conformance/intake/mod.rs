//! Behaviours of how far consumers have read: one owner at a time, and nothing half written.

use bytes::Bytes;
use flare_model::ids::ResourceNumber;

use super::Factory;
use super::bridges::consumer;
use super::fixture::*;
use crate::error::Conflict;
use crate::intake::{ListLetters, NewLetter, Reading};

fn letter(story: &str) -> NewLetter {
    NewLetter { received_at: NOW, story: story.to_owned(), payload: Bytes::from(vec![0, 255, b'x']) }
}

async fn stage(factory: &dyn Factory) -> (Stage, ResourceNumber) {
    let stage = Stage::fresh(factory).await;
    let orders = stage.create(consumer("con_1", 1)).await;
    (stage, ResourceNumber(orders.number))
}

async fn listed(
    stage: &Stage,
    consumer: ResourceNumber,
    after: u64,
    offset: u64,
    limit: u64,
) -> (u64, Vec<String>) {
    let list = ListLetters { consumer, after, offset, limit };
    let (total, letters) = stage.store.intake.letters(list).await.expect("read");
    (total, letters.into_iter().map(|letter| letter.kept.story).collect())
}

/// Whoever was owner before writes nothing.
pub async fn what_was_read_is_written_by_its_owner_alone(factory: &dyn Factory) {
    let (stage, orders) = stage(factory).await;
    let intake = stage.store.intake.clone();
    let nobody = ResourceNumber(orders.0 + 1);
    assert_eq!(conflict(intake.take(nobody, "0", 1).await), Conflict::Parent);
    assert_fenced(intake.advance(orders, "0", 1, "early".into(), Vec::new()).await);
    let (first, second) = (stage.epoch().await, stage.epoch().await);
    assert_eq!(intake.take(orders, "0", first).await.expect("taken"), None);
    intake.advance(orders, "0", first, "one".into(), Vec::new()).await.expect("it owns it");
    assert_eq!(intake.take(orders, "0", second).await.expect("taken").as_deref(), Some("one"));
    assert_fenced(intake.advance(orders, "0", first, "late".into(), vec![letter("late")]).await);
    assert_fenced(intake.take(orders, "0", first).await);
    assert_eq!(intake.take(orders, "0", second).await.expect("again").as_deref(), Some("one"));
    intake.advance(orders, "0", second, "two".into(), Vec::new()).await.expect("it owns it");
    assert_eq!(intake.take(orders, "shard é", first).await.expect("another one"), None);
    assert_eq!(listed(&stage, orders, 0, 0, 9).await, (0, vec![]));
}

/// Both or none.
pub async fn progress_and_letters_are_written_as_one_and_outlive_a_crash(factory: &dyn Factory) {
    let (stage, orders) = stage(factory).await;
    let epoch = stage.epoch().await;
    stage.store.intake.take(orders, "0", epoch).await.expect("taken");
    let letters = vec![letter("a"), letter("b")];
    stage.store.intake.advance(orders, "0", epoch, "é 1".into(), letters).await.expect("written");
    let stage = stage.crash().await;
    let reading = Reading { partition: "0".into(), epoch, progress: Some("é 1".into()) };
    assert_eq!(stage.store.intake.readings(orders).await.expect("read"), [reading]);
    let list = ListLetters { consumer: orders, after: 0, offset: 0, limit: 9 };
    let (total, letters) = stage.store.intake.letters(list).await.expect("read");
    assert_eq!(total, 2);
    assert_eq!(letters[0].kept, letter("a"));
    assert_eq!((letters[1].partition.as_str(), &letters[1].kept), ("0", &letter("b")));
    let next = stage.epoch().await;
    assert_eq!(stage.store.intake.take(orders, "0", next).await.expect("taken").as_deref(), Some("é 1"));
}

/// Numbers grow, and are not given again.
pub async fn letters_are_listed_in_pages_and_removed(factory: &dyn Factory) {
    let (stage, orders) = stage(factory).await;
    let other = ResourceNumber(stage.create(consumer("con_2", 1)).await.number);
    let epoch = stage.epoch().await;
    let intake = stage.store.intake.clone();
    for consumer in [orders, other] {
        intake.take(consumer, "0", epoch).await.expect("taken");
        let letters = ["a", "b", "c"].map(letter).to_vec();
        intake.advance(consumer, "0", epoch, "1".into(), letters).await.expect("written");
    }
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(listed(&stage, orders, 0, 1, 1).await, (3, texts(&["b"])));
    assert_eq!(listed(&stage, orders, 0, 9, 1).await, (3, texts(&[])));
    let list = ListLetters { consumer: orders, after: 0, offset: 0, limit: 9 };
    let all = intake.letters(list).await.expect("read").1;
    assert_eq!(listed(&stage, orders, all[0].number, 0, 9).await, (3, texts(&["b", "c"])));
    assert_eq!(intake.remove_letters(orders, Some(vec![all[1].number, u64::MAX])).await.expect("removed"), 1);
    assert_eq!(listed(&stage, orders, 0, 0, 9).await, (2, texts(&["a", "c"])));
    assert_eq!(intake.remove_letters(orders, None).await.expect("removed"), 2);
    intake.advance(orders, "0", epoch, "2".into(), vec![letter("d")]).await.expect("written");
    let (_, left) = intake.letters(list).await.expect("read");
    assert!(left[0].number > all[2].number, "no number is given twice");
    assert_eq!(listed(&stage, other, 0, 0, 9).await.0, 3, "another's are left alone");
}

/// Nothing of it is left, and who still reads is told.
pub async fn what_was_read_goes_with_its_consumer(factory: &dyn Factory) {
    let (stage, orders) = stage(factory).await;
    let epoch = stage.epoch().await;
    let intake = stage.store.intake.clone();
    intake.take(orders, "0", epoch).await.expect("taken");
    intake.advance(orders, "0", epoch, "1".into(), vec![letter("a")]).await.expect("written");
    let kind = crate::catalog::EntityKind::Consumer;
    assert!(stage.store.catalog.delete(kind, "con_1").await.expect("deleted"));
    assert_fenced(intake.advance(orders, "0", epoch, "2".into(), vec![letter("b")]).await);
    assert_eq!(conflict(intake.take(orders, "0", epoch + 1).await), Conflict::Parent);
    assert_eq!(intake.readings(orders).await.expect("read"), []);
    assert_eq!(listed(&stage, orders, 0, 0, 9).await, (0, vec![]));
}
