//! Endpoints that mean no good, or no longer know what they say: nothing of it is fed, nothing stands still for good, and Flare
//! goes nowhere that it was not sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{page, poll_orders, until_status};
use crate::support::{Api, Flare, Receiver, Reply, Setup, until};

fn body(text: &str) -> Reply {
    Reply::Full { status: 200, headers: Vec::new(), body: text.to_owned() }
}

/// Waits until a consumer fails for a reason with these words.
async fn until_fails(api: Api, consumer: &str, words: &str) -> Value {
    until_status(api, consumer, words, |status| {
        status["status"] == "failing" && status["reason"].as_str().is_some_and(|why| why.contains(words))
    })
    .await
}

#[tokio::test]
async fn what_is_no_list_of_documents_is_named_feeds_and_deletes_nothing_and_is_asked_again() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    let good = json!({"orders": [{"id": "a", "rev": 1}, {"id": "b", "rev": 1}]});
    let first = good.clone();
    origin.answer(move |_| page(None, &first));
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({"deletes": true}), json!({})).await;
    until_status(api, &path, "both are stored", |status| status["accepted"] == 2).await;
    for (answer, words) in [
        ("{\"orders\": [", "the answer"),
        ("<html>down for maintenance</html>", "the answer"),
        ("", "the answer"),
        ("{}", "orders is missing"),
        ("{\"orders\": null}", "no list"),
        ("{\"orders\": {\"a\": 1}}", "no list"),
    ] {
        origin.answer(move |_| body(answer));
        until_fails(api, &path, words).await;
        let good = good.clone();
        origin.answer(move |_| page(None, &good));
        until_status(api, &path, "it is back", |status| status["status"] == "active").await;
    }
    let newer = json!({"orders": [{"id": "a", "rev": 2}, {"id": "b", "rev": 1}]});
    origin.answer(move |_| page(None, &newer));
    let status = until_status(api, &path, "it is back", |status| status["accepted"] == 3).await;
    assert_eq!((&status["deadLetters"], &status["status"]), (&json!(0), &json!("active")), "{status}");
    assert_eq!(api.get("/status").await.expect(200).json()["documents"], 2, "nothing was deleted");
}

#[tokio::test]
async fn an_endpoint_that_asks_for_time_has_it() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    let asked = AtomicUsize::new(0);
    origin.answer(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::Full { status: 429, headers: vec![("Retry-After", "3".into())], body: String::new() },
        _ => page(None, &json!({"orders": [{"id": "a", "rev": 1}]})),
    });
    let path = poll_orders(flare.api(), &origin, json!({}), json!({})).await;
    until_fails(flare.api(), &path, "429").await;
    until_status(flare.api(), &path, "it is stored", |status| status["accepted"] == 1).await;
    let requests = origin.requests();
    let waited = requests[1].at - requests[0].at;
    assert!(waited >= Duration::from_millis(2900), "{waited:?}");
}

#[tokio::test]
async fn pages_that_go_in_a_circle_or_to_another_host_are_not_followed_and_no_part_is_taken_for_the_whole() {
    let (flare, origin, elsewhere) = (Flare::start().await, Receiver::start().await, Receiver::start().await);
    let next = Arc::new(Mutex::new(String::new()));
    let said = next.clone();
    origin.answer(move |request| match request.path.contains("page=2") {
        true => page(None, &json!({"orders": [{"id": "b", "rev": 1}], "next": *said.lock().expect("whole")})),
        false => page(None, &json!({"orders": [{"id": "a", "rev": 1}], "next": "/orders?page=2"})),
    });
    let api = flare.api();
    let more = json!({"next": "next", "deletes": true, "headers": {"Authorization": ["Bearer kept"]}});
    let path = poll_orders(api, &origin, more, json!({})).await;
    until_status(api, &path, "both pages are stored", |status| status["accepted"] == 2).await;
    let port = origin.url("/x").rsplit_once(':').expect("a port").1.to_owned();
    for (wrong, words) in [
        ("/orders".to_owned(), "circle"),
        ("/orders?page=2".to_owned(), "circle"),
        (elsewhere.url("/orders"), "another host"),
        (format!("https://127.0.0.1:{port}"), "another host"),
        ("//evil.test/orders".to_owned(), "next page"),
        ("http://127.0.0.1@evil.test/x".to_owned(), "next page"),
        ("file:///etc/passwd".to_owned(), "next page"),
    ] {
        *next.lock().expect("whole") = wrong;
        until_fails(api, &path, words).await;
        next.lock().expect("whole").clear();
        until_status(api, &path, "it is back", |status| status["status"] == "active").await;
    }
    assert_eq!(api.get("/status").await.expect(200).json()["documents"], 2, "nothing was deleted");
    assert_eq!(elsewhere.count(), 0, "nobody else was asked, with or without credentials");
}

#[tokio::test]
async fn a_list_with_a_next_page_for_ever_ends_with_a_reason() {
    let (flare, origin) = (Flare::start().await, Receiver::start().await);
    let pages = AtomicUsize::new(0);
    origin.answer(move |_| {
        let number = pages.fetch_add(1, Ordering::SeqCst);
        page(None, &json!({"orders": [{"id": number, "rev": 1}], "next": format!("/orders?page={number}")}))
    });
    let path = poll_orders(flare.api(), &origin, json!({"next": "next"}), json!({})).await;
    let status = until_fails(flare.api(), &path, "more than 100 pages").await;
    assert_eq!(status["received"], 0, "no part of it is taken for the whole: {status}");
}

#[tokio::test]
async fn bodies_without_end_cost_a_bounded_time_and_memory_and_hold_up_no_other() {
    let (flare, origin, other) = (Flare::start().await, Receiver::start().await, Receiver::start().await);
    let api = flare.api();
    let rev = AtomicUsize::new(0);
    other.answer(move |_| {
        page(None, &json!({"orders": [{"id": "a", "rev": rev.fetch_add(1, Ordering::SeqCst)}]}))
    });
    let fine = poll_orders(api, &other, json!({}), json!({})).await;
    let before = flare.resident_bytes();
    for reply in [Reply::Flood, Reply::Trickle, Reply::Hang] {
        origin.answer(move |_| reply.clone());
        let hostile = poll_orders(api, &origin, json!({"timeout": "2s"}), json!({})).await;
        until_fails(api, &hostile, "").await;
        let status = api.get(&format!("{fine}/status")).await.expect(200).json();
        let accepted = status["accepted"].as_u64().expect("a number");
        until_status(api, &fine, "the other goes on", |status| {
            status["accepted"].as_u64().is_some_and(|now| now > accepted)
        })
        .await;
        api.post(&format!("{hostile}/pause"), &json!({})).await.expect(200);
    }
    let grown = flare.resident_bytes().saturating_sub(before);
    assert!(grown < 256 << 20, "{grown} bytes");
    let asked = Instant::now();
    api.delete(&fine).await.expect(204);
    assert!(asked.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn where_the_api_listens_elsewhere_no_endpoint_on_this_machine_is_polled() {
    let (flare, secret) = (Setup::default().listening_everywhere().start().await, Receiver::start().await);
    let api = flare.api();
    let draft = |url: &str| json!({"source": {"type": "http.poll", "url": url, "interval": "1s"}, "payload": {"id": "id"}});
    for url in [
        secret.url("/secret"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[::1]:1/".to_owned(),
        "http://2130706433/".to_owned(),
        "http://0x7f.1/".to_owned(),
        "http://10.1/".to_owned(),
    ] {
        api.post("/consumers", &draft(&url)).await.refused(400, &["source.url", "not allowed"]);
    }
    // A name is judged by the address that it has.
    let port = secret.url("").rsplit_once(':').expect("a port").1.trim_end_matches('/').to_owned();
    let created =
        api.post("/consumers", &draft(&format!("http://localhost:{port}/secret"))).await.expect(201);
    let path = created.header("location").to_owned();
    until("it is refused when it is dialled", || async {
        let status = api.get(&format!("{path}/status")).await.expect(200).json();
        let why = status["reason"].as_str().unwrap_or_default().to_owned();
        (status["status"] != "active" && why.contains("not allowed")).then_some(())
    })
    .await;
    let other =
        json!({"source": {"type": "http.poll", "url": secret.url("/secret")}, "payload": {"id": "id"}});
    api.send("PUT", &path, &[], other.to_string()).await.refused(400, &["source.url", "not allowed"]);
    assert_eq!(secret.count(), 0);
}

#[tokio::test]
async fn one_who_says_more_and_more_that_cannot_be_read_does_not_fill_the_store() {
    let setup = Setup::default().with("FLARE_DOMAIN_CONSUMER_TRIES", "1");
    let (flare, origin) = (setup.start().await, Receiver::start().await);
    let wrong: Vec<Value> = (0..3000).map(|number| json!({"name": number})).collect();
    let all = [&wrong[..], &[json!({"id": "a", "rev": 1})]].concat();
    origin.answer(move |_| page(None, &json!({ "orders": all })));
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({})).await;
    until_status(api, &path, "some are dead letters", |status| status["deadLetters"] == 1024).await;
    let asked = origin.count();
    origin.wait_for(asked + 3).await;
    let status = api.get(&format!("{path}/status")).await.expect(200).json();
    assert_eq!((&status["deadLetters"], &status["accepted"]), (&json!(1024), &json!(1)), "{status}");
    assert_eq!(status["status"], "active", "{status}");
    let why = status["lastFailure"]["error"].as_str().expect("it says so");
    assert!(why.contains("1976 documents"), "{status}");
    origin.answer(|_| page(None, &json!({"orders": [{"id": "a", "rev": 2}, {"name": "other"}]})));
    until_status(api, &path, "there is room for others", |status| status["deadLetters"] == 1025).await;
}
