//! The HTTP API: one operation, one file. Handlers parse, call, answer.

mod about;
pub mod body;
mod documents;
pub mod error;
mod filters;
mod insight;
pub mod page;
pub mod query;
mod resources;
pub mod server;
mod subscriptions;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use http::{Method, Uri};

use crate::operations::App;
use crate::ui;
use error::ApiError;

/// How handlers get at the node.
pub type AppState = axum::extract::State<Arc<App>>;

/// All routes.
pub fn routes(app: Arc<App>) -> Router {
    let pages = if app.config.ui.enabled { ui::routes() } else { Router::new() };
    Router::new()
        .route("/", get(about::version::handle))
        .route("/status", get(about::status::handle))
        .route("/healthz", get(about::health::alive))
        .route("/readyz", get(about::health::ready))
        .route("/explain", get(insight::explain::handle))
        .route("/metrics/history", get(insight::history::handle))
        .route("/tail", get(insight::tail::handle))
        .route("/retry/simulate", post(insight::simulate::handle))
        .route("/resources", get(resources::list::handle).post(resources::create::handle))
        .route("/resources/{rid}", get(resources::show::handle).delete(resources::delete::handle))
        .route(
            "/resources/{rid}/subscriptions",
            get(subscriptions::list::handle).post(subscriptions::create::handle),
        )
        .route(
            "/resources/{rid}/subscriptions/{id}",
            get(subscriptions::show::handle)
                .patch(subscriptions::patch::handle)
                .delete(subscriptions::delete::handle),
        )
        .route("/resources/{rid}/subscriptions/{id}/pause", post(subscriptions::pause::handle))
        .route("/resources/{rid}/subscriptions/{id}/resume", post(subscriptions::resume::handle))
        .route("/resources/{rid}/subscriptions/{id}/secret/rotate", post(subscriptions::rotate::handle))
        .route("/resources/{rid}/subscriptions/{id}/status", get(subscriptions::status::handle))
        .route("/resources/{rid}/subscriptions/{id}/deliver", post(subscriptions::deliver::handle))
        .route("/resources/{rid}/subscriptions/{id}/reserve", post(subscriptions::reserve::handle))
        .route("/resources/{rid}/subscriptions/{id}/settle", post(subscriptions::settle::handle))
        .route("/resources/{rid}/subscriptions/{id}/stream", get(subscriptions::stream::handle))
        .route("/resources/{rid}/subscriptions/{id}/test", post(subscriptions::test::handle))
        .route("/resources/{rid}/subscriptions/{id}/attempts", get(subscriptions::attempts::list))
        .route("/resources/{rid}/subscriptions/{id}/attempts/{attempt}", get(subscriptions::attempts::show))
        .route("/resources/{rid}/subscriptions/{id}/documents", get(subscriptions::documents::handle))
        .route("/resources/{rid}/subscriptions/{id}/replay", post(subscriptions::replay::handle))
        .route("/resources/{rid}/subscriptions/{id}/replays", get(subscriptions::replay::list))
        .route("/resources/{rid}/subscriptions/{id}/replays/{replay}", get(subscriptions::replay::progress))
        .route(
            "/resources/{rid}/subscriptions/{id}/dead-letters",
            get(subscriptions::dead_letters::list).delete(subscriptions::dead_letters::discard),
        )
        .route("/subscriptions", get(subscriptions::all::list))
        .route("/subscriptions/{id}", get(subscriptions::all::show))
        .route("/filters/test", post(filters::test::handle))
        .route("/documents", post(documents::bulk::handle))
        .route(
            "/documents/{*url}",
            get(documents::get::handle).put(documents::put::handle).delete(documents::delete::handle),
        )
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
