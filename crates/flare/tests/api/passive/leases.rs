//! Leases: extended by their client, listed and ended by an operator.

use serde_json::{Value, json};

use super::{passive, passively, reserve, reserve_one, settle, settle_with, told};
use crate::support::{Receiver, Setup, Story, document_url, store_is_durable};

async fn extend(story: &Story, subscription: &str, message: &Value, lasts: &str) -> Vec<String> {
    let line = json!({"lease": message["lease"], "status": "extend", "for": lasts});
    settle_with(story, subscription, vec![line]).await
}

async fn leases(story: &Story, subscription: &str) -> Vec<Value> {
    let answer = story.api().get(&format!("{subscription}/leases")).await.expect(200).json();
    answer["leases"].as_array().expect("a list").clone()
}

async fn end(story: &Story, subscription: &str, query: &str) -> Value {
    story.api().delete(&format!("{subscription}/leases{query}")).await.expect(200).json()
}

#[tokio::test]
async fn an_extended_lease_lasts_longer_and_its_token_stays_good() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    story.put(2, 1).await;
    let mut messages = Vec::new();
    while messages.len() < 2 {
        messages.extend(reserve(&story, &subscription, "quantity=2&wait=20s&lease=2s").await);
    }
    messages.sort_by_key(|message| message["document"].as_str().unwrap().to_owned());
    assert_eq!(extend(&story, &subscription, &messages[0], "10m").await, ["extended"]);
    // The other one ends by itself, at the time when this one would have.
    let other = reserve_one(&story, &subscription, "").await;
    assert_eq!(told(std::slice::from_ref(&other)), [(document_url(2), "create".into(), 1, 2)]);
    assert_eq!(extend(&story, &subscription, &messages[1], "10m").await, ["expired"]);
    let out = leases(&story, &subscription).await;
    let of = |url: String| out.iter().find(|lease| lease["document"] == url).expect("it is out").clone();
    let until = of(document_url(1))["expiresAt"].as_str().unwrap().to_owned();
    assert!(until.as_str() > messages[0]["leaseExpiresAt"].as_str().unwrap(), "{until}");
    assert_eq!(extend(&story, &subscription, &messages[0], "1ms").await, ["extended"]);
    assert_eq!(leases(&story, &subscription).await[1]["expiresAt"], until, "it is never shortened");
    let done = [messages.remove(0)];
    assert_eq!(settle(&story, &subscription, &done, "success").await, ["settled"]);
    assert_eq!(extend(&story, &subscription, &done[0], "10m").await.len(), 1);
}

#[tokio::test]
async fn an_extension_survives_a_kill_and_the_lease_ends_at_its_new_time() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let (mut story, subscription) = passive().await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "lease=2s").await;
    assert_eq!(extend(&story, &subscription, &message, "10m").await, ["extended"]);
    story.flare.kill();
    story.flare.restart().await;
    story.put(2, 1).await;
    // By the time that this one has come back, the first would have been over.
    let second = reserve_one(&story, &subscription, "lease=2s").await;
    let again = reserve_one(&story, &subscription, "").await;
    assert_eq!((&second["id"], &again["attempt"]), (&again["id"], &json!(2)));
    let out = leases(&story, &subscription).await;
    assert_eq!((out.len(), &out[1]["document"]), (2, &json!(document_url(1))));
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["settled"]);
}

#[tokio::test]
async fn what_is_said_of_a_lease_is_checked() {
    let (story, subscription) = passive().await;
    let path = format!("{subscription}/settle");
    for (line, words) in [
        (json!({"status": "extend"}), &["messages[0].for", "has to be there"][..]),
        (json!({"status": "extend", "for": "0s"}), &["messages[0].for", "above 0"]),
        (json!({"status": "extend", "for": "2h"}), &["messages[0].for", "at most 1h"]),
        (json!({"status": "extend", "for": "1s", "delay": "1s"}), &["messages[0].delay", "`release` only"]),
        (json!({"status": "success", "for": "1s"}), &["messages[0].for", "`extend` only"]),
    ] {
        let mut line = line;
        line["lease"] = "lease_1-3-1-2f-0-1-19a8".into();
        story.api().post(&path, &json!({"messages": [line]})).await.refused(400, words);
    }
    let none = json!({"lease": "lease_no", "status": "extend", "for": "1s"});
    assert_eq!(settle_with(&story, &subscription, vec![none]).await, ["unknown"]);
}

#[tokio::test]
async fn leases_are_listed_as_they_were_handed_out() {
    let (story, subscription) = passive().await;
    assert!(leases(&story, &subscription).await.is_empty());
    story.put(1, 1).await;
    let first = reserve_one(&story, &subscription, "lease=10m").await;
    story.put(2, 5).await;
    let second = reserve_one(&story, &subscription, "lease=5m").await;
    // The document moves on, and its client still has what it took.
    story.put(1, 2).await;
    let expected = |message: &Value| {
        let view = ["document", "action", "revision", "attempt"].map(|name| (name, message[name].clone()));
        let mut view: Value = view.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        view["expiresAt"] = message["leaseExpiresAt"].clone();
        view
    };
    let all = [expected(&second), expected(&first)];
    assert_eq!(leases(&story, &subscription).await, all, "those that end first at the front");
    let path = format!("{subscription}/leases?limit=1&offset=1");
    let page = story.api().get(&path).await.expect(200).json();
    let pagination = json!({"limit": 1, "offset": 1, "total": 2});
    assert_eq!(page, json!({"pagination": pagination, "leases": [all[1]]}));
    story.api().get(&format!("{subscription}/leases?x=1")).await.refused(400, &["`x`"]);
    settle(&story, &subscription, &[first, second], "success").await;
    assert!(leases(&story, &subscription).await.is_empty());
}

#[tokio::test]
async fn an_operator_ends_leases_and_everything_goes_on() {
    let setup = Setup::default().with("FLARE_DELIVERY_WAITING_LIMIT", "2");
    let (story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    for document in 1..=3 {
        story.put(document, 1).await;
    }
    let mut taken = Vec::new();
    while taken.len() < 2 {
        taken.extend(reserve(&story, &subscription, "quantity=2&wait=20s&lease=1h").await);
    }
    assert_eq!(reserve(&story, &subscription, "quantity=9").await.len(), 0, "nothing goes on");
    let url = taken[0]["document"].as_str().unwrap().to_owned();
    assert_eq!(end(&story, &subscription, &format!("?document={url}")).await, json!({"ended": 1}));
    assert_eq!(end(&story, &subscription, &format!("?document={url}")).await, json!({"ended": 0}));
    let again = reserve_one(&story, &subscription, "lease=1h").await;
    let expected = [(url.clone(), "create".into(), 1, 2)];
    assert_eq!(told(std::slice::from_ref(&again)), expected, "it counts as an attempt");
    assert_eq!(settle(&story, &subscription, &taken[..1], "success").await, ["unknown"]);
    assert_eq!(end(&story, &subscription, "").await, json!({"ended": 2}));
    assert!(leases(&story, &subscription).await.is_empty());
    let mut done = 0;
    while done < 3 {
        let messages = reserve(&story, &subscription, "quantity=9&wait=20s").await;
        done += messages.len();
        settle(&story, &subscription, &messages, "success").await;
    }
    let status = story.settled(&subscription).await;
    assert_eq!((&status["feed"]["held"], &status["failed"]), (&json!(3), &json!(3)));
    story.api().delete(&format!("{subscription}/leases?document=nothing")).await.refused(400, &["document"]);
    assert_eq!(end(&story, &subscription, &format!("?document={}", document_url(99))).await["ended"], 0);
}

#[tokio::test]
async fn what_an_operator_ended_too_often_is_given_up() {
    let delivery = json!({"retry": {"quantity": 1}});
    let (story, subscription) = passively(Setup::default(), Receiver::start().await, delivery).await;
    story.put(1, 1).await;
    reserve_one(&story, &subscription, "lease=1h").await;
    assert_eq!(end(&story, &subscription, "").await, json!({"ended": 1}));
    let letters = story.api().get(&format!("{subscription}/dead-letters")).await.expect(200).json();
    let error = letters["deadLetters"][0]["error"].as_str().unwrap();
    assert!(error.contains("operator"), "{error}");
}

#[tokio::test]
async fn the_page_of_leases_shows_them_and_ends_one() {
    let (story, subscription) = passive().await;
    let id = subscription.rsplit('/').next().expect("an id");
    let path = format!("/ui/subscriptions/{id}/leases");
    let page = async || {
        let answer = story.api().get(&path).await.expect(200);
        String::from_utf8(answer.body.to_vec()).expect("text")
    };
    assert!(page().await.contains("Nothing is out"));
    story.put(1, 1).await;
    reserve_one(&story, &subscription, "lease=1h").await;
    let shown = page().await;
    assert!(shown.contains(&document_url(1)) && shown.contains("End it"), "{shown}");
    let url = document_url(1).replace(':', "%3A").replace('/', "%2F");
    let own = format!("http://{}", story.flare.addr());
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", own.as_str()),
        ("sec-fetch-site", "same-origin"),
    ];
    story.api().send("POST", &path, &headers, format!("document={url}")).await.expect(303);
    assert!(leases(&story, &subscription).await.is_empty());
    assert_eq!(reserve_one(&story, &subscription, "").await["attempt"], 2);
}
