//! `/ui/consumers/:cid/producers/new` and `/ui/producers/:id/edit`: a producer comes in as the API takes it, and is made or replaced; the
//! messages are the API's own.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::Done;
use flare_http::AppState;
use flare_model::invalid::Invalid;
use flare_model::producer::ProducerDraft;
use flare_model::resource::Resource;
use flare_model::subscription::Mode;
use flare_model::subscription::credentials::redacted;
use http::{HeaderMap, StatusCode};

use super::consumer;
use crate::ui::flash;
use crate::ui::form::{Form, draft};
use crate::ui::page::{Frame, PageError, Section, Visit, html_with};
use crate::ui::subscriptions::{Created, Head, Tab, place};
use crate::ui::text;

const FIELDS: &[&str] = &["producer"];

/// What a new one begins with.
const EXAMPLE: &str = r#"{
  "target": {"type": "http", "url": "http://127.0.0.1:9000/{id}"},
  "delivery": {"concurrency": 10},
  "metadata": {},
  "start": "now"
}"#;

#[derive(Template)]
#[template(path = "producers/draft.html")]
struct Page {
    frame: Frame,
    form: Form,
    save: String,
    back: String,
    /// Of one that is there.
    head: Option<Head>,
}

/// Shows an example.
pub async fn new(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let consumer = consumer(&app, &id)?;
    Ok(new_page(visit, &consumer, Form::new(FIELDS, &[("producer", EXAMPLE)])))
}

/// Creates what it says.
pub async fn create(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let consumer = consumer(&app, &id)?;
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let wanted = written(form.value("producer"));
    match form.submit(wanted, |wanted| app.create_producer(consumer.id(), wanted)).await? {
        Some((producer, secret)) => {
            let frame = visit.frame(Section::Subscriptions, "Producer created");
            let place_of_consumer = format!("/ui/consumers/{}/producers", consumer.id());
            let created = Created {
                frame: frame.under(consumer.view.endpoint.as_str(), place_of_consumer),
                name: text::client(&producer),
                place: place(producer.id()),
                kind: producer.id().kind(),
                secret: secret.reveal(),
                passive: producer.compiled.spec.mode == Mode::Passive,
            };
            Ok(html_with(StatusCode::CREATED, &created))
        }
        None => Ok(new_page(visit, &consumer, form)),
    }
}

/// Shows one as it was given, but for credentials.
pub async fn edit(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Edit).await?;
    let mut given = head.subscription.stored.draft.clone();
    given.endpoint = redacted(&given.endpoint);
    let given = serde_json::to_string_pretty(&ProducerDraft::of(given)).expect("a draft is plain data");
    Ok(edit_page(visit, head, Form::new(FIELDS, &[("producer", &given)])))
}

/// Makes it what is written.
pub async fn change(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Edit).await?;
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let (consumer, id) = head.ids();
    let wanted = written(form.value("producer"));
    match form.submit(wanted, |wanted| app.replace_producer(&consumer, &id, wanted)).await? {
        Some(_) => {
            let words = "The settings are changed. Attempts that were open end under the former ones.";
            Ok(flash::done(&head.place(), words))
        }
        None => Ok(edit_page(visit, head, form)),
    }
}

/// What was written, read as the API reads it.
fn written(text: &str) -> Done<ProducerDraft> {
    let json =
        serde_json::from_str(text).map_err(|e| Invalid::new("producer", format!("is not JSON: {e}")))?;
    Ok(draft(json)?)
}

fn new_page(visit: Visit, consumer: &Resource, form: Form) -> Response {
    let back = format!("/ui/consumers/{}/producers", consumer.id());
    let frame = visit.frame(Section::Subscriptions, "New producer");
    let frame = frame.under(consumer.view.endpoint.as_str(), back.as_str());
    let save = format!("{back}/new");
    html_with(form.status(), &Page { frame, form, save, back, head: None })
}

fn edit_page(visit: Visit, head: Head, form: Form) -> Response {
    let (back, save) = (head.place(), head.edit_place());
    let frame = head.frame(visit, "Settings");
    html_with(form.status(), &Page { frame, form, save, back, head: Some(head) })
}
