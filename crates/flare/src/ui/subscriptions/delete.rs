//! `POST /ui/subscriptions/:id/delete`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_http::AppState;

use super::head::{find, ids};
use crate::ui::flash;
use crate::ui::page::PageError;
use crate::ui::text;

/// Deletes it with all that is known of its client.
pub async fn submit(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    let subscription = find(&app, &id)?;
    let (resource, id) = ids(&subscription);
    app.delete_subscription(&resource, &id).await?;
    Ok(flash::done(
        "/ui/subscriptions",
        format!("The subscription to {} is deleted.", text::client(&subscription)),
    ))
}
