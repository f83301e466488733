//! Producers: what a consumer reads is passed on, by the rules of subscriptions.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use super::{page, poll_orders, until_status};
use crate::support::{Api, Flare, Receiver, until};

/// An endpoint whose two orders have the revision that it is set to, and the consumer that polls it.
struct Orders {
    flare: Flare,
    _origin: Receiver,
    target: Receiver,
    revision: Arc<AtomicI64>,
    consumer: String,
}

impl Orders {
    async fn begin() -> Orders {
        let (flare, origin, target) =
            (Flare::start().await, Receiver::start().await, Receiver::start().await);
        let revision = Arc::new(AtomicI64::new(1));
        let now = revision.clone();
        origin.answer(move |_| {
            let rev = now.load(Ordering::SeqCst);
            page(None, &json!({"orders": [{"id": "a/1", "rev": rev, "total": 5}, {"id": "b", "rev": rev, "total": 0}]}))
        });
        let consumer = poll_orders(flare.api(), &origin, json!({}), json!({})).await;
        Orders { flare, _origin: origin, target, revision, consumer }
    }

    fn api(&self) -> Api {
        self.flare.api()
    }

    fn producers(&self) -> String {
        format!("{}/producers", self.consumer)
    }

    /// A producer over HTTP, with more of it.
    async fn produce(&self, more: Value) -> String {
        let mut draft = json!({"target": {"type": "http", "url": self.target.url("/told/{id}/{revision}")}, "start": "beginning"});
        draft.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.api().post(&self.producers(), &draft).await.expect(201).header("location").to_owned()
    }

    /// Every order has the next revision, and it is stored.
    async fn change(&self) {
        let before = self.api().get(&format!("{}/status", self.consumer)).await.expect(200).json();
        let accepted = before["accepted"].as_u64().expect("a number");
        self.revision.fetch_add(1, Ordering::SeqCst);
        until_status(self.api(), &self.consumer, "the change is stored", |status| {
            status["accepted"] == accepted + 2
        })
        .await;
    }

    async fn until(&self, producer: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        until_status(self.api(), producer, what, holds).await
    }
}

#[tokio::test]
async fn what_a_consumer_reads_reaches_the_target_as_a_subscription_would_tell_it() {
    let orders = Orders::begin().await;
    let api = orders.api();
    let producer = orders
        .produce(json!({"metadata": {"service": "orders", "name": "{id}"}, "filter": "document.total > 0"}))
        .await;
    let told = orders.target.wait_for(1).await.remove(0);
    assert_eq!((told.path.as_str(), told.action(), told.document()), ("/told/a%2F1/1", "create", "a/1"));
    let body = told.json();
    assert_eq!((&body["id"], &body["document"]["total"]), (&json!("a/1"), &json!(5)), "{body}");
    assert_eq!(body["data"], json!({"service": "orders", "name": "a/1"}));
    assert!(told.header("webhook-signature").starts_with("v1,"));
    orders.change().await;
    let update = orders.target.wait_for(2).await.remove(1);
    assert_eq!((update.action(), update.revision()), ("update", 2));
    let status = orders.until(&producer, "it is settled", |status| status["feed"]["lagging"] == 0).await;
    assert_eq!((&status["delivered"], &status["feed"]["held"]), (&json!(2), &json!(1)), "{status}");

    let listed = api.get(&orders.producers()).await.expect(200).json();
    let one = &listed["producers"][0];
    assert_eq!(
        (&listed["pagination"]["total"], &one["target"]["type"]),
        (&json!(1), &json!("http")),
        "{listed}"
    );
    assert!(one["id"].as_str().expect("an id").starts_with("prd_") && one.get("endpoint").is_none());
    assert_eq!(one["consumer"], orders.consumer.trim_start_matches("/consumers/"));
    let explained = format!("/explain?document=a%2F1&subscription={}", one["id"].as_str().expect("an id"));
    assert_eq!(api.get(&explained).await.expect(200).json()["verdict"], "delivered");
    let drift = api.get(&format!("{producer}/documents")).await.expect(200).json();
    assert!(
        drift["documents"].as_array().expect("a list").iter().any(|one| one["document"] == "a/1"),
        "{drift}"
    );
    let attempts = api.get(&format!("{producer}/attempts?document=a%2F1")).await.expect(200).json();
    assert_eq!(attempts["pagination"]["total"], 2, "{attempts}");
}

#[tokio::test]
async fn a_producer_is_shown_changed_and_deleted_under_its_consumer_alone() {
    let orders = Orders::begin().await;
    let api = orders.api();
    let producer = orders.produce(json!({"ttl": "24h"})).await;
    let shown = api.get(&producer).await.expect(200).json();
    assert_eq!(
        (&shown["ttl"], &shown["status"], &shown["target"]["method"]),
        (&json!("24h"), &json!("active"), &json!("POST"))
    );
    assert!(shown.get("secret").is_none() && shown["target"]["success"].is_array(), "{shown}");
    let changed = api.patch(&producer, &json!({"metadata": {"a": 1}, "ttl": null})).await.expect(200).json();
    assert_eq!((&changed["metadata"], changed.get("ttl")), (&json!({"a": 1}), None), "{changed}");
    let target = json!({"type": "http", "url": orders.target.url("/other"), "headers": {"Authorization": ["secret-7"]}});
    let put = |body: Value| {
        let path = producer.clone();
        async move { api.send("PUT", &path, &[], body.to_string()).await }
    };
    let replaced = put(json!({"target": target})).await.expect(200).json();
    assert_eq!(replaced["target"]["headers"]["Authorization"], json!(["[redacted]"]), "{replaced}");
    assert!(replaced.get("metadata").is_none() && replaced["start"] == "beginning", "{replaced}");
    put(json!({"target": replaced["target"]})).await.expect(200);
    put(json!({"target": target, "start": "now"})).await.refused(400, &["start"]);
    for (command, state) in [("pause", "paused"), ("resume", "active")] {
        let answer = api.send("POST", &format!("{producer}/{command}"), &[], "").await.expect(200).json();
        assert_eq!(
            (&answer["status"], &answer["target"]["type"]),
            (&json!(state), &json!("http")),
            "{answer}"
        );
    }
    let (consumer, id) =
        producer.trim_start_matches("/consumers/").split_once("/producers/").expect("both ids");
    for elsewhere in [
        format!("/resources/{consumer}/subscriptions/{id}"),
        format!("/resources/{consumer}/subscriptions/{id}/status"),
        format!("/resources/{consumer}/subscriptions"),
        format!("/subscriptions/{id}"),
        "/consumers/con_none/producers".to_owned(),
        format!("{}/prd_none", orders.producers()),
    ] {
        api.get(&elsewhere).await.refused(404, &[]);
    }
    assert_eq!(api.get("/subscriptions").await.expect(200).json()["pagination"]["total"], 0);
    api.delete(&orders.consumer).await.refused(409, &["producer"]);
    api.delete(&producer).await.expect(204);
    api.get(&producer).await.refused(404, &["prd_"]);
    api.delete(&orders.consumer).await.expect(204);
}

#[tokio::test]
async fn every_mistake_is_named_in_the_words_of_producers() {
    let orders = Orders::begin().await;
    let url = orders.target.url("/told");
    let http = json!({"type": "http", "url": url});
    for (draft, words) in [
        (json!({}), vec!["target", "required"]),
        (json!({"endpoint": {"url": url}}), vec!["endpoint"]),
        (json!({"target": {"url": url}}), vec!["type"]),
        (json!({"target": {"type": "kafka"}}), vec!["kafka"]),
        (json!({"target": {"type": "http", "url": url, "topic": "x"}}), vec!["topic"]),
        (
            json!({"target": {"type": "http", "url": orders.target.url("/{name}")}}),
            vec!["target.url", "name"],
        ),
        (json!({"target": {"type": "http", "url": url, "success": []}}), vec!["target.success"]),
        (json!({"target": http, "delivery": {"success": [200]}}), vec!["success"]),
        (json!({"target": http, "data": {}}), vec!["data"]),
        (json!({"target": http, "metadata": {"a": "{nothing}"}}), vec!["metadata.a"]),
        (json!({"target": http, "ttl": "169h"}), vec!["ttl", "domain.maximum-ttl"]),
        (json!({"target": http, "ttl": "0s"}), vec!["ttl"]),
        (json!({"target": {"type": "rabbitmq"}}), vec!["target.exchange"]),
        (json!({"target": {"type": "nats", "subject": "a.>"}}), vec!["target.subject"]),
        (
            json!({"target": {"type": "aws.kinesis", "stream": "s"}, "content": {"envelope": false}}),
            vec!["content.envelope"],
        ),
        (json!({"target": http, "shards": 300}), vec!["shards"]),
    ] {
        orders.api().post(&orders.producers(), &draft).await.refused(400, &words);
    }
    orders.api().post(&orders.producers(), &json!({"target": http})).await.expect(201);
    orders
        .api()
        .post(&orders.producers(), &json!({"target": http}))
        .await
        .refused(409, &["producer", "prd_"]);
}

#[tokio::test]
async fn what_is_older_than_its_time_to_live_is_a_dead_letter_until_somebody_asks_for_it() {
    let orders = Orders::begin().await;
    let api = orders.api();
    until_status(api, &orders.consumer, "both are stored", |status| status["accepted"] == 2).await;
    let producer = orders.produce(json!({"ttl": "1ms", "start": "now"})).await;
    api.post(&format!("{producer}/pause"), &json!({})).await.expect(200);
    orders.change().await;
    api.send("POST", &format!("{producer}/resume"), &[], "").await.expect(200);
    orders.until(&producer, "both are given up", |status| status["feed"]["deadLetters"] == 2).await;
    let letters = api.get(&format!("{producer}/dead-letters")).await.expect(200).json();
    let letter = &letters["deadLetters"][0];
    assert_eq!((&letter["error"], &letter["attempts"]), (&json!("ttl"), &json!(0)), "{letters}");
    assert_eq!(orders.target.count(), 0, "nothing was sent");
    let replay = json!({"scope": "deadLetters", "document": "b"});
    let begun = api.post(&format!("{producer}/replay"), &replay).await;
    let location = begun.expect(202).header("location").to_owned();
    assert!(location.starts_with(&producer), "{location}");
    assert_eq!(orders.target.wait_for(1).await[0].document(), "b");
}

#[tokio::test]
async fn a_passive_producer_is_asked_for_what_it_would_send() {
    let orders = Orders::begin().await;
    let api = orders.api();
    let producer = orders.produce(json!({"mode": "passive"})).await;
    let reserved = until("there is something", || async {
        let path = format!("{producer}/reserve?quantity=2&wait=1s&lease=30s");
        let messages = api.send("POST", &path, &[], "").await.expect(200).json();
        (messages["messages"].as_array().map_or(0, Vec::len) > 0).then_some(messages)
    })
    .await;
    let message = &reserved["messages"][0];
    assert!(["a/1", "b"].contains(&message["document"].as_str().expect("a name")), "{message}");
    let settle = json!({"messages": [{"lease": message["lease"], "status": "success"}]});
    let settled = api.post(&format!("{producer}/settle"), &settle).await.expect(200).json();
    assert_eq!(settled["messages"][0]["outcome"], "settled", "{settled}");
    orders.until(&producer, "it counts", |status| status["delivered"] == 1).await;
}
