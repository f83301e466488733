//! `http.poll`: what an endpoint says changed becomes documents, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{page, poll_orders, until_status};
use crate::support::{Api, Flare, Receiver, Reply, Setup, store_is_durable, until};

fn not_modified() -> Reply {
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
async fn a_document_that_cannot_be_read_is_tried_so_often_and_then_a_dead_letter_that_can_be_replayed() {
    let setup = Setup::default().with("FLARE_DOMAIN_CONSUMER_TRIES", "2");
    let (flare, origin) = (setup.start().await, Receiver::start().await);
    origin.answer(|request| match request.header("if-none-match") == "\"1\"" {
        true => not_modified(),
        false => page(Some("\"1\""), &json!({"orders": [{"name": "x", "rev": 1}, {"id": "b", "rev": 1}]})),
    });
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({})).await;
    // What is stored is seen before it is counted.
    let given_up = |status: &Value| status["deadLetters"] == 1 && status["rejected"] == 2;
    let status = until_status(api, &path, "it is given up", given_up).await;
    assert_eq!(status["accepted"], 1, "{status}");
    assert_eq!(status["status"], "active", "it holds up nothing: {status}");
    let letters = format!("{path}/dead-letters");
    let listed = api.get(&letters).await.expect(200).json();
    let letter = &listed["deadLetters"][0];
    assert_eq!((&listed["pagination"]["total"], &letter["tries"]), (&json!(1), &json!(2)), "{listed}");
    assert!(letter["error"].as_str().expect("why").contains("\"id\""), "{letter}");
    assert_eq!(letter["excerpt"], r#"{"name":"x","rev":1}"#);

    let done = replayed(api, &path).await;
    assert_eq!((&done["total"], &done["done"], &done["stored"]), (&json!(1), &json!(1), &json!(0)), "{done}");
    assert_eq!(api.get(&letters).await.expect(200).json()["pagination"]["total"], 1, "it cannot be read yet");
    let shown = api.get(&path).await.expect(200).json();
    let draft = json!({"source": shown["source"], "payload": {"id": "name", "revision": {"field": "rev"}}});
    api.send("PUT", &path, &[], draft.to_string()).await.expect(200);
    let done = replayed(api, &path).await;
    assert_eq!((&done["done"], &done["stored"]), (&json!(1), &json!(1)), "now it can: {done}");
    assert_eq!(api.get(&letters).await.expect(200).json()["pagination"]["total"], 0);
    let listed = api.get(&format!("{path}/replays")).await.expect(200).json();
    assert_eq!((&listed["pagination"]["total"], &listed["replays"][1]), (&json!(2), &done), "{listed}");
    assert_eq!(replayed(api, &path).await["total"], 0, "there is nothing left");
    api.get(&format!("{path}/replays/rpl_9")).await.refused(404, &["rpl_9"]);
    api.post(&format!("{path}/replay"), &json!({"scope": "all"})).await.refused(400, &["scope"]);
    api.delete(&format!("{letters}?id=ltr_99")).await.refused(404, &["ltr_99"]);
    api.delete(&letters).await.expect(204);
}

/// Replays the dead letters of a consumer, and waits until that is done.
async fn replayed(api: Api, consumer: &str) -> Value {
    let begun = api.post(&format!("{consumer}/replay"), &json!({"scope": "deadLetters"})).await.expect(202);
    let (location, said) = (begun.header("location").to_owned(), begun.json());
    assert_eq!(location, format!("{consumer}/replays/{}", said["id"].as_str().expect("an id")));
    let keys: Vec<&String> = said.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["id", "total"], "as a replay of a subscription is answered: {said}");
    until("the replay is done", || async {
        let shown = api.get(&location).await.expect(200).json();
        assert_eq!((&shown["id"], &shown["total"]), (&said["id"], &said["total"]), "{shown}");
        assert!(["running", "done"].contains(&shown["state"].as_str().expect("a word")), "{shown}");
        (shown["state"] == "done").then_some(shown)
    })
    .await
}

#[tokio::test]
async fn a_replay_of_many_dead_letters_goes_on_after_a_kill() {
    if !store_is_durable() {
        return;
    }
    const LETTERS: usize = 5000;
    let setup = Setup::default().with("FLARE_DOMAIN_CONSUMER_TRIES", "1");
    let (mut flare, origin) = (setup.start().await, Receiver::start().await);
    origin.answer(|request| match request.header("if-none-match") == "\"1\"" {
        true => not_modified(),
        false => {
            let orders: Vec<Value> = (0..LETTERS).map(|n| json!({"name": n, "rev": 1})).collect();
            page(Some("\"1\""), &json!({"orders": orders}))
        }
    });
    let path = poll_orders(flare.api(), &origin, json!({"interval": "1h"}), json!({})).await;
    until_status(flare.api(), &path, "all are dead letters", |status| status["deadLetters"] == LETTERS).await;
    let shown = flare.api().get(&path).await.expect(200).json();
    let draft = json!({"source": shown["source"], "payload": {"id": "name", "revision": {"field": "rev"}}});
    flare.api().send("PUT", &path, &[], draft.to_string()).await.expect(200);
    let begun = flare.api().post(&format!("{path}/replay"), &json!({"scope": "deadLetters"})).await;
    let location = begun.expect(202).header("location").to_owned();
    flare.restart().await;
    until("it is done", || async {
        let shown = flare.api().get(&location).await.expect(200).json();
        (shown["state"] == "done").then(|| assert_eq!(shown["done"], LETTERS, "{shown}"))
    })
    .await;
    let status = flare.api().get(&format!("{path}/status")).await.expect(200).json();
    assert_eq!(status["deadLetters"], 0, "{status}");
    assert_eq!(flare.api().get("/status").await.expect(200).json()["documents"], LETTERS);
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
