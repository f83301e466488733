//! Tombstones are kept for their time, and for whoever still needs them; who needs them for too long is disabled.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::insight::metrics::until_counted;
use crate::support::{Receiver, Reply, Setup, Story, document_url, store_is_durable, until};

fn setup() -> Setup {
    Setup::default().with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s")
}

/// Says a deleted document again with an older revision, which is stale for as long as the tombstone is there.
pub async fn forgotten(story: &Story, url: &str) {
    until("the tombstone is forgotten", || async {
        let outcome = story.api().put(url, &json!({"rev": 1})).await;
        assert!(outcome == "stale" || outcome == "created", "{outcome}");
        (outcome == "created").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_tombstone_is_forgotten_after_its_time_and_not_before() {
    let story = Story::with(setup(), Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 5).await;
    story.settled(&subscription).await;
    let began = Instant::now();
    story.remove(1).await;
    forgotten(&story, &document_url(1)).await;
    assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
    until_counted(&story.flare, &[("flare_tombstones_removed_total", 1.0)]).await;
    story.settled(&subscription).await;
    let told: Vec<_> =
        story.receiver.requests().iter().map(|r| (r.action().to_owned(), r.revision())).collect();
    assert_eq!(told, [("create".into(), 5), ("delete".into(), 5), ("create".into(), 1)]);
}

#[tokio::test]
async fn a_tombstone_that_a_client_still_needs_is_kept() {
    let story = Story::with(setup(), Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 5).await;
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    story.remove(1).await;
    // A tombstone of a resource that nobody follows shows that it was tidied up meanwhile.
    let other = json!({"endpoint": "http://origin.test/things/{id}", "change": {"field": "rev"}});
    story.api().post("/resources", &other).await.expect(201);
    story.api().put("http://origin.test/things/1", &json!({"rev": 5})).await;
    story.api().remove("http://origin.test/things/1").await;
    forgotten(&story, "http://origin.test/things/1").await;
    assert_eq!(story.put(1, 4).await, "stale");
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    let last = story.receiver.requests().pop().unwrap();
    assert_eq!((last.action(), last.revision()), ("delete", 5));
    forgotten(&story, &document_url(1)).await;
}

#[tokio::test]
async fn a_client_that_is_in_the_way_for_too_long_is_disabled_and_resumes_from_the_beginning() {
    // Nothing is remembered for those who are disabled.
    let setup = setup().with("FLARE_DOMAIN_RETENTION_FEED", "1s").with("FLARE_DOMAIN_RETENTION_HELD", "0");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    for document in 0..5 {
        story.put(document, 5).await;
    }
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    story.remove(0).await;
    let status = story.until_status(&subscription, "it is disabled", |s| s["status"] == "disabled").await;
    assert!(status["reason"].as_str().unwrap().contains("domain.retention.feed"), "{status}");
    forgotten(&story, &document_url(0)).await;
    let before = story.receiver.count();
    story.command(&subscription, "resume").await.expect(200);
    let status = story.settled(&subscription).await;
    assert_eq!(status["feed"]["forgotten"], 1, "it had one whose end it was not told: {status}");
    assert!(story.flare.logged("deleted documents are forgotten").is_some());
    let sent = story.receiver.requests().split_off(before);
    let state = crate::client::order::state_of(&sent);
    assert_eq!(state.len(), 5, "everything is sent again: {sent:?}");
    let told: Vec<_> = sent.iter().map(|r| (r.action(), r.document(), r.sequence())).collect();
    assert!(
        told.iter().all(|(action, ..)| *action == "create"),
        "nobody knows any more what it has: {told:?}"
    );
    assert_eq!(state[&document_url(0)], 1);
}

/// A subscription that has five documents and is disabled for being behind.
async fn disabled(story: &Story) -> String {
    let subscription = story.subscribe_simply(json!({"concurrency": 1})).await;
    for document in 0..5 {
        story.put(document, 5).await;
    }
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    story.remove(0).await;
    story.until_status(&subscription, "it is disabled", |s| s["status"] == "disabled").await;
    subscription
}

#[tokio::test]
async fn a_client_that_begins_again_is_told_of_the_end_of_what_it_has() {
    let setup = setup().with("FLARE_DOMAIN_RETENTION_FEED", "1s").with("FLARE_DOMAIN_LANES", "1");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = disabled(&story).await;
    story.put("unknown-to-it", 5).await;
    story.remove("unknown-to-it").await;
    forgotten(&story, &document_url("unknown-to-it")).await;
    assert_eq!(story.put(0, 4).await, "stale", "the tombstone is remembered for the one who has it");
    story.command(&subscription, "resume").await.expect(200);
    let status = story.settled(&subscription).await;
    let requests = story.receiver.requests();
    let last = requests.iter().rfind(|request| request.document() == document_url(0)).unwrap();
    assert_eq!((last.action(), last.revision()), ("delete", 5));
    assert_eq!(status["feed"]["forgotten"], 0, "{status}");
    forgotten(&story, &document_url(0)).await;
}

#[tokio::test]
async fn what_is_too_much_to_be_remembered_for_a_disabled_client_is_counted_and_the_rest_is_told() {
    let setup = setup()
        .with("FLARE_DOMAIN_RETENTION_FEED", "1s")
        .with("FLARE_DOMAIN_RETENTION_HELD", "2")
        .with("FLARE_DOMAIN_LANES", "1");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = disabled(&story).await;
    for document in 1..4 {
        story.remove(document).await;
    }
    story.until_status(&subscription, "two are forgotten", |s| s["feed"]["forgotten"] == 2).await;
    until_counted(&story.flare, &[("flare_tombstones_removed_total", 2.0)]).await;
    let before = story.receiver.count();
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    let sent = story.receiver.requests().split_off(before);
    let mut told: Vec<_> = sent.iter().map(|r| (r.action(), r.document().to_owned())).collect();
    told.sort_unstable();
    let expected = [("create", 4), ("delete", 2), ("delete", 3)];
    assert_eq!(told, expected.map(|(action, document)| (action, document_url(document))), "the oldest went");
}

#[tokio::test]
async fn a_client_that_begins_again_has_its_whole_time_for_it_whatever_is_deleted_meanwhile() {
    let setup = setup().with("FLARE_DOMAIN_RETENTION_FEED", "2s").with("FLARE_DOMAIN_LANES", "1");
    let story = Story::with(setup, Receiver::start().await).await;
    for document in 100..200 {
        story.put(document, 1).await;
    }
    let subscription = disabled(&story).await;
    // It takes longer than a feed may stand still, but it goes on.
    story.receiver.answer(|_| Reply::After(Duration::from_millis(40), Box::new(Reply::Status(200))));
    story.command(&subscription, "resume").await.expect(200);
    let mut next = 0;
    let status = loop {
        story.put(format!("passing-{next}"), 1).await;
        story.remove(format!("passing-{next}")).await;
        next += 1;
        let status = story.status(&subscription).await;
        assert_ne!(status["status"], "disabled", "{status}");
        if status["feed"]["held"].as_u64() >= Some(104) {
            break status;
        }
    };
    assert_eq!(status["status"], "active");
}

#[tokio::test]
async fn a_resumed_client_begins_again_even_if_flare_is_killed_right_after_the_answer() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let setup = setup()
        .with("FLARE_DOMAIN_RETENTION_FEED", "1s")
        .with("FLARE_DELIVERY_RECORD_INTERVAL", "10s")
        .with("FLARE_DELIVERY_THREADS", "3");
    let mut story = Story::with(setup, Receiver::start().await).await;
    let subscription = disabled(&story).await;
    story.receiver.answer(|_| Reply::Status(503));
    story.command(&subscription, "resume").await.expect(200);
    story.flare.kill();
    story.receiver.drained().await;
    let before = story.receiver.count();
    story.receiver.answer(|_| Reply::Status(200));
    story.flare.restart().await;
    story.settled(&subscription).await;
    let sent = story.receiver.requests().split_off(before);
    let told: std::collections::BTreeSet<_> =
        sent.iter().map(|request| (request.action().to_owned(), request.document().to_owned())).collect();
    let action = |document| if document == 0 { "delete" } else { "create" };
    assert_eq!(told, (0..5).map(|document| (action(document).to_owned(), document_url(document))).collect());
}
