//! A node over PostgreSQL: what it answered outlives it, a server that is restarted underneath is waited for, and of two
//! nodes on one schema that know nothing of each other only the one that started last writes.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::postgresql::{Server, fresh_schema, own_server, server};
use crate::support::{Receiver, Setup, Story, document_url, left_out, store_is_durable, until};

/// How a node is started over a schema of its own.
fn over(server: &Server) -> Setup {
    Setup::default()
        .with("FLARE_PROVIDER_STORE", "postgresql")
        .with("FLARE_PROVIDER_POSTGRESQL_URL", &server.url)
        .with("FLARE_PROVIDER_POSTGRESQL_SCHEMA", &fresh_schema())
        .with("FLARE_PROVIDER_POSTGRESQL_CONNECTIONS", "6")
        .with("FLARE_CLUSTER_LEASE", "2s")
}

fn without_server() {
    left_out("a node over PostgreSQL: there is no PostgreSQL (package postgresql)");
}

#[tokio::test]
async fn what_was_answered_is_there_and_delivered_after_a_kill() {
    let Some(server) = server() else { return without_server() };
    if !store_is_durable() {
        return;
    }
    let mut story =
        Story::with(over(server).with("FLARE_CLUSTER_LEASE", "2s"), Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    assert_eq!(story.put(1, 1).await, "created");
    let first = story.receiver.wait_for(1).await;
    assert_eq!((first[0].action(), first[0].document()), ("create", document_url(1).as_str()));
    story.settled(&subscription).await;
    assert_eq!(story.api().get("/status").await.expect(200).json()["store"], "postgresql");

    story.flare.restart().await;
    assert_eq!(story.put(1, 1).await, "unchanged", "it is known by its revision");
    // What it served is served again once the lease of its life before is over.
    let status = format!("{subscription}/status");
    until("it is served", || async { (story.api().get(&status).await.status == 200).then_some(()) }).await;
    assert_eq!(story.put(1, 2).await, "updated");
    assert_eq!(story.put(2, 1).await, "created");
    story.settled(&subscription).await;
    let told: Vec<(String, i64)> = story
        .receiver
        .requests()
        .iter()
        .map(|request| (request.document().to_owned(), request.revision()))
        .collect();
    assert!(told.contains(&(document_url(1), 2)) && told.contains(&(document_url(2), 1)), "{told:?}");
    assert_eq!(story.flare.stop().await.code(), Some(0));
}

#[tokio::test]
async fn a_server_that_is_restarted_underneath_is_waited_for() {
    let Some(server) = own_server() else { return without_server() };
    let own = server.own.as_ref().expect("it was started here");
    let story = Story::with(over(&server), Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.receiver.wait_for(1).await;

    own.stop();
    let put = format!("/documents/{}", document_url(2));
    let refused = story.api().send("PUT", &put, &[], r#"{"rev":1}"#).await;
    let refused = refused.expect(503);
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    story.api().get("/healthz").await.expect(200);

    own.start();
    until("documents are taken again", || async {
        let answer = story.api().send("PUT", &put, &[], r#"{"rev":1}"#).await;
        (answer.status == 202).then_some(())
    })
    .await;
    let told = story.receiver.wait_for(2).await;
    assert_eq!(told[1].document(), document_url(2));
    story.settled(&subscription).await;
}

#[tokio::test]
async fn of_two_nodes_by_themselves_on_one_schema_the_one_that_started_first_ends() {
    let Some(server) = server() else { return without_server() };
    let setup = over(server).with("FLARE_PROVIDER_CLUSTER", "none");
    let mut story = Story::with(setup.clone(), Receiver::start().await).await;
    story.put(1, 1).await;
    let second = setup.start().await;
    let put = format!("/documents/{}", document_url(1));
    let answer = story.api().try_send("PUT", &put, &[], r#"{"rev":2}"#).await;
    assert!(!answer.is_ok_and(|answer| answer.status == 202), "it is not the first one's to accept any more");
    assert_eq!(story.flare.ended().await.code(), Some(4));
    second.api().send("PUT", &put, &[], r#"{"rev":2}"#).await.expect(202);
}

#[tokio::test]
async fn a_node_that_does_not_reach_its_store_says_so() {
    let Some(server) = own_server() else { return without_server() };
    let own = server.own.as_ref().expect("it was started here");
    let story = Story::with(over(&server), Receiver::start().await).await;
    story.put(1, 1).await;
    let api = story.api();
    api.get("/cluster/health?wait=green&timeout=20s").await.expect(200);
    let status = |url: String| {
        let flare = env!("CARGO_BIN_EXE_flare");
        let output = Command::new(flare).args(["status", "--output", "json", "--url", &url]).output();
        let output = output.expect("the binary runs");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.code(), said)
    };
    let url = format!("http://{}", story.flare.addr());
    let (code, said) = status(url.clone());
    assert_eq!(
        (code, &said["health"]["status"], &said["nodes"][0]["state"]),
        (Some(0), &json!("green"), &json!("live"))
    );
    assert_eq!(said["status"]["documents"], 1);

    own.stop();
    let health = api.get("/cluster/health?wait=yellow&timeout=1ms").await.expect(408).json();
    assert_eq!((&health["status"], &health["store"]["reachable"]), (&json!("red"), &json!(false)));
    let reasons = health["reasons"].as_array().expect("a list");
    assert!(reasons.iter().any(|reason| reason["code"] == "storeUnreachable"), "{health}");
    let node = api.get("/status").await.expect(200).json();
    assert_eq!((&node["cluster"]["status"], &node["documents"]), (&json!("red"), &json!(null)), "{node}");
    let (code, said) = status(url);
    assert_eq!((code, &said["health"]["status"]), (Some(1), &json!("red")), "{said}");
    own.start();
    api.get("/cluster/health?wait=green&timeout=20s").await.expect(200);
    assert_eq!(api.get("/status").await.expect(200).json()["documents"], 1);
}
