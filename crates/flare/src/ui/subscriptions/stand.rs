//! `POST /ui/subscriptions/:id/pause` and `.../resume`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::Failure;
use flare_http::AppState;
use flare_model::subscription::{PauseDraft, PausedBy};

use super::head::{find, ids, place};
use crate::ui::flash;
use crate::ui::page::{PageError, message};

/// Stops it.
pub async fn pause(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    let (resource, id) = ids(&*find(&app, &id)?);
    app.pause(&resource, &id, PausedBy::WebInterface, PauseDraft::default()).await?;
    Ok(flash::done(&place(&id), "Paused. Nothing is sent until it is resumed, and nothing is lost."))
}

/// Lets it go on.
pub async fn resume(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    let (resource, id) = ids(&*find(&app, &id)?);
    match app.resume(&resource, &id).await {
        Ok(_) => {
            Ok(flash::done(&place(&id), "Resumed. What changed meanwhile is sent now, in its newest state."))
        }
        Err(failure @ Failure::Conflict(_)) => Ok(flash::refused(&place(&id), message(failure))),
        Err(failure) => Err(failure.into()),
    }
}
