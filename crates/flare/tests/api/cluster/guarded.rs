//! Several nodes with authentication: whoever one lets in another does, and nobody is told of what is not theirs.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::nodes::{By, KEY, Nodes, text};
use crate::support::{OPERATOR, document_url, minimal_resource, until};

#[tokio::test]
async fn whom_one_node_knows_another_lets_in_at_once() {
    let Some(nodes) = Nodes::start_guarded(&["a", "b"]).await else { return };
    for at in 0..20 {
        let draft = json!({"name": format!("t{at}"), "scopes": ["read", "origin", "subscribe", "admin"]});
        let made = nodes.api("a").post("/tokens", &draft).await.expect(201).json();
        let shop = nodes.flares["b"].api().with(made["token"].as_str().expect("it is shown once"));
        shop.get(&format!("/tokens/{}", text(&made["id"]))).await.expect(200);
        let mut resource = minimal_resource();
        resource["endpoint"] = json!(format!("http://many.test/r{at}/{{id}}"));
        let resource = nodes.api("a").post("/resources", &resource).await.expect(201).json();
        let put =
            shop.send("PUT", &format!("/documents/http://many.test/r{at}/1"), &[], r#"{"rev":1}"#).await;
        assert_eq!(put.status, 202, "{at}");
        let subscriptions = format!("/resources/{}/subscriptions", text(&resource["id"]));
        let draft = json!({"endpoint": {"url": nodes.receiver.url(&format!("/c{at}/{{id}}"))}});
        let subscribe = async |name: &str| {
            text(&nodes.api(name).post(&subscriptions, &draft).await.expect(201).json()["id"])
        };
        let subscription = subscribe("a").await;
        shop.delete(&format!("{subscriptions}/{subscription}")).await.expect(204);
        let subscription = subscribe("a").await;
        shop.get(&format!("{subscriptions}/{subscription}/status")).await.expect(200);
    }
}

#[tokio::test]
async fn what_is_revoked_on_one_node_another_refuses_within_a_second() {
    let Some(nodes) = Nodes::start_guarded(&["a", "b"]).await else { return };
    let draft = json!({"name": "shop", "scopes": ["read"]});
    let made = nodes.api("a").post("/tokens", &draft).await.expect(201).json();
    let shop = nodes.flares["b"].api().with(made["token"].as_str().expect("it is shown once"));
    shop.get("/resources").await.expect(200);
    nodes.api("a").delete(&format!("/tokens/{}", text(&made["id"]))).await.expect(204);
    let revoked = std::time::Instant::now();
    until("it is refused", || async { (shop.get("/resources").await.status == 401).then_some(()) }).await;
    assert!(revoked.elapsed().as_millis() < 2000, "{:?}", revoked.elapsed());
}

#[tokio::test]
async fn accounts_do_not_meet_on_whichever_node_they_are_asked_for() {
    let Some(nodes) = Nodes::start_guarded(&["a", "b"]).await else { return };
    for at in 0..5 {
        let name = format!("acme{at}");
        nodes.api("a").post("/accounts", &json!({"name": name})).await.expect(201);
        nodes.api("b").get(&format!("/accounts/{name}")).await.expect(200);
    }
    nodes.api("a").post("/accounts", &json!({"name": "acme"})).await.expect(201);
    let (default, acme) = (nodes.api("a"), nodes.api("b").acting_for("acme"));
    let theirs = acme.post("/resources", &minimal_resource()).await.expect(201).json();
    let path = format!("/resources/{}", text(&theirs["id"]));
    default.acting_for("default").get(&path).await.expect(404);
    nodes.put("a", 1, 7).await;
    let document = format!("/documents/{}", document_url(1));
    acme.get(&document).await.expect(404);
    acme.send("PUT", &document, &[], r#"{"rev":3}"#).await.expect(202);
    let seen = nodes.api("a").acting_for("acme").get(&document).await.expect(200).json();
    assert_eq!(seen["revision"], 3);
    let seen = nodes.api("b").acting_for("default").get(&document).await.expect(200).json();
    assert_eq!(seen["revision"], 7);
}

/// The head of the answer to a request from another address of this machine.
async fn ask_from(address: &str, node: SocketAddr, lines: &str) -> String {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{address}:0").parse().expect("an address")).expect("it is this machine's");
    let mut stream = socket.connect(node).await.expect("the node listens");
    let head =
        format!("{lines}host: {node}\r\nauthorization: Bearer {OPERATOR}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("the node reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("the node answers");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn what_is_sent_on_is_written_down_with_where_it_came_from() {
    let Some(nodes) = Nodes::start_guarded(&["a", "b"]).await else { return };
    let subscription = nodes.subscribe("a", "c", json!({})).await;
    for name in ["a", "b"] {
        nodes.green(name).await;
    }
    let path = format!("{}/{subscription}/pause", nodes.subscriptions());
    // One of them sends it on to the other. Nobody but a node says for whom it asks.
    for name in ["a", "b"] {
        let lines = format!("POST {path} HTTP/1.1\r\nflare-forwarded-for: 127.0.0.9\r\n");
        let answer = ask_from("127.0.0.2", nodes.flares[name].addr(), &lines).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let forged = format!("{lines}flare-forwarded-by: b\r\n");
        let answer = ask_from("127.0.0.2", nodes.flares[name].addr(), &forged).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("cluster.token"), "{answer}");
    }
    let events = nodes.api("a").get("/audit").await.expect(200).json();
    let paused = events["events"].as_array().expect("a list").iter();
    let paused: Vec<_> = paused.filter(|event| event["operation"] == "pauseSubscription").collect();
    assert!(paused.len() >= 2, "{events}");
    assert!(paused.iter().all(|event| event["address"] == "127.0.0.2"), "{events}");
}

#[tokio::test]
async fn nobody_is_told_by_which_node_another_accounts_client_is_served() {
    let Some(nodes) = Nodes::start_guarded(&["a", "b"]).await else { return };
    let subscription = nodes.subscribe("a", "c", json!({})).await;
    nodes.put("a", 1, 1).await;
    nodes.api("a").post("/accounts", &json!({"name": "acme"})).await.expect(201);
    let explain = |id: &str| format!("/explain?document={}&subscription={id}", document_url(1));
    for name in ["a", "b"] {
        nodes.api(name).get(&explain(&subscription)).await.expect(200);
        let acme = nodes.api(name).acting_for("acme");
        let theirs = acme.get(&explain(&subscription)).await.refused(404, &[&subscription]);
        let nothing = acme.get(&explain("sub_nothing")).await.refused(404, &["sub_nothing"]);
        assert_eq!((theirs.header("flare-node"), nothing.header("flare-node")), ("", ""), "{name}");
    }
}

#[tokio::test]
async fn a_key_is_rotated_for_all_nodes() {
    let Some(mut nodes) = Nodes::start(&["a", "b"], By::Postgresql).await else { return };
    let headers = json!({"Authorization": ["Bearer kept"]});
    let endpoint = json!({"url": nodes.receiver.url("/c/{id}"), "method": "put", "headers": headers});
    nodes.subscribe("a", "c", json!({ "endpoint": endpoint })).await;
    nodes.put("a", 1, 1).await;
    nodes.receiver.wait_for(1).await;
    for flare in nodes.flares.values_mut() {
        assert!(flare.stop().await.success());
    }
    let folder = tempfile::tempdir().unwrap();
    let former = folder.path().join("former");
    std::fs::write(&former, KEY).unwrap();
    let with_another = nodes.setup().with("FLARE_AUTH_SECRET_KEY", &STANDARD.encode([1; 32]));
    let rotate = ["key", "rotate", "--former-file", former.to_str().expect("a path of letters")];
    let rotated = with_another.run(&rotate).await;
    let said = String::from_utf8_lossy(&rotated.stderr).into_owned();
    assert!(rotated.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&rotated.stdout).contains("1 subscriptions are sealed anew"), "{said}");

    let node = with_another.clone().with("FLARE_CLUSTER_NODE", "a").start().await;
    node.api().put(&document_url(1), &json!({"rev": 2})).await;
    let told = nodes.receiver.wait_for(2).await;
    assert_eq!(told[1].header("authorization"), "Bearer kept");
    let refused =
        nodes.setup().with("FLARE_CLUSTER_NODE", "b").run(&["start", "--addr", "127.0.0.1:0"]).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(3) && said.contains("auth.secret-key"), "{said}");
}
