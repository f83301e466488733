//! A node that renews its lease and does not work: it does not reach the store, and the others have what it had until it does again.

use serde_json::{Value, json};

use super::nodes::{By, LEASE, Nodes, text};
use crate::support::{throughout, until};

const CLIENTS: [&str; 4] = ["c0", "c1", "c2", "c3"];

async fn with_clients() -> Option<Nodes> {
    let nodes = Nodes::start(&["a", "b", "c"], By::Etcd).await?;
    for client in CLIENTS {
        nodes.subscribe("a", client, json!({})).await;
    }
    until("every unit runs, and b has some", || async {
        let owners = nodes.owners("a").await;
        (owners.len() == CLIENTS.len() + 1 && owners.values().any(|owner| owner == "b")).then_some(())
    })
    .await;
    for id in 0..10 {
        nodes.put("a", id, 1).await;
    }
    nodes.told(&CLIENTS, 0..10, 1).await;
    Some(nodes)
}

async fn node(nodes: &Nodes, asked: &str, id: &str) -> Value {
    nodes.api(asked).get(&format!("/cluster/nodes/{id}")).await.expect(200).json()
}

#[tokio::test]
async fn a_node_that_does_not_reach_the_store_gives_its_units_up_and_gets_none_until_it_does() {
    let Some(nodes) = with_clients().await else { return };
    let session = text(&node(&nodes, "a", "b").await["session"]);
    let unit = |owners: std::collections::BTreeMap<String, String>| {
        owners.into_iter().find(|(_, owner)| owner == "b").map(|(unit, _)| unit)
    };
    let unit = unit(nodes.owners("a").await).expect("b has one");
    nodes.ways["b"].block(true);
    for id in 0..10 {
        nodes.put("c", id, 2).await;
    }
    nodes.without("a", &["b"], CLIENTS.len() + 1).await;
    nodes.told(&CLIENTS, 0..10, 2).await;
    // It lives: its lease was renewed all the time.
    let seen = node(&nodes, "a", "b").await;
    assert_eq!((&seen["state"], text(&seen["session"])), (&json!("suspect"), session), "{seen}");
    assert!(text(&seen["trouble"]).contains("the store"), "{seen}");
    let path = format!("/cluster/assignments/explain?unit={unit}");
    let explained = nodes.api("a").get(&path).await.expect(200).json();
    let candidates = explained["candidates"].as_array().expect("a list");
    let b = candidates.iter().find(|candidate| candidate["node"] == "b").expect("it is a member");
    assert_eq!((&b["decision"], &b["deciders"][0]["decision"]), (&json!("no"), &json!("no")), "{b}");
    assert!(text(&b["deciders"][0]["detail"]).contains("does not work"), "{b}");
    // What it says of itself.
    let health = nodes.api("b").get("/cluster/health").await.expect(200).json();
    assert_eq!((&health["status"], &health["store"]["reachable"]), (&json!("red"), &json!(false)));
    let reasons = health["reasons"].as_array().expect("a list");
    let own = reasons.iter().find(|reason| reason["code"] == "storeUnreachable").expect("it says so");
    let since = text(&own["since"]);
    let now = text(&nodes.api("b").get("/cluster/health").await.expect(200).json()["reasons"][0]["since"]);
    assert!(!since.is_empty() && since == now, "since when does not move: {since} {now}");
    // Nobody else has to do anything: all units run.
    nodes.green("a").await;
    let began = std::time::Instant::now();
    while began.elapsed() < LEASE {
        let owners = nodes.owners("a").await;
        assert!(
            owners.values().all(|owner| owner != "b"),
            "it cannot work, and is given nothing: {owners:?}"
        );
    }
    nodes.ways["b"].block(false);
    until("it works again, and has its part", || async {
        let has_some = nodes.owners("a").await.values().any(|owner| owner == "b");
        (has_some && node(&nodes, "a", "b").await["trouble"].is_null()).then_some(())
    })
    .await;
    for id in 0..10 {
        nodes.put("b", id, 3).await;
    }
    nodes.told(&CLIENTS, 0..10, 3).await;
    for name in ["a", "b"] {
        nodes.green(name).await;
    }
}

/// While nobody reaches it nobody can take anything: what comes back finds everything where it was.
#[tokio::test]
async fn where_no_node_reaches_the_store_nothing_is_moved() {
    let Some(nodes) = with_clients().await else { return };
    let before = nodes.owners("a").await;
    let moves = |stats: Value| stats["moves"]["total"].as_u64().expect("a number");
    let moved = moves(nodes.api("a").get("/cluster/stats").await.expect(200).json());
    nodes.ways.values().for_each(|way| way.block(true));
    until("all are stuck", || async {
        let health = nodes.api("a").get("/cluster/health").await.json();
        let reasons = health["reasons"].as_array()?.clone();
        let stuck =
            reasons.iter().filter(|reason| text(&reason["detail"]).contains("lives and does not work"));
        (stuck.count() == 3).then_some(())
    })
    .await;
    assert_eq!(nodes.owners("a").await, before);
    nodes.ways.values().for_each(|way| way.block(false));
    until("all work again", || async {
        let all = nodes.api("a").get("/cluster/nodes").await.expect(200).json();
        let all = all["nodes"].as_array()?.iter().all(|node| node["state"] == "live");
        all.then_some(())
    })
    .await;
    nodes.green("a").await;
    for id in 0..10 {
        nodes.put("a", id, 2).await;
    }
    nodes.told(&CLIENTS, 0..10, 2).await;
    assert_eq!(nodes.owners("a").await, before);
    assert_eq!(moves(nodes.api("a").get("/cluster/stats").await.expect(200).json()), moved);
    throughout(std::time::Duration::from_millis(200), "nothing is told twice", || {
        nodes.receiver.count() == CLIENTS.len() * 20
    })
    .await;
}
