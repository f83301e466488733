//! `POST /ui/resources/:rid/subscriptions/try`: the expressions of a draft and the url of a document come in, and what
//! they say of it goes out.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use flare_core::operations::{App, Done, Failure, FilterTrial, FilterTrialView as FilterResult};
use flare_http::{AppState, body};
use flare_model::document::Document;
use flare_model::feed::Action;
use flare_model::invalid::Invalid;
use flare_model::resource::Resource;
use http::HeaderMap;
use serde_json::Value;

use super::create::resource;
use super::draft::DraftForm;
use crate::ui::form::Form;
use crate::ui::page::{Frame, PageError, Section, Visit, html, message};
use crate::ui::text;

#[derive(Template)]
#[template(path = "subscriptions/trial.html")]
struct Page {
    frame: Frame,
    trial: Result<Tried, String>,
}

struct Tried {
    verdicts: Vec<Verdict>,
    document: String,
    content: String,
}

/// What one expression says.
struct Verdict {
    name: &'static str,
    tone: &'static str,
    word: String,
    meaning: String,
}

/// Tries them.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    sent: Body,
) -> Result<Response, PageError> {
    let resource = resource(&app, &id)?;
    // Read once as bytes: the fields of the trial stand in the same form as those of the draft.
    let bytes: Bytes = body::read(&app, &headers, sent).await?;
    let fields = Form::read(&[], &app, &headers, Body::from(bytes.clone())).await?;
    let draft = DraftForm::read(&app, &headers, Body::from(bytes)).await?;
    let trial = match try_out(&app, &resource, &fields, &draft).await {
        Ok(tried) => Ok(tried),
        Err(failure @ (Failure::Invalid(_) | Failure::NotFound(_))) => Err(message(failure)),
        Err(failure) => return Err(failure.into()),
    };
    Ok(html(&Page { frame: visit.frame(Section::Subscriptions, "What the expressions say"), trial }))
}

async fn try_out(app: &App, resource: &Resource, fields: &Form, draft: &DraftForm) -> Done<Tried> {
    let url = fields.given("trial.document");
    let url = url.ok_or_else(|| Invalid::new("document", "give the url of a document that Flare knows"))?;
    let document = app.document_of(resource, url).await?;
    if document.row.deleted {
        return Err(Invalid::new(
            "document",
            format!("{url} is deleted; expressions are not asked about it"),
        )
        .into());
    }
    let action = Action::ALL.into_iter().find(|action| fields.is("trial.action", action.as_str()));
    let json = draft.json()?;
    let expression = |name: &str| json.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let mut verdicts = Vec::new();
    if let Some(filter) = expression("filter") {
        let trial = FilterTrial { filter: Some(filter), ..about(resource, &document) };
        let result = app.try_filter(&trial)?;
        let (yes, no) = ("the client is to have this document", "the client is not to have this document");
        verdicts.push(Verdict::of("filter", result, yes, no));
    }
    if let Some(when) = expression("when") {
        let content = serde_json::from_slice(&document.content).ok();
        // The document itself stands for what the client last got: so nothing has changed.
        let state = content.filter(|_| action != Some(Action::Create));
        let trial = FilterTrial { when: Some(when), action, state, ..about(resource, &document) };
        let result = app.try_filter(&trial)?;
        verdicts.push(Verdict::of("when", result, "the client is told", "the client is not told"));
    }
    if verdicts.is_empty() {
        let problem = "there is no expression yet: without one the client is told about every document";
        return Err(Invalid::new("filter", problem).into());
    }
    let content = text::pretty(&document.content);
    Ok(Tried { verdicts, document: document.url.to_string(), content })
}

/// What a subscription's expression would see of a document.
fn about(resource: &Resource, document: &Document) -> FilterTrial {
    let names = resource.wildcards().iter().cloned();
    let values = resource.values(resource.name(&document.url, &document.revision));
    let values = values.into_iter().map(|value| value.into_owned());
    FilterTrial {
        document: serde_json::from_slice(&document.content).ok(),
        revision: serde_json::to_value(&document.revision).ok(),
        wildcards: names.zip(values).collect(),
        ..FilterTrial::default()
    }
}

impl Verdict {
    fn of(name: &'static str, result: FilterResult, yes: &str, no: &str) -> Verdict {
        let (tone, word, meaning) = match result {
            FilterResult::Result(true) => ("good", "true".to_owned(), yes.to_owned()),
            FilterResult::Result(false) => ("muted", "false".to_owned(), no.to_owned()),
            FilterResult::Error(error) => ("bad", error.title.to_owned(), error.detail),
        };
        Verdict { name, tone, word, meaning }
    }
}
