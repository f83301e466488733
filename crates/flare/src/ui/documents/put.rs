//! `/ui/documents/put`: a form to say what an origin would say, and what became of it.

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use flare_core::journey::accept::{NotAccepted, Word};
use flare_core::operations::{App, Done, Failure};
use flare_http::AppState;
use flare_http::access::By;
use flare_model::access::Caller;
use flare_model::document::Outcome;
use flare_model::invalid::Invalid;
use flare_model::url::DocumentUrl;
use http::HeaderMap;

use super::{place, say, sentence};
use crate::ui::flash;
use crate::ui::form::Form;
use crate::ui::page::{Frame, PageError, Section, Visit, html_with};

const FIELDS: &[&str] = &["url", "document"];

#[derive(Template)]
#[template(path = "documents/put.html")]
struct Page {
    frame: Frame,
    form: Form,
}

/// Shows the form, with the newest state of the document if there is one.
pub async fn form(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let mut form = Form::of_query(FIELDS, visit.uri());
    if let Some(url) = form.given("url")
        && let Ok(url) = app.document_url(url)
        && let Ok((_, document)) = app.document(&by, &url).await
        && !document.row.deleted
    {
        form.set("document", crate::ui::text::pretty(&document.content));
    }
    Ok(page(visit, form))
}

/// Puts the document.
pub async fn submit(
    State(app): AppState,
    By(by): By,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let url = app.document_url(form.value("url").trim()).map_err(|failure| in_field(failure, "url"));
    let content = Bytes::from(form.value("document").trim().to_owned());
    match form.submit(url, |url| put(&app, &by, url, content)).await? {
        Some((url, outcome)) => Ok(flash::done(&place(url.as_str()), sentence(url.as_str(), outcome))),
        None => Ok(page(visit, form)),
    }
}

async fn put(app: &App, by: &Caller, url: DocumentUrl, content: Bytes) -> Done<(DocumentUrl, Outcome)> {
    match say(app, by, url.clone(), Word::Put(content)).await? {
        Ok(outcome) => Ok((url, outcome)),
        Err(NotAccepted::NoResource(url)) => {
            Err(Invalid::new("url", format!("no resource matches {url}; make one first")).into())
        }
        Err(NotAccepted::Unreadable(error)) => Err(Invalid::new("document", error).into()),
        Err(NotAccepted::Quota { detail, .. }) => Err(Failure::TooMany(detail)),
        Err(NotAccepted::Store(error)) => Err(error.into()),
    }
}

/// The same mistake, beside the field of this form that it is in.
fn in_field(failure: Failure, field: &str) -> Failure {
    match failure {
        Failure::Invalid(invalid) => Invalid::new(field, invalid.problem).into(),
        other => other,
    }
}

fn page(visit: Visit, form: Form) -> Response {
    let frame = visit.frame(Section::Documents, "Put a document").under("Documents", "/ui/documents");
    html_with(form.status(), &Page { frame, form })
}
