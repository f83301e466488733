//! The HTTP API: one operation, one file. Handlers parse, call, answer.

mod about;
pub mod body;
mod debug;
mod documents;
pub mod error;
mod filters;
mod insight;
pub mod openapi;
pub mod page;
pub mod query;
mod resources;
pub mod server;
mod subscriptions;
mod table;

use std::sync::Arc;

use axum::Router;
use http::{Method, Uri};

use crate::operations::App;
use crate::ui;
use error::ApiError;

/// How handlers get at the node.
pub type AppState = axum::extract::State<Arc<App>>;

/// All routes: those of the [`table`], and what is answered elsewhere.
pub fn routes(app: Arc<App>) -> Router {
    let pages = if app.config.ui.enabled { ui::routes() } else { Router::new() };
    let operations = table::operations().into_iter();
    operations
        .fold(Router::new(), |router, operation| operation.add_to(router))
        .merge(pages)
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
