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
mod site;
mod subscriptions;
mod table;
mod watch;

use std::sync::Arc;

use flare_core::operations::App;
use http::{Method, Uri};

use crate::ui::{self, live::Live};
use error::ApiError;
pub use site::Site;
pub use watch::Watch;

/// How handlers get at the node.
pub type AppState = axum::extract::State<Arc<App>>;

/// All routes: those of the [`table`], and what is answered elsewhere.
pub fn site(pages: Option<Arc<Live>>) -> Site {
    let pages = pages.map(ui::routes).unwrap_or_default();
    let operations = table::operations().into_iter();
    operations
        .fold(Site::default(), |site, operation| operation.add_to(site))
        .merge(pages)
        .with(|router| router.fallback(unknown_path).method_not_allowed_fallback(wrong_method))
}

async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not take {method}; the Allow header says what it takes", uri.path());
    ApiError::new(http::StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", detail)
}
