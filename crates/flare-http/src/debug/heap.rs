//! `GET /debug/pprof/heap?format=`: who holds memory now.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::App;
use http::Uri;
use http::header::HeaderMap;

use super::format::Format;
use super::{Peer, admit};
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, page};

/// Takes a profile and answers it.
pub async fn handle(
    State(app): AppState,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    admit(&app.config, peer.map(|Extension(peer)| peer), &headers)?;
    let mut format = Format::wanted(&headers);
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "format" => format = Format::of(&value)?,
            other => return Err(page::unknown(other, &["format"])),
        }
    }
    take(&app, format).await
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("takeHeapProfile", "Node", "Who holds memory now");
    super::describe(it, "--features heap-profile");
}

#[cfg(not(feature = "heap-profile"))]
async fn take(_: &App, _: Format) -> Result<Response, ApiError> {
    Err(ApiError::new(
        http::StatusCode::NOT_IMPLEMENTED,
        "Not in this build",
        "this Flare was built without heap profiles, which need another allocator; build it with --features heap-profile",
    ))
}

#[cfg(feature = "heap-profile")]
async fn take(app: &App, format: Format) -> Result<Response, ApiError> {
    use crate::profile::heap::{self, NoHeapProfile};

    let clock = app.clock.clone();
    let profile =
        tokio::task::spawn_blocking(move || heap::take(&*clock).map(|profile| format.answer(&profile)));
    let taken = profile.await.map_err(|_| ApiError::unavailable("reading the allocator's notes failed"))?;
    taken.map_err(|refused| match refused {
        NoHeapProfile::Busy => ApiError::too_many(format!("{refused}; one at a time")),
        NoHeapProfile::Off => ApiError::unavailable(format!(
            "{refused}; start Flare with MALLOC_CONF=prof:true, or build it in its own folder, where .cargo/config.toml \
             says so"
        )),
        NoHeapProfile::Allocator(_) | NoHeapProfile::File(..) | NoHeapProfile::Text(_) => {
            tracing::error!(error = &refused as &dyn std::error::Error, "no heap profile");
            ApiError::unavailable("there is no heap profile; the log of the node says why")
        }
    })
}
