//! Quotas: what is above them is refused by name, and what is below is not.

use serde_json::json;

use super::{id, tenant};
use crate::bridge::{page, poll_orders, until_status};
use crate::support::{Api, Flare, Receiver, Setup, document_url, minimal_resource};

/// An endpoint that has so many orders.
async fn orders(quantity: u32) -> Receiver {
    let origin = Receiver::start().await;
    origin.answer(move |_| {
        let all: Vec<_> = (0..quantity).map(|number| json!({"id": format!("o{number}"), "rev": 1})).collect();
        page(None, &json!({"orders": all}))
    });
    origin
}

async fn with_quotas(quotas: serde_json::Value) -> (Flare, Api) {
    let flare = Setup::default().guarded().start().await;
    flare.operator().post("/accounts", &json!({"name": "acme", "quotas": quotas})).await.expect(201);
    let acme = flare.api().with(&tenant(flare.operator().acting_for("acme")).await);
    (flare, acme)
}

#[tokio::test]
async fn resources_and_subscriptions_are_counted() {
    let (flare, acme) = with_quotas(json!({"resources": 1, "subscriptions": 2})).await;
    let resource = id(acme, "/resources", &minimal_resource()).await;
    let more = json!({"endpoint": "http://origin.test/more/{id}", "change": {"field": "rev"}});
    acme.post("/resources", &more).await.refused(403, &["quota resources"]);
    let list = format!("/resources/{resource}/subscriptions");
    let to = |name: &str| json!({"endpoint": {"url": format!("http://127.0.0.1:9/{name}/{{id}}")}});
    let first = id(acme, &list, &to("a")).await;
    id(acme, &list, &to("b")).await;
    acme.post(&list, &to("c")).await.refused(403, &["quota subscriptions"]);
    acme.delete(&format!("{list}/{first}")).await.expect(204);
    id(acme, &list, &to("c")).await;

    let operator = flare.operator();
    let patched =
        operator.patch("/accounts/acme", &json!({"quotas": {"resources": 2}})).await.expect(200).json();
    assert_eq!(patched["quotas"], json!({"resources": 2, "subscriptions": 2}));
    assert_eq!(patched["usage"], json!({"resources": 1, "subscriptions": 2, "documents": 0}));
    id(acme, "/resources", &more).await;
    let patched =
        operator.patch("/accounts/acme", &json!({"quotas": {"resources": null}})).await.expect(200).json();
    assert_eq!(patched["quotas"], json!({"subscriptions": 2}));
    operator
        .patch("/accounts/acme", &json!({"quotas": {"resources": "many"}}))
        .await
        .refused(400, &["quotas.resources"]);
    operator.patch("/accounts/acme", &json!({"name": "other"})).await.refused(400, &["name"]);
    operator.patch("/accounts/nobody", &json!({"quotas": {}})).await.refused(404, &[]);
    // The account of whoever needs one only can have some as well, and others' are not counted for it.
    operator.patch("/accounts/default", &json!({"quotas": {"resources": 1}})).await.expect(200);
    id(operator, "/resources", &minimal_resource()).await;
    operator.post("/resources", &more).await.refused(403, &["quota resources"]);
}

#[tokio::test]
async fn documents_are_counted_and_those_that_are_there_may_change() {
    let (_flare, acme) = with_quotas(json!({"documents": 3})).await;
    id(acme, "/resources", &minimal_resource()).await;
    for number in 1..=3 {
        assert_eq!(acme.put(&document_url(number), &json!({"rev": 1})).await, "created");
    }
    let put = |number: u32, rev: u32| async move {
        acme.send(
            "PUT",
            &format!("/documents/{}", document_url(number)),
            &[],
            json!({"rev": rev}).to_string(),
        )
        .await
    };
    put(4, 1).await.refused(403, &["quota documents", "3"]);
    assert_eq!(put(2, 2).await.expect(202).header("flare-outcome"), "updated");
    let line = |number: u32, rev: u32| {
        json!({"id": document_url(number), "document": {"rev": rev}}).to_string() + "\n"
    };
    let bulk = acme.send("POST", "/documents", &[], line(1, 2) + &line(5, 1) + &line(3, 2)).await.expect(200);
    let told: Vec<serde_json::Value> =
        String::from_utf8_lossy(&bulk.body).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&told[0]["outcome"], &told[2]["outcome"]),
        (&json!("updated"), &json!("updated")),
        "{told:?}"
    );
    assert!(told[1]["error"]["detail"].as_str().unwrap().contains("quota documents"), "{told:?}");
    assert_eq!(acme.remove(&document_url(1)).await, "deleted");
    // What is there takes nothing of the room that there is, and what a line has made may change in the next.
    let lines = line(2, 3) + &line(3, 3) + &line(6, 1) + &line(6, 2) + &line(7, 1);
    let bulk = acme.send("POST", "/documents", &[], lines).await.expect(200);
    let told = String::from_utf8_lossy(&bulk.body).into_owned();
    let outcomes: Vec<bool> = told.lines().map(|line| line.contains("\"outcome\"")).collect();
    assert_eq!(outcomes, [true, true, true, true, false], "{told}");
    assert_eq!(acme.remove(&document_url(6)).await, "deleted");
    assert_eq!(put(4, 1).await.expect(202).header("flare-outcome"), "created");
    put(1, 9).await.refused(403, &["quota documents"]);
}

#[tokio::test]
async fn changes_come_at_their_rate() {
    let (_flare, acme) = with_quotas(json!({"changesPerSecond": 5})).await;
    id(acme, "/resources", &minimal_resource()).await;
    let mut refused = 0;
    for number in 0..30 {
        let path = format!("/documents/{}", document_url(number));
        let answer = acme.send("PUT", &path, &[], "{\"rev\":1}").await;
        if answer.status == 429 {
            assert_eq!(answer.header("retry-after"), "1");
            answer.refused(429, &["changesPerSecond"]);
            refused += 1;
        } else {
            answer.expect(202);
        }
    }
    assert!((5..=25).contains(&refused), "{refused}");
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(acme.put(&document_url("later"), &json!({"rev": 1})).await, "created");
}

#[tokio::test]
async fn consumers_and_producers_count_as_what_they_are_kept_as() {
    let (flare, acme) = with_quotas(json!({"resources": 1, "subscriptions": 1})).await;
    let origin = orders(0).await;
    let consumer = poll_orders(acme, &origin, json!({}), json!({})).await;
    acme.post("/resources", &minimal_resource()).await.refused(403, &["quota resources"]);
    let more = json!({"source": {"type": "http.poll", "url": origin.url("/more")}, "payload": {"id": "id"}});
    acme.post("/consumers", &more).await.refused(403, &["quota resources"]);
    let producers = format!("{consumer}/producers");
    let to =
        |name: &str| json!({"target": {"type": "http", "url": format!("http://127.0.0.1:9/{name}/{{id}}")}});
    id(acme, &producers, &to("a")).await;
    acme.post(&producers, &to("b")).await.refused(403, &["quota subscriptions"]);
    let operator = flare.operator();
    let shown = operator.get("/accounts/acme").await.expect(200).json();
    assert_eq!(shown["usage"], json!({"resources": 1, "subscriptions": 1, "documents": 0}));
    operator.delete("/accounts/acme").await.refused(409, &["resources (1"]);
}

#[tokio::test]
async fn what_consumers_read_is_counted_and_is_read_on_once_there_is_room() {
    let (flare, acme) = with_quotas(json!({"documents": 2})).await;
    let origin = orders(3).await;
    let path = poll_orders(acme, &origin, json!({}), json!({})).await;
    let status = until_status(acme, &path, "it is held up", |status| status["status"] == "failing").await;
    assert!(status["reason"].as_str().expect("why").contains("quota documents"), "{status}");
    let operator = flare.operator();
    let usage =
        async || operator.get("/accounts/acme").await.expect(200).json()["usage"]["documents"].clone();
    assert_eq!(usage().await, 2);
    let id = id(acme, "/resources", &minimal_resource()).await;
    let put = acme.send("PUT", &format!("/documents/{}", document_url(1)), &[], "{\"rev\":1}").await;
    put.refused(403, &["quota documents"]);
    acme.delete(&format!("/resources/{id}")).await.expect(204);
    operator.patch("/accounts/acme", &json!({"quotas": {"documents": 3}})).await.expect(200);
    until_status(acme, &path, "it goes on", |status| status["status"] == "active").await;
    assert_eq!(usage().await, 3);
}

#[tokio::test]
async fn what_consumers_read_comes_no_faster_than_it_may() {
    let (_flare, acme) = with_quotas(json!({"changesPerSecond": 5})).await;
    let (began, origin) = (std::time::Instant::now(), orders(20).await);
    let path = poll_orders(acme, &origin, json!({}), json!({})).await;
    until_status(acme, &path, "all are stored", |status| status["accepted"] == 20).await;
    // Five are free, five more may be owed, and each second brings five.
    assert!(began.elapsed().as_millis() >= 1900, "{:?}", began.elapsed());
}
