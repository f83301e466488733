//! `GET /openapi.json`: the description of the API, made of the same table as the routes (`http/table.rs`) and of the
//! types that handlers read and answer.
//!
//! - `operation.rs`: an operation: method, path, handler, and what is said of it
//! - `notes.rs`: how an operation's file says it      `errors.rs`, `examples.rs`: what many of them share
//! - `schemas.rs`, `merge_patch.rs`: types → JSON Schema      `document.rs`: the whole

mod document;
mod errors;
pub mod examples;
mod merge_patch;
mod notes;
mod operation;
mod schemas;

use std::collections::HashMap;
use std::sync::OnceLock;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flare_core::config::Config;
use http::Method;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde_json::json;

pub use notes::Notes;
pub use operation::{Operation, delete, get, patch, post, put};

use super::{AppState, table};

/// The description of this node: its bounds and defaults are those of its configuration. It is made when it is first
/// asked for, which takes a few milliseconds, and kept: a process is one node.
static DESCRIPTION: OnceLock<Bytes> = OnceLock::new();

/// The description as JSON.
pub fn description(config: &Config) -> Bytes {
    let make = || document::describe(&table::operations(), config).to_string().into();
    DESCRIPTION.get_or_init(make).clone()
}

/// The names that the description gives to operations.
pub fn names(config: &Config) -> HashMap<(Method, String), String> {
    let whole = document::describe(&table::operations(), config);
    let name = |operation: &Operation| {
        let template = operation.template();
        let method = operation.method.as_str().to_ascii_lowercase();
        let id = whole["paths"][&template][&method]["operationId"].as_str()?.to_owned();
        Some(((operation.method.clone(), template), id))
    };
    table::operations().iter().filter_map(name).collect()
}

/// Answers the description.
pub async fn handle(State(app): AppState) -> Response {
    let mut response = description(&app.config).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getDescription", "Node", "This description")
        .text("OpenAPI 3.1, made from the code of this node. Bounds and defaults are those of its configuration.")
        .never_fails()
        .answers_as(
            200,
            "The description.",
            "application/json",
            json!({"type": "object", "required": ["openapi", "info", "paths", "components"]}),
            json!({"openapi": "3.1.0", "info": {"title": "Flare", "version": "0.1.0"}, "paths": {}, "components": {}}),
        );
}
