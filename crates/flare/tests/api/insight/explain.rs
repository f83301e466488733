//! Why a client was or was not told, from the pattern to the next attempt.

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Story, document_url, until};

fn id_of(subscription: &str) -> &str {
    subscription.rsplit('/').next().unwrap()
}

async fn explain(story: &Story, subscription: &str, document: &str) -> Value {
    let path = format!("/explain?document={document}&subscription={}", id_of(subscription));
    story.api().get(&path).await.expect(200).json()
}

/// The words of all facts of a kind.
fn words(explanation: &Value, kind: &str) -> String {
    let facts = explanation["facts"].as_array().unwrap().iter();
    facts.filter(|fact| fact["fact"] == kind).map(|fact| fact["detail"].as_str().unwrap()).collect()
}

async fn until_verdict(story: &Story, subscription: &str, document: &str, verdict: &str) -> Value {
    until(verdict, || async {
        let explanation = explain(story, subscription, document).await;
        (explanation["verdict"] == verdict).then_some(explanation)
    })
    .await
}

#[tokio::test]
async fn what_was_delivered_is_said_to_be() {
    let story = Story::begin().await;
    story.put("before", 1).await;
    let subscription = story.subscribe_simply(json!({"rateLimit": {"quantity": 50, "interval": "1s"}})).await;
    story.put(1, 7).await;
    story.settled(&subscription).await;
    let told = explain(&story, &subscription, &document_url(1)).await;
    assert_eq!(told["verdict"], "delivered", "{told}");
    assert!(words(&told, "pattern").contains("http://origin.test/users/{id}"), "{told}");
    assert!(words(&told, "revision").contains("at revision 7"), "{told}");
    assert!(words(&told, "standing").contains("has the newest state"), "{told}");
    assert!(words(&told, "rate").contains("50 in 1s"), "{told}");
    assert!(told["facts"][1]["at"].is_string(), "when it was accepted: {told}");

    let before = explain(&story, &subscription, &document_url("before")).await;
    assert_eq!(before["verdict"], "notHeld", "{before}");
    assert!(words(&before, "standing").contains("has not changed since"), "{before}");

    story.remove(1).await;
    story.settled(&subscription).await;
    let gone = explain(&story, &subscription, &document_url(1)).await;
    assert_eq!(gone["verdict"], "notHeld", "{gone}");
    assert!(words(&gone, "revision").contains("deleted"), "{gone}");
}

#[tokio::test]
async fn a_url_that_belongs_elsewhere_is_told_where() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let more = json!({"endpoint": "http://origin.test/{kind}/{id}", "change": {"field": "rev"}});
    let other = story.api().post("/resources", &more).await.expect(201).json();

    let both = explain(&story, &subscription, &document_url(1)).await;
    assert_eq!(both["verdict"], "unknown", "{both}");
    let pattern = words(&both, "pattern");
    assert!(
        pattern.contains("most specific") && pattern.contains(other["id"].as_str().unwrap()),
        "{pattern}"
    );

    let elsewhere = explain(&story, &subscription, "http://origin.test/orders/1").await;
    assert_eq!(elsewhere["verdict"], "noMatch", "{elsewhere}");
    assert!(words(&elsewhere, "pattern").contains("hears nothing"), "{elsewhere}");

    let nowhere = explain(&story, &subscription, "http://elsewhere.test/1").await;
    assert_eq!(nowhere["verdict"], "noMatch", "{nowhere}");
    assert!(words(&nowhere, "pattern").contains("no resource"), "{nowhere}");
}

#[tokio::test]
async fn trouble_is_explained_from_the_first_failure_to_the_dead_letter() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(503)).await).await;
    let subscription = story
        .subscribe_simply(json!({"retry": {"quantity": 2, "interval": "1h", "maxInterval": "1h"}}))
        .await;
    let document = document_url(1);
    story.put(1, 1).await;
    story.until_status(&subscription, "it failed", |s| s["feed"]["waiting"] == 1).await;
    let waiting = explain(&story, &subscription, &document).await;
    assert_eq!(waiting["verdict"], "waiting");
    let attempts = words(&waiting, "attempt");
    assert!(attempts.contains("answered 503") && attempts.contains("due in"), "{waiting}");
    assert!(words(&waiting, "standing").contains("unknown"), "a create with a lost outcome: {waiting}");
    assert!(words(&waiting, "breaker").contains("failed in a row"), "{waiting}");

    story.command(&subscription, "pause").await.expect(200);
    let paused = explain(&story, &subscription, &document).await;
    assert_eq!(paused["verdict"], "paused");
    assert!(words(&paused, "pause").contains("resume"), "{paused}");
    story.command(&subscription, "resume").await.expect(200);

    let retry = json!({"delivery": {"retry": {"quantity": 1}}});
    story.api().patch(&subscription, &retry).await.expect(200);
    story.put(1, 2).await;
    let dead = until_verdict(&story, &subscription, &document, "gaveUp").await;
    let attempts = words(&dead, "attempt");
    assert!(attempts.contains("dead letter") && attempts.contains("answered 503"), "{dead}");

    story.receiver.answer(|_| Reply::Hang);
    story.put(1, 3).await;
    let open = until_verdict(&story, &subscription, &document, "inFlight").await;
    assert!(words(&open, "attempt").contains("in flight: create"), "{open}");
}

#[tokio::test]
async fn a_disabled_subscription_says_why() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(410)).await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    let disabled = until_verdict(&story, &subscription, &document_url(1), "disabled").await;
    assert!(words(&disabled, "pause").contains("410"), "{disabled}");
}

#[tokio::test]
async fn what_a_client_pulled_is_with_it_on_a_lease() {
    let story = Story::begin().await;
    let url = story.receiver.url("/told");
    let subscription = story.subscribe(json!({"endpoint": {"url": url}, "mode": "passive"})).await;
    story.put(1, 1).await;
    let waiting = until_verdict(&story, &subscription, &document_url(1), "waiting").await;
    assert!(words(&waiting, "standing").contains("yet to come to"), "{waiting}");
    let path = format!("{subscription}/reserve?wait=10s&lease=1h");
    let reserved = story.api().send("POST", &path, &[], "").await.expect(200).json();
    assert_eq!(reserved["messages"].as_array().unwrap().len(), 1, "{reserved}");
    let leased = explain(&story, &subscription, &document_url(1)).await;
    assert_eq!(leased["verdict"], "inFlight", "{leased}");
    assert!(words(&leased, "attempt").contains("on a lease that ends in"), "{leased}");
    let page = story.api().get(&format!("{subscription}/documents?lagging=true")).await.expect(200).json();
    assert!(page["documents"][0]["why"].as_str().unwrap().contains("lease"), "{page}");
}

#[tokio::test]
async fn odd_questions_are_refused_by_name() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let (document, id) = (document_url(1), id_of(&subscription));
    for (query, word) in [
        (String::new(), "document"),
        (format!("?document={document}"), "subscription"),
        (format!("?subscription={id}"), "document"),
        (format!("?document=&subscription={id}"), "document"),
        (format!("?document=nonsense&subscription={id}"), "document"),
        (format!("?document={document}&subscription={id}&x=1"), "`x`"),
        (format!("?document={document}&document={document}&subscription={id}"), "twice"),
    ] {
        story.api().get(&format!("/explain{query}")).await.refused(400, &[word]);
    }
    let unknown = format!("/explain?document={document}&subscription=sub_none");
    story.api().get(&unknown).await.refused(404, &["sub_none"]);
    story.api().post("/explain", &json!({})).await.refused(405, &["POST"]);
}
