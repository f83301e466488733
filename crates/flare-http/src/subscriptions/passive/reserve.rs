//! `POST /resources/:rid/subscriptions/:id/reserve?quantity=&wait=&lease=`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::ReserveQuery;
use flare_core::operations::ReserveView;
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body, page, query};
use serde_json::json;

/// Hands out notifications of a passive subscription, waiting for some if there are none.
pub async fn handle(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let mut reserve = ReserveQuery::default();
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "quantity" => reserve.quantity = Some(query::number("quantity", &value)?),
            "wait" => reserve.wait = Some(query::duration("wait", &value)?),
            "lease" => reserve.lease = Some(query::duration("lease", &value)?),
            other => return Err(page::unknown(other, &["quantity", "wait", "lease"])),
        }
    }
    let mut reserved = app.reserve(&resource, &id, reserve).await?;
    let receipt = reserved.receipt.take();
    // A connection that ends before it has taken the body drops it, and with it the receipt.
    Ok(body::answer(StatusCode::OK, &reserved).map(|body| match receipt {
        Some(receipt) => Body::new(body::Noticed::new(body, move || receipt.handed_over())),
        None => body,
    }))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let (quantity, lease, wait) = (super::quantity(it), super::lease(it), super::wait(it));
    it.is("reserve", "Pull mode", "Take some notifications away")
        .text("A long poll: waits up to `wait` where there is none. What is handed out is on a lease, on stable storage.")
        .query("quantity", quantity, "At most so many notifications.", json!(20))
        .query("wait", wait, "How long to wait when there is none.", json!("100ms"))
        .query("lease", lease, "For how long they are reserved.", json!("30s"))
        .answers::<ReserveView>(200, "The notifications, perhaps none.", json!({"messages": [super::message()]}))
        .refuses(400, "A parameter is not valid, or the subscription is active.")
        .refuses(409, "The subscription stands still.")
        .refuses(429, "As many wait as may.");
}
