//! Reservations: what they hand out, and for how long.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{passive, passively, reserve, reserve_one, settle, told, until_it_waits};
use crate::support::{PATIENCE, Receiver, Setup, Story, document_url, until};

#[tokio::test]
async fn a_message_is_what_would_have_been_sent() {
    let (story, subscription) = passive().await;
    story.put(1, 7).await;
    let message = reserve_one(&story, &subscription, "lease=10m").await;
    let answer = json!({"requested": 1, "delivered": 0, "discarded": 0, "failed": 0, "remaining": 1});
    let deliver = story.command(&subscription, "deliver?quantity=1").await.expect(200).json();
    assert_eq!(deliver, answer, "what is on a lease is not sent as well");
    let mut names: Vec<&str> = message.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = "action attempt body document headers id lease leaseExpiresAt payload revision";
    assert_eq!(names.join(" "), expected);
    assert_eq!(told(std::slice::from_ref(&message)), [(document_url(1), "create".into(), 7, 1)]);
    assert_eq!(message["body"]["document"], json!({"rev": 7}));
    assert_eq!(message["body"]["id"], document_url(1));
    let header = |name: &str| message["headers"][name][0].as_str().unwrap_or_default().to_owned();
    assert_eq!(header("webhook-id"), message["id"]);
    assert_eq!(header("flare-action"), "create");
    assert_eq!(header("flare-sequence"), "1");
    assert_eq!(header("content-type"), "application/json");
    let status = story.status(&subscription).await;
    assert_eq!((&status["feed"]["inFlight"], &status["feed"]["waiting"]), (&json!(1), &json!(0)));
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["settled"]);
    let status = story.status(&subscription).await;
    assert_eq!((&status["feed"]["inFlight"], &status["feed"]["held"]), (&json!(0), &json!(1)));
    assert_eq!((&status["feed"]["lagging"], &status["delivered"]), (&json!(0), &json!(1)));
    assert_eq!(story.receiver.count(), 0);
}

#[tokio::test]
async fn a_message_without_a_body_says_so() {
    let (story, subscription) = passive().await;
    let body = json!({"content": {"envelope": false}});
    story.api().patch(&subscription, &body).await.expect(200);
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    assert_eq!(message["body"], json!({"rev": 1}), "the document's own bytes");
    settle(&story, &subscription, &[message], "success").await;
    story.remove(1).await;
    let message = reserve_one(&story, &subscription, "").await;
    assert_eq!((&message["action"], &message["body"]), (&json!("delete"), &json!(null)));
}

#[tokio::test]
async fn no_document_is_out_twice_and_a_newer_change_waits() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let first = reserve_one(&story, &subscription, "").await;
    story.put(1, 2).await;
    story.put(1, 3).await;
    story.put(2, 1).await;
    let second = reserve_one(&story, &subscription, "").await;
    assert_eq!(second["document"], document_url(2));
    assert_eq!(reserve(&story, &subscription, "quantity=10").await, [json!(null); 0]);
    settle(&story, &subscription, &[first], "success").await;
    let third = reserve_one(&story, &subscription, "").await;
    assert_eq!(told(&[third]), [(document_url(1), "update".into(), 3, 1)], "only the newest, as an update");
}

#[tokio::test]
async fn what_was_accepted_before_it_is_asked_for_is_handed_out_together() {
    const DOCUMENTS: usize = 12;
    let mut story = Story::begin().await;
    let path = |number: usize| json!({"url": story.receiver.url(&format!("/{number}"))});
    let drafts: Vec<_> = (0..8)
        .map(|number| {
            let start = if number % 2 == 0 { "now" } else { "beginning" };
            json!({"endpoint": path(number), "mode": "passive", "start": start})
        })
        .collect();
    for (number, draft) in drafts.into_iter().enumerate() {
        let query = if number % 4 < 2 { "quantity=100&wait=20s" } else { "quantity=100" };
        let begins = draft["start"] == "beginning";
        let mut subscription = None;
        if !begins {
            subscription = Some(story.subscribe(draft.clone()).await);
        }
        for id in 0..DOCUMENTS {
            story.put(id, 1 + number as i64).await;
        }
        let subscription = match subscription {
            Some(subscription) => subscription,
            None => story.subscribe(draft).await,
        };
        story
            .until_status(&subscription, "all lanes are swept", |status| status["feed"]["sweep"].is_null())
            .await;
        let first = reserve(&story, &subscription, query).await;
        assert_eq!(first.len(), DOCUMENTS, "{query}");
        let released = settle(&story, &subscription, &first, "release").await;
        assert!(released.iter().all(|outcome| outcome == "settled"), "{released:?}");
        if number == 0 {
            // What was released is read from the store again, a document at a time.
            story.flare.kill();
            story.flare.restart().await;
        }
        assert_eq!(reserve(&story, &subscription, query).await.len(), DOCUMENTS, "{query}");
        let three = reserve(&story, &subscription, "quantity=3").await;
        assert!(three.is_empty(), "all of it is out");
        story.api().delete(&subscription).await.expect(204);
    }
}

#[tokio::test]
async fn a_reserve_waits_for_something_to_come() {
    let (story, subscription) = passive().await;
    let waiting = {
        let (api, path) = (story.api(), format!("{subscription}/reserve?wait=30s"));
        tokio::spawn(async move { api.send("POST", &path, &[], "").await })
    };
    assert_eq!(
        reserve(&story, &subscription, "").await.len(),
        0,
        "one that does not wait is answered at once"
    );
    story.put(1, 1).await;
    let answer = waiting.await.unwrap().expect(200).json();
    assert_eq!(answer["messages"].as_array().unwrap().len(), 1);
    let began = Instant::now();
    assert_eq!(reserve(&story, &subscription, "wait=100ms").await.len(), 0);
    assert!(began.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn many_are_handed_out_once_each() {
    let (story, subscription) = passive().await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let (api, path) = (story.api(), format!("{subscription}/reserve?quantity=7&wait=30s"));
        waiting.push(tokio::spawn(async move { api.send("POST", &path, &[], "").await }));
    }
    for document in 0..50 {
        story.put(document, 1).await;
    }
    let mut documents = Vec::new();
    for answer in waiting {
        let answer = answer.await.unwrap().expect(200).json();
        documents.extend(answer["messages"].as_array().unwrap().clone());
    }
    while documents.len() < 50 {
        let more = reserve(&story, &subscription, "quantity=7&wait=20s").await;
        assert!((1..=7).contains(&more.len()), "{more:?}");
        documents.extend(more);
    }
    let mut urls: Vec<_> = told(&documents).into_iter().map(|(url, ..)| url).collect();
    urls.dedup();
    assert_eq!(urls.len(), 50);
    assert!(
        settle(&story, &subscription, &documents, "success").await.iter().all(|outcome| outcome == "settled")
    );
    assert_eq!(story.settled(&subscription).await["feed"]["held"], 50);
}

#[tokio::test]
async fn a_lease_that_is_not_settled_comes_back_as_another_attempt() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let first = reserve_one(&story, &subscription, "lease=100ms").await;
    let second = reserve_one(&story, &subscription, "lease=100ms").await;
    assert_eq!((&first["id"], &second["attempt"]), (&second["id"], &json!(2)), "the same notification");
    assert_ne!(first["lease"], second["lease"]);
    assert_eq!(settle(&story, &subscription, &[first], "success").await, ["expired"]);
    story.put(1, 2).await;
    let third = reserve_one(&story, &subscription, "lease=20s").await;
    // Nobody knows what the client made of the first.
    assert_eq!(
        told(std::slice::from_ref(&third)),
        [(document_url(1), "create".into(), 2, 1)],
        "a newer one starts anew"
    );
    assert_eq!(settle(&story, &subscription, &[third], "success").await, ["settled"]);
    let status = story.status(&subscription).await;
    assert_eq!((&status["failed"], &status["delivered"]), (&json!(2), &json!(1)));
    assert!(status["lastFailure"]["error"].as_str().unwrap().contains("lease ended"), "{status}");
}

#[tokio::test]
async fn what_expires_too_often_is_given_up_and_can_be_replayed() {
    let delivery = json!({"retry": {"quantity": 2}});
    let (story, subscription) = passively(Setup::default(), Receiver::start().await, delivery).await;
    story.put(1, 1).await;
    reserve_one(&story, &subscription, "lease=50ms").await;
    reserve_one(&story, &subscription, "lease=50ms").await;
    story.until_status(&subscription, "it is given up", |status| status["feed"]["deadLetters"] == 1).await;
    let letters = story.api().get(&format!("{subscription}/dead-letters")).await.expect(200).json();
    let letter = &letters["deadLetters"][0];
    assert_eq!((&letter["attempts"], &letter["action"]), (&json!(2), &json!("create")));
    assert!(letter["error"].as_str().unwrap().contains("lease ended"));
    story.api().post(&format!("{subscription}/replay"), &json!({"scope": "deadLetters"})).await.expect(202);
    let message = reserve_one(&story, &subscription, "").await;
    assert!(message["headers"]["flare-replay"][0].is_string(), "{message}");
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["settled"]);
    assert_eq!(story.settled(&subscription).await["feed"]["deadLetters"], 0);
}

#[tokio::test]
async fn a_paused_subscription_hands_out_nothing_and_its_leases_can_be_settled() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    story.put(2, 1).await;
    story.command(&subscription, "pause").await.expect(200);
    assert_eq!(reserve(&story, &subscription, "").await.len(), 0);
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["settled"]);
    let waiting = {
        let (api, path) = (story.api(), format!("{subscription}/reserve?wait=30s"));
        tokio::spawn(async move { api.send("POST", &path, &[], "").await })
    };
    story.command(&subscription, "resume").await.expect(200);
    let answer = waiting.await.unwrap().expect(200).json();
    assert_eq!(answer["messages"][0]["document"], document_url(2));
}

#[tokio::test]
async fn a_rate_limit_holds_for_reservations() {
    let delivery = json!({"rateLimit": {"quantity": 2, "interval": "400ms"}});
    let (story, subscription) = passively(Setup::default(), Receiver::start().await, delivery).await;
    for document in 0..8 {
        story.put(document, 1).await;
    }
    let began = Instant::now();
    let mut count = 0;
    while count < 8 {
        let messages = reserve(&story, &subscription, "quantity=8&wait=20s").await;
        assert!(messages.len() <= 2, "no more than the bucket holds");
        count += messages.len();
    }
    // One is there at the start; seven more take seven halves of the interval.
    assert!(began.elapsed() >= Duration::from_millis(1200), "{:?}", began.elapsed());
}

#[tokio::test]
async fn those_who_wait_are_bounded_and_those_who_leave_make_room() {
    let setup = Setup::default().with("FLARE_DELIVERY_PASSIVE_WAITERS", "1");
    let (story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    let (waiting, refused) = until_it_waits(&story, &subscription).await;
    assert_eq!(refused.refused(429, &["waiters"]).header("retry-after"), "1");
    waiting.leave();
    until("there is room again", || async {
        let answer = story.command(&subscription, "reserve").await;
        (answer.status == 200).then_some(())
    })
    .await;
    // Whoever left took nothing along.
    story.put(1, 1).await;
    assert_eq!(reserve_one(&story, &subscription, "").await["attempt"], 1);
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let (story, subscription) = passive().await;
    for (query, words) in [
        ("quantity=0", &["quantity"][..]),
        ("quantity=many", &["quantity", "`many`"]),
        ("lease=0s", &["lease", "above 0"]),
        ("lease=61m", &["lease", "1h"]),
        ("lease=long", &["lease"]),
        ("wait=61s", &["wait", "1m"]),
        ("wait=-1s", &["wait"]),
        ("patience=1s", &["patience", "quantity, wait, lease"]),
    ] {
        story.command(&subscription, &format!("reserve?{query}")).await.refused(400, words);
    }
}

#[tokio::test]
async fn a_waiting_reserve_learns_of_the_end_of_its_subscription() {
    let setup = Setup::default().with("FLARE_DELIVERY_PASSIVE_WAITERS", "1");
    let (story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    let (active, _) = until_it_waits(&story, &subscription).await;
    story.api().patch(&subscription, &json!({"mode": "active"})).await.expect(200);
    assert_eq!(active.answer().await.expect(200).json(), json!({"messages": []}));
    story.api().patch(&subscription, &json!({"mode": "passive"})).await.expect(200);
    let (deleted, _) = until_it_waits(&story, &subscription).await;
    story.api().delete(&subscription).await.expect(204);
    deleted.answer().await.refused(404, &["subscription"]);
}

#[tokio::test]
async fn what_is_out_is_bounded_and_a_settle_makes_room() {
    let setup = Setup::default().with("FLARE_DELIVERY_WAITING_LIMIT", "3");
    let (story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    for document in 0..6 {
        story.put(document, 1).await;
    }
    let mut out = Vec::new();
    while out.len() < 3 {
        out.extend(reserve(&story, &subscription, "quantity=6&wait=20s").await);
    }
    assert_eq!(out.len(), 3);
    assert_eq!(reserve(&story, &subscription, "quantity=6").await.len(), 0);
    assert_eq!(settle(&story, &subscription, &out[..1], "success").await, ["settled"]);
    assert_eq!(reserve(&story, &subscription, "quantity=6&wait=20s").await.len(), 1);
}

#[tokio::test]
async fn changes_that_come_while_leases_end_are_not_forgotten() {
    let (story, subscription) = passive().await;
    let mut origins = tokio::task::JoinSet::new();
    for document in 0..6 {
        let api = story.api();
        origins.spawn(async move {
            for revision in 1..=80 {
                api.put(&document_url(document), &json!({"rev": revision})).await;
            }
        });
    }
    let mut newest = std::collections::BTreeMap::new();
    let deadline = Instant::now() + PATIENCE;
    let mut turn = 0;
    while newest.len() < 6 || newest.values().any(|revision| *revision < 80) {
        assert!(Instant::now() < deadline, "something is forgotten: {newest:?}");
        turn += 1;
        // Every third batch is left to expire.
        let expires = turn % 3 == 0;
        let lease = if expires { "10ms" } else { "20s" };
        let messages = reserve(&story, &subscription, &format!("wait=50ms&lease={lease}")).await;
        for (url, _, revision, _) in told(&messages) {
            let before = newest.insert(url, revision);
            assert!(before <= Some(revision), "{before:?} {revision}");
        }
        if !expires {
            settle(&story, &subscription, &messages, "success").await;
        }
    }
}
