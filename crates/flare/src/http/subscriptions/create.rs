//! `POST /resources/:rid/subscriptions`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use flare_model::subscription::View;
use http::HeaderMap;

use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Creates a subscription.
pub async fn handle(
    State(app): AppState,
    Path(resource): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft = body::json(&body::read(&app, &headers, body).await?)?;
    let resource = ResourceId::new(resource);
    let (subscription, secret) = app.create_subscription(&resource, draft).await?;
    let location = format!("/resources/{resource}/subscriptions/{}", subscription.id());
    // The only time that the secret is shown.
    let view = View { secret: Some(secret), ..app.view(&subscription).await? };
    Ok(body::created(&location, &view))
}
