//! `GET /debug/pprof/heap`: who holds memory. The allocator cannot say; whoever may ask is told so.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::HeaderMap;

use super::{Peer, admit};
use crate::http::AppState;
use crate::http::error::ApiError;

/// Says that there is none.
pub async fn handle(
    State(app): AppState,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    admit(&app.config.debug, peer.map(|Extension(peer)| peer), &headers)?;
    Err(ApiError::new(
        StatusCode::NOT_IMPLEMENTED,
        "Not in this build",
        "heap profiles need an allocator that keeps them, and this one (mimalloc) does not",
    ))
}
