//! `/ui/subscriptions/:id/edit`: the whole draft comes in, and what differs goes out as a merge patch.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{App, Done};
use flare_core::registry::Subscription;
use flare_http::AppState;
use flare_model::patch::merge_between;
use flare_model::subscription::credentials::redacted;
use http::HeaderMap;
use serde_json::{Value, json};

use super::draft::{DraftForm, DraftPage};
use super::preview::of_draft;
use crate::ui::flash;
use crate::ui::page::{PageError, Visit};
use crate::ui::subscriptions::head::{Head, Tab};

/// Shows the draft as it was given, but for credentials.
pub async fn form(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Edit).await?;
    let as_json = visit.query("view").is_some_and(|view| view == "json");
    let draft = DraftForm::new(&current(&head.subscription), as_json);
    Ok(page(&app, visit, head, draft))
}

/// Shows a draft in its other view.
pub async fn switch(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Edit).await?;
    Ok(page(&app, visit, head, DraftForm::read(&app, &headers, body).await?.switched()?))
}

/// Changes what the draft says otherwise.
pub async fn submit(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Edit).await?;
    let mut sent = DraftForm::read(&app, &headers, body).await?;
    let wanted = sent.json();
    match sent.form.submit(wanted, |wanted| change(&app, &head, wanted)).await? {
        Some(words) => Ok(flash::done(&head.place(), words)),
        None => Ok(page(&app, visit, head, sent)),
    }
}

async fn change(app: &App, head: &Head, wanted: Value) -> Done<&'static str> {
    let (resource, id) = head.ids();
    match merge_between(&current(&head.subscription), &wanted) {
        None => Ok("Nothing was different, so nothing was changed."),
        Some(patch) => {
            let patch = serde_json::value::to_raw_value(&patch).expect("a form is plain data");
            app.patch_subscription(&resource, &id, &patch).await?;
            Ok("The settings are changed. Attempts that were open end under the former ones.")
        }
    }
}

/// The draft as it was given, without what is fixed when it is created, and without credentials: what stays the word for one
/// keeps it.
fn current(subscription: &Subscription) -> Value {
    let mut draft = subscription.stored.draft.clone();
    draft.endpoint = redacted(&draft.endpoint);
    let mut draft = serde_json::to_value(draft).expect("a draft is plain data");
    if let Value::Object(fields) = &mut draft {
        fields.remove("start");
        // Parts that nothing was said about.
        fields.retain(|_, part| *part != json!({}));
    }
    draft
}

fn page(app: &App, visit: Visit, head: Head, draft: DraftForm) -> Response {
    let place = head.place();
    let frame = head.frame(visit, "Settings");
    let resource = head.subscription.compiled.resource.clone();
    let (save, switch) = (format!("{place}/edit"), format!("{place}/draft"));
    let preview = of_draft(app, &draft);
    DraftPage { frame, draft, resource: &resource, head: Some(head), save, switch, back: place, preview }
        .answer()
}
