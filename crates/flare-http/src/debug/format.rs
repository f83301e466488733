//! In: how a profile is asked for. Out: which form it gets, and the answer.

use http::header::{ACCEPT, HeaderMap};

use crate::error::ApiError;

/// What the answer is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For tools.
    Pprof,
    /// For a browser.
    Svg,
}

impl Format {
    /// By the parameter `format`.
    pub fn of(value: &str) -> Result<Format, ApiError> {
        match value {
            "pprof" => Ok(Format::Pprof),
            "svg" => Ok(Format::Svg),
            other => Err(ApiError::bad_request(format!("format must be pprof or svg, got `{other}`"))),
        }
    }

    /// Without it: a browser is shown a picture.
    pub fn wanted(headers: &HeaderMap) -> Format {
        let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accepts.contains("image/svg+xml") || accepts.contains("text/html") {
            Format::Svg
        } else {
            Format::Pprof
        }
    }

    /// A profile in this form.
    #[cfg(any(feature = "cpu-profile", feature = "heap-profile"))]
    pub fn answer(self, profile: &crate::profile::Profile) -> axum::response::Response {
        use crate::profile::{encode, svg};
        let (kind, body) = match self {
            Format::Pprof => ("application/octet-stream", encode(profile)),
            Format::Svg => ("image/svg+xml", svg(profile).into_bytes()),
        };
        tracing::info!(stacks = profile.stacks.len(), bytes = body.len(), "a profile was taken");
        let mut response = axum::response::Response::new(body.into());
        response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
        response
    }
}
