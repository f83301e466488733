//! `POST /resources/:rid/subscriptions/:id/test`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::TestDraft;
use flare_core::operations::TestView;
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use serde_json::json;

/// Sends a sample notification now and answers how it went.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let draft = body::optional(&body::read(&app, &headers, body).await?)?;
    Ok(body::answer(StatusCode::OK, &app.test(&resource, &id, draft).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let (request, response) = examples::exchange();
    it.is("testSubscription", "Subscriptions", "Send a test")
        .text("Sends a sample notification, or one about a real document, now; nothing changes by it.")
        .optional_body::<TestDraft>(json!({"document": examples::DOCUMENT, "action": "update"}))
        .answers::<TestView>(
            200,
            "It was sent, whatever the client said.",
            json!({
                "outcome": "failed", "document": examples::DOCUMENT, "action": "update",
                "webhookId": "msg_test_1", "beganAt": examples::TIME,
                "timing": {"queued": null, "connect": "0.2ms", "firstByte": "3.1ms", "total": "3.2ms"},
                "request": request, "response": response, "error": null,
            }),
        )
        .refuses(429, "Sixteen tests are under way; wait for one of them.");
}
