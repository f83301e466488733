//! `GET /explain?document=URL&subscription=ID`.

use axum::extract::State;
use axum::response::Response;
use flare_model::ids::SubscriptionId;
use http::{StatusCode, Uri};

use crate::http::error::ApiError;
use crate::http::{AppState, body, page};

/// Says why a client was or was not told about a document.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let [document, subscription] = page::required(&uri, ["document", "subscription"])?;
    let url = app.document_url(&document)?;
    let explanation = app.explain(&url, &SubscriptionId::new(subscription)).await?;
    Ok(body::answer(StatusCode::OK, &explanation))
}
