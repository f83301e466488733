//! The one place where errors become HTTP. Internals are logged with their chain, once, here; the client gets
//! a title and a detail that is safe to show.

use axum::response::{IntoResponse, Response};
use flare_core::journey::accept::NotAccepted;
use flare_core::operations::Failure;
use flare_model::invalid::Invalid;
use flare_provider::ProviderError;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use schemars::JsonSchema;
use serde::Serialize;

/// An answer that is not a success.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    body: ErrorBody,
}

/// What stands under `error`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorBody {
    /// What kind of problem, in a few words.
    pub title: &'static str,
    /// What exactly, and what to do.
    pub detail: String,
}

/// The JSON of an error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorAnswer<'a> {
    /// The error.
    pub error: &'a ErrorBody,
}

impl ApiError {
    /// An error with a status.
    pub fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> ApiError {
        ApiError { status, body: ErrorBody { title, detail: detail.into() } }
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// 400.
    pub fn bad_request(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "The request is not valid", detail)
    }

    /// 404.
    pub fn not_found(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "Not found", detail)
    }

    /// 413.
    pub fn too_large(limit: usize) -> ApiError {
        let detail = format!("the body may have {limit} bytes at most (http.server.body-limit)");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large", detail)
    }

    /// 503 with `Retry-After`.
    pub fn unavailable(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "Not available now", detail)
    }

    /// 429 with `Retry-After`.
    pub fn too_many(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "Too many requests", detail)
    }

    /// The body of a bulk line's error.
    pub fn into_body(self) -> ErrorBody {
        self.body
    }

    /// Status, title and detail.
    pub fn parts(&self) -> (StatusCode, &'static str, &str) {
        (self.status, self.body.title, &self.body.detail)
    }

    /// Whether the request may succeed later as it is.
    pub fn is_temporary(&self) -> bool {
        matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&ErrorAnswer { error: &self.body }).expect("an error is plain data");
        let mut response = (self.status, body).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.is_temporary() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> ApiError {
        match failure {
            Failure::NotFound(detail) => ApiError::not_found(detail),
            Failure::Invalid(invalid) => invalid.into(),
            Failure::Conflict(detail) => ApiError::new(StatusCode::CONFLICT, "Conflict", detail),
            Failure::Forbidden(detail) => ApiError::new(StatusCode::FORBIDDEN, "Forbidden", detail),
            Failure::TooMany(detail) => ApiError::too_many(detail),
            Failure::Stopping => ApiError::unavailable("the node is stopping"),
            Failure::Store(error) => error.into(),
        }
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> ApiError {
        ApiError::bad_request(invalid.to_string())
    }
}

impl From<NotAccepted> for ApiError {
    fn from(refused: NotAccepted) -> ApiError {
        match refused {
            NotAccepted::NoResource(_) => ApiError::not_found(refused.to_string()),
            NotAccepted::Unreadable(error) => ApiError::bad_request(error.to_string()),
            NotAccepted::Quota { detail, passes: true } => ApiError::too_many(detail),
            NotAccepted::Quota { detail, passes: false } => {
                ApiError::new(StatusCode::FORBIDDEN, "Forbidden", detail)
            }
            NotAccepted::Store(error) => error.into(),
        }
    }
}

impl From<ProviderError> for ApiError {
    fn from(error: ProviderError) -> ApiError {
        if error.is_passing() {
            return ApiError::unavailable(format!("the store cannot take this now: {}", error.detail));
        }
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        tracing::error!(error = %error, cause, kind = ?error.kind, "the store failed");
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Something is wrong with Flare",
            "the log of the node says what",
        )
    }
}
