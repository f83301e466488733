//! CloudEvents: the published library reads what is sent, in both modes.

use serde_json::{Value, json};

use crate::client::signatures::{assert_verified, subscribe};
use crate::support::{Request, Story, document_url, read_events};

/// Creates, updates and deletes a document of a subscription with this content, and returns the notifications.
async fn life(story: &Story, content: Value, data: Value) -> Vec<Request> {
    let (subscription, secret) = subscribe(story, json!({"content": content, "data": data})).await;
    for revision in [1, 2] {
        story.put("Ada%20%C3%A9", revision).await;
        story.settled(&subscription).await;
    }
    story.remove("Ada%20%C3%A9").await;
    let requests = story.receiver.wait_for(3).await;
    assert_verified(&requests, &secret);
    requests
}

/// Insists that these are the events of the life of a document.
#[track_caller]
fn assert_life(requests: &[Request], with_data: bool) {
    let Some(events) = read_events(requests) else { return };
    for ((event, request), action) in events.iter().zip(requests).zip(["create", "update", "delete"]) {
        let attributes = &event["attributes"];
        assert_eq!(attributes["specversion"], "1.0", "{event}");
        assert_eq!(attributes["id"], request.header("webhook-id"));
        assert_eq!(attributes["type"], format!("flare.document.{action}"));
        assert_eq!(attributes["source"], "http://origin.test/users/%7Bid%7D");
        assert_eq!(attributes["subject"], document_url("Ada%20%C3%A9"));
        assert_eq!(attributes["flarerevision"], request.header("flare-revision"));
        assert_eq!(attributes["flaresequence"], request.header("flare-sequence"));
        assert!(attributes["time"].as_str().is_some_and(|time| time.starts_with("20")), "{event}");
        let has_data = with_data && action != "delete";
        assert_eq!(event["data"].is_object(), has_data, "{event}");
        assert_eq!(attributes.get("datacontenttype").is_some(), has_data, "{event}");
        if has_data {
            assert_eq!(attributes["datacontenttype"], "application/json");
            assert_eq!(event["data"]["rev"].to_string(), request.header("flare-revision"));
        }
    }
}

#[tokio::test]
async fn a_structured_event_is_the_body() {
    let story = Story::begin().await;
    let requests = life(&story, json!({"format": "cloudevents"}), json!({})).await;
    assert!(requests.iter().all(|r| r.header("content-type") == "application/cloudevents+json"));
    assert_eq!(requests[0].json()["data"], json!({"rev": 1}));
    assert_life(&requests, true);
}

#[tokio::test]
async fn a_binary_event_is_in_the_headers_and_the_body_is_the_document() {
    let story = Story::begin().await;
    let requests = life(&story, json!({"format": "cloudevents", "mode": "binary"}), json!({})).await;
    assert_eq!(
        (requests[0].header("content-type"), requests[0].json()),
        ("application/json", json!({"rev": 1}))
    );
    assert_eq!((requests[2].header("content-type"), requests[2].body.len()), ("", 0));
    assert_eq!(
        requests[0].header("ce-source"),
        "http://origin.test/users/%257Bid%257D",
        "percent is encoded"
    );
    assert_life(&requests, true);
}

#[tokio::test]
async fn an_event_may_go_without_the_document() {
    for mode in ["structured", "binary"] {
        let story = Story::begin().await;
        let content = json!({"format": "cloudevents", "mode": mode, "document": false});
        assert_life(&life(&story, content, json!({})).await, false);
    }
}

#[tokio::test]
async fn data_becomes_attributes_of_the_event() {
    for mode in ["structured", "binary"] {
        let story = Story::begin().await;
        let data = json!({"tenant": "é \"{id}\" 100%", "shard": 7, "live": true});
        let requests = life(&story, json!({"format": "cloudevents", "mode": mode}), data).await;
        let Some(events) = read_events(&requests) else { return };
        let attributes = &events[0]["attributes"];
        assert_eq!(attributes["tenant"], "é \"Ada é\" 100%", "{mode}");
        assert_eq!(attributes["shard"], "7");
        assert_eq!(attributes["live"].as_str().map(str::to_lowercase), Some("true".into()));
    }
}

#[tokio::test]
async fn a_replayed_event_says_so() {
    let story = Story::begin().await;
    let (subscription, _) = subscribe(&story, json!({"content": {"format": "cloudevents"}})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    story.command(&subscription, "replay").await.expect(202);
    let requests = story.receiver.wait_for(2).await;
    assert_eq!(requests[1].json()["flarereplay"], requests[1].header("flare-replay"));
    assert_ne!(requests[0].json()["id"], requests[1].json()["id"]);
}

#[tokio::test]
async fn what_does_not_go_together_is_refused_by_field() {
    let story = Story::begin().await;
    let url = story.receiver.url("/told");
    let event = json!({"format": "cloudevents"});
    let headers = |name: &str| json!({"url": url, "headers": {name: ["x"]}});
    for (body, words) in [
        (json!({"content": {"mode": "binary"}}), ["content.mode", "cloudevents"]),
        (json!({"content": {"format": "xml"}}), ["content.format", "flare"]),
        (json!({"content": {"format": "cloudevents", "mode": "odd"}}), ["content.mode", "structured"]),
        (json!({"content": {"format": "cloudevents", "envelope": true}}), ["content.envelope", "null"]),
        (json!({"content": event, "data": {"Tenant": "x"}}), ["data.Tenant", "small letters"]),
        (json!({"content": event, "data": {"subject": "x"}}), ["data.subject", "another name"]),
        (json!({"content": event, "data": {"flarex": "x"}}), ["data.flarex", "another name"]),
        (json!({"content": event, "data": {"list": ["x"]}}), ["data.list", "list"]),
        (json!({"content": event, "data": {"big": 4294967296_i64}}), ["data.big", "32 bits"]),
        (json!({"content": event, "data": {"part": 1.5}}), ["data.part", "whole"]),
        (json!({"content": event, "endpoint": headers("Ce-Id")}), ["endpoint.headers.ce-id", "data"]),
        (
            json!({"content": event, "endpoint": headers("Content-Type")}),
            ["endpoint.headers.content-type", "Flare"],
        ),
    ] {
        let mut whole = json!({"endpoint": {"url": url}});
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        story.api().post(&story.subscriptions(), &whole).await.refused(400, &words);
    }
}

#[tokio::test]
async fn the_format_can_be_changed_and_is_shown() {
    let story = Story::begin().await;
    let (subscription, _) = subscribe(&story, json!({})).await;
    let shown = story.api().get(&subscription).await.expect(200).json();
    assert_eq!(shown["content"], json!({"envelope": true, "document": true}));
    let patch = json!({"content": {"format": "cloudevents", "mode": "binary"}});
    let shown = story.api().patch(&subscription, &patch).await.expect(200).json();
    assert_eq!(shown["content"], json!({"format": "cloudevents", "mode": "binary", "document": true}));
    story.put(1, 1).await;
    assert_eq!(story.receiver.wait_for(1).await[0].header("ce-type"), "flare.document.create");
}
