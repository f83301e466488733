//! `GET /ui/explain?document=&subscription=`: why a client was or was not told of a document. A subscription is named by
//! its id or by a part of its url; where several could be meant, they are offered.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{App, Done, Failure, Standing, SubscriptionQuery};
use flare_core::registry::{Slice, Subscription};
use flare_http::AppState;
use flare_http::access::By;
use flare_model::access::Caller;
use flare_model::explain::{Explanation, Verdict};
use flare_model::ids::SubscriptionId;
use flare_model::invalid::Invalid;
use flare_model::resource::Resource;
use flare_model::url::DocumentUrl;

use super::documents;
use super::form::Form;
use super::moment::{Moment, Words};
use super::page::{Frame, PageError, Section, Visit, html_with};
use super::pager::encode;
use super::text;

const FIELDS: &[&str] = &["document", "subscription"];

#[derive(Template)]
#[template(path = "explain.html")]
struct Page {
    frame: Frame,
    form: Form,
    answer: Option<Answer>,
    /// Subscriptions to choose from.
    offers: Vec<Offer>,
    /// How many more there are.
    more: u64,
    /// Whether one has to be chosen before there is an answer.
    asks: bool,
}

/// A subscription that could be meant.
struct Offer {
    id: String,
    client: String,
    resource: String,
    href: String,
    state: &'static str,
}

/// Subscriptions that are offered. When there are more: the page says so, and a part of a url finds them.
const OFFERED: usize = 50;

struct Answer {
    verdict: &'static str,
    next: String,
    tone: &'static str,
    client: String,
    href: String,
    document: String,
    document_href: String,
    facts: Vec<Fact>,
}

struct Fact {
    about: &'static str,
    at: Option<Moment>,
    detail: Words,
}

/// Shows the question, and the answer once both are known.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let mut form = Form::of_query(FIELDS, visit.uri());
    let document = form.given("document").map(|url| app.document_url(url)).transpose();
    let (mut answer, mut asks) = (None, false);
    let resource = document.as_ref().ok().and_then(|url| app.registry.find_for(&by, url.as_ref()?));
    let words = form.given("subscription").map(ToOwned::to_owned);
    let known = words.as_deref().and_then(|id| app.registry.subscription_for(&by, &SubscriptionId::new(id)));
    let mut found =
        offered(&app, &by, resource.as_deref(), words.as_deref().filter(|_| known.is_none())).await?;
    // A part of a url that only one has names it as well as its id does.
    let meant = known.or_else(|| {
        let only = found.entries.first().filter(|_| found.total == 1 && words.is_some());
        only.map(|standing| standing.subscription.clone())
    });
    match (document, meant) {
        (Err(failure), _) => form.refuse(failure)?,
        (Ok(Some(url)), Some(subscription)) => match explain(&app, &by, &url, &subscription).await {
            Ok(found) => answer = Some(found),
            Err(Failure::NotFound(detail)) => form.refuse(Invalid::new("subscription", detail).into())?,
            Err(failure) => form.refuse(failure)?,
        },
        (Ok(None), Some(_)) => form.refuse(Invalid::new("document", "say which document").into())?,
        (Ok(_), None) if words.is_some() && found.total == 0 => {
            let detail = format!("there is no subscription {}", words.as_deref().unwrap_or_default());
            form.refuse(Invalid::new("subscription", detail).into())?;
            found = offered(&app, &by, resource.as_deref(), None).await?;
            asks = true;
        }
        (Ok(document), None) => asks = document.is_some() || words.is_some(),
    }
    let document = form.given("document").map(encode);
    let offers: Vec<Offer> =
        found.entries.into_iter().map(|standing| Offer::of(standing, document.as_deref())).collect();
    let more = found.total.saturating_sub(offers.len()) as u64;
    let frame = visit.frame(Section::Explain, "Explain");
    Ok(html_with(form.status(), &Page { frame, form, answer, offers, more, asks }))
}

/// The first subscriptions that could be meant: of the document's resource, with these words in their url or id.
async fn offered(
    app: &App,
    by: &Caller,
    resource: Option<&Resource>,
    words: Option<&str>,
) -> Done<Slice<Standing>> {
    let query = SubscriptionQuery {
        resource: resource.map(|resource| resource.id().clone()),
        words: words.map(ToOwned::to_owned),
        status: None,
        offset: 0,
        limit: OFFERED,
    };
    app.find_subscriptions(by, &query).await
}

impl Offer {
    fn of(standing: Standing, document: Option<&str>) -> Offer {
        let Standing { subscription, status } = standing;
        let id = subscription.id().to_string();
        Offer {
            href: format!(
                "/ui/explain?document={}&subscription={}",
                document.unwrap_or_default(),
                encode(&id)
            ),
            client: text::client(&subscription),
            resource: subscription.compiled.resource.view.endpoint.clone(),
            state: status.status.as_str(),
            id,
        }
    }
}

async fn explain(app: &App, by: &Caller, url: &DocumentUrl, subscription: &Subscription) -> Done<Answer> {
    let id = subscription.id();
    let Explanation { verdict, next, facts } = app.explain(by, url.as_str(), id).await?;
    let fact = |fact: flare_model::explain::Fact| Fact {
        about: about(fact.fact),
        at: fact.at.map(Moment),
        detail: Words::of(&fact.detail),
    };
    let (verdict, tone) = spoken(verdict);
    Ok(Answer {
        verdict,
        next,
        tone,
        href: format!("/ui/subscriptions/{id}"),
        client: text::client(subscription),
        document: url.to_string(),
        document_href: documents::place(url.as_str()),
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
