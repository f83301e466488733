//! `POST /resources/:rid/subscriptions/:id/deliver?quantity=&concurrency=`.

use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body, page, query};
use crate::operations::DeliverQuery;

/// Sends notifications of a passive subscription to its endpoint, and answers how that went.
pub async fn handle(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let mut deliver = DeliverQuery::default();
    for (name, value) in page::pairs(&uri) {
        match name.as_str() {
            "quantity" => deliver.quantity = Some(query::number("quantity", &value)?),
            "concurrency" => deliver.concurrency = Some(query::number("concurrency", &value)?),
            other => return Err(page::unknown(other, &["quantity", "concurrency"])),
        }
    }
    Ok(body::answer(StatusCode::OK, &app.deliver(&resource, &id, deliver).await?))
}
