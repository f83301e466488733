//! Quotas: what is above them is refused by name, and what is below is not.

use serde_json::json;

use super::{id, tenant};
use crate::bridge::{page, poll_orders, until_status};
use crate::support::{Api, Flare, Receiver, Setup, document_url, minimal_resource, until};

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

/// An endpoint that lists so many orders.
async fn orders(quantity: u32) -> Receiver {
    let all: Vec<serde_json::Value> = (0..quantity).map(|number| json!({"id": number, "rev": 1})).collect();
    let listed = json!({"orders": all});
    Receiver::answering(move |_| page(None, &listed)).await
}

#[tokio::test]
async fn what_a_consumer_feeds_counts_and_waits_until_there_is_room() {
    let (flare, acme) = with_quotas(json!({"resources": 1, "documents": 3})).await;
    let origin = orders(5).await;
    let path = poll_orders(acme, &origin, json!({}), json!({})).await;
    acme.post("/resources", &minimal_resource()).await.refused(403, &["quota resources"]);
    let full = |status: &serde_json::Value| {
        status["status"] == "failing"
            && status["reason"].as_str().is_some_and(|why| why.contains("quota documents"))
    };
    until_status(acme, &path, "it stands still", full).await;
    let operator = flare.operator();
    let documents =
        || async { operator.get("/accounts/acme").await.expect(200).json()["usage"]["documents"].clone() };
    assert_eq!(documents().await, 3);
    operator.patch("/accounts/acme", &json!({"quotas": {"documents": 10}})).await.expect(200);
    until("the others are stored", || async { (documents().await == 5).then_some(()) }).await;
    let status = until_status(acme, &path, "it goes on", |status| status["status"] == "active").await;
    assert_eq!((&status["deadLetters"], &status["reason"]), (&json!(0), &json!(null)), "{status}");
}

#[tokio::test]
async fn a_consumer_feeds_at_the_rate_of_its_account() {
    let (_flare, acme) = with_quotas(json!({"changesPerSecond": 5})).await;
    let origin = orders(20).await;
    let began = std::time::Instant::now();
    let path = poll_orders(acme, &origin, json!({"interval": "1h"}), json!({})).await;
    let status = until_status(acme, &path, "all are stored", |status| status["accepted"] == 20).await;
    // Five at once, and the others as they may.
    assert!(began.elapsed() >= std::time::Duration::from_millis(2900), "{:?}", began.elapsed());
    assert_eq!((&status["status"], origin.count()), (&json!("active"), 1), "{status}");
}
