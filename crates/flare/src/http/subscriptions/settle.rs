//! `POST /resources/:rid/subscriptions/:id/settle`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};

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
