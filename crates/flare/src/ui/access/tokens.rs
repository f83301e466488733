//! `/ui/tokens`: what is shown to be let in. A new one is shown once.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::TokenView;
use flare_http::AppState;
use flare_http::access::By;
use flare_model::access::{Scope, TokenDraft};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::ui::flash;
use crate::ui::form::{Assembly, Form};
use crate::ui::moment::{Ago, Moment};
use crate::ui::page::{Frame, PageError, Section, Visit, html, html_with};
use crate::ui::pager::Pager;

const FIELDS: &[&str] = &[
    "name",
    "scopes.read",
    "scopes.origin",
    "scopes.subscribe",
    "scopes.admin",
    "ttl",
    "resources",
    "subscriptions",
];

#[derive(Template)]
#[template(path = "access/tokens.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

struct Row {
    id: String,
    name: String,
    scopes: String,
    limited: bool,
    created: Ago,
    expires: Option<Moment>,
    used: Option<Ago>,
}

#[derive(Template)]
#[template(path = "access/new-token.html")]
struct Page {
    frame: Frame,
    form: Form,
    scopes: Vec<(&'static str, &'static str)>,
}

#[derive(Template)]
#[template(path = "access/token-created.html")]
struct Created {
    frame: Frame,
    name: String,
    token: String,
}

impl Row {
    /// Where it is revoked.
    fn revoke(&self) -> String {
        format!("/ui/tokens/{}/revoke", self.id)
    }
}

/// The field of a scope.
pub fn field(scope: &str) -> &'static str {
    FIELDS.iter().find(|field| field.strip_prefix("scopes.") == Some(scope)).copied().unwrap_or_default()
}

/// Lists the tokens of the account.
pub async fn list(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let page = Pager::query(&app, visit.uri())?;
    let found = app.tokens(&by, page.offset, page.limit)?;
    let now = app.clock.now();
    let row = |token: TokenView| Row {
        scopes: token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "),
        limited: token.resources.is_some() || token.subscriptions.is_some(),
        created: Ago { now, at: token.created_at },
        expires: token.expires_at.map(Moment),
        used: token.last_used_at.map(|at| Ago { now, at }),
        id: token.id,
        name: token.name,
    };
    let rows: Vec<Row> = found.entries.into_iter().map(row).collect();
    let pager = Pager::new(visit.uri(), page, rows.len(), found.total);
    Ok(html(&List { frame: visit.frame(Section::Tokens, "Tokens"), rows, pager }))
}

/// Shows the form.
pub async fn form(visit: Visit) -> Response {
    page(visit, Form::new(FIELDS, &[("scopes.read", "on")]))
}

/// Creates a token, and shows it, this once.
pub async fn submit(
    State(app): AppState,
    By(by): By,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let chosen =
        Scope::ALL.into_iter().filter(|scope| form.given(&format!("scopes.{}", scope.as_str())).is_some());
    let chosen: Vec<&str> = chosen.map(Scope::as_str).collect();
    let mut draft = Assembly::new();
    draft.required(&form, &["name"]).texts(&form, &["ttl"]).set("scopes", json!(chosen));
    for list in ["resources", "subscriptions"] {
        let ids: Vec<&str> =
            form.value(list).split([',', ' ', '\r', '\n']).filter(|id| !id.is_empty()).collect();
        if !ids.is_empty() {
            draft.set(list, json!(ids));
        }
    }
    let draft = draft.draft::<TokenDraft>();
    match form.submit(draft, |draft| app.create_token(&by, draft)).await? {
        Some(created) => {
            let frame = visit.frame(Section::Tokens, "Token created").under("Tokens", "/ui/tokens");
            let name = created.view().name.clone();
            Ok(html_with(StatusCode::CREATED, &Created { frame, name, token: created.token }))
        }
        None => Ok(page(visit, form)),
    }
}

/// Revokes a token.
pub async fn revoke(State(app): AppState, By(by): By, Path(id): Path<String>) -> Result<Response, PageError> {
    let token = app.token(&by, &id).await?;
    app.revoke_token(&by, &id).await?;
    Ok(flash::done("/ui/tokens", format!("The token {} is refused from now on.", token.name)))
}

fn page(visit: Visit, form: Form) -> Response {
    let frame = visit.frame(Section::Tokens, "New token").under("Tokens", "/ui/tokens");
    let scopes = vec![
        ("read", "look at everything of the account"),
        ("origin", "say that documents change, and look at them"),
        ("subscribe", "make and change subscriptions, pull, replay"),
        ("admin", "make and delete resources and tokens"),
    ];
    html_with(form.status(), &Page { frame, form, scopes })
}
