//! How handlers learn who asks: what the guard found out, or anybody where there is no guard.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use flare_core::operations::App;
use flare_model::access::Caller;
use http::request::Parts;

use super::guard::unknown;
use crate::error::ApiError;

/// Who asks.
pub struct By(pub Caller);

impl FromRequestParts<Arc<App>> for By {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<By, ApiError> {
        if app.access.is_none() {
            return Ok(By(Caller::anybody()));
        }
        // Whatever the guard has not seen comes from nobody.
        parts.extensions.get::<Caller>().cloned().map(By).ok_or_else(unknown)
    }
}
