//! The HTTP API: one operation, one file. Handlers parse, call, answer. What is absent: pages for people; whoever has some
//! adds them to the [`site`].

mod about;
pub mod access;
pub mod body;
mod browser;
pub mod cluster;
mod consumers;
mod debug;
mod documents;
pub mod error;
mod filters;
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod insight;
mod line;
mod multiplex;
pub mod openapi;
pub mod page;
mod producers;
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

use access::guard::{self, Door, Gate, Rule};
use axum::middleware;
use flare_core::config::Config;
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
        .merge(pages.with(|router| router.layer(middleware::from_fn(guard::note)).layer(seen_through)))
        .with(|router| router.fallback(unknown_path).method_not_allowed_fallback(wrong_method))
}

async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not take {method}; the Allow header says what it takes", uri.path());
    ApiError::new(http::StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", detail)
}

/// What each operation needs, by its route.
pub fn gate(config: &Config) -> Gate {
    let names = openapi::names(config);
    let mut gate = Gate::default();
    for operation in table::operations() {
        let key = (operation.method.clone(), operation.template());
        let audited = operation.audited.then(|| names.get(&key).cloned().unwrap_or_default());
        gate.add(operation.path, operation.method, Rule { need: operation.need, audited });
    }
    gate
}

/// The same routes behind a gate: for a node that has authentication.
pub fn guarded(routes: axum::Router, app: Arc<App>, gate: Gate) -> axum::Router {
    routes.route_layer(middleware::from_fn_with_state(Arc::new(Door { app, gate }), guard::stand))
}
