//! The audit log: who did what, and who tried.

use std::time::Duration;

use serde_json::{Value, json};

use super::{id, tenant, token};
use crate::support::{Api, Setup, document_url, minimal_resource, store_is_durable};

async fn events(api: Api, query: &str) -> Vec<Value> {
    let answer = api.get(&format!("/audit{query}")).await.expect(200).json();
    answer["events"].as_array().expect("a list").clone()
}

fn told(event: &Value) -> (&str, &str, u64) {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    (text("operation"), text("target"), event["status"].as_u64().unwrap_or_default())
}

#[tokio::test]
async fn what_changes_something_but_documents_is_written_down_with_who_did_it() {
    let mut flare = Setup::default().guarded().start().await;
    let operator = flare.operator();
    operator.post("/accounts", &json!({"name": "acme"})).await.expect(201);
    let acme = flare.api().with(&tenant(operator.acting_for("acme")).await);
    let resource = id(acme, "/resources", &minimal_resource()).await;
    acme.put(&document_url(1), &json!({"rev": 1})).await;
    acme.get("/resources").await.expect(200);
    acme.post("/resources", &minimal_resource()).await.expect(409);
    let reader = token(operator.acting_for("acme"), json!({"name": "reader", "scopes": ["read"]})).await;
    flare.api().with(&reader).delete(&format!("/resources/{resource}")).await.expect(403);
    acme.post("/retry/simulate", &json!({})).await;

    let mine = events(acme, "").await;
    let place = format!("/resources/{resource}");
    let told_of: Vec<_> = mine.iter().map(told).collect();
    let expected = [
        ("deleteResource", place.as_str(), 403),
        ("createResource", "/resources", 409),
        ("createResource", place.as_str(), 201),
    ];
    let of_resources: Vec<_> =
        told_of.iter().filter(|(name, ..)| name.ends_with("Resource")).copied().collect();
    assert_eq!(of_resources, expected);
    assert_eq!(told_of.len(), 5, "two tokens were made as well: {told_of:?}");
    let first = &mine[0];
    assert_eq!((&first["account"], &first["token"]["name"]), (&json!("acme"), &json!("reader")));
    assert_eq!(first["address"], "127.0.0.1");
    assert!(first["at"].as_str().unwrap().ends_with('Z') && first["token"]["id"].is_string());
    assert!(mine.iter().any(|event| event["token"]["name"] == "operator"));

    let all = events(operator, "").await;
    assert!(all.iter().any(|event| event["operation"] == "createAccount" && event["account"] == "default"));
    assert_eq!(all.len(), mine.len() + 1);
    assert_eq!(events(operator.acting_for("acme"), "").await.len(), mine.len());
    let since = first["at"].as_str().unwrap();
    assert!(events(acme, &format!("?since={since}")).await.len() < mine.len());
    assert_eq!(events(acme, "?limit=1").await.len(), 1);
    acme.get("/audit?since=yesterday").await.refused(400, &["since"]);
    for method in ["DELETE", "POST", "PUT", "PATCH"] {
        operator.send(method, "/audit", &[], "").await.expect(405);
    }
    if store_is_durable() {
        flare.restart().await;
        assert_eq!(events(flare.operator(), "").await.len(), all.len());
    }
}

#[tokio::test]
async fn the_log_has_a_retention_of_its_own() {
    let flare = Setup::default().guarded().with("FLARE_AUTH_AUDIT_RETENTION", "1s").start().await;
    let operator = flare.operator();
    operator.post("/accounts", &json!({"name": "acme"})).await.expect(201);
    assert_eq!(events(operator, "").await.len(), 1);
    crate::support::until("it is forgotten", || async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        events(operator, "").await.is_empty().then_some(())
    })
    .await;
}
