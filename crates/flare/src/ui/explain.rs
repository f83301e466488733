//! `GET /ui/explain?document=&subscription=`: why a client was or was not told of a document.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{App, Done, Failure};
use flare_http::AppState;
use flare_model::explain::{Explanation, Verdict};
use flare_model::ids::SubscriptionId;
use flare_model::invalid::Invalid;

use super::form::Form;
use super::page::{Frame, PageError, Section, Visit, html_with};
use super::text;

const FIELDS: &[&str] = &["document", "subscription"];

#[derive(Template)]
#[template(path = "explain.html")]
struct Page {
    frame: Frame,
    form: Form,
    answer: Option<Answer>,
}

struct Answer {
    verdict: &'static str,
    next: String,
    tone: &'static str,
    client: String,
    href: String,
    facts: Vec<Fact>,
}

struct Fact {
    about: &'static str,
    at: String,
    detail: String,
}

/// Shows the question, and the answer once both are known.
pub async fn handle(State(app): AppState, visit: Visit) -> Result<Response, PageError> {
    let mut form = Form::of_query(FIELDS, visit.uri());
    let mut answer = None;
    if form.given("document").is_some() || form.given("subscription").is_some() {
        match explain(&app, &form).await {
            Ok(found) => answer = Some(found),
            Err(Failure::NotFound(detail)) => form.refuse(Invalid::new("subscription", detail).into())?,
            Err(failure) => form.refuse(failure)?,
        }
    }
    let frame = visit.frame(Section::Explain, "Explain");
    Ok(html_with(form.status(), &Page { frame, form, answer }))
}

async fn explain(app: &App, form: &Form) -> Done<Answer> {
    let url = app.document_url(form.value("document").trim())?;
    let id =
        form.given("subscription").ok_or_else(|| Invalid::new("subscription", "say whose client it is"))?;
    let id = SubscriptionId::new(id);
    let Explanation { verdict, next, facts } = app.explain(&url, &id).await?;
    let subscription = app.registry.subscription_by_id(&id);
    let fact = |fact: flare_model::explain::Fact| Fact {
        about: about(fact.fact),
        at: fact.at.map(text::moment).unwrap_or_default(),
        detail: fact.detail,
    };
    let (verdict, tone) = spoken(verdict);
    Ok(Answer {
        verdict,
        next,
        tone,
        href: subscription
            .as_ref()
            .map(|known| format!("/ui/resources/{}/subscriptions/{id}", known.compiled.resource.id()))
            .unwrap_or_default(),
        client: subscription.map_or_else(|| id.to_string(), |known| text::client(&known)),
        facts: facts.into_iter().map(fact).collect(),
    })
}

/// A verdict, in words and in colour.
fn spoken(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::NoMatch => ("not a document of its resource", "muted"),
        Verdict::Unknown => ("Flare does not know the document", "muted"),
        Verdict::InFlight => ("it is being sent now", "info"),
        Verdict::Filtered => ("its filter leaves it out", "muted"),
        Verdict::Disabled => ("owed, but the subscription is disabled", "bad"),
        Verdict::Paused => ("owed, but the subscription is paused", "warn"),
        Verdict::Waiting => ("owed, and will be sent", "info"),
        Verdict::GaveUp => ("given up: it is a dead letter", "bad"),
        Verdict::InDoubt => ("whether the client has it is not known", "warn"),
        Verdict::Discarded => ("the client asked to drop it, and does not have it", "warn"),
        Verdict::Dropped => ("given up, and its dead letter was dropped", "warn"),
        Verdict::HeldBack => ("its `when` holds it back", "muted"),
        Verdict::Delivered => ("the client has the newest state", "good"),
        Verdict::NotHeld => ("the client does not have it, and nothing is to be sent", "muted"),
    }
}

fn about(kind: flare_model::explain::Kind) -> &'static str {
    use flare_model::explain::Kind;
    match kind {
        Kind::Pattern => "Resource",
        Kind::Revision => "Revision",
        Kind::Filter => "Filter",
        Kind::When => "When",
        Kind::Standing => "Client",
        Kind::Attempt => "Attempt",
        Kind::Breaker => "Breaker",
        Kind::Rate => "Rate",
        Kind::Host => "Host",
        Kind::Pause => "Pause",
    }
}
