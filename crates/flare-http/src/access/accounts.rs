//! `/accounts`: whom entities belong to. For the operator.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::AccountView;
use flare_model::access::AccountDraft;
use http::{HeaderMap, StatusCode, Uri};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use crate::{AppState, body};

/// Creates an account.
pub async fn create(State(app): AppState, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let draft: AccountDraft = body::json(&body::read(&app, &headers, body).await?)?;
    let account = app.create_account(draft).await?;
    Ok(body::created(&format!("/accounts/{}", account.name), &account))
}

/// Lists accounts.
pub async fn list(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let accounts = app.accounts(page.offset, page.limit).await?;
    Ok(page.answer(accounts.total as u64, "accounts", accounts.entries))
}

/// Shows an account.
pub async fn show(State(app): AppState, Path(name): Path<String>) -> Result<Response, ApiError> {
    Ok(body::answer(StatusCode::OK, &app.account(&name).await?))
}

/// Changes the quotas of an account.
pub async fn patch(
    State(app): AppState,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = body::read(&app, &headers, body).await?;
    let patch: &RawValue = body::json(&bytes)?;
    Ok(body::answer(StatusCode::OK, &app.patch_account(&name, patch).await?))
}

/// Deletes an account that has nothing.
pub async fn delete(State(app): AppState, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    app.delete_account(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn example() -> Value {
    json!({
        "name": "acme", "quotas": {"resources": 10, "changesPerSecond": 500},
        "usage": {"resources": 0, "subscriptions": 0, "documents": 0}, "createdAt": examples::TIME,
    })
}

/// What the description says of creating one.
pub fn describe_create(it: &mut Notes<'_>) {
    it.is("createAccount", "Access", "Create an account")
        .text("For the operator. An account sees, lists and counts only its own.")
        .body::<AccountDraft>(json!({"name": "acme", "quotas": {"resources": 10, "changesPerSecond": 500}}))
        .answers::<AccountView>(201, "The account.", example())
        .with_location(201)
        .refuses(404, "There is no authentication.")
        .refuses(409, "There is an account of that name.");
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listAccounts", "Access", "List accounts")
        .pages()
        .answers_list::<AccountView>("accounts", "`default` first, then by name.", example())
        .refuses(404, "There is no authentication.");
}

/// What the description says of one.
pub fn describe_show(it: &mut Notes<'_>) {
    it.is("getAccount", "Access", "Show an account").answers::<AccountView>(200, "The account.", example());
}

/// What the description says of changing one.
pub fn describe_patch(it: &mut Notes<'_>) {
    it.is("patchAccount", "Access", "Change the quotas of an account")
        .text("A JSON Merge Patch: `null` takes a quota away.")
        .patch_body::<AccountDraft>(&["name"], json!({"quotas": {"resources": 20}}))
        .answers::<AccountView>(200, "The account.", example());
}

/// What the description says of deleting one.
pub fn describe_delete(it: &mut Notes<'_>) {
    it.is("deleteAccount", "Access", "Delete an account")
        .answers_nothing(204, "It is gone, and its tokens with it.")
        .refuses(409, "It has resources; delete them first. `default` is always there.");
}
