//! `http.poll`: what an endpoint says changed becomes documents, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{page, poll_orders, until_status};
use crate::support::{Flare, Receiver, Reply, store_is_durable, until};

pub fn not_modified() -> Reply {
    Reply::Status(304)
}

#[tokio::test]
async fn only_what_changed_is_fed_and_an_answer_that_did_not_change_costs_nothing() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    let changed = Arc::new(AtomicBool::new(false));
    let seen = changed.clone();
    origin.answer(move |request| {
        let (etag, orders) = match seen.load(Ordering::SeqCst) {
            false => ("\"one\"", json!([{"id": "a", "rev": 1}, {"id": "b", "rev": 1}])),
            true => ("\"two\"", json!([{"id": "a", "rev": 2}, {"id": "b", "rev": 1}])),
        };
        if request.header("if-none-match") == etag {
            not_modified()
        } else {
            page(Some(etag), &json!({"orders": orders}))
        }
    });
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({})).await;
    until_status(api, &path, "both are stored", |status| status["accepted"] == 2).await;
    let answered = |request: &crate::support::Request| request.header("if-none-match") == "\"one\"";
    until("it asks whether something has changed", || {
        std::future::ready(origin.requests().iter().any(answered).then_some(()))
    })
    .await;
    let status = api.get(&format!("{path}/status")).await.expect(200).json();
    assert_eq!((&status["received"], &status["status"]), (&json!(2), &json!("active")), "{status}");
    changed.store(true, Ordering::SeqCst);
    let status = until_status(api, &path, "the change is stored", |status| status["accepted"] == 3).await;
    assert_eq!(status["unchanged"], 1, "its revision says that nothing has changed: {status}");
    assert_eq!(
        status["units"][0]["unit"],
        format!("{}/0", path.trim_start_matches('/').replacen("consumers", "consumer", 1))
    );
    assert!(status["lag"].is_null() && status["lastMessageAt"].is_string());
}

#[tokio::test]
async fn without_a_revision_contents_are_compared() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    let changed = Arc::new(AtomicBool::new(false));
    let seen = changed.clone();
    origin.answer(move |_| {
        let total = if seen.load(Ordering::SeqCst) { 2 } else { 1 };
        page(None, &json!({"orders": [{"id": "a", "total": total}, {"id": "b", "total": 1}]}))
    });
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({"revision": null})).await;
    until_status(api, &path, "both are stored", |status| status["accepted"] == 2).await;
    let asked = origin.count();
    origin.wait_for(asked + 2).await;
    changed.store(true, Ordering::SeqCst);
    let status = until_status(api, &path, "the change is stored", |status| status["accepted"] == 3).await;
    assert_eq!(status["received"], 3, "what is as it was is not fed: {status}");
}

#[tokio::test]
async fn what_is_missing_from_a_whole_list_is_deleted_only_where_that_was_asked_for() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    let gone = Arc::new(AtomicBool::new(false));
    let seen = gone.clone();
    origin.answer(move |request| {
        // Two pages, of which the second has what goes.
        let last = if seen.load(Ordering::SeqCst) { json!([]) } else { json!([{"id": "b", "rev": 1}]) };
        match request.path.contains("page=2") {
            true => page(None, &json!({"orders": last})),
            false => {
                page(None, &json!({"orders": [{"id": "a", "rev": 1}], "links": {"next": "/orders?page=2"}}))
            }
        }
    });
    let api = flare.api();
    let keeps = poll_orders(api, &origin, json!({"next": "links.next"}), json!({})).await;
    let deletes = poll_orders(api, &origin, json!({"next": "links.next", "deletes": true}), json!({})).await;
    for path in [&keeps, &deletes] {
        until_status(api, path, "both pages are stored", |status| status["accepted"] == 2).await;
    }
    let documents = || async { api.get("/status").await.expect(200).json()["documents"].clone() };
    assert_eq!(documents().await, 4);
    gone.store(true, Ordering::SeqCst);
    until_status(api, &deletes, "the delete is stored", |status| status["accepted"] == 3).await;
    assert_eq!(documents().await, 3, "the other consumer keeps what it has");
}

#[tokio::test]
async fn an_endpoint_that_is_missing_disables_its_consumer_until_it_is_there() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    origin.answer(|_| Reply::Status(404));
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({})).await;
    let status = until_status(api, &path, "it says so", |status| status["status"] == "disabled").await;
    assert!(status["reason"].as_str().expect("why").contains("answered 404"), "{status}");
    assert!(status["lastFailure"]["error"].is_string());
    let target = origin.url("/elsewhere");
    origin.answer(move |_| Reply::Full {
        status: 302,
        headers: vec![("Location", target.clone())],
        body: String::new(),
    });
    until_status(api, &path, "redirects are not followed", |status| {
        status["reason"].as_str().is_some_and(|why| why.contains("redirects are not followed"))
    })
    .await;
    assert!(origin.requests().iter().all(|request| request.path == "/orders"));
    origin.answer(|_| Reply::Status(500));
    until_status(api, &path, "it fails", |status| status["status"] == "failing").await;
    origin.answer(|_| page(None, &json!({"orders": [{"id": "a", "rev": 1}]})));
    until_status(api, &path, "it is back", |status| {
        status["status"] == "active" && status["accepted"] == 1 && status["reason"].is_null()
    })
    .await;
}

#[tokio::test]
async fn how_far_it_was_read_outlives_a_kill() {
    if !store_is_durable() {
        return;
    }
    let (mut flare, origin) = (Flare::start().await, Receiver::start().await);
    origin.answer(|request| match request.header("if-none-match") == "\"1\"" {
        true => not_modified(),
        false => page(Some("\"1\""), &json!({"orders": [{"id": "a", "rev": 1}]})),
    });
    let path = poll_orders(flare.api(), &origin, json!({}), json!({})).await;
    until_status(flare.api(), &path, "it is stored with its etag", |status| {
        status["units"][0]["position"].as_str().is_some_and(|position| position.contains("etag"))
    })
    .await;
    flare.restart().await;
    let before = origin.count();
    let requests = origin.wait_for(before + 1).await;
    assert_eq!(requests[before].header("if-none-match"), "\"1\"", "the first question after the kill knows");
    let status = until_status(flare.api(), &path, "it reads", |status| status["status"] == "active").await;
    assert_eq!((&status["received"], &status["accepted"]), (&json!(1), &json!(1)), "{status}");
}

#[tokio::test]
async fn one_document_is_polled_without_a_list_and_an_etag_comes_with_its_host_only() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    origin.answer(|_| page(None, &json!({"id": "a", "rev": 7, "next": "http://127.0.0.1:1/x"})));
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({"items": null}), json!({})).await;
    until_status(api, &path, "it is stored", |status| status["accepted"] == 1).await;
    let elsewhere: Value = json!({"orders": [], "next": "http://127.0.0.1:1/x"});
    origin.answer(move |_| page(None, &elsewhere));
    let path = poll_orders(api, &origin, json!({"next": "next"}), json!({})).await;
    until_status(api, &path, "another host is not followed", |status| {
        status["reason"].as_str().is_some_and(|why| why.contains("another host"))
    })
    .await;
}

#[tokio::test]
async fn what_was_said_of_one_url_is_not_sent_to_another_and_what_is_read_otherwise_is_asked_for_anew() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    // Both lists are called "1", and are never the same.
    origin.answer(|request| match (request.path.as_str(), request.header("if-none-match") == "\"1\"") {
        (_, true) => not_modified(),
        ("/orders", _) => page(Some("\"1\""), &json!({"orders": [{"id": "a", "key": "x", "rev": 1}]})),
        _ => page(Some("\"1\""), &json!({"orders": [{"id": "b", "key": "y", "rev": 1}]})),
    });
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({})).await;
    until_status(api, &path, "the first is stored", |status| status["accepted"] == 1).await;
    let shown = api.get(&path).await.expect(200).json();
    let mut draft = json!({"source": shown["source"], "payload": shown["payload"]});
    draft["source"]["url"] = origin.url("/others").into();
    api.send("PUT", &path, &[], draft.to_string()).await.expect(200);
    until_status(api, &path, "that of the other url is stored", |status| status["accepted"] == 2).await;
    draft["payload"]["id"] = "key".into();
    api.send("PUT", &path, &[], draft.to_string()).await.expect(200);
    until_status(api, &path, "it is read anew", |status| status["accepted"] == 3).await;
}
