//! Requests to JetStream: JSON goes out on a subject, JSON or an error with a number comes back.

use async_nats::{Client, RequestErrorKind};
use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use serde_json::Value;

use crate::link::away;

/// The server's numbers for what it lacks.
const NO_STREAM: u64 = 10_059;
const NO_CONSUMER: u64 = 10_014;

/// What is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    Stream,
    Consumer,
}

/// Why there is no answer to use.
#[derive(Debug)]
pub enum ApiError {
    /// The server lacks it.
    Lacks(Lacks, String),
    /// The server will not do it.
    Refused(String),
    /// Nobody answered, or not now.
    Away(String),
}

impl From<ApiError> for BridgeError {
    fn from(error: ApiError) -> BridgeError {
        match error {
            ApiError::Lacks(Lacks::Stream, words) => BridgeError::new(BridgeErrorKind::Missing, words),
            // It is made when the source is opened.
            ApiError::Lacks(Lacks::Consumer, words) => BridgeError::new(BridgeErrorKind::Broken, words),
            ApiError::Refused(words) => BridgeError::new(BridgeErrorKind::Refused, words),
            ApiError::Away(words) => away(&words),
        }
    }
}

/// Asks `$JS.API.<operation>`.
pub async fn ask(client: &Client, operation: &str, body: &Value) -> Result<Value, ApiError> {
    let payload = if body.is_null() { String::new() } else { body.to_string() };
    let answer =
        client.request(format!("$JS.API.{operation}"), payload.into()).await.map_err(|error| match error
            .kind()
        {
            RequestErrorKind::NoResponders => {
                ApiError::Away("no server has JetStream at the moment".to_owned())
            }
            RequestErrorKind::InvalidSubject => {
                ApiError::Refused(format!("\"{operation}\" is no name of NATS"))
            }
            _ => ApiError::Away(format!("asking NATS for {operation}: {error}")),
        })?;
    let answer: Value = serde_json::from_slice(&answer.payload)
        .map_err(|error| ApiError::Away(format!("NATS answered {operation} with something else: {error}")))?;
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => Err(refusal(error)),
    }
}

fn refusal(error: &Value) -> ApiError {
    let words = error["description"].as_str().unwrap_or("no reason was given").to_owned();
    match (error["err_code"].as_u64(), error["code"].as_u64()) {
        (Some(NO_STREAM), _) => ApiError::Lacks(Lacks::Stream, words),
        (Some(NO_CONSUMER), _) => ApiError::Lacks(Lacks::Consumer, words),
        (_, Some(code)) if code >= 500 => ApiError::Away(words),
        _ => ApiError::Refused(words),
    }
}

/// All entries of a list that comes in pages.
pub async fn list(client: &Client, operation: &str, entries: &str) -> Result<Vec<Value>, ApiError> {
    let mut all = Vec::new();
    loop {
        let page = ask(client, operation, &serde_json::json!({"offset": all.len()})).await?;
        let found = page[entries].as_array().cloned().unwrap_or_default();
        let total = page["total"].as_u64().unwrap_or_default() as usize;
        let over = found.is_empty();
        all.extend(found);
        if over || all.len() >= total {
            return Ok(all);
        }
    }
}

/// As the source and the sink name it.
pub fn result<T>(answer: Result<T, ApiError>) -> BridgeResult<T> {
    answer.map_err(BridgeError::from)
}
