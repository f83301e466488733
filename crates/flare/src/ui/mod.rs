//! The web interface at `/ui`: requests of browsers come in, pages go out.
//!
//! One page, one file; a page calls the same operations as the API does and has a template of the same name in
//! `templates/`. What all pages share: [`page`] (the frame around each), [`form`] (fields with the API's own
//! messages beside them), [`moment`] (times, as their reader has them), [`pager`], [`flash`], [`live`] (what moves while one looks), [`assets`] and [`guard`]
//! (what a browser may do here).

pub mod access;
mod assets;
mod cluster;
mod consumers;
mod dashboard;
mod docs;
mod documents;
mod explain;
mod flash;
mod form;
mod guard;
mod icons;
pub mod live;
mod moment;
mod page;
mod pager;
mod plot;
mod producers;
mod resources;
mod settings;
mod subscriptions;
mod text;

use std::sync::Arc;

use axum::Extension;
use axum::middleware;
use axum::routing::{get, post};
use flare_http::Site;
use flare_http::error::ApiError;
use http::{Method, StatusCode, Uri};

use live::Live;
use page::{PageError, Visit};

/// Where the interface begins.
pub const HOME: &str = flare_http::HOME;

/// All pages; those that move get at their listeners.
pub fn routes(live: Arc<Live>) -> Site {
    Site::default()
        .route(HOME, get(dashboard::handle))
        .route("/ui/assets/{file}", get(assets::handle))
        .route("/ui/live/dashboard", get(dashboard::live))
        .route("/ui/resources", get(resources::list::handle))
        .route("/ui/resources/new", get(resources::create::form).post(resources::create::submit))
        .route("/ui/resources/{rid}", get(resources::show::handle))
        .route("/ui/resources/{rid}/delete", post(resources::delete::submit))
        .route("/ui/documents", get(documents::search::handle))
        .route("/ui/documents/show", get(documents::show::handle))
        .route("/ui/documents/put", get(documents::put::form).post(documents::put::submit))
        .route("/ui/documents/delete", post(documents::delete::submit))
        .route("/ui/explain", get(explain::handle))
        .route("/ui/cluster", get(cluster::handle))
        .route("/ui/live/cluster", get(cluster::live))
        .route("/ui/settings", get(settings::handle))
        .route("/ui/sign-in", get(access::sign_in::form).post(access::sign_in::submit))
        .route("/ui/sign-out", post(access::sign_in::leave))
        .route("/ui/tokens", get(access::tokens::list))
        .route("/ui/tokens/new", get(access::tokens::form).post(access::tokens::submit))
        .route("/ui/tokens/{token}/revoke", post(access::tokens::revoke))
        .route("/ui/accounts", get(access::accounts::list))
        .route("/ui/accounts/new", get(access::accounts::form).post(access::accounts::submit))
        .route("/ui/accounts/{account}/delete", post(access::accounts::delete))
        .route("/ui/audit", get(access::audit::list))
        .merge(subscriptions::routes())
        .merge(consumers::routes())
        .merge(producers::routes())
        .route("/docs", get(docs::handle))
        .route("/ui/{*path}", get(unknown_page))
        .with(|router| {
            let router = router.method_not_allowed_fallback(wrong_method);
            router.layer(middleware::from_fn(guard::watch)).layer(Extension(live))
        })
}

async fn unknown_page(visit: Visit, uri: Uri) -> PageError {
    visit.problem(ApiError::not_found(format!("there is no page at {}", uri.path())))
}

async fn wrong_method(visit: Visit, method: Method, uri: Uri) -> PageError {
    let detail = format!("{} does not take {method}", uri.path());
    visit.problem(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", detail))
}
