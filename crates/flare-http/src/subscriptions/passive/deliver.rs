//! `POST /resources/:rid/subscriptions/:id/deliver?quantity=&concurrency=`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::DeliverQuery;
use flare_core::operations::DeliverView;
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body, page, query};
use serde_json::json;

/// Sends notifications of a passive subscription to its endpoint, and answers how that went.
pub async fn handle(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let mut deliver = DeliverQuery::default();
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "quantity" => deliver.quantity = Some(query::number("quantity", &value)?),
            "concurrency" => deliver.concurrency = Some(query::number("concurrency", &value)?),
            other => return Err(page::unknown(other, &["quantity", "concurrency"])),
        }
    }
    Ok(body::answer(StatusCode::OK, &app.deliver(&resource, &id, deliver).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let quantity = super::quantity(it);
    let most = it.config.delivery.maximum_concurrency;
    it.is("deliver", "Pull mode", "Send some notifications now")
        .text("Sends notifications of a passive subscription to its endpoint, and answers when they have ended.")
        .query("quantity", quantity, "At most so many requests.", json!(20))
        .query(
            "concurrency",
            json!({"type": "integer", "minimum": 1, "maximum": most}),
            "At most so many of them open at once; at most, and by default, the subscription's own.",
            json!(5),
        )
        .answers::<DeliverView>(
            200,
            "How that went.",
            json!({"requested": 20, "delivered": 18, "discarded": 1, "failed": 1, "remaining": 42}),
        )
        .refuses(400, "A parameter is not valid, or the subscription is active.")
        .refuses(409, "The subscription stands still, or another deliver is under way.");
}
