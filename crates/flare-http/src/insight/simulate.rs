//! `POST /retry/simulate`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_model::retry::RetryDraft;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body};
use flare_model::retry::Plan;
use serde_json::json;

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
    let given: &RawValue = body::optional(&bytes)?;
    // A list would be taken for the fields in their order.
    let named =
        given.get().starts_with('{').then(|| serde_json::from_str::<Named>(given.get()).ok()).flatten();
    let retry = named.map_or(given, |named| named.retry);
    let within = format!("{{\"delivery\":{{\"retry\":{retry}}}}}");
    let Within { delivery } = body::json(within.as_bytes())?;
    Ok(body::answer(StatusCode::OK, &app.plan_retries(delivery.retry, SHOWN)?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let retry = it.schema::<RetryDraft>();
    let named = json!({
        "type": "object", "required": ["retry"], "additionalProperties": false, "properties": {"retry": retry},
    });
    it.is("simulateRetry", "Insight", "The plan of a retry policy")
        .text(
            "The attempts of a notification that fails each time. The body is a `retry` as in `delivery.retry`, alone or \
             under its name; empty for the default one.",
        )
        .body_as(
            "application/json",
            json!({"anyOf": [retry, named]}),
            false,
            json!({"quantity": 3, "interval": "10s"}),
        )
        .answers::<Plan>(
            200,
            "The plan. `givesUp` is `null` where the end is more than 100000 attempts away.",
            json!({
                "attempts": [
                    {"attempt": 1, "after": "0s", "earliest": "0s", "latest": "0s", "certain": true},
                    {"attempt": 2, "after": "10s", "earliest": "9s", "latest": "11s", "certain": true},
                    {"attempt": 3, "after": "30s", "earliest": "27s", "latest": "33s", "certain": true},
                ],
                "more": false,
                "givesUp": {"attempt": 3, "after": "30s", "reason": "quantity",
                    "detail": "there are 3 attempts at most (quantity)"},
                "throttle": {"fromAttempt": null, "longestGap": "10s",
                    "detail": "after 5 failures in a row (those of requests that were open at the same time count once), or \
                        one timeout, the client gets one request at a time until one succeeds. The plan is kept: a retry is \
                        sent when it is due, and where several documents wait, the one that is due first; it may have to \
                        wait for the request before it to end. Documents that were not tried yet come one by one, at most \
                        10s apart"},
            }),
        )
        .answers_only(&[200, 400, 408, 413]);
}
