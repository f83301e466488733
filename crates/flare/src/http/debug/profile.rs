//! `GET /debug/pprof/profile?seconds=&format=`: what this process spends processor time on.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::Uri;
use http::header::{ACCEPT, HeaderMap};

use super::{Peer, admit};
use crate::http::error::ApiError;
use crate::http::{AppState, page, query};
use flare_core::operations::App;

/// What the answer is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// For tools.
    Pprof,
    /// For a browser.
    Svg,
}

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
    admit(config, peer.map(|Extension(peer)| peer), &headers)?;
    let (mut time, mut format) = (USUAL.min(config.maximum_profile), wanted(&headers));
    for (name, value) in page::pairs(&uri) {
        match name.as_str() {
            "seconds" => time = Duration::from_secs(query::number("seconds", &value)?),
            "format" => format = format_of(&value)?,
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

fn format_of(value: &str) -> Result<Format, ApiError> {
    match value {
        "pprof" => Ok(Format::Pprof),
        "svg" => Ok(Format::Svg),
        other => Err(ApiError::bad_request(format!("format must be pprof or svg, got `{other}`"))),
    }
}

/// A browser is shown a picture.
fn wanted(headers: &HeaderMap) -> Format {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("image/svg+xml") || accepts.contains("text/html") {
        Format::Svg
    } else {
        Format::Pprof
    }
}

#[cfg(not(feature = "cpu-profile"))]
async fn take(_: &App, _: Duration, _: Format) -> Result<Response, ApiError> {
    Err(ApiError::new(
        http::StatusCode::NOT_IMPLEMENTED,
        "Not in this build",
        "this Flare was built without profiles; build it with --features cpu-profile",
    ))
}

#[cfg(feature = "cpu-profile")]
async fn take(app: &App, time: Duration, format: Format) -> Result<Response, ApiError> {
    use crate::profile::cpu::{Refused, Sampling};
    use crate::profile::{encode, svg};

    let refused = |refused: Refused| match refused {
        Refused::Busy => ApiError::too_many(format!("{refused}; one at a time")),
        Refused::Failed(_) => {
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
    let answer = tokio::task::spawn_blocking(move || {
        let profile = sampling.end(&*clock)?;
        let samples = profile.samples();
        let (kind, body) = match format {
            Format::Pprof => ("application/octet-stream", encode(&profile)),
            Format::Svg => ("image/svg+xml", svg(&profile).into_bytes()),
        };
        tracing::info!(samples, bytes = body.len(), "a CPU profile was taken");
        Ok::<_, Refused>((kind, body))
    });
    let (kind, body) = answer
        .await
        .map_err(|_| ApiError::unavailable("finding the names of the profile's functions failed"))?
        .map_err(refused)?;
    let mut response = Response::new(body.into());
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    Ok(response)
}
