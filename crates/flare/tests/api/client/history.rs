//! `delivery.revision: all`: every accepted revision of a document arrives, in order, and what cannot is counted.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::insight::metrics::{Scrape, until_counted};
use crate::support::{
    Receiver, Reply, Request, Setup, Story, document_url, store_is_durable, until, until_true,
};

fn every() -> Value {
    json!({"revision": "all", "retry": {"quantity": 1_000_000, "interval": "20ms", "maxInterval": "50ms"}})
}

/// What came of each document, in order, as the action's first letter and the revision.
fn told(requests: &[Request]) -> BTreeMap<String, Vec<(char, i64)>> {
    let mut told = BTreeMap::<String, Vec<(char, i64)>>::new();
    for request in requests {
        let action = request.action().chars().next().expect("an action");
        told.entry(request.document().to_owned()).or_default().push((action, request.revision()));
    }
    told
}

fn revisions(requests: &[Request], id: impl std::fmt::Display) -> Vec<i64> {
    let told = told(requests);
    told.get(&document_url(id)).map_or_else(Vec::new, |all| all.iter().map(|(_, rev)| *rev).collect())
}

fn upto(last: i64) -> Vec<i64> {
    (1..=last).collect()
}

#[tokio::test]
async fn every_revision_of_many_documents_arrives_in_order() {
    let story = Story::begin().await;
    let newest = Receiver::start().await;
    let every = story.subscribe_simply(every()).await;
    let last = story.subscribe(json!({"endpoint": {"url": newest.url("/newest")}})).await;
    let story = Arc::new(story);
    let mut origins = tokio::task::JoinSet::new();
    for origin in 0..4 {
        let story = story.clone();
        origins.spawn(async move {
            for revision in 1..=25 {
                for document in 0..5 {
                    story.put(format!("{origin}-{document}"), revision).await;
                }
            }
        });
    }
    while let Some(done) = origins.join_next().await {
        done.expect("no origin fails");
    }
    story.settled(&every).await;
    story.settled(&last).await;
    let requests = story.receiver.requests();
    for (document, told) in told(&requests) {
        let mut expected: Vec<_> = upto(25).into_iter().map(|revision| ('u', revision)).collect();
        expected[0].0 = 'c';
        assert_eq!(told, expected, "{document}");
    }
    assert_eq!(requests.len(), 500);
    let ids: HashSet<_> = requests.iter().map(|request| request.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 500, "each is a notification of its own");
    assert_eq!(requests[0].json()["document"]["rev"], requests[0].revision(), "with its own content");
    // Another subscription of the resource still gets only what is newest.
    let of_newest = told_in_order(&newest.requests());
    assert!(of_newest.values().all(|told| told.last() == Some(&25)), "{of_newest:?}");
}

fn told_in_order(requests: &[Request]) -> BTreeMap<String, Vec<i64>> {
    let told = told(requests).into_iter().map(|(document, told)| {
        let revisions: Vec<i64> = told.into_iter().map(|(_, revision)| revision).collect();
        assert!(revisions.is_sorted(), "{document}: {revisions:?}");
        (document, revisions)
    });
    told.collect()
}

#[tokio::test]
async fn deletes_and_rebirths_are_told_one_by_one() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(every()).await;
    story.command(&subscription, "pause").await.expect(200);
    story.put(1, 1).await;
    story.put(1, 2).await;
    story.remove(1).await;
    story.put(1, 3).await;
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    let told = told(&story.receiver.requests());
    assert_eq!(told[&document_url(1)], [('c', 1), ('u', 2), ('d', 2), ('c', 3)]);
}

#[tokio::test]
async fn a_document_that_fails_keeps_back_only_itself() {
    let works = Arc::new(AtomicBool::new(false));
    let fixed = works.clone();
    let bad = document_url("bad");
    let receiver = Receiver::answering(move |request| {
        let fails = request.document() == bad && !fixed.load(Ordering::SeqCst);
        Reply::Status(if fails { 503 } else { 200 })
    });
    let story = Story::told(receiver.await).await;
    let subscription = story.subscribe_simply(every()).await;
    for revision in 1..=8 {
        story.put("bad", revision).await;
        story.put("good", revision).await;
    }
    until_true("the good one is through", || revisions(&story.receiver.requests(), "good") == upto(8)).await;
    let tried = revisions(&story.receiver.requests(), "bad");
    assert!(tried.iter().all(|revision| *revision == 1), "nothing overtakes: {tried:?}");
    works.store(true, Ordering::SeqCst);
    story.settled(&subscription).await;
    let mut tried = revisions(&story.receiver.requests(), "bad");
    tried.dedup();
    assert_eq!(tried, upto(8));
    assert_eq!(story.status(&subscription).await["skippedRevisions"], 0);
}

#[tokio::test]
async fn a_client_far_behind_reads_the_history_from_the_store_after_a_restart() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to read without a disk");
    }
    let setup =
        Setup::default().with("FLARE_DELIVERY_TAIL_BYTES", "64KB").with("FLARE_DELIVERY_PAGE_ROWS", "7");
    let mut story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(every()).await;
    story.command(&subscription, "pause").await.expect(200);
    for revision in 1..=30 {
        for document in 0..6 {
            story.put(document, revision).await;
        }
    }
    story.flare.stop().await;
    story.flare.restart().await;
    story.command(&subscription, "resume").await.expect(200);
    let status = story.settled(&subscription).await;
    for document in 0..6 {
        assert_eq!(revisions(&story.receiver.requests(), document), upto(30), "{document}");
    }
    assert_eq!(status["skippedRevisions"], 0);
}

#[tokio::test]
async fn the_beginning_is_the_present_state_and_then_every_revision() {
    let story = Story::begin().await;
    for revision in 1..=3 {
        story.put(1, revision).await;
    }
    let body =
        json!({"endpoint": {"url": story.receiver.url("/told")}, "delivery": every(), "start": "beginning"});
    let subscription = story.subscribe(body).await;
    story.receiver.wait_for(1).await;
    for revision in 4..=6 {
        story.put(1, revision).await;
    }
    story.settled(&subscription).await;
    assert_eq!(revisions(&story.receiver.requests(), 1), [3, 4, 5, 6]);
    let replay = story.api().post(&format!("{subscription}/replay"), &json!({})).await.expect(202).json();
    let requests = story.receiver.wait_for(5).await;
    let again = &requests[4];
    assert_eq!((again.revision(), again.header("flare-replay")), (6, replay["id"].as_str().expect("an id")));
}

#[tokio::test]
async fn what_is_given_up_is_a_dead_letter_only_if_nothing_follows() {
    let receiver =
        Receiver::answering(|request| Reply::Status(if request.revision() > 2 { 200 } else { 503 }));
    let story = Story::told(receiver.await).await;
    let delivery = json!({"revision": "all", "retry": {"quantity": 2, "immediate": 2, "interval": "10ms"}});
    let subscription = story.subscribe_simply(delivery).await;
    story.put(1, 1).await;
    let dead = |count: u64| move |status: &Value| status["feed"]["deadLetters"] == count;
    story.until_status(&subscription, "the first one is given up", dead(1)).await;
    story.put(1, 2).await;
    story.put(1, 3).await;
    let status = story.settled(&subscription).await;
    assert_eq!(status["feed"]["deadLetters"], 0, "{status}");
    let requests = story.receiver.requests();
    let mut tried = revisions(&requests, 1);
    tried.dedup();
    assert_eq!(tried, upto(3));
    assert_eq!(requests.last().expect("some").action(), "create", "it may not have it");
}

#[tokio::test]
async fn a_history_that_grows_too_long_is_cut_and_the_loss_is_told() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: what is in memory is not cut");
    }
    let setup = Setup::default()
        .with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s")
        .with("FLARE_DOMAIN_RETENTION_REVISIONS", "5");
    let mut story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(every()).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    for revision in 2..=20 {
        story.put(1, revision).await;
    }
    until_true("it is cut", || story.flare.logged("removed from the history").is_some()).await;
    until("the loss is counted", async || {
        let lost = Scrape::of(&story.flare).await.value(r#"flare_revisions_removed_total{reason="lost"}"#);
        (lost > 0.0).then_some(())
    })
    .await;
    // What was in memory is gone then, and only the store has the rest.
    story.flare.restart().await;
    story.command(&subscription, "resume").await.expect(200);
    let status = story.settled(&subscription).await;
    let got = revisions(&story.receiver.requests(), 1);
    assert!(got.is_sorted() && got.last() == Some(&20) && got.len() < 20, "{got:?}");
    assert_eq!(status["skippedRevisions"], 20 - got.len() as u64, "{got:?}");
}

#[tokio::test]
async fn a_history_that_nobody_wants_any_more_goes() {
    let setup =
        Setup::default().with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s").with("FLARE_LOG_LEVEL", "debug");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(every()).await;
    story.command(&subscription, "pause").await.expect(200);
    for revision in 1..=9 {
        story.put(1, revision).await;
    }
    story.api().delete(&subscription).await.expect(204);
    let line =
        until("it is removed", || std::future::ready(story.flare.logged("older revisions removed"))).await;
    assert!(line.contains("\"removed\":8"), "{line}");
    until_counted(&story.flare, &[(r#"flare_revisions_removed_total{reason="done"}"#, 8.0)]).await;
}

#[tokio::test]
async fn a_subscription_changes_to_every_revision_and_back() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let wants = async |revision: &str| {
        let patch = json!({"delivery": {"revision": revision}});
        let shown = story.api().patch(&subscription, &patch).await.expect(200).json();
        assert_eq!(shown["delivery"]["revision"], revision);
    };
    story.command(&subscription, "pause").await.expect(200);
    story.put(1, 1).await;
    story.put(1, 2).await;
    wants("all").await;
    for revision in 3..=5 {
        story.put(1, revision).await;
    }
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    assert_eq!(revisions(&story.receiver.requests(), 1), [2, 3, 4, 5], "from the state at the change on");
    story.command(&subscription, "pause").await.expect(200);
    story.put(1, 6).await;
    story.put(1, 7).await;
    wants("last").await;
    story.put(1, 8).await;
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    assert_eq!(revisions(&story.receiver.requests(), 1), [2, 3, 4, 5, 8]);
    story
        .api()
        .patch(&subscription, &json!({"delivery": {"revision": "some"}}))
        .await
        .refused(400, &["delivery.revision", "`last` or `all`"]);
}

#[tokio::test]
async fn a_change_between_the_modes_survives_a_kill_right_after_it() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    // One at a time and slowly, so that much is owed at every kill.
    let slow = |_: &Request| Reply::After(Duration::from_millis(5), Box::new(Reply::Status(200)));
    let mut story = Story::told(Receiver::answering(slow).await).await;
    let subscription = story.subscribe_simply(every()).await;
    let mut revision = 1;
    for document in 0..6 {
        story.put(document, revision).await;
    }
    // Before it wants the last ones only.
    story.receiver.wait_for(6).await;
    for mode in ["last", "all", "last", "all"] {
        for _ in 0..10 {
            revision += 1;
            for document in 0..6 {
                story.put(document, revision).await;
            }
        }
        let patch = json!({"delivery": {"revision": mode}});
        story.api().patch(&subscription, &patch).await.expect(200);
        story.flare.kill();
        story.receiver.drained().await;
        story.flare.restart().await;
    }
    let from = revision;
    for _ in 0..10 {
        revision += 1;
        for document in 0..6 {
            story.put(document, revision).await;
        }
    }
    story.settled(&subscription).await;
    for (document, mut got) in told_in_order(&story.receiver.requests()) {
        got.dedup();
        let expected: Vec<i64> = (from..=revision).collect();
        assert!(got.ends_with(&expected), "{document}: {got:?} from {from} on");
        assert!(got.starts_with(&[1]), "{document}: {got:?}");
    }
}

/// A document with a quantity, which the filters here ask about.
async fn stock(story: &Story, id: impl std::fmt::Display, revision: i64, quantity: i64) {
    story.api().put(&document_url(id), &json!({"rev": revision, "quantity": quantity})).await;
}

async fn subscribe_with(story: &Story, expressions: Value) -> String {
    let mut body = json!({"endpoint": {"url": story.receiver.url("/told")}, "delivery": every()});
    body.as_object_mut().expect("an object").extend(expressions.as_object().expect("an object").clone());
    story.subscribe(body).await
}

#[tokio::test]
async fn each_revision_is_judged_by_the_filter_in_its_turn() {
    let story = Story::begin().await;
    let subscription = subscribe_with(&story, json!({"filter": "document.quantity > 0"})).await;
    story.command(&subscription, "pause").await.expect(200);
    for (revision, quantity) in [(1, 0), (2, 5), (3, 7), (4, 0), (5, 0), (6, 1), (7, 2)] {
        stock(&story, 1, revision, quantity).await;
    }
    story.command(&subscription, "resume").await.expect(200);
    let status = story.settled(&subscription).await;
    let expected = [('c', 2), ('u', 3), ('d', 4), ('c', 6), ('u', 7)];
    assert_eq!(
        told(&story.receiver.requests())[&document_url(1)],
        expected,
        "coalescing would hide the delete"
    );
    assert_eq!((&status["filter"]["excluded"], &status["feed"]["held"]), (&json!(3), &json!(1)), "{status}");
    let patch = json!({"filter": "document.quantity > 1"});
    story.api().patch(&subscription, &patch).await.expect(200);
    stock(&story, 1, 8, 1).await;
    story.settled(&subscription).await;
    assert_eq!(told(&story.receiver.requests())[&document_url(1)].last(), Some(&('d', 8)));
}

#[tokio::test]
async fn each_revision_is_told_or_not_by_what_the_client_last_got() {
    let story = Story::begin().await;
    let when = "action != 'update' || document.quantity != state.quantity";
    let subscription = subscribe_with(&story, json!({"when": when})).await;
    story.command(&subscription, "pause").await.expect(200);
    for (revision, quantity) in [(1, 5), (2, 5), (3, 6), (4, 6), (5, 5), (6, 6)] {
        stock(&story, 1, revision, quantity).await;
    }
    story.command(&subscription, "resume").await.expect(200);
    let status = story.settled(&subscription).await;
    let expected = [('c', 1), ('u', 3), ('u', 5), ('u', 6)];
    assert_eq!(told(&story.receiver.requests())[&document_url(1)], expected, "{status}");
    assert_eq!(status["filter"]["notTold"], 2, "{status}");
}

#[tokio::test]
async fn a_filter_over_every_revision_survives_kills() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let slow = |_: &Request| Reply::After(Duration::from_millis(5), Box::new(Reply::Status(200)));
    let mut story = Story::told(Receiver::answering(slow).await).await;
    let subscription = subscribe_with(&story, json!({"filter": "document.quantity > 0"})).await;
    // Three in, one out.
    let quantity = |revision: i64| revision % 4;
    let mut revision = 0;
    for _ in 0..4 {
        for _ in 0..10 {
            revision += 1;
            for document in 0..6 {
                stock(&story, document, revision, quantity(revision)).await;
            }
        }
        story.flare.kill();
        story.receiver.drained().await;
        story.flare.restart().await;
    }
    story.settled(&subscription).await;
    for (document, mut got) in told(&story.receiver.requests()) {
        // What was under way at a kill comes again; whether the client had it by then nobody knows.
        got.dedup_by_key(|(_, revision)| *revision);
        assert_eq!(
            got.iter().map(|(_, revision)| *revision).collect::<Vec<_>>(),
            upto(revision),
            "{document}"
        );
        for (action, revision) in got {
            let leaves = quantity(revision) == 0;
            assert_eq!(action == 'd', leaves, "{document}: {action} {revision}");
        }
    }
}

/// PUTs each of these revisions of each of these documents in one request.
async fn bulk(story: &Story, ids: &[String], revisions: std::ops::RangeInclusive<i64>) {
    let line = |id, revision| json!({"id": document_url(id), "document": {"rev": revision}}).to_string();
    let lines: Vec<String> =
        revisions.flat_map(|revision| ids.iter().map(move |id| line(id, revision))).collect();
    story.api().send("POST", "/documents", &[], lines.join("\n")).await.expect(200);
}

async fn removed(story: &Story, reason: &str) -> f64 {
    let name = format!(r#"flare_revisions_removed_total{{reason="{reason}"}}"#);
    Scrape::of(&story.flare).await.value(&name)
}

#[tokio::test]
async fn who_begins_to_want_every_revision_while_old_ones_are_removed_gets_them_all() {
    // Removing them takes a while: they are gone through document by document.
    let old: Vec<String> = (0..400).map(|document| format!("old-{document}")).collect();
    let older = old.len() as f64 * 99.0;
    let setup = Setup::default()
        .with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s")
        .with("FLARE_DOMAIN_RETENTION_REVISIONS", "1000000")
        .with("FLARE_DOMAIN_LANES", "1");
    let story = Story::with(setup, Receiver::start().await).await;
    let wanted_them =
        story.subscribe(json!({"endpoint": {"url": story.receiver.url("/a")}, "delivery": every()}));
    let wanted_them = wanted_them.await;
    let patched = story.subscribe(json!({"endpoint": {"url": story.receiver.url("/patched")}})).await;
    story.command(&wanted_them, "pause").await.expect(200);
    story.command(&patched, "pause").await.expect(200);
    bulk(&story, &old, 1..=100).await;
    story.api().delete(&wanted_them).await.expect(204);
    until("they are being removed", async || (removed(&story, "done").await > 0.0).then_some(())).await;
    let new =
        story.subscribe(json!({"endpoint": {"url": story.receiver.url("/new")}, "delivery": every()})).await;
    story.command(&new, "pause").await.expect(200);
    story.api().patch(&patched, &json!({"delivery": {"revision": "all"}})).await.expect(200);
    bulk(&story, &["new".into()], 1..=30).await;
    until("they are removed", async || (removed(&story, "done").await >= older).then_some(())).await;
    for (subscription, path) in [(new, "/new"), (patched, "/patched")] {
        story.command(&subscription, "resume").await.expect(200);
        let status = story.settled(&subscription).await;
        let requests = story.receiver.requests().into_iter().filter(|request| request.path == path);
        assert_eq!(revisions(&requests.collect::<Vec<_>>(), "new"), upto(30), "{path}");
        assert_eq!(status["skippedRevisions"], 0, "{path}");
    }
}

#[tokio::test]
async fn what_a_client_got_is_not_counted_as_lost_while_another_document_hangs() {
    let setup = Setup::default()
        .with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s")
        .with("FLARE_DOMAIN_RETENTION_REVISIONS", "5")
        .with("FLARE_DOMAIN_LANES", "1");
    let hangs = document_url("hangs");
    let receiver = Receiver::answering(move |request| match request.document() == hangs {
        true => Reply::Hang,
        false => Reply::Status(200),
    });
    let story = Story::with(setup, receiver.await).await;
    story.subscribe_simply(every()).await;
    story.put("hangs", 1).await;
    story.receiver.wait_for(1).await;
    bulk(&story, &["works".into()], 1..=30).await;
    until_true("it has them", || revisions(&story.receiver.requests(), "works") == upto(30)).await;
    until("they are removed", async || (removed(&story, "done").await >= 24.0).then_some(())).await;
    assert_eq!(removed(&story, "lost").await, 0.0);
}
