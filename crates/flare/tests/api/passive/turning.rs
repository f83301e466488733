//! A subscription is turned passive and back: nothing is lost, nothing is repeated.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{passively, reserve, reserve_one, settle, told};
use crate::support::{Receiver, Reply, Setup, Story, document_url};

async fn turn(story: &Story, subscription: &str, mode: &str) {
    let shown = story.api().patch(subscription, &json!({"mode": mode})).await.expect(200).json();
    assert_eq!(shown["mode"], mode);
}

#[tokio::test]
async fn nothing_is_lost_or_repeated_on_the_way() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let (mut pulled, mut documents) = (Vec::<Value>::new(), 0);
    for _ in 0..3 {
        for _ in 0..5 {
            story.put(documents, 1).await;
            documents += 1;
        }
        turn(&story, &subscription, "passive").await;
        for _ in 0..5 {
            story.put(documents, 1).await;
            documents += 1;
        }
        for _ in 0..2 {
            let message = reserve_one(&story, &subscription, "").await;
            settle(&story, &subscription, std::slice::from_ref(&message), "success").await;
            pulled.push(message);
        }
        turn(&story, &subscription, "active").await;
    }
    let status = story.settled(&subscription).await;
    assert_eq!(status["feed"]["held"], documents);
    let mut ids: Vec<String> = pulled.iter().map(|message| message["id"].as_str().unwrap().into()).collect();
    ids.extend(story.receiver.requests().iter().map(|request| request.header("webhook-id").to_owned()));
    assert_eq!(ids.len(), documents, "each document once");
    assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), documents);
}

#[tokio::test]
async fn a_lease_holds_its_document_after_the_turn_and_can_still_be_settled() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "mode": "passive"})).await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    turn(&story, &subscription, "active").await;
    story.put(1, 2).await;
    story.put(2, 1).await;
    let told_actively = story.receiver.wait_for(1).await;
    assert_eq!(told_actively[0].document(), document_url(2), "the other one is out on a lease");
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["settled"]);
    let requests = story.receiver.wait_for(2).await;
    assert_eq!((requests[1].action(), requests[1].revision()), ("update", 2));
    story.settled(&subscription).await;
    assert_eq!(story.receiver.count(), 2);
}

#[tokio::test]
async fn a_lease_that_ends_after_the_turn_is_sent() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "mode": "passive"})).await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "lease=200ms").await;
    turn(&story, &subscription, "active").await;
    let request = story.receiver.wait_for(1).await.remove(0);
    assert_eq!(request.header("webhook-id"), message["id"].as_str().unwrap(), "the same notification");
}

#[tokio::test]
async fn what_was_being_sent_ends_as_it_began() {
    let gate = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let open = gate.clone();
    let receiver = Receiver::answering(move |_| {
        if open.swap(true, std::sync::atomic::Ordering::SeqCst) {
            return Reply::Status(200);
        }
        Reply::After(std::time::Duration::from_millis(300), Box::new(Reply::Status(200)))
    });
    let story = Story::told(receiver.await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 1})).await;
    story.put(1, 1).await;
    story.receiver.wait_for(1).await;
    turn(&story, &subscription, "passive").await;
    story.put(2, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    assert_eq!(told(&[message]), [(document_url(2), "create".into(), 1, 1)]);
    let status =
        story.until_status(&subscription, "the first one ended", |status| status["delivered"] == 1).await;
    assert_eq!((&status["feed"]["held"], story.receiver.count()), (&json!(1), 1));
    assert_eq!(reserve(&story, &subscription, "").await.len(), 0);
}

#[tokio::test]
async fn one_with_shards_is_pulled_from_in_one_place() {
    let setup = Setup::default().with("FLARE_DELIVERY_THREADS", "3");
    let story = Story::with(setup, Receiver::start().await).await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "shards": 4})).await;
    let (mut ids, mut documents) = (Vec::<String>::new(), 0);
    for _ in 0..3 {
        for _ in 0..10 {
            story.put(documents, 1).await;
            documents += 1;
        }
        story.settled(&subscription).await;
        turn(&story, &subscription, "passive").await;
        for _ in 0..20 {
            story.put(documents, 1).await;
            documents += 1;
        }
        let mut pulled = Vec::new();
        while pulled.len() < 20 {
            pulled.extend(reserve(&story, &subscription, "quantity=7&wait=20s").await);
        }
        assert_eq!(reserve(&story, &subscription, "").await.len(), 0);
        let (before, after) = pulled.split_at(10);
        let settled = |outcomes: Vec<String>| outcomes.iter().all(|outcome| outcome == "settled");
        assert!(settled(settle(&story, &subscription, before, "success").await));
        turn(&story, &subscription, "active").await;
        // Whoever has their lanes by now knows of their leases.
        assert!(settled(settle(&story, &subscription, after, "success").await));
        ids.extend(pulled.iter().map(|message| message["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(story.settled(&subscription).await["feed"]["held"], documents);
    ids.extend(story.receiver.requests().iter().map(|request| request.header("webhook-id").to_owned()));
    assert_eq!(ids.len(), documents, "each document once");
    assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), documents);
}

#[tokio::test]
async fn a_lease_that_is_out_keeps_nobody_from_resuming_from_the_beginning() {
    let setup = Setup::default()
        .with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s")
        .with("FLARE_DOMAIN_RETENTION_FEED", "1s");
    let (story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    story.put(1, 1).await;
    let leased = reserve_one(&story, &subscription, "lease=1h").await;
    for document in 2..20 {
        story.put(document, 1).await;
        story.remove(document).await;
    }
    story.until_status(&subscription, "it is disabled", |status| status["status"] == "disabled").await;
    story.command(&subscription, "resume").await.expect(200);
    let again = reserve_one(&story, &subscription, "").await;
    assert_eq!(told(std::slice::from_ref(&again)), [(document_url(1), "create".into(), 1, 1)]);
    assert_eq!(settle(&story, &subscription, &[leased], "success").await, ["unknown"]);
    assert_eq!(settle(&story, &subscription, &[again], "success").await, ["settled"]);
}
