//! `POST /retry/simulate`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_model::retry::RetryDraft;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Attempts shown, at most; `more` says that there are others.
const SHOWN: usize = 1000;

/// The part of a subscription that a retry stands in, so that mistakes are named as they are there.
#[derive(Deserialize)]
struct Within {
    delivery: Delivery,
}

#[derive(Deserialize)]
struct Delivery {
    retry: RetryDraft,
}

/// A retry as it stands in a subscription, with its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named<'a> {
    #[serde(borrow)]
    retry: &'a RawValue,
}

/// Shows the planned attempts of a retry policy. The body is the policy, alone or as `{"retry":{...}}`.
pub async fn handle(State(app): AppState, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let bytes = body::read(&app, &headers, body).await?;
    // An empty body is the default policy.
    let given: &RawValue = body::json(if bytes.is_empty() { b"{}" } else { &bytes })?;
    // A list would be taken for the fields in their order.
    let named =
        given.get().starts_with('{').then(|| serde_json::from_str::<Named>(given.get()).ok()).flatten();
    let retry = named.map_or(given, |named| named.retry);
    let within = format!("{{\"delivery\":{{\"retry\":{retry}}}}}");
    let Within { delivery } = body::json(within.as_bytes())?;
    Ok(body::answer(StatusCode::OK, &app.plan_retries(delivery.retry, SHOWN)?))
}
