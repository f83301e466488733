//! The HTTP API: one operation, one file. Handlers parse, call, answer.

mod about;
mod body;
mod documents;
mod error;
mod filters;
mod insight;
mod objects;
mod openapi;
mod page;
mod query;
mod resources;
pub mod server;
mod subscriptions;
mod table;

use std::sync::Arc;

use axum::Router;
use http::{Method, Uri};

use crate::operations::App;
use error::ApiError;

type AppState = axum::extract::State<Arc<App>>;

/// All routes: those of the [`table`], and what is answered elsewhere.
pub fn routes(app: Arc<App>) -> Router {
    let operations = table::operations().into_iter();
    operations
        .fold(Router::new(), |router, operation| operation.add_to(router))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not take {method}; the Allow header says what it takes", uri.path());
    ApiError::new(http::StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", detail)
}
