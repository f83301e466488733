//! What several nodes have is put together, whichever of them is asked; and what one of them does not say is said to be missing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::nodes::{By, Nodes, text};
use crate::support::{Reply, Tail, document_url, until};

/// Has a subscription served by this node.
async fn move_to(nodes: &Nodes, subscription: &str, node: &str) {
    let unit = format!("subscription/{subscription}/0");
    let command = json!({"commands": [{"move": {"unit": unit, "node": node}}]});
    nodes.api("a").post("/cluster/reroute", &command).await.expect(200);
    until("it is there", || async { (nodes.owners("a").await.get(&unit)? == node).then_some(()) }).await;
}

#[tokio::test]
async fn the_tail_of_any_node_is_that_of_all_and_can_be_that_of_one() {
    let Some(nodes) = Nodes::start(&["a", "b", "c"], By::Postgresql).await else { return };
    for (client, node) in [("c0", "a"), ("c1", "b"), ("c2", "c")] {
        let subscription = nodes.subscribe("a", client, json!({})).await;
        nodes.green("a").await;
        move_to(&nodes, &subscription, node).await;
    }
    let mut all = Tail::watch(&nodes.flares["a"], "").await;
    let mut own = Tail::watch(&nodes.flares["a"], "?node=a").await;
    let mut other = Tail::watch(&nodes.flares["a"], "?node=c").await;
    nodes.put("b", 1, 1).await;
    let mut heard = [all.line().await, all.line().await, all.line().await]
        .map(|line| text(&line.expect("an attempt")["node"]));
    heard.sort();
    assert_eq!(heard, ["a", "b", "c"]);
    assert_eq!(own.line().await.expect("an attempt")["node"], "a");
    assert_eq!(other.line().await.expect("an attempt")["node"], "c");
    nodes.api("a").get("/tail?node=nobody").await.refused(400, &["node", "nobody"]);
}

#[tokio::test]
async fn attempts_of_every_node_that_served_a_subscription_are_listed() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let subscription = nodes.subscribe("a", "c0", json!({})).await;
    nodes.green("a").await;
    let attempts = format!("{}/{subscription}/attempts", nodes.subscriptions());
    for (revision, node) in [(1, "a"), (2, "b")] {
        move_to(&nodes, &subscription, node).await;
        nodes.put("a", 1, revision).await;
        nodes.told(&["c0"], 1..2, revision).await;
    }
    for asked in ["a", "b"] {
        let list = until("both are kept", || async {
            let list = nodes.api(asked).get(&attempts).await.expect(200).json();
            (list["pagination"]["total"] == 2).then_some(list)
        })
        .await;
        let by: Vec<&Value> = [0_usize, 1].map(|at| &list["attempts"][at]["node"]).into();
        assert_eq!(by, [&json!("b"), &json!("a")], "the newest first");
        for at in 0..2_usize {
            let one = format!("{attempts}/{}", text(&list["attempts"][at]["id"]));
            let one = nodes.api(asked).get(&one).await.expect(200).json();
            assert_eq!(one["id"], list["attempts"][at]["id"]);
        }
        let page = nodes.api(asked).get(&format!("{attempts}?limit=1&offset=1")).await.expect(200).json();
        assert_eq!(page["attempts"][0]["id"], list["attempts"][1]["id"]);
        assert_eq!(page["pagination"], json!({"limit": 1, "offset": 1, "total": 2}));
        let document = format!("{attempts}?document={}", document_url(2));
        assert_eq!(nodes.api(asked).get(&document).await.expect(200).json()["pagination"]["total"], 0);
        nodes.api(asked).get(&format!("{attempts}/att_0")).await.expect(404);
    }
}

/// It takes connections and says nothing. What it recorded is known, and so is that this may be old.
#[tokio::test]
async fn the_status_of_a_subscription_whose_owner_does_not_answer_is_what_was_recorded() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let subscription = nodes.subscribe("a", "c0", json!({})).await;
    nodes.green("a").await;
    move_to(&nodes, &subscription, "b").await;
    nodes.put("a", 1, 1).await;
    let path = format!("{}/{subscription}", nodes.subscriptions());
    until("it is delivered", || async {
        let status = nodes.api("b").get(&format!("{path}/status")).await.expect(200).json();
        (status["delivered"] == 1 && status["feed"]["cursor"] == 1).then_some(())
    })
    .await;
    // What is known is durable once the dead letters have been looked at.
    nodes.api("b").get(&format!("{path}/dead-letters")).await.expect(200);
    nodes.flares["b"].signal("STOP");
    // Until another node has taken it over.
    let status = until("what is recorded is said, and that it may be old", || async {
        let status = nodes.api("a").get(&format!("{path}/status")).await.expect(200).json();
        (status["stale"] == true || status["node"] == "a").then_some(status)
    })
    .await;
    assert_eq!(status["delivered"], 1, "{status}");
    // Others that only the owner can answer end when it is gone, however long it is suspended.
    let letters = nodes.api("a").get(&format!("{path}/dead-letters")).await;
    assert!([200, 503].contains(&letters.status.as_u16()), "{}", letters.status);
    nodes.flares["b"].signal("CONT");
}

#[tokio::test]
async fn a_failure_and_a_session_say_whose_they_are_and_draining_since_when() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    nodes.receiver.answer(|_| Reply::Status(500));
    let subscription = nodes.subscribe("a", "c0", json!({})).await;
    nodes.green("a").await;
    move_to(&nodes, &subscription, "b").await;
    nodes.put("a", 1, 1).await;
    let path = format!("{}/{subscription}/status", nodes.subscriptions());
    let failure = until("it has failed", || async {
        let status = nodes.api("a").get(&path).await.expect(200).json();
        status["lastFailure"].is_object().then_some(status["lastFailure"].clone())
    })
    .await;
    assert_eq!(failure["node"], "b", "{failure}");
    let session = text(&nodes.api("a").get("/cluster/nodes/b").await.expect(200).json()["session"]);
    assert!(session.starts_with("ses_") && !session.starts_with("ses_ses_"), "{session}");

    // It drains for as long as an attempt is open.
    nodes.receiver.answer(|_| Reply::Hang);
    let told = nodes.receiver.count();
    nodes.put("a", 2, 1).await;
    until("an attempt is open", || async { (nodes.receiver.count() > told).then_some(()) }).await;
    nodes.api("a").post("/cluster/nodes/b/drain", &json!({})).await.expect(202);
    let since = || async {
        let health = nodes.api("a").get("/cluster/health").await.expect(200).json();
        let reasons = health["reasons"].as_array().expect("a list").clone();
        let draining = reasons.into_iter().find(|reason| reason["code"] == "draining")?;
        Some(text(&draining["since"]))
    };
    let first = until("it drains", since).await;
    // Long enough for a time that goes along to have gone along.
    let began = Instant::now();
    let later = until("a second has passed", || async {
        (began.elapsed() > Duration::from_secs(1)).then_some(())?;
        since().await
    })
    .await;
    let second = |text: &str| text[17..23].parse::<f64>().expect("seconds of a minute");
    let apart = (second(&later) - second(&first)).rem_euclid(60.0);
    assert!(apart.min(60.0 - apart) < 0.5, "since it began: {first}, and then {later}");
}

#[tokio::test]
async fn how_a_consumer_fares_its_reader_says_whichever_node_is_asked() {
    let Some(nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let none = Reply::Full { status: 200, headers: Vec::new(), body: "{}".to_owned() };
    nodes.receiver.answer(move |_| none.clone());
    let source = json!({"type": "http.poll", "url": nodes.receiver.url("/orders"), "interval": "1h"});
    let draft = json!({"source": source, "payload": {"id": "id"}});
    let consumer = text(&nodes.api("a").post("/consumers", &draft).await.expect(201).json()["id"]);
    let unit = format!("consumer/{consumer}/0");
    for reader in ["b", "a"] {
        nodes.green("a").await;
        let command = json!({"commands": [{"move": {"unit": unit, "node": reader}}]});
        nodes.api("a").post("/cluster/reroute", &command).await.expect(200);
        for asked in ["a", "b"] {
            let other = if asked == reader { "" } else { reader };
            until("its reader answers", || async {
                let answer = nodes.api(asked).get(&format!("/consumers/{consumer}/status")).await.expect(200);
                let status = answer.json();
                let of_now = status["staleNumbers"].is_null() && status["node"] == reader;
                (of_now && answer.header("flare-node") == other).then_some(())
            })
            .await;
        }
    }
}
