//! `POST /resources/:rid/subscriptions`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use flare_model::subscription::View;
use http::HeaderMap;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::subscription::Draft;
use serde_json::json;

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

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let mut created = examples::subscription();
    created["secret"] = examples::SECRET.into();
    super::bounds(it);
    it.is("createSubscription", "Subscriptions", "Create a subscription")
        .text("From this moment on no change of the resource's documents is missed. `secret` is in this answer alone.")
        .body::<Draft>(json!({
            "endpoint": {
                "url": "http://127.0.0.1:9000/users/{id}", "method": "post",
                "headers": {"Authorization": ["Basic YWxhZGRpbjpvcGVuc2VzYW1l"]},
                "actions": {"delete": {"method": "delete"}},
            },
            "delivery": {
                "success": [200, 204], "discard": [422], "timeout": "15s", "concurrency": 10,
                "rateLimit": {"quantity": 100, "interval": "1s"},
                "retry": {"quantity": 50, "ttl": "72h", "interval": "5s", "progression": "geometric", "ratio": 2,
                    "maxInterval": "1h"},
                "revision": "last",
            },
            "content": {"envelope": true, "document": true},
            "data": {"service": "user", "id": "{id}"},
            "filter": "document.quantity > 0",
            "when": "action != 'update' || document.price != state.price",
            "mode": "active", "start": "now", "shards": 1,
        }))
        .answers::<View>(201, "The subscription, defaults filled in.", created)
        .with_location(201)
        .refuses(409, "Another subscription of the resource has the same url for the same action.");
}
