//! What one node did, another knows: entities, documents, and what only the owner of a subscription can answer.

use serde_json::json;

use super::nodes::{By, Nodes};
use crate::support::{document_url, minimal_resource};

#[tokio::test]
async fn what_one_node_created_another_knows_at_once() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let (a, b) = (nodes.api("a"), nodes.api("b"));
    for at in 0..40 {
        let mut resource = minimal_resource();
        resource["endpoint"] = json!(format!("http://many.test/r{at}/{{id}}"));
        let created = a.post("/resources", &resource).await.expect(201).json();
        let put = b.send("PUT", &format!("/documents/http://many.test/r{at}/1"), &[], r#"{"rev":1}"#).await;
        assert_eq!(put.status, 202, "{at}");
        let id = created["id"].as_str().expect("an id");
        b.get(&format!("/resources/{id}")).await.expect(200);
    }
    let subscription = nodes.subscribe("a", "c0", json!({})).await;
    let path = format!("{}/{subscription}", nodes.subscriptions());
    for api in [&a, &b] {
        assert_eq!(api.get(&path).await.expect(200).json()["id"], subscription.as_str());
    }
    let patch = json!({"delivery": {"concurrency": 3}});
    b.patch(&path, &patch).await.expect(200);
    assert_eq!(a.get(&path).await.expect(200).json()["delivery"]["concurrency"], 3);
    b.delete(&path).await.expect(204);
    a.get(&path).await.expect(404);
    a.get(&format!("{}/sub_nobody", nodes.subscriptions())).await.expect(404);
}

#[tokio::test]
async fn whoever_is_asked_the_owner_answers() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let mut owned = Vec::new();
    for client in ["c0", "c1", "c2", "c3"] {
        owned.push(nodes.subscribe("a", client, json!({})).await);
    }
    nodes.green("b").await;
    for id in 0..5 {
        nodes.put("b", id, 1).await;
    }
    nodes.told(&["c0", "c1", "c2", "c3"], 0..5, 1).await;
    let mut elsewhere = 0;
    for subscription in &owned {
        for name in ["a", "b"] {
            let path = format!("{}/{subscription}", nodes.subscriptions());
            let answer = nodes.api(name).get(&format!("{path}/status")).await.expect(200);
            let status = answer.json();
            assert_eq!((&status["delivered"], &status["stale"]), (&json!(5), &json!(null)), "{status}");
            assert_eq!(status["shards"][0]["node"], status["node"]);
            let attempts = nodes.api(name).get(&format!("{path}/attempts")).await.expect(200).json();
            assert_eq!(attempts["pagination"]["total"], 5);
            assert_eq!(attempts["attempts"][0]["node"], status["node"]);
            let made_by = answer.header("flare-node");
            assert_eq!(made_by.is_empty(), status["node"] == name, "{made_by}");
            elsewhere += usize::from(!made_by.is_empty());
            let explain = format!("/explain?document={}&subscription={subscription}", document_url(1));
            assert_eq!(nodes.api(name).get(&explain).await.expect(200).json()["verdict"], "delivered");
        }
    }
    assert_eq!(elsewhere, owned.len(), "each was asked of its owner, and of the other");
}

#[tokio::test]
async fn a_lease_of_a_passive_client_is_settled_by_whichever_node_it_asks() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let subscription = nodes.subscribe("a", "c0", json!({"mode": "passive"})).await;
    nodes.put("a", 1, 1).await;
    let path = format!("{}/{subscription}", nodes.subscriptions());
    let reserve = format!("{path}/reserve?quantity=1&wait=5s&lease=30s");
    let taken = nodes.api("a").post(&reserve, &json!({})).await.expect(200).json();
    let settle = json!({"messages": [{"lease": taken["messages"][0]["lease"], "status": "success"}]});
    let settled = nodes.api("b").post(&format!("{path}/settle"), &settle).await.expect(200).json();
    assert_eq!(settled["messages"][0]["outcome"], "settled", "{settled}");
}

#[tokio::test]
async fn a_lease_outlives_the_node_that_gave_it() {
    let Some(mut nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let subscription = nodes.subscribe("a", "c0", json!({"mode": "passive"})).await;
    nodes.put("a", 1, 1).await;
    let path = format!("{}/{subscription}", nodes.subscriptions());
    let reserve = format!("{path}/reserve?quantity=1&wait=5s&lease=60s");
    let taken = nodes.api("a").post(&reserve, &json!({})).await.expect(200).json();
    let owners = nodes.owners("a").await;
    let unit = format!("subscription/{subscription}/0");
    let (owner, other) = if owners[&unit] == "a" { ("a", "b") } else { ("b", "a") };
    nodes.flares.get_mut(owner).expect("it is there").kill();
    nodes.without(other, &[owner], 2).await;
    let settle = json!({"messages": [{"lease": taken["messages"][0]["lease"], "status": "success"}]});
    let settled = nodes.api(other).post(&format!("{path}/settle"), &settle).await.expect(200).json();
    assert_eq!(settled["messages"][0]["outcome"], "settled", "{settled}");
}

#[tokio::test]
async fn a_subscription_in_shards_is_served_and_changes_their_number() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let subscription = nodes.subscribe("a", "c0", json!({"shards": 2})).await;
    nodes.green("a").await;
    for id in 0..10 {
        nodes.put("b", id, 1).await;
    }
    nodes.told(&["c0"], 0..10, 1).await;
    let path = format!("{}/{subscription}", nodes.subscriptions());
    nodes.api("b").patch(&path, &json!({"shards": 4})).await.expect(200);
    crate::support::until("there are four units", || async {
        (nodes.owners("a").await.len() == 5).then_some(())
    })
    .await;
    for id in 0..10 {
        nodes.put("a", id, 2).await;
    }
    nodes.told(&["c0"], 0..10, 2).await;
    let shards = nodes.api("a").get(&format!("{path}/status")).await.expect(200).json()["shards"].clone();
    assert_eq!(shards.as_array().map(Vec::len), Some(4), "{shards}");
    assert_eq!(nodes.receiver.count(), 20, "nothing is told twice");
}

/// Whoever answers without waiting for the rest of a request closes its connection at once, together with the head of the answer.
#[tokio::test]
async fn a_request_that_is_sent_on_is_answered_though_its_body_never_comes() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let subscription = nodes.subscribe("a", "c0", json!({})).await;
    nodes.green("a").await;
    let path = format!("{}/{subscription}/resume", nodes.subscriptions());
    for name in ["a", "b"] {
        let host = nodes.flares[name].addr();
        let request = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 2\r\n\r\n");
        for at in 0..50 {
            let answer = nodes.api(name).raw(request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{name}, {at}: {answer}");
        }
    }
}
