//! `/ui/accounts`: whom everything belongs to, for the operator.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{AccountView, Failure};
use flare_http::AppState;
use flare_model::access::AccountDraft;
use http::HeaderMap;

use crate::ui::flash;
use crate::ui::form::{Assembly, Form};
use crate::ui::page::{Frame, PageError, Section, Visit, html, html_with, message};
use crate::ui::pager::Pager;
use crate::ui::text;

const FIELDS: &[&str] =
    &["name", "quotas.resources", "quotas.subscriptions", "quotas.documents", "quotas.changesPerSecond"];

#[derive(Template)]
#[template(path = "access/accounts.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

struct Row {
    name: String,
    resources: String,
    subscriptions: String,
    documents: String,
    rate: String,
    is_default: bool,
}

#[derive(Template)]
#[template(path = "access/new-account.html")]
struct Page {
    frame: Frame,
    form: Form,
}

impl Row {
    /// Where it is deleted, and the question before that.
    fn delete(&self) -> String {
        format!("/ui/accounts/{}/delete", self.name)
    }

    fn dialog(&self) -> String {
        format!("delete-{}", self.name)
    }
}

/// Lists accounts, with what they have and may have.
pub async fn list(State(app): AppState, visit: Visit) -> Result<Response, PageError> {
    let page = Pager::query(&app, visit.uri())?;
    let found = app.accounts(page.offset, page.limit).await?;
    let of = |has: u64, most: Option<u32>| match most {
        Some(most) => format!("{} of {}", text::number(has), text::number(u64::from(most))),
        None => text::number(has),
    };
    let row = |AccountView { name, quotas, usage, .. }: AccountView| Row {
        is_default: name == "default",
        resources: of(usage.resources, quotas.resources),
        subscriptions: of(usage.subscriptions, quotas.subscriptions),
        documents: of(usage.documents, quotas.documents),
        rate: quotas
            .changes_per_second
            .map_or_else(|| "any".to_owned(), |rate| text::number(u64::from(rate))),
        name,
    };
    let rows: Vec<Row> = found.entries.into_iter().map(row).collect();
    let pager = Pager::new(visit.uri(), page, rows.len(), found.total);
    Ok(html(&List { frame: visit.frame(Section::Accounts, "Accounts"), rows, pager }))
}

/// Shows the form.
pub async fn form(visit: Visit) -> Response {
    page(visit, Form::new(FIELDS, &[]))
}

/// Creates an account.
pub async fn submit(
    State(app): AppState,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let mut draft = Assembly::new();
    draft.required(&form, &["name"]).numbers(&form, &FIELDS[1..]);
    let draft = draft.draft::<AccountDraft>();
    match form.submit(draft, |draft| app.create_account(draft)).await? {
        Some(account) => Ok(flash::done("/ui/accounts", format!("There is an account {}.", account.name))),
        None => Ok(page(visit, form)),
    }
}

/// Deletes an account, or says why not.
pub async fn delete(State(app): AppState, Path(name): Path<String>) -> Result<Response, PageError> {
    match app.delete_account(&name).await {
        Ok(()) => Ok(flash::done("/ui/accounts", format!("The account {name} and its tokens are gone."))),
        Err(failure @ Failure::Conflict(_)) => Ok(flash::refused("/ui/accounts", message(failure))),
        Err(failure) => Err(failure.into()),
    }
}

fn page(visit: Visit, form: Form) -> Response {
    let frame = visit.frame(Section::Accounts, "New account").under("Accounts", "/ui/accounts");
    html_with(form.status(), &Page { frame, form })
}
