//! Tombstones are kept for their time, and for whoever still needs them; who needs them for too long is disabled.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::metrics::until_counted;
use crate::support::{Receiver, Setup, Story, document_url, until};

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
    let setup = setup().with("FLARE_DOMAIN_RETENTION_FEED", "1s");
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
    story.settled(&subscription).await;
    let sent = story.receiver.requests().split_off(before);
    let state = crate::order::state_of(&sent);
    assert_eq!(state.len(), 5, "everything is sent again: {sent:?}");
    let told: Vec<_> = sent.iter().map(|r| (r.action(), r.document(), r.sequence())).collect();
    assert!(
        told.iter().all(|(action, ..)| *action == "create"),
        "nobody knows any more what it has: {told:?}"
    );
    assert_eq!(state[&document_url(0)], 1);
}
