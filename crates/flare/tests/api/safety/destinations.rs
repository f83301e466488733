//! Where notifications may go.

use serde_json::json;

use crate::support::{Setup, minimal_resource};

#[tokio::test]
async fn every_way_to_write_an_address_is_judged_when_a_subscription_is_created() {
    let flare = Setup::default().listening_everywhere().start().await;
    let api = flare.api();
    let resource = api.post("/resources", &minimal_resource()).await.expect(201).json();
    let path = format!("/resources/{}/subscriptions", resource["id"].as_str().unwrap());
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "127.0.0.1.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "10.1",
        "0xa9fea9fe",
        "0",
        "[fe80::1]",
    ] {
        let body = json!({"endpoint": {"url": format!("http://{host}/hook"), "method": "post"}});
        api.post(&path, &body).await.refused(400, &["endpoint.url", "network.allow"]);
    }
    let public = json!({"endpoint": {"url": "http://1.1.1.1/hook", "method": "post"}, "mode": "passive"});
    api.post(&path, &public).await.expect(201);
}

#[tokio::test]
async fn a_denied_port_is_refused_by_name() {
    let flare = Setup::default().with("FLARE_NETWORK_DENY_PORTS", "25,587").start().await;
    let api = flare.api();
    let resource = api.post("/resources", &minimal_resource()).await.expect(201).json();
    let path = format!("/resources/{}/subscriptions", resource["id"].as_str().unwrap());
    let body = json!({"endpoint": {"url": "http://127.0.0.1:25/hook", "method": "post"}});
    api.post(&path, &body).await.refused(400, &["endpoint.url", "127.0.0.1:25", "network.deny-ports"]);
}
