//! `/ui/resources/new`: a form, and the resource that it asks for.

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_http::AppState;
use flare_http::access::By;
use flare_model::resource::ResourceDraft;
use http::HeaderMap;

use crate::ui::flash;
use crate::ui::form::{Assembly, Form};
use crate::ui::page::{Frame, PageError, Section, Visit, html_with};

const FIELDS: &[&str] = &["endpoint", "change.field", "change.format", "lanes"];

#[derive(Template)]
#[template(path = "resources/create.html")]
struct Page {
    frame: Frame,
    form: Form,
    lanes_hint: String,
}

/// Shows the form.
pub async fn form(State(app): AppState, visit: Visit) -> Response {
    page(visit, Form::new(FIELDS, &[]), app.config.domain.lanes)
}

/// Creates what the form says.
pub async fn submit(
    State(app): AppState,
    By(by): By,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let mut draft = Assembly::new();
    draft
        .required(&form, &["endpoint", "change.field"])
        .texts(&form, &["change.format"])
        .numbers(&form, &["lanes"]);
    let draft = draft.draft::<ResourceDraft>();
    match form.submit(draft, |draft| app.create_resource(&by.account, draft)).await? {
        Some(resource) => {
            let place = format!("/ui/resources/{}", resource.id());
            Ok(flash::done(&place, format!("{} is tracked from now on.", resource.view.endpoint)))
        }
        None => Ok(page(visit, form, app.config.domain.lanes)),
    }
}

fn page(visit: Visit, form: Form, default_lanes: u16) -> Response {
    let frame = visit.frame(Section::Resources, "New resource").under("Resources", "/ui/resources");
    let lanes_hint = format!(
        "How many ordered lanes the documents are spread over; it bounds the shards of a subscription and cannot be \
         changed later. {default_lanes} where nothing is said."
    );
    html_with(form.status(), &Page { frame, form, lanes_hint })
}
