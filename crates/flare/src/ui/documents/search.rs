//! `GET /ui/documents`: the beginning of a url comes in, documents go out, those that changed last first.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use flare_core::operations::{FoundView, SearchPlace, SearchQuery};
use flare_http::AppState;
use flare_http::access::By;
use flare_http::error::ApiError;
use flare_model::ids::ResourceId;
use flare_model::url::DocumentUrl;

use super::place;
use crate::ui::form::Form;
use crate::ui::moment::Ago;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::{Pager, with};

/// Resources to choose from. With more, the beginning of a url finds its own.
const CHOICES: usize = 200;

#[derive(Template)]
#[template(path = "documents/search.html")]
struct Page {
    frame: Frame,
    form: Form,
    resources: Vec<(String, String)>,
    rows: Vec<Row>,
    further: Option<String>,
    put_example: String,
}

struct Row {
    href: String,
    url: String,
    revision: String,
    deleted: bool,
    changed: Ago,
}

/// Looks for documents.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let form = Form::of_query(&["q", "resource"], visit.uri());
    let prefix = form.given("q").unwrap_or_default().to_owned();
    if let Ok(url) = DocumentUrl::parse(&prefix)
        && app.document(&by, &url).await.is_ok()
    {
        return Ok(Redirect::to(&place(url.as_str())).into_response());
    }
    let page = Pager::query(&app, visit.uri())?;
    let after = match visit.query("after").map(|after| after.parse::<SearchPlace>()) {
        Some(Err(())) => return Err(ApiError::bad_request("`after` is not what a page ended with").into()),
        after => after.and_then(Result::ok).unwrap_or_default(),
    };
    let resource = form.given("resource").map(ResourceId::new);
    let found = app.search(&by, SearchQuery { resource, prefix, after, limit: page.limit }).await?;
    let now = app.clock.now();
    let row = |found: FoundView| Row {
        href: place(&found.document),
        url: found.document.to_string(),
        revision: found.revision.to_string(),
        deleted: found.deleted,
        changed: Ago { now, at: found.updated_at },
    };
    let choices = app.registry.resources_for(&by, 0, CHOICES).entries;
    let mut resources = vec![(String::new(), "All resources".to_owned())];
    resources
        .extend(choices.iter().map(|resource| (resource.id().to_string(), resource.view.endpoint.clone())));
    let example = choices.first().map(|resource| resource.view.endpoint.replace(['{', '}'], ""));
    let frame = visit.frame(Section::Documents, "Documents");
    let put_example = format!(
        "curl -X PUT {}/documents/{} -d '{{\"version\":1}}'",
        frame.base,
        example.as_deref().unwrap_or("http://api.company.com/users/1")
    );
    Ok(html(&Page {
        form,
        resources,
        rows: found.documents.into_iter().map(row).collect(),
        further: found.next.map(|next| with(visit.uri(), &[("after", Some(next.to_string()))])),
        put_example,
        frame,
    }))
}
