//! Health: what is known of how a client fares is dated, says why, and outlives the process.

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Request, Setup, Story, document_url, store_is_durable, until};

/// Documents of one word are taken, of another discarded, and the others not.
fn by_name(request: &Request) -> Reply {
    Reply::Status(match request.document().rsplit('/').next() {
        Some(name) if name.starts_with("good") => 200,
        Some(name) if name.starts_with("dropped") => 422,
        _ => 503,
    })
}

/// Nothing is tried again while a test looks.
fn once() -> Value {
    json!({"discard": [422], "retry": {"interval": "1h", "quantity": 10}})
}

/// What has to be the same whoever asks and whenever, while nothing happens.
fn health(status: &Value) -> Value {
    let fields =
        ["status", "since", "reason", "delivered", "discarded", "failed", "lastSuccessAt", "lastFailure"];
    let mut health: Value = fields
        .iter()
        .map(|field| (field.to_string(), status[field].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    // A node without a name of its own is called by its port, which is another one after a restart.
    if let Some(failure) = health["lastFailure"].as_object_mut() {
        failure.remove("node");
    }
    health
}

/// What is known is durable once the dead letters have been looked at.
async fn recorded(story: &Story, subscription: &str) {
    story.api().get(&format!("{subscription}/dead-letters")).await.expect(200);
}

async fn fails(story: &Story, subscription: &str, failed: u64) -> Value {
    story.until_status(subscription, "it has failed", |status| status["failed"] == failed).await
}

#[tokio::test]
async fn how_a_client_fares_is_the_same_after_a_kill_and_with_other_shards() {
    if !store_is_durable() {
        return;
    }
    for shards in [1, 3] {
        let setup = Setup::default().with("FLARE_DELIVERY_FAILING_AFTER", "0s");
        let mut story = Story::with(setup, Receiver::answering(by_name).await).await;
        let subscription = story
            .subscribe(json!({
                "endpoint": {"url": story.receiver.url("/told")}, "delivery": once(), "shards": shards,
            }))
            .await;
        for number in 0..6 {
            story.put(format!("good-{number}"), 1).await;
            story.put(format!("dropped-{number}"), 1).await;
        }
        story.settled(&subscription).await;
        for number in 0..3 {
            story.put(format!("bad-{number}"), 1).await;
        }
        let before = fails(&story, &subscription, 3).await;
        assert_eq!((&before["status"], &before["lastFailure"]["status"]), (&"failing".into(), &503.into()));
        assert_eq!((&before["delivered"], &before["discarded"]), (&6.into(), &6.into()));
        recorded(&story, &subscription).await;
        for _ in 0..2 {
            story.flare.restart().await;
            assert_eq!(health(&story.status(&subscription).await), health(&before));
        }
        for shards in [4, 1, 2] {
            story.api().patch(&subscription, &json!({"shards": shards})).await.expect(200);
            let same = |status: &Value| health(status) == health(&before);
            story.until_status(&subscription, "its lanes have moved", same).await;
        }
        story.receiver.answer(|_| Reply::Status(200));
        story.put("good-0", 2).await;
        let well = story.until_status(&subscription, "it is well", |s| s["status"] == "active").await;
        assert_eq!(well["since"], well["lastSuccessAt"], "{well}");
        recorded(&story, &subscription).await;
        story.flare.restart().await;
        assert_eq!(health(&story.status(&subscription).await), health(&well));
    }
}

#[tokio::test]
async fn a_client_that_never_succeeded_is_shown_so_from_its_first_failure() {
    let mut story = Story::told(Receiver::answering(by_name).await).await;
    let subscription = story.subscribe_simply(once()).await;
    assert_eq!(story.status(&subscription).await["status"], "active", "nothing was tried");
    story.put("bad", 1).await;
    let status = fails(&story, &subscription, 1).await;
    assert_eq!((&status["status"], &status["since"]), (&"failing".into(), &status["lastFailure"]["at"]));
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.contains("nothing has succeeded yet") && reason.contains("503"), "{status}");
    let shown = story.api().get(&subscription).await.expect(200).json();
    assert_eq!(
        [&shown["status"], &shown["since"], &shown["reason"]].map(Clone::clone),
        [status["status"].clone(), status["since"].clone(), status["reason"].clone()]
    );
    let id = subscription.rsplit('/').next().unwrap();
    let explain = format!("/explain?document={}&subscription={id}", document_url("bad"));
    let explained = story.api().get(&explain).await.expect(200).json();
    assert!(explained.to_string().contains("none has ever succeeded"), "{explained}");
    in_trouble(&story, "nothing has succeeded yet").await;
    if store_is_durable() {
        recorded(&story, &subscription).await;
        story.flare.restart().await;
        assert_eq!(health(&story.status(&subscription).await), health(&status));
        in_trouble(&story, "nothing has succeeded yet").await;
    }
    story.receiver.answer(|_| Reply::Status(200));
    story.put("good", 1).await;
    let well = story.until_status(&subscription, "it is well", |s| s["status"] == "active").await;
    assert!(well["since"].as_str() > status["since"].as_str(), "{well}");
}

#[tokio::test]
async fn since_moves_only_when_the_status_does() {
    let setup = Setup::default().with("FLARE_DELIVERY_FAILING_AFTER", "0s");
    let mut story = Story::with(setup, Receiver::answering(by_name).await).await;
    let subscription = story.subscribe_simply(once()).await;
    let created = story.api().get(&subscription).await.expect(200).json()["createdAt"].clone();
    for number in 0..3 {
        story.put(format!("good-{number}"), 1).await;
        let status = story.settled(&subscription).await;
        assert_eq!(
            (&status["status"], &status["since"]),
            (&"active".into(), &created),
            "a success moves nothing"
        );
    }
    story.put("bad", 1).await;
    let failing = story.until_status(&subscription, "it fails", |s| s["status"] == "failing").await;
    assert_eq!(failing["since"], failing["lastFailure"]["at"]);
    story.put("good-0", 2).await;
    let well = story.until_status(&subscription, "it is well", |s| s["status"] == "active").await;
    assert_eq!(well["since"], well["lastSuccessAt"]);
    story.put("good-0", 3).await;
    let later = story.until_status(&subscription, "it goes on", |s| s["delivered"] == 5).await;
    assert_eq!(later["since"], well["since"]);
    let paused = story.command(&subscription, "pause").await.expect(200).json();
    let again = story.command(&subscription, "pause").await.expect(200).json();
    assert_eq!((&paused["status"], &paused["since"]), (&"paused".into(), &again["since"]));
    let resumed = story.command(&subscription, "resume").await.expect(200).json();
    assert_eq!(resumed["status"], "active");
    assert!(resumed["since"].as_str() >= paused["since"].as_str(), "{resumed}");
    if store_is_durable() {
        recorded(&story, &subscription).await;
        story.flare.restart().await;
        assert_eq!(story.status(&subscription).await["since"], resumed["since"]);
    }
}

#[tokio::test]
async fn a_pause_says_by_whom_and_why() {
    let mut story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let pause = format!("{subscription}/pause");
    let shown = story.command(&subscription, "pause").await.expect(200).json();
    assert_eq!(shown["reason"], "paused through the API");
    let api = story.api();
    let shown = api.post(&pause, &json!({"reason": "their database moves"})).await.expect(200).json();
    assert_eq!(shown["reason"], "paused through the API: their database moves");
    let status = story.status(&subscription).await;
    assert_eq!((&status["reason"], &status["since"]), (&shown["reason"], &shown["since"]));
    story.command(&subscription, "pause").await.expect(200);
    assert_eq!(story.status(&subscription).await["reason"], shown["reason"], "a repeat takes no reason away");
    story.put(1, 1).await;
    let id = subscription.rsplit('/').next().unwrap();
    let explain = format!("/explain?document={}&subscription={id}", document_url(1));
    let explained = api.get(&explain).await.expect(200).json();
    assert!(explained.to_string().contains("paused through the API: their database moves"), "{explained}");
    api.post(&pause, &json!({"reasons": "no"})).await.refused(400, &["reasons"]);
    api.post(&pause, &json!({"reason": "x".repeat(501)})).await.refused(400, &["reason", "500"]);
    if store_is_durable() {
        story.flare.restart().await;
        assert_eq!(story.status(&subscription).await["reason"], shown["reason"]);
    }
    story.command(&subscription, "resume").await.expect(200);
    let (path, headers) = (format!("/ui/subscriptions/{id}/pause"), [("sec-fetch-site", "same-origin")]);
    story.api().send("POST", &path, &headers, "").await.expect(303);
    assert_eq!(story.status(&subscription).await["reason"], "paused in the web interface");
}

/// Waits until the dashboard lists a client in trouble with these words.
async fn in_trouble(story: &Story, words: &str) {
    until(&format!("the dashboard says: {words}"), || async {
        let page = story.api().get("/ui").await.expect(200).body;
        String::from_utf8_lossy(&page).contains(words).then_some(())
    })
    .await;
}

#[tokio::test]
async fn clients_with_dead_letters_or_errors_of_a_filter_are_in_trouble() {
    let mut story = Story::told(Receiver::answering(by_name).await).await;
    let url = |path: &str| json!({"url": story.receiver.url(path)});
    let letters =
        story.subscribe(json!({"endpoint": url("/letters"), "delivery": {"retry": {"quantity": 1}}})).await;
    story.put("good", 1).await;
    story.settled(&letters).await;
    story.put("bad", 1).await;
    story.until_status(&letters, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    in_trouble(&story, "1 dead letter").await;
    let errs = story.subscribe(json!({"endpoint": url("/errs"), "filter": "document.stock > 1"})).await;
    story.put("good", 2).await;
    story.until_status(&errs, "the filter has no result", |s| s["filter"]["errors"] == 1).await;
    in_trouble(&story, "an expression had no result (1 in all)").await;
    if store_is_durable() {
        recorded(&story, &letters).await;
        recorded(&story, &errs).await;
        story.flare.restart().await;
        in_trouble(&story, "1 dead letter").await;
        in_trouble(&story, "an expression had no result (1 in all)").await;
    }
    story.api().patch(&errs, &json!({"filter": "has(document.stock)"})).await.expect(200);
    story.api().delete(&format!("{letters}/dead-letters")).await.expect(204);
    until("nobody is in trouble", || async {
        let page = story.api().get("/ui").await.expect(200).body;
        String::from_utf8_lossy(&page).contains("None: no subscription is failing").then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_answer_whose_body_trickles_is_recorded_with_its_status() {
    let story = Story::told(Receiver::answering(|_| Reply::Trickle).await).await;
    let subscription = story.subscribe_simply(json!({"timeout": "300ms", "retry": {"quantity": 1}})).await;
    story.put(1, 1).await;
    let status = fails(&story, &subscription, 1).await;
    let error = "the body did not end within 300ms";
    assert_eq!(status["lastFailure"]["status"], 200, "{status}");
    assert_eq!(status["lastFailure"]["error"], error);
    let attempts = story.api().get(&format!("{subscription}/attempts")).await.expect(200).json();
    let attempt = &attempts["attempts"][0];
    assert_eq!((&attempt["status"], &attempt["error"]), (&200.into(), &error.into()), "{attempt}");
    assert_eq!(attempt["outcome"], "failed");
    let letters = story.api().get(&format!("{subscription}/dead-letters")).await.expect(200).json();
    let letter = &letters["deadLetters"][0];
    assert_eq!((&letter["status"], &letter["error"]), (&200.into(), &error.into()), "{letter}");
    let replay = json!({"scope": "deadLetters", "error": error});
    let begun = story.api().post(&format!("{subscription}/replay"), &replay).await.expect(202).json();
    assert_eq!(begun["total"], 1);
}

#[tokio::test]
async fn the_statuses_of_a_success_are_shown_when_they_are_the_default() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({"discard": [204]})).await;
    let shown = story.api().get(&subscription).await.expect(200).json();
    let expected: Vec<u16> = (200..300).filter(|status| *status != 204).collect();
    assert_eq!(shown["delivery"]["success"], json!(expected));
    // What is shown may be said.
    let delivery = json!({"delivery": {"success": shown["delivery"]["success"]}});
    story.api().patch(&subscription, &delivery).await.expect(200);
    story.api().patch(&subscription, &json!({"delivery": {"success": [201]}})).await.expect(200);
    let shown = story.api().get(&subscription).await.expect(200).json();
    assert_eq!(shown["delivery"]["success"], json!([201]));
}
