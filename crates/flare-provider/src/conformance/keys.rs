//! Behaviours of the catalog: ids and keys that only one entity may have.

use super::Factory;
use super::fixture::*;
use crate::catalog::{Entity, EntityKind};

/// The id is a key of its own, within the kind.
pub async fn a_taken_id_is_a_conflict_that_names_it(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    let first = stage.resource("users", 2).await;
    assert_eq!(conflict(catalog.create(with_keys(resource("users", 4), &["key"])).await), taken("users"));
    assert_eq!(catalog.get(EntityKind::Resource, "users").await.expect("read"), Some(first));

    stage.create(subscription("users", "users")).await;
    stage.resource("orders", 1).await;
    let elsewhere = catalog.create(subscription("users", "orders")).await;
    assert_eq!(conflict(elsewhere), taken("users"), "ids are unique within the kind, whatever the parent");
    stage.create(with_keys(resource("others", 1), &["key"])).await;
}

/// Any of several keys is enough, and then nothing is created at all.
pub async fn a_taken_key_is_a_conflict_that_names_the_other_entity(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    stage.create(with_keys(resource("users", 1), &["one", "two"])).await;
    stage.create(with_keys(resource("orders", 1), &["three"])).await;
    let refused = catalog.create(with_keys(resource("late", 1), &["zero", "two", "four"])).await;
    assert_eq!(conflict(refused), taken("users"));
    let refused = catalog.create(with_keys(resource("late", 1), &["three"])).await;
    assert_eq!(conflict(refused), taken("orders"));
    assert_eq!(catalog.get(EntityKind::Resource, "late").await.expect("read"), None);
    assert_eq!(stage.store.documents.lanes().await.expect("read").len(), 2, "no lanes were left behind");
    stage.create(with_keys(resource("next", 1), &["zero", "four", "ONE"])).await;
}

/// A replacement is compared with the others only.
pub async fn a_replacement_keeps_its_own_keys_and_may_not_take_others(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    let users = stage.create(with_keys(resource("users", 1), &["one", "two"])).await;
    stage.create(with_keys(resource("orders", 1), &["three"])).await;
    let asked = Entity { keys: vec!["one".to_owned(), "three".to_owned()], ..users.clone() };
    assert_eq!(conflict(catalog.replace(asked).await), taken("orders"));
    assert_eq!(catalog.get(EntityKind::Resource, "users").await.expect("read"), Some(users.clone()));
    assert!(catalog.replace(users).await.expect("its own keys are no conflict").is_some());
}

/// Two resources may have subscriptions to the same url; one may not have two.
pub async fn keys_are_unique_within_their_kind_and_parent_only(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    stage.create(with_keys(resource("users", 1), &["key"])).await;
    stage.resource("orders", 1).await;
    stage.create(with_keys(subscription("s1", "users"), &["key"])).await;
    stage.create(with_keys(subscription("s2", "orders"), &["key"])).await;
    let refused = catalog.create(with_keys(subscription("s3", "orders"), &["key"])).await;
    assert_eq!(conflict(refused), taken("s2"));
}

/// By a replacement, and by a deletion; also after a restart.
pub async fn keys_that_are_given_up_may_be_taken(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let users = stage.create(with_keys(resource("users", 1), &["one", "two"])).await;
    let asked = Entity { keys: vec!["two".to_owned()], ..users };
    let users = stage.store.catalog.replace(asked).await.expect("no conflict").expect("it exists");
    let stage = stage.crash().await;
    stage.create(with_keys(resource("orders", 1), &["one"])).await;
    let refused = stage.store.catalog.create(with_keys(resource("late", 1), &["two"])).await;
    assert_eq!(conflict(refused), taken("users"));
    stage.delete(&users).await;
    stage.create(with_keys(resource("late", 1), &["two"])).await;
}

/// It is the others that may not have it.
pub async fn a_key_given_twice_by_one_entity_is_one_key(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let users = stage.create(with_keys(resource("users", 1), &["one", "one"])).await;
    let refused = stage.store.catalog.create(with_keys(resource("late", 1), &["one"])).await;
    assert_eq!(conflict(refused), taken("users"));
    stage.delete(&users).await;
    stage.create(with_keys(resource("late", 1), &["one"])).await;
}
