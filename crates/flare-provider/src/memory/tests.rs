//! What only the reference engine has: handles that die, and copies as a restore would make them.

use flare_model::feed::Record;
use flare_model::ids::Seq;

use super::Memory;
use crate::catalog::{EntityKind, Start};
use crate::conformance::fixture::{feed, lane, put, resource, subscription};
use crate::error::ErrorKind;
use crate::ledger::FeedWrite;

#[tokio::test]
async fn a_handle_of_an_ended_process_does_nothing() {
    let memory = Memory::new();
    let old = memory.store();
    let users = old.catalog.create(resource("users", 1)).await.expect("created");
    let new = memory.reopen().store();
    let write = vec![put(lane(&users, 0), "http://h/1", 1)];
    let refused = old.documents.commit(write.clone()).await.expect_err("it has ended");
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert!(old.catalog.delete(EntityKind::Resource, "users").await.is_err());
    assert!(old.ledger.next_epoch().await.is_err());
    assert_eq!(new.documents.lanes().await.expect("read")[0].head, Seq(0));
    assert!(new.documents.commit(write).await.is_ok());
}

#[tokio::test]
async fn a_restored_store_finds_its_feeds_strange_until_they_are_written() {
    let memory = Memory::new();
    let store = memory.store();
    let users = store.catalog.create(resource("users", 1)).await.expect("created");
    let feed = feed(&store.catalog.create(subscription("s", "users")).await.expect("created"), 0);
    let restored = memory.restored().store();
    store.documents.commit(vec![put(lane(&users, 0), "http://h/1", 1)]).await.expect("taken");
    let incarnations = [&restored, &store].map(|store| store.documents.incarnation());
    let [new, old] = incarnations.map(async |incarnation| incarnation.await.expect("answered"));
    assert_ne!(new.await, old.await);
    assert_eq!(restored.documents.lanes().await.expect("read")[0].head, Seq(0), "the tail is lost");

    let strange = async |epoch| restored.ledger.open(&[feed], epoch).await.expect("opened")[0].saved.strange;
    assert!(strange(1).await);
    let later = crate::NewEntity { start: Start::Beginning, ..subscription("t", "users") };
    let later = restored.catalog.create(later).await.expect("created");
    let opened =
        restored.ledger.open(&[crate::conformance::fixture::feed(&later, 0)], 1).await.expect("opened");
    assert!(!opened[0].saved.strange, "a new feed belongs to the new log");
    assert!(strange(2).await, "reading alone settles nothing");
    let write = FeedWrite { feed, epoch: 2, record: Record::default() };
    restored.ledger.write(vec![write]).await.expect("taken").pop().expect("an answer").expect("written");
    assert!(!strange(3).await);
}
