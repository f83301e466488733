//! `POST /resources/:rid/subscriptions/:id/settle`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{SettleDraft, SettleView};
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body};
use serde_json::json;

/// Ends leases, and answers what became of each, in order.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let draft = body::json(&body::read(&app, &headers, body).await?)?;
    Ok(body::answer(StatusCode::OK, &app.settle(&resource, &id, draft).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let most = it.config.delivery.passive.maximum_quantity;
    it.is("settle", "Pull mode", "Say what became of them")
        .text("Ends leases, or extends them. Also on a subscription that is active by now.")
        .bound("SettleDraft", "messages", json!({"maxItems": most}))
        .body::<SettleDraft>(json!({"messages": [
            {"lease": "lease_1-3-1-2f-0-1-19a8", "status": "release", "delay": "300ms"},
            {"lease": "lease_1-3-2-30-0-1-19a8", "status": "extend", "for": "30s"},
        ]}))
        .answers::<SettleView>(
            200,
            "An outcome for each, in order, on stable storage.",
            json!({"messages": [
                {"lease": "lease_1-3-1-2f-0-1-19a8", "outcome": "settled"},
                {"lease": "lease_1-3-2-30-0-1-19a8", "outcome": "extended"},
            ]}),
        );
}
