//! `POST /ui/resources/:id/delete`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::Failure;
use flare_http::AppState;
use flare_model::ids::ResourceId;

use crate::ui::flash;
use crate::ui::page::{PageError, message};

/// Deletes a resource, or says on its page why not.
pub async fn submit(State(app): AppState, Path(id): Path<String>) -> Result<Response, PageError> {
    match app.delete_resource(&ResourceId::new(id.as_str())).await {
        Ok(()) => Ok(flash::done("/ui/resources", format!("Resource {id} and its documents are deleted."))),
        Err(failure @ Failure::Conflict(_)) => {
            Ok(flash::refused(&format!("/ui/resources/{id}"), message(failure)))
        }
        Err(failure) => Err(failure.into()),
    }
}
