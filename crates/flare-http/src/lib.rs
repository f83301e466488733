//! The HTTP API: one operation, one file. Handlers parse, call, answer. What is absent: pages for people; whoever has some
//! adds them to the [`site`].

mod about;
pub mod body;
mod browser;
mod debug;
mod documents;
pub mod error;
mod filters;
mod head;
mod insight;
pub mod openapi;
pub mod page;
#[cfg(any(feature = "cpu-profile", feature = "heap-profile"))]
pub mod profile;
pub mod query;
mod refusal;
mod resources;
mod seats;
pub mod server;
mod site;
mod stall;
mod subscriptions;
mod table;
mod turn;
mod watch;

use std::sync::Arc;

use axum::middleware;
use flare_core::operations::{App, Changes};
use http::{Method, Uri};

use error::ApiError;
pub use site::Site;
pub use watch::Watch;

/// How handlers get at the node.
pub type AppState = axum::extract::State<Arc<App>>;

/// Where a browser that asks for nothing in particular is sent: the pages begin here, where there are any.
pub const HOME: &str = "/ui";

/// All routes: those of the [`table`], and pages, whose forms are seen through like operations.
pub fn site(pages: Site, changes: &Changes) -> Site {
    let seen_through = middleware::from_fn_with_state(changes.clone(), site::see_through);
    let operations = table::operations().into_iter();
    operations
        .fold(Site::default(), |site, operation| operation.add_to(site, changes))
        .merge(pages.with(|router| router.layer(seen_through)))
        .with(|router| router.fallback(unknown_path).method_not_allowed_fallback(wrong_method))
}

async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not take {method}; the Allow header says what it takes", uri.path());
    ApiError::new(http::StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", detail)
}
