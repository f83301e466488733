//! What a client says of its leases.

use serde_json::json;

use super::{passive, passively, reserve, reserve_one, settle, settle_with, told};
use crate::support::{Receiver, Setup, document_url};

#[tokio::test]
async fn each_word_has_its_outcome_in_order() {
    let (story, subscription) = passive().await;
    for document in 0..4 {
        story.put(document, 1).await;
    }
    let mut messages = Vec::new();
    while messages.len() < 4 {
        messages.extend(reserve(&story, &subscription, "quantity=4&wait=20s").await);
    }
    let lease = |index: usize| messages[index]["lease"].clone();
    let lines = vec![
        json!({"lease": lease(0), "status": "success"}),
        json!({"lease": "nonsense", "status": "success"}),
        json!({"lease": lease(1), "status": "discard"}),
        json!({"lease": lease(0), "status": "success"}),
        json!({"lease": lease(2), "status": "release"}),
        json!({"lease": lease(3), "status": "release", "delay": "1h"}),
    ];
    let outcomes = settle_with(&story, &subscription, lines).await;
    assert_eq!(outcomes, ["settled", "unknown", "settled", "unknown", "settled", "settled"]);
    let again = reserve_one(&story, &subscription, "").await;
    assert_eq!((&again["document"], &again["attempt"]), (&messages[2]["document"], &json!(2)));
    assert_eq!(reserve(&story, &subscription, "").await.len(), 0, "the other one is an hour away");
    let status = story.status(&subscription).await;
    assert_eq!((&status["delivered"], &status["discarded"]), (&json!(1), &json!(1)));
    assert_eq!((&status["failed"], &status["feed"]["waiting"]), (&json!(2), &json!(1)));
    assert_eq!(status["feed"]["held"], 1, "what was discarded is not held");
}

#[tokio::test]
async fn a_released_document_comes_back_after_the_delay_as_its_newest() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    let line = json!({"lease": message["lease"], "status": "release", "delay": "300ms"});
    let released = std::time::Instant::now();
    assert_eq!(settle_with(&story, &subscription, vec![line]).await, ["settled"]);
    let again = reserve_one(&story, &subscription, "").await;
    assert!(released.elapsed() >= std::time::Duration::from_millis(300));
    assert_eq!(told(std::slice::from_ref(&again)), [(document_url(1), "create".into(), 1, 2)]);
    settle(&story, &subscription, &[again], "release").await;
    story.put(1, 5).await;
    let newest = reserve_one(&story, &subscription, "").await;
    assert_eq!(newest["revision"], 5);
}

#[tokio::test]
async fn a_token_is_of_one_subscription_and_one_lease() {
    let (story, subscription) = passive().await;
    let endpoint = json!({"url": story.receiver.url("/other")});
    let other = story.subscribe(json!({"endpoint": endpoint, "mode": "passive"})).await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    reserve_one(&story, &other, "").await;
    let token = message["lease"].as_str().unwrap().to_owned();
    assert_eq!(settle(&story, &other, std::slice::from_ref(&message), "success").await, ["unknown"]);
    let (start, end) = token.split_at(token.len() - 1);
    let forged = format!("{start}{}", if end == "f" { "e" } else { "f" });
    let lines = vec![json!({"lease": forged, "status": "success"})];
    assert_eq!(settle_with(&story, &subscription, lines).await, ["unknown"]);
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["settled"]);
}

#[tokio::test]
async fn the_quantity_of_the_policy_ends_releases_in_a_dead_letter() {
    let delivery = json!({"retry": {"quantity": 1}});
    let (story, subscription) = passively(Setup::default(), Receiver::start().await, delivery).await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    assert_eq!(settle(&story, &subscription, &[message], "release").await, ["settled"]);
    assert_eq!(story.status(&subscription).await["feed"]["deadLetters"], 1);
    let letters = story.api().get(&format!("{subscription}/dead-letters")).await.expect(200).json();
    assert!(letters["deadLetters"][0]["error"].as_str().unwrap().contains("released"), "{letters}");
}

#[tokio::test]
async fn mistakes_are_named_and_nothing_is_settled() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    let good = json!({"lease": message["lease"], "status": "success"});
    let path = format!("{subscription}/settle");
    for (line, words) in [
        (json!({"lease": message["lease"], "status": "maybe"}), &["messages[1].status", "maybe"][..]),
        (json!({"lease": message["lease"]}), &["messages[1]", "status"]),
        (json!({"lease": "x", "status": "success", "delay": "1s"}), &["messages[1].delay", "release"]),
        (json!({"lease": "x", "status": "release", "delay": "2h"}), &["messages[1].delay", "1h"]),
        (json!({"lease": "x", "status": "release", "delay": "soon"}), &["messages[1].delay"]),
        (json!({"lease": "x", "status": "success", "word": 1}), &["word"]),
    ] {
        story.api().post(&path, &json!({"messages": [good, line]})).await.refused(400, words);
    }
    let many = vec![good.clone(); 1001];
    story.api().post(&path, &json!({"messages": many})).await.refused(400, &["messages", "1000"]);
    story.api().post(&path, &json!({"leases": []})).await.refused(400, &["leases"]);
    assert_eq!(settle_with(&story, &subscription, vec![]).await, [""; 0]);
    assert_eq!(settle_with(&story, &subscription, vec![good]).await, ["settled"]);
}

#[tokio::test]
async fn a_replay_waits_for_what_is_out_and_hands_the_rest_over() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let out = reserve_one(&story, &subscription, "").await;
    story.api().post(&format!("{subscription}/replay"), &json!({})).await.expect(202);
    assert_eq!(reserve(&story, &subscription, "").await.len(), 0, "it is out already");
    assert_eq!(settle(&story, &subscription, &[out], "success").await, ["settled"]);
    let again = reserve_one(&story, &subscription, "").await;
    assert!(again["headers"]["flare-replay"][0].is_string(), "{again}");
    assert_eq!(told(std::slice::from_ref(&again)), [(document_url(1), "update".into(), 1, 1)]);
    assert_eq!(settle(&story, &subscription, &[again], "success").await, ["settled"]);
    story.settled(&subscription).await;
}
