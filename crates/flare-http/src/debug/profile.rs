//! `GET /debug/pprof/profile?seconds=&format=`: what this process spends processor time on.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::App;
use http::Uri;
use http::header::HeaderMap;
use serde_json::json;

use super::format::Format;
use super::{Peer, admit};
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, page, query};

/// How long a profile is when the request does not say.
const USUAL: Duration = Duration::from_secs(10);

/// Takes a profile and answers it.
pub async fn handle(
    State(app): AppState,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let config = &app.config.debug;
    admit(&app.config, peer.map(|Extension(peer)| peer), &headers)?;
    let (mut time, mut format) = (USUAL.min(config.maximum_profile), Format::wanted(&headers));
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "seconds" => time = Duration::from_secs(query::number("seconds", &value)?),
            "format" => format = Format::of(&value)?,
            other => return Err(page::unknown(other, &["seconds", "format"])),
        }
    }
    if time.is_zero() || time > config.maximum_profile {
        let longest = config.maximum_profile.as_secs();
        let detail = format!("seconds must be from 1 to {longest}, which is debug.maximum-profile");
        return Err(ApiError::bad_request(detail));
    }
    take(&app, time, format).await
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let (usual, longest) = (USUAL.min(it.config.debug.maximum_profile), it.config.debug.maximum_profile);
    let seconds = json!({
        "type": "integer", "minimum": 1, "maximum": longest.as_secs(), "default": usual.as_secs(),
    });
    it.is("takeCpuProfile", "Node", "What the process spends processor time on").query(
        "seconds",
        seconds,
        "For so long the process is watched, and the answer waits.",
        json!(1),
    );
    super::describe(it, "--features cpu-profile");
}

#[cfg(not(feature = "cpu-profile"))]
async fn take(_: &App, _: Duration, _: Format) -> Result<Response, ApiError> {
    Err(ApiError::new(
        http::StatusCode::NOT_IMPLEMENTED,
        "Not in this build",
        "this Flare was built without CPU profiles; build it with --features cpu-profile",
    ))
}

#[cfg(feature = "cpu-profile")]
async fn take(app: &App, time: Duration, format: Format) -> Result<Response, ApiError> {
    use crate::profile::cpu::{NoCpuProfile, Sampling};

    let refused = |refused: NoCpuProfile| match refused {
        NoCpuProfile::Busy => ApiError::too_many(format!("{refused}; one at a time")),
        NoCpuProfile::Failed(_) => {
            tracing::error!(error = &refused as &dyn std::error::Error, "no profile");
            ApiError::unavailable("the profiler failed; the log of the node says how")
        }
    };
    let sampling = Sampling::begin(app.config.debug.sample_rate, &*app.clock).map_err(refused)?;
    tracing::info!(seconds = time.as_secs(), "a CPU profile is being taken");
    // Where the one who asked hangs up this is dropped here, and with it the sampling.
    if app.stop.run_until_cancelled(tokio::time::sleep(time)).await.is_none() {
        return Err(ApiError::unavailable("the node is stopping"));
    }
    let clock = app.clock.clone();
    let answer =
        tokio::task::spawn_blocking(move || sampling.end(&*clock).map(|profile| format.answer(&profile)));
    answer
        .await
        .map_err(|_| ApiError::unavailable("finding the names of the profile's functions failed"))?
        .map_err(refused)
}
