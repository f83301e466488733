//! `GET /explain?document=URL&subscription=ID`.

use axum::extract::State;
use axum::response::Response;
use flare_model::ids::SubscriptionId;
use http::{StatusCode, Uri};

use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body, page};
use flare_model::explain::Explanation;
use serde_json::json;

/// Says why a client was or was not told about a document.
pub async fn handle(State(app): AppState, By(by): By, uri: Uri) -> Result<Response, ApiError> {
    let [document, subscription] = page::required(&uri, ["document", "subscription"])?;
    let explanation = app.explain(&by, &document, &SubscriptionId::new(subscription)).await?;
    Ok(body::answer(StatusCode::OK, &explanation))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let url = json!({"type": "string", "format": "document-url", "minLength": 1});
    it.is("explain", "Insight", "Why a client was or was not told")
        .needs_query("document", url, "The url of a document.", json!(examples::DOCUMENT))
        .needs_query(
            "subscription",
            json!({"type": "string", "minLength": 1}),
            "The id of a subscription.",
            json!(examples::SUBSCRIPTION),
        )
        .answers::<Explanation>(
            200,
            "The answer in a word, and the facts in the order in which Flare looks at them.",
            json!({"verdict": "waiting", "next": "wait: it is sent by itself", "facts": [
                {"at": examples::TIME, "fact": "revision", "detail": "it is at revision 2, change 130 of lane 3"},
                {"at": null, "fact": "standing", "detail": "the client has an older state"},
            ]}),
        )
        .refuses(404, "There is no such subscription.");
}
