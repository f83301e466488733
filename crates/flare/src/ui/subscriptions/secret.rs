//! `/ui/subscriptions/:id/secret`: what signs, without its value; after a rotation the new value, once.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{App, Rotation, RotationDraft};
use flare_http::AppState;
use flare_model::duration::HumanDuration;
use flare_model::subscription::live;
use http::HeaderMap;

use super::head::{Head, Tab};
use crate::ui::form::{Assembly, Form};
use crate::ui::moment::{Ago, Moment, Words};
use crate::ui::page::{Frame, PageError, Visit, html_with};

const FIELDS: &[&str] = &["overlap", "secret"];

#[derive(Template)]
#[template(path = "subscriptions/secret.html")]
struct Page {
    frame: Frame,
    head: Head,
    form: Form,
    secrets: Vec<Row>,
    overlap: String,
    overlap_hint: String,
    fresh: Option<Fresh>,
}

struct Row {
    since: Moment,
    ends: Option<Words>,
}

struct Fresh {
    secret: String,
    former_ends: Option<Moment>,
}

/// Shows what signs.
pub async fn page(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Secret).await?;
    Ok(show(&app, head, visit, Form::new(FIELDS, &[]), None))
}

/// Gives it another secret.
pub async fn submit(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let (resource, id) = Head::of(&app, &id, Tab::Secret).await?.ids();
    let mut draft = Assembly::new();
    draft.texts(&form, FIELDS);
    let draft = draft.draft::<RotationDraft>();
    let rotated = form.submit(draft, |draft| app.rotate_secret(&resource, &id, draft)).await?;
    let fresh = rotated.map(|Rotation { secret, former_ends_at, .. }| {
        form = Form::new(FIELDS, &[]);
        Fresh { secret, former_ends: former_ends_at.map(Moment) }
    });
    let head = Head::of(&app, id.as_str(), Tab::Secret).await?;
    Ok(show(&app, head, visit, form, fresh))
}

fn show(app: &App, head: Head, visit: Visit, form: Form, fresh: Option<Fresh>) -> Response {
    let now = app.clock.now();
    let secrets = live(&head.subscription.stored.secrets, now);
    let secrets = secrets.map(|secret| Row {
        since: Moment(secret.created_at),
        ends: secret
            .ends_at
            .map(|at| Words::default().moment(Moment(at)).text(" (").moment(Ago { now, at }).text(")")),
    });
    let secrets = secrets.collect();
    let auth = &app.config.auth;
    let overlap = HumanDuration(auth.secret_overlap).to_string();
    let longest = HumanDuration(auth.maximum_secret_overlap);
    let page = Page {
        frame: head.frame(visit, "Secret"),
        head,
        secrets,
        overlap_hint: format!(
            "How long the present secret signs too, so that the client can change over; at most {longest}."
        ),
        overlap,
        fresh,
        form,
    };
    html_with(page.form.status(), &page)
}
