//! `POST /ui/documents/delete`: the url of a document comes in; a tombstone stays.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::journey::accept::Word;
use flare_http::AppState;
use flare_http::access::By;
use http::HeaderMap;

use super::{place, say, sentence};
use crate::ui::flash;
use crate::ui::form::Form;
use crate::ui::page::PageError;

/// Deletes the document.
pub async fn submit(
    State(app): AppState,
    By(by): By,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let form = Form::read(&["url"], &app, &headers, body).await?;
    let url = app.document_url(form.value("url"))?;
    let outcome = say(&app, &by, url.clone(), Word::Delete(None)).await??;
    Ok(flash::done(&place(url.as_str()), sentence(url.as_str(), outcome)))
}
