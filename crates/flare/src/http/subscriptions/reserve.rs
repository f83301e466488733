//! `POST /resources/:rid/subscriptions/:id/reserve?quantity=&wait=&lease=`.

use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body, page, query};
use crate::operations::ReserveQuery;

/// Hands out notifications of a passive subscription, waiting for some if there are none.
pub async fn handle(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let mut reserve = ReserveQuery::default();
    for (name, value) in page::pairs(&uri) {
        match name.as_str() {
            "quantity" => reserve.quantity = Some(query::number("quantity", &value)?),
            "wait" => reserve.wait = Some(query::duration("wait", &value)?),
            "lease" => reserve.lease = Some(query::duration("lease", &value)?),
            other => return Err(page::unknown(other, &["quantity", "wait", "lease"])),
        }
    }
    Ok(body::answer(StatusCode::OK, &app.reserve(&resource, &id, reserve).await?))
}
