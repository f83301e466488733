//! Nodes whose API speaks TLS, and wants to see a certificate, reach each other all the same.

use std::net::SocketAddr;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::nodes::over_postgresql;
use crate::safety::tls::{Visitor, request, with_tls};
use crate::support::{Certificates, Receiver, minimal_resource, until};

/// What was answered, and by which other node.
struct Answered {
    status: u16,
    node: Option<String>,
    json: Value,
}

async fn ask(
    certificates: &Certificates,
    addr: SocketAddr,
    method: &str,
    path: &str,
    body: Value,
) -> Answered {
    let visitor = Visitor { shows: Some(certificates), ..Visitor::new(certificates) };
    let mut sender = visitor.multiplex(addr).await;
    let asked = request(method, &format!("https://{addr}{path}"), None, body.to_string());
    let answer = sender.send_request(asked).await.expect("an answer");
    let node = answer.headers().get("flare-node").map(|node| node.to_str().expect("a name").to_owned());
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    Answered { status, node, json: serde_json::from_slice(&body).expect("JSON") }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_whose_api_speaks_tls_send_requests_on_by_it() {
    let certificates = Certificates::new();
    let authority = certificates.authority();
    let authority = authority.to_str().expect("a path of text");
    let setup = with_tls(&certificates).with("FLARE_HTTP_CLIENT_CA", authority);
    let setup = setup.with("FLARE_HTTP_SERVER_TLS_CLIENT_CA", authority);
    let Some(setup) = over_postgresql(setup) else { return };
    let (a, b) =
        (setup.clone().with("FLARE_CLUSTER_NODE", "a").start().await, setup.with("FLARE_CLUSTER_NODE", "b"));
    let b = b.start().await;
    let (a, b) = (a.addr(), b.addr());
    until("both are there", || async {
        let health = ask(&certificates, a, "GET", "/cluster/health", json!({})).await.json;
        (health["nodes"]["live"] == 2).then_some(())
    })
    .await;
    let node = ask(&certificates, a, "GET", "/cluster/nodes/b", json!({})).await.json;
    assert_eq!(node["address"], format!("https://{b}"), "{node}");
    let receiver = Receiver::start().await;
    let resource = ask(&certificates, a, "POST", "/resources", minimal_resource()).await.json;
    let list = format!("/resources/{}/subscriptions", resource["id"].as_str().expect("an id"));
    let mut sent_on = 0;
    for client in 0..4 {
        let draft = json!({"endpoint": {"url": receiver.url(&format!("/c{client}/{{id}}"))}});
        let created = ask(&certificates, a, "POST", &list, draft).await;
        assert_eq!(created.status, 201, "{}", created.json);
        let letters = format!("{list}/{}/dead-letters", created.json["id"].as_str().expect("an id"));
        for addr in [a, b] {
            let answered = ask(&certificates, addr, "GET", &letters, json!({})).await;
            assert_eq!(answered.status, 200, "{}", answered.json);
            sent_on += usize::from(answered.node.is_some());
        }
    }
    assert_eq!(sent_on, 4, "each was asked of its owner, and of the other");
    let stats = ask(&certificates, a, "GET", "/cluster/stats", json!({})).await.json;
    assert_eq!(stats["unreachable"], json!([]), "{stats}");
}
