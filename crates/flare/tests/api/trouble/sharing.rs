//! Clients that share a host: whoever answers quickly is not held up by those that hang.

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Request, Setup, Story, throughout, until, until_true};

/// Quick at `/quick`, and never elsewhere.
fn quick_or_never(request: &Request) -> Reply {
    if request.path == "/quick" { Reply::Status(200) } else { Reply::Hang }
}

fn told_at(story: &Story, path: &str) -> usize {
    story.receiver.requests().iter().filter(|request| request.path == path).count()
}

async fn subscribe(story: &Story, path: &str, delivery: Value) -> String {
    let endpoint = json!({"url": story.receiver.url(path)});
    story.subscribe(json!({"endpoint": endpoint, "delivery": delivery})).await
}

/// A client that is known to be quick, on a host with four connections.
async fn quick_client(setup: Setup) -> (Story, String) {
    let setup = setup.with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "4");
    let story = Story::with(setup, Receiver::answering(quick_or_never).await).await;
    let quick = subscribe(&story, "/quick", json!({})).await;
    // It is quick as a rule, even if this machine is not for a moment.
    for revision in 1..11 {
        story.put("first", revision).await;
        story.settled(&quick).await;
    }
    (story, quick)
}

#[tokio::test]
async fn a_quick_client_gets_all_its_changes_while_its_neighbours_hang() {
    for threads in ["1", "2", "4"] {
        let (story, quick) = quick_client(Setup::default().with("FLARE_DELIVERY_THREADS", threads)).await;
        let mut hanging = Vec::new();
        for number in 0..6 {
            let delivery = json!({"timeout": "5m", "concurrency": 10});
            hanging.push(subscribe(&story, &format!("/hangs/{number}"), delivery).await);
        }
        for document in 0..10 {
            story.put(document, 1).await;
        }
        until_true("they hang", || story.receiver.in_flight() >= 3).await;
        for revision in 2..12 {
            for document in 0..10 {
                story.put(document, revision).await;
            }
            story.settled(&quick).await;
        }
        assert!(told_at(&story, "/quick") >= 110, "each revision was settled before the next");
        assert_eq!(story.receiver.in_flight(), 3, "they hang, and leave one connection of four");
        assert_eq!(told_at(&story, "/quick") + 3, story.receiver.count());
        says_what_it_waits_for(&story, &hanging).await;
    }
}

/// Those that have no connection say what they wait for, each once it has looked for one.
async fn says_what_it_waits_for(story: &Story, subscriptions: &[String]) {
    until("those that have none wait", || async { (waiting(story, subscriptions).await >= 3).then_some(()) })
        .await;
    let metrics = story.api().get("/metrics").await.expect(200);
    assert!(String::from_utf8_lossy(&metrics.body).contains("flare_slow_requests "));
}

/// How many of them wait; each that does says for what.
async fn waiting(story: &Story, subscriptions: &[String]) -> usize {
    let mut waiting = 0;
    for subscription in subscriptions {
        let status = story.status(subscription).await;
        let connections = &status["connections"];
        if connections.is_null() {
            continue;
        }
        // Those that hang are slow once they have hung for a while, which a quick machine is not through with yet.
        if connections["slow"] != 3 {
            continue;
        }
        waiting += 1;
        assert_eq!(connections["most"], 4, "{status}");
        let detail = connections["detail"].as_str().expect("words");
        assert!(detail.contains("of 4 in use, 3 by slow clients"), "{detail}");
    }
    waiting
}

#[tokio::test]
async fn whoever_has_had_no_failure_is_asked_though_others_had_no_answer_from_its_host() {
    let setup = Setup::default()
        .with("FLARE_DELIVERY_THREADS", "1")
        .with("FLARE_DELIVERY_BREAKER_FAILURES", "3")
        .with("FLARE_DELIVERY_BREAKER_PAUSE", "10m")
        .with("FLARE_DELIVERY_BREAKER_LONGEST_PAUSE", "10m");
    let (story, quick) = quick_client(setup).await;
    let retry = json!({"interval": "1ms", "maxInterval": "1ms", "quantity": 10000});
    let delivery = json!({"timeout": "50ms", "retry": retry});
    let hanging = subscribe(&story, "/hangs", delivery).await;
    for revision in 11..14 {
        story.put("first", revision).await;
        story.until_status(&hanging, "the host is left alone", |status| status["breaker"].is_object()).await;
        let asked = told_at(&story, "/hangs");
        story.put("second", revision).await;
        // For the host alone it would have to wait for ten minutes.
        story.settled(&quick).await;
        // That it answers somebody lets the others try again, and a few tries later it is left alone again: what lasts is that
        // they tried.
        until_true("the host is tried again", || told_at(&story, "/hangs") > asked).await;
    }
}

#[tokio::test]
async fn a_client_that_hangs_while_another_one_is_answered_says_nothing_about_their_host() {
    let setup = Setup::default()
        .with("FLARE_DELIVERY_THREADS", "1")
        .with("FLARE_DELIVERY_BREAKER_FAILURES", "1")
        .with("FLARE_DELIVERY_BREAKER_PAUSE", "10m")
        .with("FLARE_DELIVERY_BREAKER_LONGEST_PAUSE", "10m");
    let (story, quick) = quick_client(setup).await;
    // It is tried once, for as long as the other one is told of ten changes.
    let delivery = json!({"timeout": "2s", "retry": {"quantity": 1}});
    let hanging = subscribe(&story, "/hangs", delivery).await;
    story.put("first", 11).await;
    until_true("it hangs", || story.receiver.in_flight() == 1).await;
    for revision in 3..13 {
        story.put("second", revision).await;
        story.settled(&quick).await;
    }
    let status = story.until_status(&hanging, "it was given up", |status| status["failed"] == 1).await;
    assert!(status["breaker"].is_null(), "{status}");
    assert!(story.status(&quick).await["breaker"].is_null());
}

#[tokio::test]
async fn clients_that_hang_take_turns_and_leave_a_connection_over_all_threads() {
    let (story, quick) = quick_client(
        Setup::default().with("FLARE_DELIVERY_THREADS", "4").with("FLARE_DELIVERY_BREAKER_FAILURES", "0"),
    )
    .await;
    let retry = json!({"interval": "1ms", "maxInterval": "1ms", "quantity": 10000});
    let delivery = json!({"timeout": "200ms", "retry": retry});
    let mut hanging = Vec::new();
    for number in 0..8 {
        hanging.push(subscribe(&story, &format!("/{number}"), delivery.clone()).await);
    }
    story.put("first", 11).await;
    story.settled(&quick).await;
    let told = std::time::Duration::from_millis(400);
    throughout(told, "they leave one", || story.receiver.in_flight() <= 3).await;
    for subscription in &hanging {
        let before = story.status(subscription).await["failed"].as_u64();
        story.until_status(subscription, "its turn comes", |status| status["failed"].as_u64() > before).await;
    }
    story.receiver.answer(|_| Reply::Status(200));
    for subscription in &hanging {
        story.settled(subscription).await;
    }
}
