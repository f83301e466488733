//! Behaviours of accounts, tokens, and of what was done: who belongs to whom, and what is remembered of it.

use flare_model::revision::Revision;
use flare_model::time::Timestamp;

use super::Factory;
use super::fixture::*;
use crate::acts::{Act, ActsPage, ListActs};
use crate::catalog::{CatalogChange, Entity, EntityKind, NewEntity};
use crate::error::Conflict;

pub(super) fn account(id: &str) -> NewEntity {
    NewEntity { kind: EntityKind::Account, ..resource(id, 0) }
}

fn token(id: &str, account: Option<&str>) -> NewEntity {
    NewEntity { kind: EntityKind::Token, parent: account.map(str::to_owned), ..resource(id, 0) }
}

pub(super) fn of(account: &str, new: NewEntity) -> NewEntity {
    NewEntity { parent: Some(account.to_owned()), ..new }
}

/// Neither has lanes; both have numbers of their own, which are never reused.
pub async fn accounts_and_tokens_are_entities_like_others(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let acme = stage.create(account("acme")).await;
    let shop =
        stage.create(NewEntity { body: "{\"hash\":\"é\"}".into(), ..token("tok_1", Some("acme")) }).await;
    let own = stage.create(token("tok_2", None)).await;
    assert_eq!((acme.lanes, shop.lanes, own.lanes), (0, 0, 0));
    assert!(own.number > shop.number && own.version > shop.version);
    let catalog = stage.store.catalog.clone();
    assert!(
        catalog.replace(Entity { body: "used".into(), ..own.clone() }).await.expect("no conflict").is_some()
    );
    assert!(catalog.delete(EntityKind::Token, "tok_2").await.expect("deleted"));
    let stage = stage.crash().await;
    let catalog = &stage.store.catalog;
    assert_eq!(catalog.list(EntityKind::Account, 0, 10).await.expect("read"), [acme]);
    assert_eq!(catalog.list(EntityKind::Token, 0, 10).await.expect("read"), [shop]);
    let changes = catalog.changes(0, 10).await.expect("read").expect("it is not too old").changes;
    let kinds: Vec<EntityKind> = changes.iter().map(CatalogChange::kind).collect();
    assert_eq!(
        kinds,
        [EntityKind::Account, EntityKind::Token, EntityKind::Token],
        "whoever follows it hears of them"
    );
    assert!(matches!(&changes[2], CatalogChange::Deleted(gone) if gone.id == "tok_2"), "{changes:?}");
    assert!(stage.create(token("tok_3", None)).await.number > own.number);
}

/// The account is looked for inside the commit.
pub async fn what_belongs_to_an_account_needs_it(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    assert_eq!(conflict(catalog.create(of("acme", resource("users", 1))).await), Conflict::Parent);
    assert_eq!(conflict(catalog.create(token("tok_1", Some("acme"))).await), Conflict::Parent);
    stage.create(account("acme")).await;
    stage.create(of("acme", resource("users", 1))).await;
    stage.create(token("tok_1", Some("acme"))).await;
}

/// The same key may be in each account once; ids are the same for all.
pub async fn keys_are_unique_within_an_account(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = &stage.store.catalog;
    for name in ["acme", "other"] {
        stage.create(account(name)).await;
    }
    let keyed = |id: &str| with_keys(resource(id, 2), &["http://h/{}"]);
    stage.create(keyed("mine")).await;
    let acme = stage.create(of("acme", keyed("acmes"))).await;
    stage.create(of("other", keyed("others"))).await;
    let taken = |id: &str| Conflict::Taken(id.to_owned());
    assert_eq!(conflict(catalog.create(of("acme", keyed("again"))).await), taken("acmes"));
    assert_eq!(conflict(catalog.create(keyed("again")).await), taken("mine"));
    assert_eq!(conflict(catalog.create(of("acme", resource("mine", 1))).await), taken("mine"));
    // Each has its own documents, under whatever url.
    let mine = catalog.get(EntityKind::Resource, "mine").await.expect("read").expect("there");
    stage.commit(vec![put(lane(&mine, 0), "http://h/1", 7), put(lane(&acme, 0), "http://h/1", 3)]).await;
    let stage = stage.crash().await;
    assert_eq!(stage.document(lane(&mine, 0), "http://h/1").await.revision, Revision::Integer(7));
    assert_eq!(stage.document(lane(&acme, 0), "http://h/1").await.revision, Revision::Integer(3));
}

/// Tokens are no reason to stay: they go with it, and nobody else's.
pub async fn an_account_goes_without_resources_and_takes_its_tokens(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = stage.store.catalog.clone();
    for name in ["acme", "other"] {
        stage.create(account(name)).await;
    }
    stage.create(token("tok_1", Some("acme"))).await;
    stage.create(token("tok_2", Some("acme"))).await;
    let kept = [stage.create(token("tok_3", Some("other"))).await, stage.create(token("tok_4", None)).await];
    let users = stage.create(of("acme", resource("users", 1))).await;
    assert_eq!(conflict(catalog.delete(EntityKind::Account, "acme").await), Conflict::Children);
    assert_eq!(catalog.list(EntityKind::Token, 0, 10).await.expect("read").len(), 4);
    stage.delete(&users).await;
    let before = catalog.version().await.expect("read");
    assert!(catalog.delete(EntityKind::Account, "acme").await.expect("deleted"));
    assert!(catalog.version().await.expect("read") > before, "who follows the version sees it");
    let stage = stage.crash().await;
    let catalog = &stage.store.catalog;
    assert_eq!(catalog.list(EntityKind::Token, 0, 10).await.expect("read"), kept);
    assert_eq!(catalog.get(EntityKind::Account, "acme").await.expect("read"), None);
    assert_eq!(conflict(catalog.create(token("tok_5", Some("acme"))).await), Conflict::Parent);
}

fn act(at: i64, account: &str, body: &str) -> Act {
    Act { at: Timestamp::from_millis(at), account: account.to_owned(), body: body.to_owned() }
}

async fn listed(stage: &Stage, wanted: ListActs) -> ActsPage {
    stage.store.acts.list(wanted).await.expect("read")
}

/// By account, by time and in pages, each with its total.
pub async fn acts_are_listed_with_the_last_first(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let all = ListActs { limit: 10, ..ListActs::default() };
    assert_eq!(listed(&stage, all.clone()).await, ActsPage::default());
    // The clock goes back once; the order is that of writing.
    let written =
        [act(1, "acme", "{\"a\":\"é\"}"), act(5, "default", "b"), act(3, "acme", "c"), act(9, "acme", "d")];
    for one in &written {
        stage.store.acts.append(one.clone()).await.expect("written");
    }
    let stage = stage.crash().await;
    let [a, b, c, d] = written;
    let page = |total, acts: &[&Act]| ActsPage { total, acts: acts.iter().copied().cloned().collect() };
    assert_eq!(listed(&stage, all.clone()).await, page(4, &[&d, &c, &b, &a]));
    let acme = ListActs { account: Some("acme".into()), ..all.clone() };
    assert_eq!(listed(&stage, acme.clone()).await, page(3, &[&d, &c, &a]));
    let since = ListActs { since: Some(Timestamp::from_millis(3)), ..acme };
    assert_eq!(listed(&stage, since.clone()).await, page(2, &[&d, &c]));
    assert_eq!(listed(&stage, ListActs { offset: 1, limit: 1, ..since.clone() }).await, page(2, &[&c]));
    assert_eq!(listed(&stage, ListActs { limit: 0, ..since.clone() }).await, page(2, &[]));
    assert_eq!(listed(&stage, ListActs { offset: 9, ..since }).await, page(2, &[]));
    assert_eq!(listed(&stage, ListActs { account: Some("nobody".into()), ..all }).await, page(0, &[]));
}

/// In slices, and never beyond one that is to stay.
pub async fn acts_are_removed_from_the_old_end_only(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let acts = stage.store.acts.clone();
    for at in [1, 2, 3, 9, 4] {
        acts.append(act(at, "default", &at.to_string())).await.expect("written");
    }
    let before = Timestamp::from_millis(5);
    assert_eq!(acts.trim(Timestamp::from_millis(1), 10).await.expect("done"), 0);
    assert_eq!(acts.trim(before, 2).await.expect("done"), 2);
    assert_eq!(acts.trim(before, 10).await.expect("done"), 1);
    assert_eq!(acts.trim(before, 10).await.expect("done"), 0, "what came after one that stays, stays too");
    let stage = stage.crash().await;
    let left = listed(&stage, ListActs { limit: 10, ..ListActs::default() }).await;
    assert_eq!(left.acts.iter().map(|act| act.at.millis()).collect::<Vec<_>>(), [4, 9]);
    assert_eq!(stage.store.acts.trim(Timestamp::from_millis(100), 10).await.expect("done"), 2);
    stage.store.acts.append(act(7, "default", "later")).await.expect("written");
    assert_eq!(listed(&stage, ListActs { limit: 10, ..ListActs::default() }).await.total, 1);
}
