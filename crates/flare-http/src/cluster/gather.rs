//! The same question to all other nodes at once: a path comes in, the answers go out, with the nodes that gave none in time.

use std::time::Duration;

use axum::body::Body;
use flare_core::operations::App;
use flare_model::cluster::NodeId;
use futures_util::future::join_all;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde::de::DeserializeOwned;

use super::relay::relay;

/// How long another node may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// More is nothing that a node says of itself.
const LARGEST: usize = 16 << 20;

/// Nodes that did not answer in time, in an answer that is made of those of others.
pub const UNREACHABLE: &str = "flare-unreachable";

/// What all others answered.
pub struct Gathered<T> {
    /// Each with who did; nothing where it has nothing to say.
    pub answered: Vec<(NodeId, Option<T>)>,
    /// Who did not answer in time.
    pub unreachable: Vec<String>,
}

/// Asks all other nodes for what is at a path, as whoever has these headers.
pub async fn gather<T: DeserializeOwned>(app: &App, path: &str, headers: &HeaderMap) -> Gathered<T> {
    let others = app.others();
    let asked = others.iter().map(|(node, address)| async move {
        (node, tokio::time::timeout(PATIENCE, ask(app, node, address, path, headers)).await.ok().flatten())
    });
    let mut gathered = Gathered { answered: Vec::new(), unreachable: Vec::new() };
    for (node, answer) in join_all(asked).await {
        match answer {
            Some(answer) => gathered.answered.push((node.clone(), answer)),
            None => gathered.unreachable.push(node.to_string()),
        }
    }
    gathered
}

/// The headers of a node that asks as the operator does, where there is authentication.
pub fn as_operator(app: &App) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let bearer = app.config.auth.operator_token.reveal().map(|token| format!("Bearer {token}"));
    if let Some(mut bearer) = bearer.and_then(|bearer| HeaderValue::from_str(&bearer).ok()) {
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    headers
}

async fn ask<T: DeserializeOwned>(
    app: &App,
    node: &NodeId,
    address: &str,
    path: &str,
    headers: &HeaderMap,
) -> Option<Option<T>> {
    let mut request = Request::get(path).body(Body::empty()).ok()?;
    *request.headers_mut() = headers.clone();
    let answer = relay(app, node, address, request).await.ok()?;
    if answer.status() == StatusCode::NOT_FOUND {
        return Some(None);
    }
    let body = Limited::new(answer.into_body(), LARGEST).collect().await.ok()?;
    serde_json::from_slice(&body.to_bytes()).ok().map(Some)
}
