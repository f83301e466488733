//! Several nodes with authentication: whoever one lets in another does, and nobody is told of what is not theirs.

use serde_json::json;

use super::nodes::{Nodes, text};
use crate::support::{document_url, minimal_resource, until};

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
