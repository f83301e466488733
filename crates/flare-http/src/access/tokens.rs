//! `/tokens`: what is shown to be let in.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{NewTokenView, TokenView};
use flare_model::access::TokenDraft;
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use super::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use crate::{AppState, body};

/// Creates a token, and shows it, this once.
pub async fn create(
    State(app): AppState,
    By(by): By,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft: TokenDraft = body::json(&body::read(&app, &headers, body).await?)?;
    let created = app.create_token(&by, draft).await?;
    Ok(body::created(&format!("/tokens/{}", created.view().id), &created))
}

/// Lists the tokens of the account.
pub async fn list(State(app): AppState, By(by): By, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let tokens = app.tokens(&by, page.offset, page.limit)?;
    Ok(page.answer(tokens.total as u64, "tokens", tokens.entries))
}

/// Shows a token, but for the token.
pub async fn show(State(app): AppState, By(by): By, Path(id): Path<String>) -> Result<Response, ApiError> {
    Ok(body::answer(StatusCode::OK, &app.token(&by, &id).await?))
}

/// Revokes a token.
pub async fn revoke(
    State(app): AppState,
    By(by): By,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    app.revoke_token(&by, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn example() -> Value {
    json!({
        "id": examples::TOKEN, "name": "shop", "account": "default", "scopes": ["read", "origin"],
        "createdAt": examples::TIME, "expiresAt": null, "lastUsedAt": null,
    })
}

/// What the description says of creating one.
pub fn describe_create(it: &mut Notes<'_>) {
    let mut shown = example();
    shown["token"] = "flare_0123456789abcdefghjkmnpqrstvwxyz9s9bf3".into();
    it.is("createToken", "Access", "Create a token")
        .text("The token is shown this once, and kept as a hash only. With `auth.mode = \"token\"`.")
        .body::<TokenDraft>(json!({"name": "shop", "scopes": ["origin", "read"], "ttl": "2160h"}))
        .answers::<NewTokenView>(201, "The token.", shown)
        .with_location(201)
        .refuses(404, "There is no authentication.");
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listTokens", "Access", "List the tokens of the account")
        .pages()
        .answers_list::<TokenView>("tokens", "In order of creation.", example())
        .refuses(404, "There is no authentication.");
}

/// What the description says of one.
pub fn describe_show(it: &mut Notes<'_>) {
    it.is("getToken", "Access", "Show a token").answers::<TokenView>(
        200,
        "All but the token itself.",
        example(),
    );
}

/// What the description says of revoking one.
pub fn describe_revoke(it: &mut Notes<'_>) {
    it.is("revokeToken", "Access", "Revoke a token")
        .answers_nothing(204, "It is refused from now on; other nodes know within a second.");
}
