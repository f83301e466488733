//! The last attempts of a subscription, and those that end now.

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Request, Setup, Story, Tail, document_url, until};

async fn attempts(story: &Story, subscription: &str, query: &str) -> Value {
    story.api().get(&format!("{subscription}/attempts{query}")).await.expect(200).json()
}

async fn detail(story: &Story, subscription: &str, attempt: &Value) -> Value {
    let id = attempt["id"].as_str().unwrap();
    story.api().get(&format!("{subscription}/attempts/{id}")).await.expect(200).json()
}

#[tokio::test]
async fn attempts_are_listed_newest_first_and_shown_whole_without_secrets() {
    let body = "no database ".repeat(200);
    let answer = move |request: &Request| match request.document().ends_with("/bad") {
        true => Reply::Full {
            status: 503,
            headers: vec![("set-cookie", "id=hunter2".into()), ("x-reason", "maintenance".into())],
            body: body.clone(),
        },
        false => Reply::Status(200),
    };
    let story = Story::told(Receiver::answering(answer).await).await;
    let url = story.receiver.url("/told/{id}?access_token=hunter2&page=1");
    let headers =
        json!({"Authorization": ["Basic hunter2"], "X-Api-Key": ["hunter2"], "X-Team": ["blue", "red"]});
    let subscription = story
        .subscribe(
            json!({"endpoint": {"url": url, "headers": headers}, "delivery": {"retry": {"interval": "1h"}}}),
        )
        .await;
    story.put("good", 7).await;
    story.settled(&subscription).await;
    story.put("bad", 1).await;
    story.until_status(&subscription, "one failed", |s| s["failed"] == 1).await;

    let list = attempts(&story, &subscription, "").await;
    assert_eq!(list["pagination"], json!({"limit": 30, "offset": 0, "total": 2}));
    let (bad, good) = (&list["attempts"][0], &list["attempts"][1]);
    assert_eq!(
        (&bad["document"], &good["document"]),
        (&document_url("bad").into(), &document_url("good").into())
    );
    assert_eq!(
        (&bad["outcome"], &bad["status"], &bad["attempt"]),
        (&"failed".into(), &503.into(), &1.into())
    );
    assert_eq!(
        (&good["outcome"], &good["revision"], &good["action"]),
        (&"delivered".into(), &7.into(), &"create".into())
    );
    let sent = story.receiver.requests();
    assert_eq!(good["webhookId"], sent[0].header("webhook-id"));
    assert_eq!(bad["webhookId"], sent[1].header("webhook-id"));
    for part in ["queued", "connect", "firstByte", "total"] {
        assert!(good["timing"][part].is_string(), "{part}: {good}");
    }
    assert_eq!(bad["timing"]["connect"], Value::Null, "the connection was there: {bad}");

    let whole = detail(&story, &subscription, bad).await;
    let request = &whole["request"];
    assert_eq!(request["method"], "POST");
    assert!(
        request["url"].as_str().unwrap().ends_with("/told/bad?access_token=[redacted]&page=1"),
        "{request}"
    );
    assert_eq!(request["headers"]["authorization"], json!(["[redacted]"]));
    assert_eq!(request["headers"]["x-api-key"], json!(["[redacted]"]));
    assert_eq!(request["headers"]["x-team"], json!(["blue", "red"]));
    assert_eq!(request["headers"]["flare-document"], json!([document_url("bad")]));
    assert!(request["body"].as_str().unwrap().contains("\"rev\":1"), "{request}");
    let response = &whole["response"];
    assert_eq!(
        (&response["status"], &response["headers"]["x-reason"]),
        (&503.into(), &json!(["maintenance"]))
    );
    assert_eq!(response["headers"]["set-cookie"], json!(["[redacted]"]));
    let excerpt = response["body"].as_str().unwrap();
    assert!(excerpt.starts_with("no database") && excerpt.len() <= 1000, "{}", excerpt.len());
    assert!(!whole.to_string().contains("hunter2"), "{whole}");
    let first = detail(&story, &subscription, good).await;
    assert!(first["request"]["headers"].is_object(), "the first success is kept whole: {first}");
}

#[tokio::test]
async fn they_are_found_by_document_and_outcome_and_within_bounds() {
    let setup = Setup::default()
        .with("FLARE_DELIVERY_ATTEMPTS_QUANTITY", "5")
        .with("FLARE_DELIVERY_ATTEMPTS_SAMPLE", "0");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({"discard": [409], "retry": {"interval": "1h"}})).await;
    for document in 0..8 {
        story.put(document, 1).await;
        story.settled(&subscription).await;
    }
    story.receiver.answer(|_| Reply::Status(409));
    story.put("dropped", 1).await;
    story.settled(&subscription).await;
    let list = attempts(&story, &subscription, "?limit=2&offset=1").await;
    assert_eq!(list["pagination"], json!({"limit": 2, "offset": 1, "total": 5}));
    assert_eq!(list["attempts"][0]["document"], document_url(7));
    let compact = detail(&story, &subscription, &list["attempts"][0]).await;
    assert_eq!(
        (&compact["request"]["headers"], &compact["request"]["method"]),
        (&Value::Null, &"POST".into())
    );
    let dropped = attempts(&story, &subscription, "?outcome=discarded").await;
    assert_eq!(
        (&dropped["pagination"]["total"], &dropped["attempts"][0]["status"]),
        (&1.into(), &409.into())
    );
    let one = attempts(&story, &subscription, &format!("?document={}", document_url(6))).await;
    assert_eq!(
        (&one["pagination"]["total"], &one["attempts"][0]["document"]),
        (&1.into(), &document_url(6).into())
    );
    for (query, word) in [("?outcome=lost", "outcome"), ("?document=x", "document"), ("?status=1", "status")]
    {
        story.api().get(&format!("{subscription}/attempts{query}")).await.refused(400, &[word]);
    }
    story.api().get(&format!("{subscription}/attempts/att_0_0_0")).await.refused(404, &["att_0_0_0"]);
    story.api().delete(&subscription).await.expect(204);
    story.api().get(&format!("{subscription}/attempts")).await.refused(404, &[]);
}

#[tokio::test]
async fn a_failure_without_an_answer_says_what_went_wrong() {
    let story = Story::told(Receiver::answering(|_| Reply::Reset).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"interval": "1h"}})).await;
    story.put(1, 1).await;
    story.until_status(&subscription, "one failed", |s| s["failed"] == 1).await;
    let list = attempts(&story, &subscription, "?outcome=failed").await;
    let attempt = &list["attempts"][0];
    assert!(attempt["error"].as_str().unwrap().contains("connection"), "{attempt}");
    let whole = detail(&story, &subscription, attempt).await;
    assert_eq!((&whole["response"], &whole["status"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn attempts_that_are_too_old_are_not_shown() {
    let clock = crate::trouble::clocks::Clock::new();
    let story = Story::with(clock.setup(), Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    assert_eq!(attempts(&story, &subscription, "").await["pagination"]["total"], 1);
    clock.jump(25 * 3_600_000);
    crate::trouble::clocks::noticed(&story, 25 * 3_600_000).await;
    assert_eq!(attempts(&story, &subscription, "").await["pagination"]["total"], 0);
}

#[tokio::test]
async fn several_threads_tell_of_one_subscription() {
    let setup = Setup::default().with("FLARE_DELIVERY_THREADS", "4");
    let answer =
        |request: &Request| Reply::Status(if request.document().contains("/bad") { 500 } else { 200 });
    let story = Story::with(setup, Receiver::answering(answer).await).await;
    let url = story.receiver.url("/told");
    let delivery = json!({"retry": {"interval": "1h", "maxInterval": "1h"}});
    let subscription =
        story.subscribe(json!({"endpoint": {"url": url}, "shards": 4, "delivery": delivery})).await;
    for document in 0..20 {
        story.put(document, 1).await;
        story.put(format!("bad{document}"), 1).await;
    }
    story.until_status(&subscription, "all were tried", |s| s["delivered"] == 20 && s["failed"] == 20).await;
    let list = attempts(&story, &subscription, "?limit=100").await;
    assert_eq!(list["pagination"]["total"], 40);
    let began: Vec<&str> =
        list["attempts"].as_array().unwrap().iter().map(|a| a["beganAt"].as_str().unwrap()).collect();
    assert!(began.is_sorted_by(|newer, older| newer >= older), "{began:?}");
    let id = subscription.rsplit('/').next().unwrap();
    for (document, verdict) in [("7", "delivered"), ("bad7", "waiting")] {
        let path = format!("/explain?document={}&subscription={id}", document_url(document));
        assert_eq!(story.api().get(&path).await.expect(200).json()["verdict"], verdict);
    }
    let mut lagging = std::collections::BTreeSet::new();
    for offset in (0..28).step_by(7) {
        let path = format!("{subscription}/documents?lagging=true&limit=7&offset={offset}");
        let page = story.api().get(&path).await.expect(200).json();
        assert_eq!(page["pagination"]["total"], 20);
        lagging.extend(page["documents"].as_array().unwrap().iter().map(|d| d["document"].to_string()));
    }
    assert_eq!(lagging.len(), 20);
    story.receiver.answer(|_| Reply::Status(200));
    let replay =
        story.api().post(&format!("{subscription}/replay"), &json!({"scope": "lagging"})).await.expect(202);
    assert_eq!(replay.json()["total"], 20);
    let done = until("the replay is through", || async {
        let progress = story.api().get(replay.header("location")).await.expect(200).json();
        (progress["state"] == "done").then_some(progress)
    })
    .await;
    assert_eq!(done["done"], 20);
    assert_eq!(story.settled(&subscription).await["delivered"], 40);
    let told = story.command(&subscription, "test").await.expect(200).json();
    assert_eq!(told["outcome"], "delivered");
}

#[tokio::test]
async fn attempts_are_told_live_to_those_who_watch() {
    let mut story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let id = subscription.rsplit('/').next().unwrap();
    let mut all = Tail::watch(&story.flare, "").await;
    let mut one =
        Tail::watch(&story.flare, &format!("?document={}&subscription={id}", document_url(2))).await;
    let mut none = Tail::watch(&story.flare, "?resource=res_none").await;
    story.put(1, 1).await;
    story.put(2, 5).await;
    let mut seen = [all.line().await.unwrap(), all.line().await.unwrap()];
    seen.sort_by_key(|line| line["document"].to_string());
    assert_eq!(
        (&seen[0]["document"], &seen[1]["document"]),
        (&document_url(1).into(), &document_url(2).into())
    );
    let heard = one.line().await.unwrap();
    assert_eq!(
        (&heard["document"], &heard["revision"], &heard["outcome"]),
        (&document_url(2).into(), &5.into(), &"delivered".into())
    );
    assert_eq!((&heard["subscription"], &heard["resource"]), (&id.into(), &story.resource.as_str().into()));
    story.api().get("/tail?subscriptions=x").await.refused(400, &["subscriptions"]);
    // Watching does not keep the node from stopping.
    assert!(story.flare.stop().await.success());
    assert_eq!((all.line().await, none.line().await), (None, None));
}

#[tokio::test]
async fn only_so_many_may_watch_and_leaving_makes_room() {
    let setup = Setup::default().with("FLARE_DELIVERY_ATTEMPTS_WATCHERS", "1");
    let flare = setup.start().await;
    let first = Tail::watch(&flare, "").await;
    flare.api().get("/tail").await.refused(429, &["delivery.attempts.watchers"]);
    drop(first);
    let addr = flare.addr();
    until("there is room", || async move {
        let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::get("/tail").header("host", "localhost");
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        sender.send_request(request).await.unwrap().status().is_success().then_some(())
    })
    .await;
}
