//! Delivery on request.

use std::time::Duration;

use serde_json::json;

use super::{passive, passively};
use crate::support::{Gate, Receiver, Reply, Setup, Story, until, until_true};

#[tokio::test]
async fn nothing_is_sent_until_it_is_asked_for() {
    let (story, subscription) = passive().await;
    for document in 0..5 {
        story.put(document, 1).await;
    }
    let status = story.until_status(&subscription, "five lag", |status| status["feed"]["lagging"] == 5).await;
    assert_eq!((&status["delivered"], story.receiver.count()), (&json!(0), 0));
    let answer = story.command(&subscription, "deliver?quantity=3&concurrency=2").await.expect(200).json();
    assert_eq!(answer, json!({"requested": 3, "delivered": 3, "discarded": 0, "failed": 0, "remaining": 2}));
    assert_eq!(story.receiver.count(), 3);
    let answer = story.command(&subscription, "deliver").await.expect(200).json();
    assert_eq!(answer, json!({"requested": 10, "delivered": 2, "discarded": 0, "failed": 0, "remaining": 0}));
    assert!(story.receiver.requests().iter().all(|request| request.action() == "create"));
    let answer = story.command(&subscription, "deliver").await.expect(200).json();
    assert_eq!(answer["delivered"], 0, "there is nothing left");
}

#[tokio::test]
async fn each_way_a_request_can_end_is_counted() {
    let receiver = Receiver::answering(|request| match request.document().rsplit('/').next() {
        Some("1") => Reply::Status(409),
        Some("2") => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let delivery = json!({"discard": [409], "retry": {"interval": "1h"}});
    let (story, subscription) = passively(Setup::default(), receiver.await, delivery).await;
    for document in 0..4 {
        story.put(document, 1).await;
    }
    let answer = story.command(&subscription, "deliver?quantity=20").await.expect(200).json();
    // The one that failed waits for its retry, an hour from now, and is not waited for.
    assert_eq!(answer, json!({"requested": 20, "delivered": 2, "discarded": 1, "failed": 1, "remaining": 1}));
    let status = story.status(&subscription).await;
    assert_eq!((&status["feed"]["waiting"], &status["feed"]["inFlight"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn no_more_are_open_at_once_than_asked_for() {
    let gate = Gate::closed();
    let held = gate.clone();
    let slow = || Reply::After(Duration::from_millis(20), Box::new(Reply::Status(200)));
    let receiver = Receiver::answering(move |_| held.then(slow())).await;
    let (story, subscription) = passively(Setup::default(), receiver, json!({})).await;
    for document in 0..12 {
        story.put(document, 1).await;
    }
    let deliver = story.command(&subscription, "deliver?quantity=12&concurrency=3");
    let opening = async {
        until_true("as many as may be are open", || story.receiver.in_flight() == 3).await;
        gate.open();
    };
    let (answer, ()) = tokio::join!(deliver, opening);
    assert_eq!(answer.expect(200).json()["delivered"], 12);
    assert_eq!(story.receiver.most_in_flight(), 3);
}

#[tokio::test]
async fn a_second_one_at_a_time_is_refused_and_a_caller_that_leaves_makes_room() {
    let receiver = Receiver::answering(|_| Reply::Hang).await;
    let delivery = json!({"timeout": "2s", "retry": {"interval": "1h"}});
    let (story, subscription) = passively(Setup::default(), receiver, delivery).await;
    story.put(1, 1).await;
    story.put(2, 1).await;
    let first = {
        let (api, path) = (story.api(), format!("{subscription}/deliver?concurrency=1"));
        tokio::spawn(async move { api.send("POST", &path, &[], "").await })
    };
    story.receiver.wait_for(1).await;
    story.command(&subscription, "deliver").await.refused(409, &["under way"]);
    first.abort();
    // What was begun ends by its own timeout; nothing more was begun for nobody.
    until("there is room", || async {
        let answer = story.command(&subscription, "deliver?quantity=1&concurrency=1").await;
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(story.receiver.count(), 2);
}

#[tokio::test]
async fn wrong_parameters_and_states_are_named() {
    let (story, subscription) = passive().await;
    for (query, words) in [
        ("quantity=0", &["quantity", "1 and 1000"][..]),
        ("quantity=1001", &["quantity", "1001"]),
        ("quantity=99999999999999999999", &["quantity"]),
        ("quantity=-1", &["quantity", "-1"]),
        ("concurrency=11", &["concurrency", "1 and 10"]),
        ("concurrency=x", &["concurrency", "`x`"]),
        ("colour=red", &["colour", "quantity, concurrency"]),
    ] {
        story.command(&subscription, &format!("deliver?{query}")).await.refused(400, words);
    }
    story.command(&subscription, "pause").await.expect(200);
    story.command(&subscription, "deliver").await.refused(409, &["resume"]);
    let active = story.subscribe(json!({"endpoint": {"url": story.receiver.url("/other")}})).await;
    for command in ["deliver", "reserve"] {
        story.command(&active, command).await.refused(400, &["mode", "passive"]);
    }
    story.api().get(&format!("{active}/stream")).await.refused(400, &["mode", "passive"]);
    story.command(&format!("{subscription}x"), "deliver").await.refused(404, &[]);
}

#[tokio::test]
async fn a_pause_and_a_stop_let_it_end_with_what_was_begun() {
    let slow =
        || Receiver::answering(|_| Reply::After(Duration::from_millis(300), Box::new(Reply::Status(200))));
    for stop in [false, true] {
        let (mut story, subscription) = passively(Setup::default(), slow().await, json!({})).await;
        for document in 0..20 {
            story.put(document, 1).await;
        }
        let deliver = {
            let (api, path) = (story.api(), format!("{subscription}/deliver?quantity=20&concurrency=1"));
            tokio::spawn(async move { api.send("POST", &path, &[], "").await })
        };
        story.receiver.wait_for(1).await;
        if stop {
            story.flare.signal("TERM");
        } else {
            story.command(&subscription, "pause").await.expect(200);
        }
        let answer = deliver.await.unwrap().expect(200).json();
        let delivered = answer["delivered"].as_u64().unwrap();
        assert!((1..20).contains(&delivered), "{answer}");
        assert_eq!(delivered, story.receiver.count() as u64);
        if stop {
            assert!(story.flare.ended().await.success());
        }
    }
}

#[tokio::test]
async fn the_beginning_is_delivered_on_request_too() {
    let story = Story::begin().await;
    for document in 0..30 {
        story.put(document, 1).await;
    }
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription =
        story.subscribe(json!({"endpoint": endpoint, "mode": "passive", "start": "beginning"})).await;
    let answer = story.command(&subscription, "deliver?quantity=100").await.expect(200).json();
    assert_eq!((&answer["delivered"], &answer["remaining"]), (&json!(30), &json!(0)));
    until_true("all were told", || story.receiver.count() == 30).await;
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_not_waited_for() {
    let receiver = Receiver::answering(|_| Reply::Reset).await;
    let setup = Setup::default().with("FLARE_DELIVERY_BREAKER_FAILURES", "3");
    let setup = setup.with("FLARE_DELIVERY_BREAKER_PAUSE", "2s");
    let (story, subscription) = passively(setup, receiver, json!({"concurrency": 1})).await;
    for document in 0..10 {
        story.put(document, 1).await;
    }
    let began = std::time::Instant::now();
    let answer = story.command(&subscription, "deliver?quantity=10").await.expect(200).json();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((&answer["failed"], &answer["remaining"]), (&json!(3), &json!(10)));
    story.receiver.answer(|_| Reply::Status(200));
    // It is tried again once its pause is over.
    until("it is delivered", || async {
        let answer = story.command(&subscription, "deliver?quantity=10").await.expect(200).json();
        (answer["delivered"].as_u64() > Some(0)).then_some(())
    })
    .await;
}

/// The origin has its answer before the delivery threads hear of the change.
#[tokio::test]
async fn what_was_accepted_before_it_is_asked_for_is_there() {
    let (story, subscription) = passive().await;
    for revision in 1..=40 {
        story.put(1, revision).await;
        let sent = story.command(&subscription, "deliver?quantity=1").await.expect(200).json();
        assert_eq!((&sent["delivered"], &sent["remaining"]), (&json!(1), &json!(0)), "revision {revision}");
    }
    for document in 2..=40 {
        story.put(document, 1).await;
        let reserved = story.command(&subscription, "reserve?quantity=1&wait=0s").await.expect(200).json();
        assert_eq!(reserved["messages"].as_array().map(Vec::len), Some(1), "document {document}");
    }
}
