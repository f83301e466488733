//! Bodies: read within a limit and a time, and parsed as JSON whatever the content type says.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flare_core::objects::Objects;
use flare_core::operations::App;
use flare_model::invalid::plain;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::{Deserialize, Serialize};

use super::error::ApiError;

/// What is read of a body that is refused for its size, and for how long, so that its sender hears why: most clients send
/// all of it before they listen, and would only see that the connection broke.
const READ_ON: u64 = 64 << 20;
const READ_ON_FOR: Duration = Duration::from_secs(5);

/// A sender that pauses so long listens.
const PAUSE: Duration = Duration::from_millis(500);

/// Reads a whole body. One that announces more than the limit is not kept, and not even asked for where its sender waits
/// for that (`Expect: 100-continue`).
pub async fn read(app: &App, headers: &HeaderMap, mut body: Body) -> Result<Bytes, ApiError> {
    if let Err(refusal) = as_it_is(headers) {
        read_on(&mut body).await;
        return Err(refusal);
    }
    let limit = app.config.http.server.body_limit.as_usize();
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(length) = announced.filter(|length| *length > limit as u64) {
        // Looking at the body is what would ask for it.
        if length <= READ_ON && !headers.contains_key(EXPECT) {
            read_on(&mut body).await;
        }
        return Err(ApiError::too_large(limit));
    }
    let collecting = Limited::new(&mut body, limit).collect();
    let collected = tokio::time::timeout(app.config.http.server.timeout, collecting).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            read_on(&mut body).await;
            Err(ApiError::too_large(limit))
        }
        Ok(Err(error)) => Err(ApiError::bad_request(format!("the body could not be read: {error}"))),
        Err(_) => Err(too_slow(app)),
    }
}

/// Nothing is unpacked, so there is nothing that could become larger than it is.
pub fn as_it_is(headers: &HeaderMap) -> Result<(), ApiError> {
    let packed = |coding: &&HeaderValue| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    match headers.get_all(CONTENT_ENCODING).iter().find(packed) {
        None => Ok(()),
        Some(coding) => {
            let coding: String = coding.to_str().unwrap_or("what it says").chars().take(50).collect();
            let detail =
                format!("Content-Encoding: {coding} is not taken; send the body as it is, not compressed");
            Err(ApiError::bad_request(detail))
        }
    }
}

/// Reads what nobody wants, within bounds.
async fn read_on(body: &mut Body) {
    let reading = async {
        let mut read = 0;
        while read < READ_ON
            && let Ok(Some(Ok(frame))) = tokio::time::timeout(PAUSE, body.frame()).await
        {
            read += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
    };
    // What is left then is cut with the connection.
    let _ = tokio::time::timeout(READ_ON_FOR, reading).await;
}

/// The body did not come in time.
pub fn too_slow(app: &App) -> ApiError {
    let limit = flare_model::duration::HumanDuration(app.config.http.server.timeout);
    let detail = format!("the request was not complete within {limit} (http.server.timeout)");
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "The request took too long", detail)
}

/// Parses a body; a mistake is named with the field it is in.
pub fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(Objects(&mut deserializer)).map_err(|error| {
        let path = error.path().to_string();
        let problem = plain(error.inner());
        match path.as_str() {
            "." | "?" => ApiError::bad_request(format!("the body is not what is expected: {problem}")),
            path => ApiError::bad_request(format!("{path}: {problem}")),
        }
    })?;
    deserializer
        .end()
        .map_err(|error| ApiError::bad_request(format!("there is something after the JSON: {error}")))?;
    Ok(value)
}

/// Parses a body that may be left out, which says the same as an empty object.
pub fn optional<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    json(if body.is_empty() { b"{}" } else { body })
}

/// An answer in JSON.
pub fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("answers are plain data");
    let mut response = (status, body).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A body that says when its connection has taken all of it. Dropped before, it says nothing.
pub struct Noticed<F> {
    body: Body,
    taken: Option<F>,
}

impl<F: FnOnce() + Unpin> Noticed<F> {
    /// `taken` is called once.
    pub fn new(body: Body, taken: F) -> Self {
        Self { body, taken: Some(taken) }
    }
}

impl<F: FnOnce() + Unpin> HttpBody for Noticed<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        let last = matches!(polled, Poll::Ready(None)) || polled.is_ready() && this.body.is_end_stream();
        if last && let Some(taken) = this.taken.take() {
            taken();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// 201 with the place of what was created.
pub fn created(location: &str, value: &impl Serialize) -> Response {
    let mut response = answer(StatusCode::CREATED, value);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(http::header::LOCATION, location);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn a_body_that_is_dropped_unread_is_not_said_to_be_taken() {
        let taken = Arc::new(AtomicUsize::new(0));
        let body = || {
            let taken = taken.clone();
            Noticed::new(Body::from("messages"), move || {
                taken.fetch_add(1, Ordering::SeqCst);
            })
        };
        drop(body());
        assert_eq!(taken.load(Ordering::SeqCst), 0);
        assert_eq!(body().size_hint().exact(), Some(8), "its length is announced");
        assert_eq!(body().collect().await.expect("it is in memory").to_bytes(), "messages");
        assert_eq!(taken.load(Ordering::SeqCst), 1);
    }
}
