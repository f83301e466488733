//! Authentication through the real binary: who is let in, to what, and that accounts do not meet.

mod accounts;
mod audit;
mod pages;
mod quotas;
mod scopes;
mod tokens;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Api};

/// A token of an account with these scopes: the token itself.
async fn token(operator: Api, draft: Value) -> String {
    let created = operator.post("/tokens", &draft).await.expect(201).json();
    created["token"].as_str().expect("it is shown this once").to_owned()
}

/// A token for everything in an account.
async fn tenant(operator: Api) -> String {
    token(operator, json!({"name": "tenant", "scopes": ["read", "origin", "subscribe", "admin"]})).await
}

async fn id(api: Api, path: &str, body: &Value) -> String {
    api.post(path, body).await.expect(201).json()["id"].as_str().expect("an id").to_owned()
}

/// Every operation of the description: method and path.
fn operations(description: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            all.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(all.len() > 55, "{}", all.len());
    all
}

/// The answer, or nothing where it is one that goes on, and so was let in.
async fn ask(api: Api, method: &str, path: &str, body: &str) -> Option<Answer> {
    let asked = api.send(method, path, &[], body.to_owned());
    tokio::time::timeout(Duration::from_secs(3), asked).await.ok()
}
