//! Leases outlive the process: what was handed out is neither handed out again nor forgotten.

use serde_json::json;

use super::{passive, passively, reserve, reserve_one, settle, told, until_it_waits};
use crate::support::{Receiver, Setup, document_url, store_is_durable};

#[tokio::test]
async fn a_lease_is_still_out_after_a_kill_and_after_a_stop() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    for stop in [false, true] {
        let (mut story, subscription) = passive().await;
        story.put(1, 1).await;
        story.put(2, 1).await;
        let mut messages = Vec::new();
        while messages.len() < 2 {
            messages.extend(reserve(&story, &subscription, "quantity=2&wait=20s&lease=10m").await);
        }
        messages.sort_by_key(|message| message["document"].as_str().unwrap().to_owned());
        if stop {
            assert!(story.flare.stop().await.success());
        } else {
            story.flare.kill();
        }
        story.flare.restart().await;
        assert_eq!(story.status(&subscription).await["feed"]["inFlight"], 2);
        // A newer change waits for the end of the lease, as it would have before.
        story.put(1, 2).await;
        assert_eq!(reserve(&story, &subscription, "").await.len(), 0);
        assert_eq!(settle(&story, &subscription, &messages, "success").await, ["settled", "settled"]);
        let newer = reserve_one(&story, &subscription, "").await;
        assert_eq!(told(std::slice::from_ref(&newer)), [(document_url(1), "update".into(), 2, 1)]);
        assert_eq!(settle(&story, &subscription, &[newer], "success").await, ["settled"]);
        let status = story.settled(&subscription).await;
        assert_eq!((&status["feed"]["held"], &status["delivered"]), (&json!(2), &json!(3)));
    }
}

#[tokio::test]
async fn a_lease_that_ends_while_flare_is_away_comes_back() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let (mut story, subscription) = passive().await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "lease=50ms").await;
    story.flare.kill();
    story.flare.restart().await;
    let again = reserve_one(&story, &subscription, "").await;
    assert_eq!((&again["id"], &again["attempt"]), (&message["id"], &json!(2)));
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["expired"]);
}

#[tokio::test]
async fn what_was_settled_stays_settled() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let (mut story, subscription) = passive().await;
    story.put(1, 1).await;
    let message = reserve_one(&story, &subscription, "").await;
    assert_eq!(settle(&story, &subscription, std::slice::from_ref(&message), "success").await, ["settled"]);
    story.flare.kill();
    story.flare.restart().await;
    assert_eq!(reserve(&story, &subscription, "").await.len(), 0);
    assert_eq!(settle(&story, &subscription, &[message], "success").await, ["unknown"]);
    assert_eq!(story.status(&subscription).await["feed"]["held"], 1);
}

#[tokio::test]
async fn a_stop_answers_those_who_wait_at_once() {
    let setup = Setup::default().with("FLARE_DELIVERY_PASSIVE_WAITERS", "1");
    let (mut story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    let (waiting, _) = until_it_waits(&story, &subscription).await;
    let told = std::time::Instant::now();
    assert!(story.flare.stop().await.success());
    assert_eq!(waiting.answer().await.expect(200).json(), json!({"messages": []}));
    assert!(told.elapsed() < std::time::Duration::from_secs(20), "{:?}", told.elapsed());
}

#[tokio::test]
async fn a_lease_that_stood_for_newer_revisions_too_still_does_after_a_change_to_the_newest_and_a_kill() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let every = json!({"revision": "all"});
    let (mut story, subscription) = passively(Setup::default(), Receiver::start().await, every).await;
    story.put(1, 1).await;
    let first = reserve_one(&story, &subscription, "lease=10m").await;
    story.put(1, 2).await;
    story.put(1, 3).await;
    // The reader meets them, and they wait for the end of the lease.
    assert_eq!(reserve(&story, &subscription, "quantity=9").await.len(), 0);
    let patch = json!({"delivery": {"revision": "last"}});
    story.api().patch(&subscription, &patch).await.expect(200);
    story.flare.kill();
    story.flare.restart().await;
    assert_eq!(settle(&story, &subscription, &[first], "success").await, ["settled"]);
    let next = reserve_one(&story, &subscription, "").await;
    assert_eq!(told(std::slice::from_ref(&next)), [(document_url(1), "update".into(), 3, 1)]);
    assert_eq!(settle(&story, &subscription, &[next], "success").await, ["settled"]);
    // Whether more is owed is looked up when someone asks.
    assert_eq!(reserve(&story, &subscription, "quantity=9").await.len(), 0);
    story.settled(&subscription).await;
}
