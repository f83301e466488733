//! What is done from the page of a consumer: stopped, let go on, deleted; its dead letters read once more, or dropped.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{ConsumerReplayDraft, Failure};
use flare_http::AppState;
use flare_model::ids::ResourceId;

use super::place;
use crate::ui::flash;
use crate::ui::page::{PageError, message};
use crate::ui::text;

/// Stops it.
pub async fn pause(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    app.pause_consumer(&ResourceId::new(id.as_str())).await?;
    Ok(flash::done(&place(&id), "Paused. Nothing more is asked of its source, and nothing is lost."))
}

/// Lets it go on.
pub async fn resume(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    app.resume_consumer(&ResourceId::new(id.as_str())).await?;
    Ok(flash::done(&place(&id), "Resumed. It goes on where it was."))
}

/// Deletes it, or says on its page why not.
pub async fn delete(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    match app.delete_consumer(&ResourceId::new(id.as_str())).await {
        Ok(()) => Ok(flash::done("/ui/consumers", format!("Consumer {id} and its documents are deleted."))),
        Err(failure @ Failure::Conflict(_)) => Ok(flash::refused(&place(&id), message(failure))),
        Err(failure) => Err(failure.into()),
    }
}

/// Reads its dead letters once more.
pub async fn replay(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    let draft = ConsumerReplayDraft::dead_letters();
    let replay = app.replay_consumer_letters(&ResourceId::new(id.as_str()), draft).await?;
    let words = match replay.total {
        0 => "There are no dead letters.".to_owned(),
        total => format!(
            "{} read once more; below it says how far that is.",
            text::count(total, "message is", "messages are")
        ),
    };
    Ok(flash::done(&place(&id), words))
}

/// Drops its dead letters.
pub async fn discard(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    let dropped = app.drop_consumer_letters(&ResourceId::new(id.as_str()), None).await?;
    let words = format!("{} gone.", text::count(dropped, "dead letter is", "dead letters are"));
    Ok(flash::done(&place(&id), words))
}
