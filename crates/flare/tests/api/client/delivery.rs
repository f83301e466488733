//! What a client is told, and how: the action decided for each client, the headers, the place.

use serde_json::json;

use crate::support::{Gate, Receiver, Reply, Story, document_url};

#[tokio::test]
async fn a_document_is_created_updated_and_deleted_at_the_client() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    assert_eq!(story.put(1, 10).await, "created");
    story.receiver.wait_for(1).await;
    assert_eq!(story.put(1, 11).await, "updated");
    story.receiver.wait_for(2).await;
    assert_eq!(story.remove(1).await, "deleted");
    let requests = story.receiver.wait_for(3).await;
    let actions: Vec<_> = requests.iter().map(|request| request.action()).collect();
    assert_eq!(actions, ["create", "update", "delete"]);
    let revisions: Vec<_> = requests.iter().map(|request| request.revision()).collect();
    assert_eq!(revisions, [10, 11, 11], "a delete without a revision carries the current one");
    for request in &requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/told"));
        assert_eq!(request.document(), document_url(1));
        assert!(request.header("webhook-timestamp").parse::<u64>().is_ok());
        assert!(request.header("user-agent").starts_with("Flare/"));
        assert_eq!(request.header("host"), story.receiver.addr().to_string());
        assert_eq!(request.header("content-type"), "application/json");
        assert_eq!(request.header("flare-replay"), "");
    }
    assert!(requests[0].sequence() < requests[1].sequence());
    assert!(requests[1].sequence() < requests[2].sequence());
    let ids: std::collections::HashSet<_> = requests.iter().map(|r| r.header("webhook-id")).collect();
    assert_eq!(ids.len(), 3, "no two notifications share an id");
    let status = story.settled(&subscription).await;
    assert_eq!(
        (&status["delivered"], &status["failed"], &status["feed"]["held"]),
        (&3.into(), &0.into(), &0.into())
    );
}

#[tokio::test]
async fn old_and_equal_revisions_notify_nobody() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    for (revision, outcome) in
        [(5, "created"), (5, "unchanged"), (3, "stale"), (6, "updated"), (6, "unchanged")]
    {
        assert_eq!(story.put(1, revision).await, outcome);
        story.settled(&subscription).await;
    }
    let revisions: Vec<_> = story.receiver.requests().iter().map(|request| request.revision()).collect();
    assert_eq!(revisions, [5, 6]);
}

#[tokio::test]
async fn a_client_gets_create_for_what_it_never_had_and_no_delete_of_it() {
    let story = Story::begin().await;
    for id in ["updated", "deleted", "left"] {
        story.put(id, 1).await;
    }
    let subscription = story.subscribe_simply(json!({})).await;
    story.put("updated", 2).await;
    story.remove("deleted").await;
    let status = story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!((requests[0].action(), requests[0].document()), ("create", document_url("updated").as_str()));
    assert_eq!(status["feed"]["held"], 1);
}

#[tokio::test]
async fn a_document_that_comes_back_is_created_again() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    story.remove(1).await;
    story.settled(&subscription).await;
    assert_eq!(story.put(1, 1).await, "unchanged", "the tombstone remembers");
    assert_eq!(story.put(1, 2).await, "created");
    story.settled(&subscription).await;
    let actions: Vec<_> = story.receiver.requests().iter().map(|r| r.action().to_owned()).collect();
    assert_eq!(actions, ["create", "delete", "create"]);
}

#[tokio::test]
async fn each_subscription_is_told_as_it_needs() {
    let story = Story::begin().await;
    let url = |path: &str| json!({"endpoint": {"url": story.receiver.url(path)}});
    let first = story.subscribe(url("/first")).await;
    story.put(1, 1).await;
    story.settled(&first).await;
    let second = story.subscribe(url("/second")).await;
    story.put(1, 2).await;
    story.settled(&first).await;
    story.settled(&second).await;
    let mut told: Vec<_> =
        story.receiver.requests().iter().map(|r| format!("{} {}", r.path, r.action())).collect();
    told.sort();
    assert_eq!(told, ["/first create", "/first update", "/second create"]);
}

#[tokio::test]
async fn actions_have_their_own_url_method_and_headers() {
    let story = Story::begin().await;
    let elsewhere = Receiver::start().await;
    let subscription = story
        .subscribe(json!({"endpoint": {
            "url": story.receiver.url("/users/{id}"),
            "method": "put",
            "headers": {"Authorization": ["Basic abc"], "X-Kind": ["any"]},
            "actions": {
                "create": {"method": "post", "url": story.receiver.url("/users")},
                "delete": {"method": "DELETE", "url": elsewhere.url("/gone/{id}/{revision}"), "headers": {"x-kind": ["del"]}},
            },
        }}))
        .await;
    story.put("a%20b%2Fc", 1).await;
    story.settled(&subscription).await;
    story.put("a%20b%2fc", 2).await;
    story.settled(&subscription).await;
    story.remove("a%20b%2Fc").await;
    story.settled(&subscription).await;
    let told = |receiver: &Receiver| -> Vec<String> {
        let requests = receiver.requests();
        let line = |r: &crate::support::Request| {
            format!("{} {} {} {}", r.method, r.path, r.header("authorization"), r.header("x-kind"))
        };
        requests.iter().map(line).collect()
    };
    assert_eq!(told(&story.receiver), ["POST /users Basic abc any", "PUT /users/a%20b%2Fc Basic abc any"]);
    assert_eq!(told(&elsewhere), ["DELETE /gone/a%20b%2Fc/2 Basic abc del"]);
}

#[tokio::test]
async fn methods_are_sent_in_upper_case_whatever_their_case() {
    for (given, sent) in [("get", "GET"), ("Patch", "PATCH"), ("PUT", "PUT"), ("dELETE", "DELETE")] {
        let story = Story::begin().await;
        story.subscribe(json!({"endpoint": {"url": story.receiver.url("/"), "method": given}})).await;
        story.put(1, 1).await;
        assert_eq!(story.receiver.wait_for(1).await[0].method, sent);
    }
}

#[tokio::test]
async fn a_connection_that_the_client_closed_silently_is_no_failure() {
    let story = Story::told(Receiver::answering(|_| Reply::ThenClose(200)).await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 1})).await;
    for id in 0..30 {
        story.put(id, 1).await;
    }
    let status = story.settled(&subscription).await;
    assert_eq!((&status["delivered"], &status["failed"]), (&30.into(), &0.into()), "{status}");
    assert_eq!(story.receiver.count(), 30, "nothing was sent twice");
}

#[tokio::test]
async fn connections_are_used_again() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({"concurrency": 1})).await;
    for id in 0..30 {
        story.put(id, 1).await;
    }
    story.settled(&subscription).await;
    assert_eq!((story.receiver.count(), story.receiver.connections()), (30, 1));
}

#[tokio::test]
async fn deleting_a_subscription_stops_its_deliveries() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(500)).await).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "50ms", "maxInterval": "50ms"}})).await;
    story.put(1, 1).await;
    story.receiver.wait_for(2).await;
    story.api().delete(&subscription).await.expect(204);
    story.api().get(&subscription).await.refused(404, &["no subscription"]);
    // Another subscription shows that time has passed and changes have been spread.
    let other = Receiver::start().await;
    let witness = story.subscribe(json!({"endpoint": {"url": other.url("/")}})).await;
    let after = story.receiver.count();
    story.put(1, 2).await;
    story.settled(&witness).await;
    crate::support::throughout(
        std::time::Duration::from_millis(200),
        "at most the open attempt ends",
        || story.receiver.count() <= after + 1,
    )
    .await;
}

#[tokio::test]
async fn an_attempt_that_ends_after_its_subscription_was_deleted_recreates_nothing() {
    let gate = Gate::closed();
    let held = gate.clone();
    let story = Story::told(Receiver::answering(move |_| held.then(Reply::Status(500))).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"interval": "10ms"}})).await;
    story.put(1, 1).await;
    story.receiver.wait_for(1).await;
    story.api().delete(&subscription).await.expect(204);
    gate.open();
    crate::support::until_true("the open attempt has ended", || story.receiver.in_flight() == 0).await;
    crate::support::throughout(std::time::Duration::from_millis(150), "no retry", || {
        story.receiver.count() == 1
    })
    .await;
    // The url is free again, and its new owner starts with nothing.
    let again = story.subscribe_simply(json!({})).await;
    assert_eq!(story.status(&again).await["feed"]["held"], 0);
}
