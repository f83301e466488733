//! `GET /subscriptions` and `GET /subscriptions/:id`: whatever the resource.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::OverviewView;
use flare_model::ids::SubscriptionId;
use http::{StatusCode, Uri};

use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use crate::{AppState, body};
use flare_model::subscription::View;

/// Lists how the subscriptions of all resources stand.
pub async fn list(State(app): AppState, By(by): By, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let found = app.overview(&by, page.offset, page.limit).await?;
    Ok(page.answer(found.total as u64, "subscriptions", found.entries))
}

/// Shows a subscription.
pub async fn show(State(app): AppState, By(by): By, Path(id): Path<String>) -> Result<Response, ApiError> {
    let id = SubscriptionId::new(id);
    let found = app.registry.subscription_for(&by, &id).filter(|found| !found.id().is_producer());
    let subscription = found.ok_or_else(|| ApiError::not_found(format!("there is no subscription {id}")))?;
    Ok(body::answer(StatusCode::OK, &app.view(&subscription).await?))
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    let mut entry = examples::status();
    (entry["id"], entry["resource"]) = (examples::SUBSCRIPTION.into(), examples::RESOURCE.into());
    it.is("listAllSubscriptions", "Subscriptions", "List the subscriptions of all resources")
        .pages()
        .answers_list::<OverviewView>("subscriptions", "How each of them stands.", entry);
}

/// What the description says of one.
pub fn describe_show(it: &mut Notes<'_>) {
    it.is("findSubscription", "Subscriptions", "Show a subscription, whatever its resource").answers::<View>(
        200,
        "The subscription.",
        examples::subscription(),
    );
}
