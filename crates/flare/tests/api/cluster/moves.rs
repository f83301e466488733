//! Units go from node to node: because one was killed, stopped, suspended or drained, or somebody wants it so.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::nodes::{By, LEASE, Nodes, text};
use crate::support::{Gate, Reply, throughout, until};

const CLIENTS: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];

async fn with_clients(names: &[&'static str], by: By) -> Option<Nodes> {
    let nodes = Nodes::start(names, by).await?;
    for (at, client) in CLIENTS.iter().enumerate() {
        nodes.subscribe(names[at % names.len()], client, json!({})).await;
    }
    // The shards, and who keeps house. A node may hear a moment later of what another has created.
    until("every unit runs", || async {
        (nodes.owners(names[0]).await.len() == CLIENTS.len() + 1).then_some(())
    })
    .await;
    Some(nodes)
}

async fn a_killed_node_loses_nothing(by: By) {
    let Some(mut nodes) = with_clients(&["a", "b", "c"], by).await else { return };
    for id in 0..20 {
        nodes.put(["a", "b", "c"][id % 3], id, 1).await;
    }
    nodes.told(&CLIENTS, 0..20, 1).await;
    nodes.flares.get_mut("b").expect("it is there").kill();
    let killed = Instant::now();
    for id in 0..20 {
        nodes.put(["a", "c"][id % 2], id, 2).await;
    }
    nodes.without("a", &["b"], CLIENTS.len() + 1).await;
    let took = killed.elapsed();
    assert!(took < LEASE * 2, "within two leases, and it took {took:?}");
    nodes.told(&CLIENTS, 0..20, 2).await;
    let stats = nodes.api("c").get("/cluster/stats").await.expect(200).json();
    assert!(stats["takeovers"].as_u64().expect("a number") > 0, "{stats}");
    let gone = nodes.api("c").get("/cluster/nodes/b").await.expect(200).json();
    assert_eq!(gone["state"], "gone");
}

#[tokio::test]
async fn what_a_killed_node_had_runs_elsewhere_within_two_leases_and_nothing_is_lost() {
    a_killed_node_loses_nothing(By::Postgresql).await;
}

#[tokio::test]
async fn the_same_by_etcd() {
    a_killed_node_loses_nothing(By::Etcd).await;
}

#[tokio::test]
async fn a_node_that_is_stopped_hands_over_at_once_and_nothing_is_sent_twice() {
    let Some(mut nodes) = with_clients(&["a", "b"], By::Postgresql).await else { return };
    for id in 0..20 {
        nodes.put("a", id, 1).await;
    }
    nodes.told(&CLIENTS, 0..20, 1).await;
    let began = Instant::now();
    let stopping = nodes.flares.get_mut("b").expect("it is there").stop();
    assert_eq!(stopping.await.code(), Some(0));
    nodes.without("a", &["b"], CLIENTS.len() + 1).await;
    assert!(began.elapsed() < LEASE, "nobody waits for a lease: {:?}", began.elapsed());
    for id in 0..20 {
        nodes.put("a", id, 2).await;
    }
    nodes.told(&CLIENTS, 0..20, 2).await;
    assert_eq!(nodes.receiver.count(), CLIENTS.len() * 40, "each change once");
}

/// SIGSTOP beyond the lease: others take over; when it goes on, whatever it still knows writes nothing.
#[tokio::test]
async fn a_node_that_was_suspended_beyond_its_lease_gives_up_what_it_had() {
    let Some(nodes) = with_clients(&["a", "b"], By::Postgresql).await else { return };
    for id in 0..10 {
        nodes.put("a", id, 1).await;
    }
    nodes.told(&CLIENTS, 0..10, 1).await;
    nodes.flares["b"].signal("STOP");
    nodes.without("a", &["b"], CLIENTS.len() + 1).await;
    for id in 0..10 {
        nodes.put("a", id, 2).await;
    }
    nodes.told(&CLIENTS, 0..10, 2).await;
    nodes.flares["b"].signal("CONT");
    for id in 0..10 {
        nodes.put("a", id, 3).await;
    }
    nodes.told(&CLIENTS, 0..10, 3).await;
    // It joins again, and takes its part when it has been steady for a while.
    until("the node is back", || async {
        let node = nodes.api("a").get("/cluster/nodes/b").await.json();
        (node["state"] == "live").then_some(())
    })
    .await;
    nodes.green("b").await;
    // What was not recorded when it was suspended is told again, under the same name.
    let requests = nodes.receiver.requests();
    let names =
        requests.iter().map(|request| (request.path.clone(), request.header("webhook-id").to_owned()));
    assert_eq!(names.collect::<BTreeSet<_>>().len(), CLIENTS.len() * 30, "each change has one name");
}

#[tokio::test]
async fn a_drained_node_has_nothing_and_takes_units_again_when_it_may() {
    let Some(nodes) = with_clients(&["a", "b"], By::Postgresql).await else { return };
    let answer = nodes.api("a").post("/cluster/nodes/b/drain", &json!({})).await.expect(202);
    assert_eq!(answer.header("flare-node"), "b", "it is done there");
    nodes.without("a", &["b"], CLIENTS.len() + 1).await;
    until("it says so", || async {
        let node = nodes.api("a").get("/cluster/nodes/b").await.expect(200).json();
        (node["state"] == "drained").then_some(())
    })
    .await;
    let health = nodes.green("a").await;
    assert_eq!(health["reasons"], json!([]), "every unit runs where it should");
    nodes.put("b", 1, 1).await;
    nodes.told(&CLIENTS, 1..2, 1).await;
    nodes.api("a").delete("/cluster/nodes/b/drain").await.expect(200);
    until("it has units again", || async {
        nodes.owners("a").await.values().any(|owner| owner == "b").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_unit_is_moved_where_somebody_wants_it_and_stays_there() {
    let Some(nodes) = with_clients(&["a", "b"], By::Postgresql).await else { return };
    let owners = nodes.owners("a").await;
    let (unit, from) =
        owners.iter().find(|(unit, _)| unit.starts_with("subscription/")).expect("there are some");
    let to = if from == "a" { "b" } else { "a" };
    let command = json!({"commands": [{"move": {"unit": unit, "node": to}}], "dryRun": true});
    let plan = nodes.api("b").post("/cluster/reroute", &command).await.expect(200).json();
    assert_eq!((text(&plan["plan"][0]["to"]), &plan["dryRun"]), (to.to_owned(), &json!(true)));
    assert_eq!(nodes.owners("a").await.get(unit), Some(from), "it was only looked at");
    let command = json!({"commands": [{"move": {"unit": unit, "node": to}}]});
    nodes.api("b").post("/cluster/reroute", &command).await.expect(200);
    until("it is there", || async { (nodes.owners("a").await.get(unit)? == to).then_some(()) }).await;
    let explained =
        nodes.api("a").get(&format!("/cluster/assignments/explain?unit={unit}")).await.expect(200);
    assert_eq!(explained.json()["decided"]["reason"], "reroute");
    nodes.put("a", 1, 1).await;
    nodes.told(&CLIENTS, 1..2, 1).await;
    let unknown = json!({"commands": [{"move": {"unit": unit, "node": "nobody"}}]});
    nodes.api("b").post("/cluster/reroute", &unknown).await.refused(400, &["nobody"]);
}

/// While an attempt is open at a node, its unit is not served elsewhere before that has ended, or was cut.
#[tokio::test]
async fn what_is_in_flight_when_a_unit_moves_ends_first() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    nodes.subscribe("a", "c0", json!({"delivery": {"concurrency": 4}})).await;
    nodes.green("a").await;
    let gate = Gate::closed();
    let slow = gate.clone();
    nodes.receiver.answer(move |_| slow.then(Reply::Status(200)));
    nodes.put("a", 1, 1).await;
    until("it is under way", || std::future::ready((nodes.receiver.in_flight() == 1).then_some(()))).await;
    let owners = nodes.owners("a").await;
    let (unit, from) =
        owners.iter().find(|(unit, _)| unit.starts_with("subscription/")).expect("there is one");
    let to = if from == "a" { "b" } else { "a" };
    let command = json!({"commands": [{"move": {"unit": unit, "node": to}}]});
    nodes.api("a").post("/cluster/reroute", &command).await.expect(200);
    nodes.put("b", 1, 2).await;
    let alone = || nodes.receiver.in_flight() == 1;
    throughout(Duration::from_millis(700), "one request at a time for one document", alone).await;
    gate.open();
    nodes.told(&["c0"], 1..2, 2).await;
    assert_eq!(nodes.receiver.count(), 2);
    until("it is there", || async { (nodes.owners("a").await.get(unit)? == to).then_some(()) }).await;
}

#[tokio::test]
async fn what_is_new_was_not_moved_and_what_runs_is_counted_at_its_node() {
    let Some(nodes) = Nodes::start(&["a"], By::Postgresql).await else { return };
    for client in 0..10 {
        let more = json!({"shards": 1 + client % 2});
        nodes.subscribe("a", &format!("c{client}"), more).await;
        until("every unit runs", || async {
            let health = nodes.api("a").get("/cluster/health").await.expect(200).json();
            (health["status"] == "green" && health["units"]["total"] == 2 + client + (1 + client) / 2)
                .then_some(())
        })
        .await;
        let stats = nodes.api("a").get("/cluster/stats").await.expect(200).json();
        assert_eq!(stats["moves"]["total"], 0, "{stats}");
        let status = nodes.api("a").get("/status").await.expect(200).json();
        let total = &status["units"]["total"];
        assert_eq!((&status["units"]["running"], &stats["perNode"][0]["units"]), (total, total), "{stats}");
    }
}
