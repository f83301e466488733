//! The shapes of `/cluster` on a node by itself, and what a configuration may not ask for.

use serde_json::json;

use crate::support::{Receiver, Setup, Story};

/// Other nodes ask for it by that name, and nobody else's name will do.
#[tokio::test]
async fn a_node_answers_to_the_name_it_is_advertised_by() {
    let flare = Setup::default().with("FLARE_CLUSTER_ADVERTISE", "http://node-a.nodes:8080").start().await;
    for (name, status) in
        [("node-a.nodes:8080", "200"), ("NODE-A.nodes", "200"), ("node-b.nodes:8080", "421")]
    {
        let request = format!("GET /status HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n");
        let answer = flare.api().raw(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
    }
}

#[tokio::test]
async fn a_node_by_itself_is_a_cluster_of_one() {
    let setup = Setup::default().with("FLARE_CLUSTER_NODE", "solo").with("FLARE_CLUSTER_NAME", "shop");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    let api = story.api();
    let health = api.get("/cluster/health?wait=green&timeout=5s").await.expect(200).json();
    assert_eq!(health["status"], "green", "{health}");
    assert_eq!(
        (&health["name"], &health["leader"], &health["reasons"]),
        (&json!("shop"), &json!("solo"), &json!([]))
    );
    assert_eq!(health["nodes"], json!({"total": 1, "live": 1, "draining": 0}));
    assert_eq!((&health["units"]["total"], &health["units"]["running"]), (&json!(2), &json!(2)));
    assert_eq!(health["coordinator"]["engine"], "none");

    let nodes = api.get("/cluster/nodes").await.expect(200).json();
    let node = &nodes["nodes"][0];
    assert_eq!(
        (&node["id"], &node["self"], &node["leader"], &node["state"]),
        (&json!("solo"), &json!(true), &json!(true), &json!("live"))
    );
    assert_eq!(api.get("/cluster/nodes/solo").await.expect(200).json()["id"], "solo");
    api.get("/cluster/nodes/nobody").await.expect(404);
    api.post("/cluster/nodes/nobody/drain", &json!({})).await.expect(404);
    let drained = api.post("/cluster/nodes/solo/drain", &json!({})).await.expect(202).json();
    assert_eq!(drained["state"], "draining", "there is nobody who could take its units");
    assert_eq!(api.get("/cluster/health").await.expect(200).json()["status"], "yellow");
    let back = api.delete("/cluster/nodes/solo/drain").await.expect(200).json();
    assert_eq!(back["state"], "live");

    let id = subscription.rsplit('/').next().expect("an id");
    let unit = format!("subscription/{id}/0");
    let assignments =
        api.get("/cluster/assignments?kind=subscription&state=running").await.expect(200).json();
    let found = &assignments["assignments"][0];
    assert_eq!(
        (&found["unit"], &found["node"], &found["owner"]),
        (&json!(unit), &json!("solo"), &json!("solo"))
    );
    assert_eq!(found["lanes"], json!([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(
        api.get("/cluster/assignments?node=nobody").await.expect(200).json()["pagination"]["total"],
        0
    );
    api.get("/cluster/assignments?state=odd").await.refused(400, &["state"]);

    let encoded = unit.replace('/', "%2F");
    let explained = api.get(&format!("/cluster/assignments/explain?unit={encoded}")).await.expect(200).json();
    assert_eq!(
        (&explained["verdict"], &explained["owner"]),
        (&json!("stays"), &json!("solo")),
        "{explained}"
    );
    api.get("/cluster/assignments/explain").await.refused(400, &["unit"]);
    for unknown in ["subscription%2Fsub_x%2F0", "nonsense"] {
        let path = format!("/cluster/assignments/explain?unit={unknown}");
        api.get(&path).await.refused(404, &[&unknown.replace("%2F", "/")]);
    }

    let rerouted = api.post("/cluster/reroute", &json!({})).await.expect(200).json();
    assert_eq!(rerouted, json!({"dryRun": false, "plan": []}));
    let nowhere = json!({"commands": [{"move": {"unit": unit, "node": "nobody"}}]});
    api.post("/cluster/reroute", &nowhere).await.refused(400, &["nobody"]);
    api.post("/cluster/reroute", &json!({"odd": 1})).await.refused(400, &["odd"]);

    let stats = api.get("/cluster/stats").await.expect(200).json();
    assert_eq!(
        (&stats["nodes"], &stats["units"]["subscription"], &stats["unreachable"]),
        (&json!(1), &json!(1), &json!([]))
    );
    let status = api.get("/status").await.expect(200).json();
    assert_eq!(
        (&status["node"], &status["cluster"]["status"], &status["nodes"]),
        (&json!("solo"), &json!("green"), &json!(1))
    );
    let status = story.status(&subscription).await;
    assert_eq!((&status["node"], &status["shards"][0]["node"]), (&json!("solo"), &json!("solo")));
    api.get("/cluster/health?wait=blue").await.refused(400, &["wait"]);
}
