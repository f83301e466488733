//! `GET /resources/:rid/subscriptions/:id/attempts` and `.../attempts/:attempt`. Whoever has served the subscription has some of them: all
//! nodes are asked.

use axum::extract::State;
use axum::response::Response;
use flare_core::observe::{AttemptDetail, AttemptView};
use flare_core::observe::{Outcome, Wanted};
use http::header::HeaderValue;
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ids, ids};
use crate::cluster::gather::{Gathered, UNREACHABLE, gather};
use crate::cluster::is_forwarded;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::{self, PageQuery};
use crate::{AppState, body};

/// What another node lists.
#[derive(Deserialize)]
struct Listed {
    pagination: ListedTotal,
    attempts: Vec<Value>,
}

#[derive(Deserialize)]
struct ListedTotal {
    total: u64,
}

/// Lists the last attempts.
pub async fn list(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let page = PageQuery::read(&app, &uri, &["document", "outcome"])?;
    let mut wanted = Wanted::default();
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            // Names of a consumer's documents are any text.
            "document" if id.is_producer() => wanted.document = Some(value),
            "document" => wanted.document = Some(app.document_url(&value)?.to_string()),
            "outcome" => wanted.outcome = Some(outcome(&value)?),
            _ => {}
        }
    }
    if is_forwarded(&headers) {
        // Another node puts them together with others: all that are kept, which are few (`delivery.attempts.quantity`).
        let found = app.attempts(&resource, &id, &wanted, 0, usize::MAX)?;
        return Ok(page.answer(found.total, "attempts", found.attempts));
    }
    if app.others().is_empty() {
        let found = app.attempts(&resource, &id, &wanted, page.offset, page.limit)?;
        return Ok(page.answer(found.total, "attempts", found.attempts));
    }
    let found = app.attempts(&resource, &id, &wanted, 0, usize::MAX)?;
    let (mut total, mut all) = (found.total, Vec::new());
    all.extend(found.attempts.iter().map(|attempt| json!(attempt)));
    let Gathered { answered, unreachable } = gather::<Listed>(&app, &path_of_all(&uri), &headers).await;
    for listed in answered.into_iter().filter_map(|(_, listed)| listed) {
        total += listed.pagination.total;
        all.extend(listed.attempts);
    }
    // Each node has them in order already, and times are written alike.
    all.sort_by(|one, other| other["beganAt"].as_str().cmp(&one["beganAt"].as_str()));
    let attempts: Vec<Value> = all.into_iter().skip(page.offset).take(page.limit).collect();
    Ok(missing(page.answer(total, "attempts", attempts), &unreachable))
}

/// The path of the same list, all of it.
fn path_of_all(uri: &Uri) -> String {
    let filters = uri.query().unwrap_or_default().split('&');
    let filters = filters.filter(|pair| !pair.starts_with("limit=") && !pair.starts_with("offset="));
    format!("{}?{}", uri.path(), filters.collect::<Vec<_>>().join("&"))
}

/// Says which nodes did not answer.
fn missing(mut answer: Response, unreachable: &[String]) -> Response {
    if let Ok(names) = HeaderValue::from_str(&unreachable.join(", "))
        && !unreachable.is_empty()
    {
        answer.headers_mut().insert(UNREACHABLE, names);
    }
    answer
}

/// Shows one attempt.
pub async fn show(
    State(app): AppState,
    Ids { resource, subscription, below: attempt }: Ids,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let nowhere = match app.attempt(&resource, &subscription, &attempt) {
        Ok(attempt) => return Ok(body::answer(StatusCode::OK, &attempt)),
        Err(failure) if is_forwarded(&headers) => return Err(failure.into()),
        Err(failure) => failure,
    };
    let Gathered { answered, unreachable } = gather::<Value>(&app, uri.path(), &headers).await;
    match answered.into_iter().find_map(|(_, attempt)| attempt) {
        Some(attempt) => Ok(body::answer(StatusCode::OK, &attempt)),
        None if unreachable.is_empty() => Err(nowhere.into()),
        None => {
            let detail = format!("no node that answers has it, and {} did not", unreachable.join(", "));
            Err(ApiError::unavailable(detail))
        }
    }
}

fn outcome(value: &str) -> Result<Outcome, ApiError> {
    let found = Outcome::NAMES.iter().find(|(name, _)| *name == value);
    found.map(|(_, outcome)| *outcome).ok_or_else(|| {
        let names = Outcome::NAMES.map(|(name, _)| name).join(", ");
        ApiError::bad_request(format!("outcome must be one of {names}, got `{value}`"))
    })
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listAttempts", "Subscriptions", "List the last attempts")
        .pages()
        .query(
            "document",
            json!({"type": "string", "format": "document-url", "minLength": 1}),
            "Only attempts about this document.",
            json!(examples::DOCUMENT),
        )
        .query(
            "outcome",
            json!({"enum": Outcome::NAMES.map(|(name, _)| name)}),
            "Only attempts that ended so.",
            json!("failed"),
        )
        .answers_list::<AttemptView>("attempts", "The newest first.", examples::attempt());
}

/// What the description says of one.
pub fn describe_show(it: &mut Notes<'_>) {
    let mut attempt = examples::attempt();
    (attempt["request"], attempt["response"]) = examples::exchange();
    it.is("getAttempt", "Subscriptions", "Show an attempt")
        .answers::<AttemptDetail>(
            200,
            "With what was sent and what came back, as far as it was kept; secrets are taken out.",
            attempt,
        )
        .refuses(404, "There is no such attempt, or it is no longer kept.");
}
