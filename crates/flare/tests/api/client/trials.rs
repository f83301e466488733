//! A test notification: sent now, marked, and nothing changes.

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Setup, Story, document_url};

async fn test(story: &Story, subscription: &str, body: Value) -> Value {
    story.api().post(&format!("{subscription}/test"), &body).await.expect(200).json()
}

#[tokio::test]
async fn a_sample_is_sent_marked_and_not_recorded_even_while_paused() {
    let story = Story::begin().await;
    let url = story.receiver.url("/told/{id}");
    let subscription =
        story.subscribe(json!({"endpoint": {"url": url, "headers": {"X-Token": ["hunter2"]}}})).await;
    story.command(&subscription, "pause").await.expect(200);
    let before = story.status(&subscription).await;
    for (answer, outcome) in [(200, "delivered"), (500, "failed")] {
        story.receiver.answer(move |_| Reply::Full { status: answer, headers: vec![], body: "so".into() });
        let told = story.command(&subscription, "test").await.expect(200).json();
        assert_eq!(
            (&told["outcome"], &told["response"]["status"]),
            (&outcome.into(), &answer.into()),
            "{told}"
        );
        assert_eq!((&told["response"]["body"], &told["error"]), (&"so".into(), &Value::Null));
        assert!(told["timing"]["total"].is_string() && told["timing"]["connect"].is_string(), "{told}");
        let sent = story.receiver.requests().pop().unwrap();
        assert_eq!((sent.header("flare-test"), sent.path.as_str()), ("true", "/told/sample"));
        assert_eq!((sent.action(), sent.document()), ("create", "http://origin.test/users/sample"));
        assert_eq!(told["webhookId"], sent.header("webhook-id"));
        assert_eq!(sent.json()["document"], json!({"rev": 1, "sample": true}));
        assert_eq!(sent.header("x-token"), "hunter2");
        assert!(sent.header("webhook-signature").starts_with("v1,"), "signed like any other: {sent:?}");
        assert_eq!(told["request"]["headers"]["webhook-signature"], json!(["[redacted]"]));
        assert!(!told.to_string().contains("hunter2"), "{told}");
    }
    let requests = story.receiver.requests();
    assert_ne!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    assert_eq!(story.status(&subscription).await, before, "nothing changed");
    let attempts = story.api().get(&format!("{subscription}/attempts")).await.expect(200).json();
    assert_eq!(attempts["pagination"]["total"], 0);
}

#[tokio::test]
async fn a_real_document_is_sent_as_it_would_be() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 7).await;
    story.put("gone", 1).await;
    story.settled(&subscription).await;
    story.remove("gone").await;
    story.settled(&subscription).await;
    let live = story.receiver.count();
    for (body, action, revision) in [
        (json!({"document": document_url(1)}), "update", 7),
        (json!({"document": document_url(1), "action": "create"}), "create", 7),
        (json!({"document": document_url("gone")}), "delete", 1),
        (json!({"action": "delete"}), "delete", 1),
    ] {
        let told = test(&story, &subscription, body).await;
        assert_eq!((&told["outcome"], &told["action"]), (&"delivered".into(), &action.into()), "{told}");
        let sent = story.receiver.requests().pop().unwrap();
        assert_eq!((sent.action(), sent.revision(), sent.header("flare-test")), (action, revision, "true"));
    }
    assert_eq!(story.receiver.count(), live + 4);
    let status = story.settled(&subscription).await;
    assert_eq!((&status["delivered"], &status["feed"]["held"]), (&3.into(), &1.into()));
}

#[tokio::test]
async fn a_test_that_gets_no_answer_says_why() {
    let story = Story::told(Receiver::answering(|_| Reply::Hang).await).await;
    let subscription = story.subscribe_simply(json!({"timeout": "100ms"})).await;
    let told = test(&story, &subscription, json!({})).await;
    assert_eq!((&told["outcome"], &told["response"]), (&"failed".into(), &Value::Null));
    assert!(told["error"].as_str().unwrap().contains("100ms"), "{told}");
    let status = story.status(&subscription).await;
    assert_eq!((&status["failed"], &status["lastFailure"]), (&0.into(), &Value::Null));
}

#[tokio::test]
async fn a_test_goes_only_where_notifications_may_go() {
    let setup = Setup::default().with("FLARE_NETWORK_DENY", "127.0.0.0/8,::1/128");
    let story = Story::with(setup, Receiver::start().await).await;
    let url = format!("http://localhost:{}/told", story.receiver.addr().port());
    let subscription = story.subscribe(json!({"endpoint": {"url": url}})).await;
    let told = test(&story, &subscription, json!({})).await;
    assert_eq!(told["outcome"], "failed");
    assert!(told["error"].as_str().unwrap().contains("refused"), "{told}");
    assert_eq!(story.receiver.count(), 0);
}

#[tokio::test]
async fn wrong_tests_are_refused() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put("gone", 1).await;
    story.remove("gone").await;
    for (body, word) in [
        (json!({"doc": 1}), "doc"),
        (json!({"document": "nonsense"}), "document"),
        (json!({"document": document_url("unknown")}), "document"),
        (json!({"document": "http://elsewhere.test/1"}), "document"),
        (json!({"action": "shout"}), "action"),
        (json!({"document": document_url("gone"), "action": "update"}), "action"),
    ] {
        story.api().post(&format!("{subscription}/test"), &body).await.refused(400, &[word]);
    }
    story
        .api()
        .post(&format!("{}/none/test", story.subscriptions()), &json!({}))
        .await
        .refused(404, &["none"]);
}

#[tokio::test]
async fn no_more_tests_are_under_way_than_configured() {
    let setup = Setup::default().with("FLARE_DELIVERY_TESTS", "1");
    let story = Story::with(setup, Receiver::answering(|_| Reply::Hang).await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    let (api, path) = (story.api(), format!("{subscription}/test"));
    let first = tokio::spawn(async move { api.try_send("POST", &path, &[], "").await.is_ok() });
    story.receiver.wait_for(1).await;
    story.command(&subscription, "test").await.refused(429, &["delivery.tests"]);
    first.abort();
}
