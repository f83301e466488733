//! `/ui/subscriptions/:id/test`: a document, or none, comes in; what was sent and what came back goes out.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{TestDraft, TestView};
use flare_http::AppState;
use http::HeaderMap;

use super::exchange::Exchange;
use super::head::{Head, Tab};
use super::plot::class;
use crate::ui::form::{Assembly, Form};
use crate::ui::page::{Frame, PageError, Visit, html_with};

const FIELDS: &[&str] = &["document", "action"];

#[derive(Template)]
#[template(path = "subscriptions/test.html")]
struct Page {
    frame: Frame,
    head: Head,
    form: Form,
    tried: Option<Tried>,
}

struct Tried {
    outcome: &'static str,
    document: String,
    action: &'static str,
    webhook_id: String,
    exchange: Exchange,
}

impl Page {
    fn actions(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "what would be told"), ("create", "create"), ("update", "update"), ("delete", "delete")]
    }
}

/// Shows what can be sent.
pub async fn form(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Test).await?;
    let document = visit.query("document").unwrap_or_default();
    Ok(page(head, visit, Form::new(FIELDS, &[("document", &document)]), None))
}

/// Sends it and waits for how it goes.
pub async fn submit(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let head = Head::of(&app, &id, Tab::Test).await?;
    let (resource, id) = head.ids();
    let mut draft = Assembly::new();
    draft.texts(&form, FIELDS);
    let draft = draft.draft::<TestDraft>();
    let tried = form.submit(draft, |draft| app.test(&resource, &id, draft)).await?;
    Ok(page(head, visit, form, tried.map(Tried::of)))
}

fn page(head: Head, visit: Visit, form: Form, tried: Option<Tried>) -> Response {
    let frame = head.frame(visit, "Send a test");
    html_with(form.status(), &Page { frame, head, form, tried })
}

impl Tried {
    fn of(view: TestView) -> Tried {
        Tried {
            outcome: class(view.outcome),
            document: view.document,
            action: view.action.as_str(),
            webhook_id: view.webhook_id,
            exchange: Exchange::of(view.request, view.response, view.error, &view.timing),
        }
    }
}
