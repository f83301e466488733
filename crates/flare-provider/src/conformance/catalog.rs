//! Behaviours of the catalog: entities come and go, with their numbers and versions.

use super::Factory;
use super::fixture::*;
use crate::catalog::{Entity, EntityKind, NewEntity, Start};
use crate::error::Conflict;

/// Get and list answer what create did.
pub async fn a_created_entity_comes_back_as_it_was_given(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let parent = stage.resource("users", 4).await;
    let new = NewEntity {
        kind: EntityKind::Subscription,
        id: "wish list/ß".to_owned(),
        parent: Some(parent.id.clone()),
        keys: vec!["post http://host/{id}".to_owned(), "ключ".to_owned()],
        body: "{\"text\":\"\\u0000 'quoted' \u{1F525}\n\"}".to_owned(),
        lanes: 0,
        start: Start::Now,
        history: true,
        capture: None,
    };
    let created = stage.create(new.clone()).await;
    let expected = Entity {
        kind: new.kind,
        id: new.id,
        number: created.number,
        version: created.version,
        parent: new.parent,
        keys: new.keys,
        body: new.body,
        lanes: 4,
        history: true,
    };
    assert_eq!(created, expected);
    let catalog = &stage.store.catalog;
    assert_eq!(catalog.get(created.kind, &created.id).await.expect("read"), Some(created.clone()));
    assert_eq!(catalog.list(created.kind, 0, 10).await.expect("read"), std::slice::from_ref(&created));

    let stage = stage.crash().await;
    let catalog = &stage.store.catalog;
    assert_eq!(catalog.get(created.kind, &created.id).await.expect("read"), Some(created));
    assert_eq!(catalog.list(EntityKind::Resource, 0, 10).await.expect("read"), [parent]);
}

/// Absence is an answer, not an error.
pub async fn an_unknown_entity_is_absent(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let resource = stage.resource("users", 1).await;
    let catalog = &stage.store.catalog;
    let other = Entity { id: "orders".to_owned(), ..resource };
    assert_eq!(catalog.get(EntityKind::Resource, "orders").await.expect("read"), None);
    assert_eq!(catalog.get(EntityKind::Subscription, "users").await.expect("read"), None);
    assert_eq!(catalog.replace(other).await.expect("answered"), None);
    assert!(!catalog.delete(EntityKind::Resource, "orders").await.expect("answered"));
    assert!(!catalog.delete(EntityKind::Subscription, "users").await.expect("answered"));
    assert_eq!(catalog.list(EntityKind::Subscription, 0, 10).await.expect("read"), []);
}

/// The number of the last one of a page is where the next begins.
pub async fn a_list_goes_by_number_and_in_pages(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let mut created = Vec::new();
    for id in ["m", "z", "a", "k", "b"] {
        created.push(stage.resource(id, 1).await);
    }
    assert!(created.is_sorted_by_key(|entity| entity.number), "numbers grow");
    let gone = created.remove(1);
    stage.delete(&gone).await;

    let mut listed: Vec<Entity> = Vec::new();
    loop {
        let after = listed.last().map_or(0, |entity| entity.number);
        let page = stage.store.catalog.list(EntityKind::Resource, after, 3).await.expect("read");
        assert!(page.len() <= 3 && page.iter().all(|entity| entity.number > after));
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    assert_eq!(listed, created);
    assert_eq!(stage.store.catalog.list(EntityKind::Resource, 0, 0).await.expect("read"), []);
}

/// Number, parent and lanes are the engine's to know; what the caller says of them does not matter.
pub async fn a_replaced_entity_has_its_new_body_and_keys_and_nothing_else(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 4).await;
    let created = stage.create(with_keys(subscription("s", "users"), &["one", "two"])).await;
    let (keys, body) = (vec!["two".to_owned(), "three".to_owned()], "another".to_owned());
    let asked = Entity { keys: keys.clone(), body: body.clone(), lanes: 9, ..created.clone() };
    let replaced = stage.store.catalog.replace(asked).await.expect("no conflict").expect("it exists");
    assert!(replaced.version > created.version, "the version grows");
    assert_eq!(replaced, Entity { keys, body, version: replaced.version, ..created });

    let stage = stage.crash().await;
    let read = stage.store.catalog.get(EntityKind::Subscription, "s").await.expect("read");
    assert_eq!(read, Some(replaced));
}

/// Whoever changes an entity has seen what is there.
pub async fn a_replacement_of_an_older_version_is_refused(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    let first = stage.resource("users", 1).await;
    let asked = Entity { body: "second".to_owned(), ..first.clone() };
    let second = catalog.replace(asked).await.expect("no conflict").expect("it exists");
    for version in [first.version, second.version + 1, 0] {
        let late =
            Entity { version, body: "late".to_owned(), keys: vec!["late".to_owned()], ..first.clone() };
        assert_eq!(conflict(catalog.replace(late).await), Conflict::Version);
    }
    assert_eq!(catalog.get(EntityKind::Resource, "users").await.expect("read"), Some(second.clone()));

    // A change of another entity is none of this one.
    stage.resource("orders", 1).await;
    assert!(catalog.replace(second).await.expect("no conflict").is_some());
}

/// A reader that compares versions misses neither a change nor a removal, also across a restart.
pub async fn every_change_raises_the_version(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = stage.store.catalog.clone();
    let empty = catalog.version().await.expect("read");
    let resource = stage.resource("users", 1).await;
    let created = catalog.version().await.expect("read");
    assert!(created > empty);
    assert_eq!(resource.version, created);

    let replaced = catalog.replace(resource).await.expect("no conflict").expect("it exists");
    assert!(replaced.version > created);
    assert_eq!(catalog.version().await.expect("read"), replaced.version);

    let subscribed = stage.subscription("s", "users", Start::Now).await;
    assert!(subscribed.version > replaced.version, "kinds share one version");
    stage.delete(&subscribed).await;
    let deleted = catalog.version().await.expect("read");
    assert!(deleted > subscribed.version);

    let stage = stage.crash().await;
    assert_eq!(stage.store.catalog.version().await.expect("read"), deleted);
    assert!(stage.resource("orders", 1).await.version > deleted);
}

/// Numbers stand in the log and in the ledger: one that came back would bring the old entity's state along.
pub async fn numbers_are_never_reused(factory: &dyn Factory) {
    let mut stage = Stage::fresh(factory).await;
    let (mut last_resource, mut last_subscription) = (0, 0);
    for round in 0..3 {
        let resource = stage.resource(&format!("r{round}"), 1).await;
        assert!(resource.number > last_resource, "resources are numbered upwards");
        last_resource = resource.number;
        for turn in 0..2 {
            let id = format!("s{round}-{turn}");
            let subscription = stage.subscription(&id, &resource.id, Start::Now).await;
            assert!(subscription.number > last_subscription, "subscriptions are numbered upwards");
            last_subscription = subscription.number;
            stage.delete(&subscription).await;
        }
        stage.delete(&resource).await;
        stage = stage.crash().await;
    }
}

/// The parent is looked for inside the commit.
pub async fn a_subscription_needs_its_resource(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    assert_eq!(conflict(catalog.create(subscription("s", "users")).await), Conflict::Parent);
    let orphan = NewEntity { parent: None, ..subscription("s", "") };
    assert_eq!(conflict(catalog.create(orphan).await), Conflict::Parent);

    let resource = stage.resource("users", 1).await;
    stage.delete(&resource).await;
    assert_eq!(conflict(catalog.create(subscription("s", "users")).await), Conflict::Parent);
    assert_eq!(catalog.list(EntityKind::Subscription, 0, 10).await.expect("read"), []);
}

/// A subscription keeps its resource, and only its own.
pub async fn a_resource_with_subscriptions_stays(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    let (users, orders) = (stage.resource("users", 1).await, stage.resource("orders", 1).await);
    let subscribed = stage.subscription("s", "users", Start::Now).await;
    assert_eq!(conflict(catalog.delete(EntityKind::Resource, "users").await), Conflict::Children);
    assert_eq!(catalog.get(EntityKind::Resource, "users").await.expect("read"), Some(users.clone()));
    assert!(stage.lane_state(lane(&users, 0)).await.is_some(), "its lane is still there");
    stage.delete(&orders).await;
    stage.delete(&subscribed).await;
    stage.delete(&users).await;
}

/// Lanes are the resource's; also as many as there can be.
pub async fn a_subscription_has_as_many_lanes_as_its_resource(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let resource = stage.resource("users", 256).await;
    assert_eq!(resource.lanes, 256);
    let subscribed = stage.create(NewEntity { lanes: 3, ..subscription("s", "users") }).await;
    assert_eq!(subscribed.lanes, 256);
    let feeds: Vec<_> = (0..=255).map(|index| feed(&subscribed, index)).collect();
    let epoch = stage.epoch().await;
    let opened = stage.store.ledger.open(&feeds, epoch).await.expect("nobody else has them");
    assert_eq!(opened.len(), 256);
    stage.commit(vec![put(lane(&resource, 255), "http://h/1", 1)]).await;
    assert_eq!(stage.open(feeds[255], epoch).await.head.0, 1);
}
