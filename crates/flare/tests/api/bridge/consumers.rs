//! Consumers through the API: created, shown, replaced, paused, deleted; and what is refused, by name.

use serde_json::json;

use super::{page, poll_orders, until_status};
use crate::support::{Flare, OPERATOR, Receiver, Setup};

#[tokio::test]
async fn a_consumer_is_completed_shown_listed_replaced_and_deleted() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    origin.answer(|_| page(None, &json!({"orders": []})));
    let api = flare.api();
    let path =
        poll_orders(api, &origin, json!({"headers": {"Authorization": ["Bearer hidden"]}}), json!({})).await;
    let shown = api.get(&path).await.expect(200).json();
    let id = shown["id"].as_str().expect("an id");
    assert!(id.starts_with("con_") && path == format!("/consumers/{id}"), "{shown}");
    assert_eq!(shown["source"]["timeout"], "15s");
    assert_eq!(shown["source"]["headers"], json!({"Authorization": ["[redacted]"]}));
    assert_eq!(shown["payload"], json!({"format": "json", "id": "id", "revision": {"field": "rev"}}));
    for field in ["status", "since", "reason", "createdAt", "updatedAt"] {
        assert!(shown.get(field).is_some(), "{field} is missing: {shown}");
    }
    let listed = api.get("/consumers").await.expect(200).json();
    assert_eq!((&listed["pagination"]["total"], &listed["consumers"][0]["id"]), (&json!(1), &shown["id"]));
    assert_eq!(api.get("/resources").await.expect(200).json()["pagination"]["total"], 0);
    assert_eq!(api.get("/status").await.expect(200).json()["consumers"], 1);
    api.get(&format!("/resources/{id}")).await.refused(404, &[id]);

    // What was shown can be sent back, and the credential stays what it is.
    let draft = json!({"source": shown["source"], "payload": {"id": "name", "revision": {"field": "rev"}}});
    let put = api.send("PUT", &path, &[], draft.to_string()).await.expect(200).json();
    assert_eq!(put["payload"]["id"], "name");
    let before = origin.count();
    let requests = origin.wait_for(before + 1).await;
    assert_eq!(requests.last().expect("one").header("authorization"), "Bearer hidden");
    let other = json!({"source": {"type": "nats", "stream": "s"}, "payload": {"id": "id"}});
    api.send("PUT", &path, &[], other.to_string()).await.refused(400, &["source.type", "http.poll"]);

    api.delete(&path).await.expect(204);
    api.get(&path).await.refused(404, &[id]);
    api.delete(&path).await.expect(404);
}

#[tokio::test]
async fn what_is_wrong_with_a_consumer_is_named() {
    let flare = Flare::start().await;
    let api = flare.api();
    for (draft, words) in [
        (
            json!({"source": {"type": "aws.sqs", "queue": "q"}, "payload": {"id": "id"}}),
            vec!["aws.sqs is not in this build", "--features aws"],
        ),
        (
            json!({"source": {"type": "rabbitmq", "queue": "q"}, "payload": {"id": "id"}}),
            vec!["--features rabbitmq"],
        ),
        (
            json!({"source": {"type": "nats", "stream": "q"}, "payload": {"id": "id"}}),
            vec!["--features nats"],
        ),
        (json!({"source": {"type": "kafka"}}), vec!["source.type", "kafka", "rabbitmq"]),
        (json!({"source": {"type": "http.poll", "url": "http://h/a", "uri": 1}}), vec!["source", "uri"]),
        (json!({"source": {"type": "http.poll"}, "payload": {"id": "id"}}), vec!["source.url", "required"]),
        (json!({"source": {"type": "http.poll", "url": "http://h/a"}}), vec!["payload.id", "required"]),
        (json!({"payload": {"id": "id"}}), vec!["source"]),
        (
            json!({"source": {"type": "http.poll", "url": "http://h/a"}, "payload": {"format": "raw", "id": "x"}}),
            vec!["payload.id"],
        ),
    ] {
        api.post("/consumers", &draft).await.refused(400, &words);
    }
    api.get("/consumers/con_nobody").await.refused(404, &["con_nobody"]);
    api.get("/consumers/con_nobody/status").await.expect(404);
}

#[tokio::test]
async fn a_consumer_that_is_paused_asks_nothing_until_it_goes_on() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    origin.answer(|_| page(None, &json!({"orders": [{"id": "a", "rev": 1}]})));
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({})).await;
    until_status(api, &path, "it reads", |status| status["accepted"] == 1).await;
    for _ in 0..2 {
        let paused = api.post(&format!("{path}/pause"), &json!({})).await.expect(200).json();
        assert_eq!(paused["status"], "paused");
    }
    until_status(api, &path, "nobody reads", |status| status["node"].is_null()).await;
    let asked = origin.count();
    let other = poll_orders(api, &origin, json!({"url": origin.url("/other")}), json!({})).await;
    until_status(api, &other, "another one is read meanwhile", |status| status["received"] == json!(1)).await;
    let requests = origin.requests();
    assert!(
        requests[asked..].iter().all(|request| request.path == "/other"),
        "nothing is asked while paused"
    );
    let resumed = api.post(&format!("{path}/resume"), &json!({})).await.expect(200).json();
    assert_ne!(resumed["status"], "paused");
    let status = until_status(api, &path, "it reads again", |status| status["status"] == "active").await;
    assert_eq!(status["accepted"], 1, "what was counted is durable: {status}");
}

#[tokio::test]
async fn consumers_are_for_those_who_may_and_of_their_account() {
    let (flare, origin) = (Setup::default().guarded().start().await, Receiver::start().await);
    origin.answer(|_| page(None, &json!({"orders": []})));
    let operator = flare.api().with(OPERATOR);
    operator.post("/accounts", &json!({"name": "acme"})).await.expect(201);
    let path = poll_orders(operator, &origin, json!({}), json!({})).await;
    let token = json!({"name": "reader", "scopes": ["read"]});
    let token = operator.post("/tokens", &token).await.expect(201).json();
    let reader = flare.api().with(token["token"].as_str().expect("a token"));
    reader.get(&path).await.expect(200);
    reader.post(&format!("{path}/pause"), &json!({})).await.refused(403, &["admin"]);
    let acme = operator.acting_for("acme");
    acme.get(&path).await.expect(404);
    assert_eq!(acme.get("/consumers").await.expect(200).json()["pagination"]["total"], 0);
    operator.delete(&path).await.expect(204);
    let audit = operator.get("/audit").await.expect(200).json();
    let operations: Vec<_> =
        audit["events"].as_array().expect("events").iter().map(|event| &event["target"]).collect();
    assert!(operations.contains(&&json!(path)), "{audit}");
}
