//! `/ui/consumers/new`: a form with the JSON of the API, and the consumer that it asks for.

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::objects::Objects;
use flare_http::AppState;
use flare_http::access::By;
use flare_model::consumer::{ConsumerDraft, PayloadDraft, SourceDraft};
use flare_model::invalid::{Invalid, plain};
use http::HeaderMap;
use serde::de::DeserializeOwned;

use super::place;
use crate::ui::flash;
use crate::ui::form::Form;
use crate::ui::page::{Frame, PageError, Section, Visit, html_with};

const FIELDS: &[&str] = &["source", "payload"];

/// What stands in the form at first.
const SOURCE: &str = r#"{
  "type": "http.poll",
  "url": "http://127.0.0.1:9000/orders",
  "interval": "30s",
  "items": "orders"
}"#;
const PAYLOAD: &str = r#"{
  "format": "json",
  "id": "id",
  "revision": {"field": "version"}
}"#;

#[derive(Template)]
#[template(path = "consumers/create.html")]
struct Page {
    frame: Frame,
    form: Form,
}

/// Shows the form.
pub async fn form(visit: Visit) -> Response {
    page(visit, Form::new(FIELDS, &[("source", SOURCE), ("payload", PAYLOAD)]))
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
    let draft = read::<SourceDraft>(&form, "source").and_then(|source| {
        let payload = read::<PayloadDraft>(&form, "payload")?;
        Ok(ConsumerDraft { source, payload })
    });
    match form.submit(draft, |draft| app.create_consumer(&by.account, draft)).await? {
        Some(consumer) => {
            let words = format!("{} is read from now on.", consumer.resource.view.endpoint);
            Ok(flash::done(&place(consumer.id().as_str()), words))
        }
        None => Ok(page(visit, form)),
    }
}

/// A part of the draft, as it was typed.
fn read<T: DeserializeOwned>(form: &Form, field: &str) -> Result<T, Invalid> {
    let mut text = serde_json::Deserializer::from_str(form.value(field));
    serde_path_to_error::deserialize(Objects(&mut text)).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { field.to_owned() } else { format!("{field}.{path}") };
        Invalid::new(at, plain(error.inner()))
    })
}

fn page(visit: Visit, form: Form) -> Response {
    let frame = visit.frame(Section::Consumers, "New consumer").under("Consumers", "/ui/consumers");
    html_with(form.status(), &Page { frame, form })
}
