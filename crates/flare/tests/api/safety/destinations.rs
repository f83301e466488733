//! Where notifications may go.

use serde_json::json;

use crate::support::{Setup, minimal_resource, until_true};

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
        "[::7f00:1]",
        "[2001::1]",
        "[64:ff9b:1::7f00:1]",
        "[fec0::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "255.255.255.255",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}",
    ] {
        let body = json!({"endpoint": {"url": format!("http://{host}/hook"), "method": "post"}});
        api.post(&path, &body).await.refused(400, &["endpoint.url", "not allowed", "network.allow"]);
    }
    let logged = || flare.count_logged("a destination is not allowed");
    until_true("each is in the log", || logged() == 29).await;
    assert!(flare.count_logged("a loopback address") > 0, "the log says which rule");
    // What has a zone, or hides an address behind something else, is no host at all.
    for host in
        ["[fe80::1%25lo]", "[::1%25lo]", "[::1%lo]", "user@127.0.0.1", "127.0.0.1%00.test", "[127.0.0.1]"]
    {
        let body = json!({"endpoint": {"url": format!("http://{host}/hook"), "method": "post"}});
        api.post(&path, &body).await.refused(400, &["endpoint.url"]);
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
    // Wherever a name leads to.
    let body = json!({"endpoint": {"url": "http://mail.company.com:587/hook", "method": "post"}});
    api.post(&path, &body).await.refused(400, &["mail.company.com:587", "network.deny-ports"]);
    let polled = json!({"source": {"type": "http.poll", "url": "http://mail.company.com:25/"}, "payload": {"id": "id"}});
    api.post("/consumers", &polled).await.refused(400, &["source.url", "network.deny-ports"]);
}
