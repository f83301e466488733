//! Hosts that do not answer, clients that say "too much", and what the operator hears of it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpSocket;

use crate::support::{Receiver, Reply, Setup, Story, throughout, until_true};

/// A breaker that opens soon and looks again every 300 milliseconds.
fn hasty() -> Setup {
    Setup::default()
        .with("FLARE_DELIVERY_BREAKER_FAILURES", "4")
        .with("FLARE_DELIVERY_BREAKER_PAUSE", "300ms")
        .with("FLARE_DELIVERY_BREAKER_LONGEST_PAUSE", "300ms")
}

/// A port that nobody listens on until this socket does: it is taken, so that nobody else can.
pub fn nobody() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let addr = socket.local_addr().expect("it is bound");
    (socket, addr)
}

/// A client where nobody was.
fn back(nobody: TcpSocket) -> Receiver {
    Receiver::on(nobody.listen(64).expect("the port is ours"), |_| Reply::Status(200))
}

#[tokio::test]
async fn a_dead_host_burns_no_attempts_and_gets_everything_when_it_is_back() {
    let story = Story::with(hasty(), Receiver::start().await).await;
    let (nobody, addr) = nobody();
    let retry = json!({"quantity": 20, "interval": "1ms", "maxInterval": "1ms"});
    let body = json!({"endpoint": {"url": format!("http://{addr}/told")}, "delivery": {"retry": retry}});
    let subscription = story.subscribe(body).await;
    for document in 0..3 {
        story.put(document, 1).await;
    }
    let status = story.until_status(&subscription, "open", |status| !status["breaker"].is_null()).await;
    assert_eq!(status["breaker"]["host"], addr.to_string());
    assert!(status["breaker"]["retryAt"].is_string());
    // A second of retries every millisecond would have been the end of all three; a probe every 300 ms is not.
    let began = Instant::now();
    let before = story.status(&subscription).await["failed"].as_u64().expect("a number");
    throughout(Duration::from_secs(1), "time passes", || true).await;
    let after = story.status(&subscription).await;
    let probes = after["failed"].as_u64().expect("a number") - before;
    let most = began.elapsed().as_millis() as u64 / 300 + 1;
    assert!((1..=most).contains(&probes), "{probes} attempts while the breaker was open");
    assert_eq!(after["feed"]["deadLetters"], 0);
    back(nobody).wait_for(3).await;
    let status = story.settled(&subscription).await;
    assert!(status["breaker"].is_null(), "{status}");
}

#[tokio::test]
async fn time_with_the_breaker_open_does_not_count_against_the_time_to_live() {
    let story = Story::with(hasty(), Receiver::start().await).await;
    let (nobody, addr) = nobody();
    let retry = json!({"quantity": 1000, "interval": "1ms", "maxInterval": "1ms", "ttl": "2s"});
    let body = json!({"endpoint": {"url": format!("http://{addr}/told")}, "delivery": {"retry": retry}});
    let subscription = story.subscribe(body).await;
    story.put(1, 1).await;
    story.until_status(&subscription, "open", |status| !status["breaker"].is_null()).await;
    throughout(Duration::from_secs(3), "time passes", || true).await;
    assert_eq!(story.status(&subscription).await["feed"]["deadLetters"], 0);
    back(nobody).wait_for(1).await;
}

#[tokio::test]
async fn a_client_that_answers_errors_does_not_keep_its_neighbours_on_the_host_waiting() {
    let receiver = Receiver::answering(|request| match request.path.as_str() {
        "/bad" => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let story = Story::with(hasty(), receiver.await).await;
    let retry = json!({"interval": "1ms", "maxInterval": "1ms", "quantity": 1000});
    let bad = json!({"endpoint": {"url": story.receiver.url("/bad")}, "delivery": {"retry": retry}});
    let bad = story.subscribe(bad).await;
    let good = story.subscribe(json!({"endpoint": {"url": story.receiver.url("/good")}})).await;
    for document in 0..50 {
        story.put(document, 1).await;
        story.settled(&good).await;
    }
    assert!(story.status(&bad).await["breaker"].is_null());
}

#[tokio::test]
async fn a_client_that_says_too_much_is_left_alone_as_long_as_it_asks() {
    let mut first = true;
    let receiver = Receiver::answering(move |_| match std::mem::take(&mut first) {
        true => Reply::Full { status: 429, headers: vec![("Retry-After", "1".into())], body: String::new() },
        false => Reply::Status(200),
    });
    let story = Story::told(receiver.await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 1})).await;
    for document in 0..5 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 6);
    let rest = requests[1].at - requests[0].at;
    assert!(rest > Duration::from_millis(900), "other documents came after {rest:?}");
}

#[tokio::test]
async fn a_client_that_says_too_much_gets_fewer_requests_at_once() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(429)).await).await;
    let retry = json!({"interval": "10ms", "maxInterval": "10ms", "quantity": 10000});
    let subscription = story.subscribe_simply(json!({"concurrency": 8, "retry": retry})).await;
    for document in 0..64 {
        story.put(document, 1).await;
    }
    story.until_status(&subscription, "it was too much", |status| status["failed"].as_u64() >= Some(8)).await;
    // From one at a time it grows with each success: after n of them about the square root of 2n are open.
    let before = story.receiver.count();
    story.receiver.answer(|_| Reply::After(Duration::from_millis(5), Box::new(Reply::Status(200))));
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    let taken: Vec<_> = requests[before..].iter().map(|request| request.at).collect();
    let burst = taken.iter().filter(|at| **at - taken[0] < Duration::from_millis(4)).count();
    assert!(burst <= 4, "{burst} of {} at once", taken.len());
}

#[tokio::test]
async fn the_operator_is_told_of_a_client_that_fails_and_of_its_recovery() {
    let operator = Receiver::start().await;
    let setup = Setup::default()
        .with("FLARE_NOTIFY_URL", &operator.url("/ops?team=a"))
        .with("FLARE_DELIVERY_FAILING_AFTER", "200ms");
    let story = Story::with(setup, Receiver::answering(|_| Reply::Status(500)).await).await;
    let retry = json!({"interval": "50ms", "maxInterval": "50ms", "quantity": 10000});
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    story.put(1, 1).await;
    let told = operator.wait_for(1).await;
    assert_eq!((told[0].method.as_str(), told[0].path.as_str()), ("POST", "/ops?team=a"));
    let notice = told[0].json();
    assert_eq!(notice["event"], "subscription.failing");
    assert_eq!(notice["resource"], story.resource);
    assert!(subscription.ends_with(notice["subscription"].as_str().expect("an id")));
    assert!(notice["since"].is_string() && notice["at"].is_string());
    assert!(!told[0].header("webhook-id").is_empty());
    story.receiver.answer(|_| Reply::Status(200));
    assert_eq!(operator.wait_for(2).await[1].json()["event"], "subscription.recovered");
    assert_eq!(operator.count(), 2);
}

#[tokio::test]
async fn a_notice_that_the_operator_refuses_does_not_hold_up_the_others() {
    let operator = Receiver::answering(|request| {
        Reply::Status(if request.json()["reason"].as_str().is_some_and(|r| r.contains("410")) {
            500
        } else {
            200
        })
    })
    .await;
    // Tried for longer than anybody waits here.
    let setup = Setup::default()
        .with("FLARE_NOTIFY_URL", &operator.url("/"))
        .with("FLARE_NOTIFY_ATTEMPTS", "20")
        .with("FLARE_DELIVERY_FAILING_AFTER", "100ms");
    let answer = |request: &crate::support::Request| match request.path.as_str() {
        "/gone" => Reply::Status(410),
        _ => Reply::Status(500),
    };
    let story = Story::with(setup, Receiver::answering(answer).await).await;
    story.subscribe(json!({"endpoint": {"url": story.receiver.url("/gone")}})).await;
    story.put(1, 1).await;
    assert_eq!(operator.wait_for(1).await[0].json()["event"], "subscription.disabled");
    let retry = json!({"interval": "50ms", "maxInterval": "50ms", "quantity": 10000});
    story.subscribe_simply(json!({"retry": retry})).await;
    story.put(1, 2).await;
    until_true("the other one is told", || {
        operator.requests().iter().any(|request| request.json()["event"] == "subscription.failing")
    })
    .await;
}

#[tokio::test]
async fn a_client_that_fails_for_too_long_is_disabled_if_so_configured() {
    let operator = Receiver::start().await;
    let setup = Setup::default()
        .with("FLARE_NOTIFY_URL", &operator.url("/"))
        .with("FLARE_DELIVERY_DISABLE_AFTER", "300ms");
    let story = Story::with(setup, Receiver::answering(|_| Reply::Status(500)).await).await;
    let retry = json!({"interval": "50ms", "maxInterval": "50ms", "quantity": 10000});
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    story.put(1, 1).await;
    let status = story.until_status(&subscription, "disabled", |status| status["status"] == "disabled").await;
    let reason = status["reason"].as_str().expect("a reason");
    assert!(reason.contains("300ms") && reason.contains("disable-after"), "{reason}");
    assert_eq!(operator.wait_for(1).await[0].json()["event"], "subscription.disabled");
    let sent = story.receiver.count();
    story.receiver.answer(|_| Reply::Status(200));
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    assert_eq!(story.receiver.count(), sent + 1);
}

#[tokio::test]
async fn clients_that_hang_leave_a_connection_to_those_that_do_not() {
    let setup = Setup::default()
        .with("FLARE_HTTP_CLIENT_CONNECTIONS", "8")
        .with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "8")
        .with("FLARE_DELIVERY_THREADS", "1");
    let story = Story::with(setup, Receiver::start().await).await;
    let hanging = [Receiver::answering(|_| Reply::Hang).await, Receiver::answering(|_| Reply::Hang).await];
    for receiver in &hanging {
        let hangs = json!({"endpoint": {"url": receiver.url("/")}, "delivery": {"timeout": "5m"}});
        story.subscribe(hangs).await;
    }
    let healthy = story.subscribe_simply(json!({"concurrency": 1})).await;
    story.command(&healthy, "pause").await.expect(200);
    for document in 0..20 {
        story.put(document, 1).await;
    }
    until_true("those that hang have all they can get", || {
        hanging.iter().map(Receiver::in_flight).sum::<usize>() >= 7
    })
    .await;
    // Those that hang do so for longer than anybody waits here.
    story.command(&healthy, "resume").await.expect(200);
    story.settled(&healthy).await;
    assert_eq!(story.receiver.count(), 20);
}
