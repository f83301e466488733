//! `GET /tail?resource=&subscription=&document=`: attempts as they end, one JSON object a line.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::Uri;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::json;

use crate::http::AppState;
use crate::http::error::ApiError;
use crate::http::page;
use crate::observe::{AttemptView, Entry, News, Watcher};

/// After so long without news an empty line goes out, so that a reader who is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Which attempts.
#[derive(Default)]
struct Wanted {
    resource: Option<String>,
    subscription: Option<String>,
    document: Option<String>,
}

impl Wanted {
    fn fits(&self, entry: &Entry) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        is(&self.resource, entry.compiled.resource.id().as_str())
            && is(&self.subscription, entry.compiled.id.as_str())
            && is(&self.document, &entry.url)
    }
}

/// Streams attempts until the reader has enough or the node stops.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let mut wanted = Wanted::default();
    for (name, value) in page::pairs(&uri) {
        match name.as_str() {
            "resource" => wanted.resource = Some(value),
            "subscription" => wanted.subscription = Some(value),
            "document" => wanted.document = Some(app.document_url(&value)?.to_string()),
            other => return Err(page::unknown(other, &["resource", "subscription", "document"])),
        }
    }
    let watcher = app.watch_attempts()?;
    // The first line says that the watch is on: what ends from now on is told.
    let first = json!({"watching": true}).to_string() + "\n";
    let lines = stream::unfold((watcher, wanted, Some(first)), |(mut watcher, wanted, first)| async {
        let line = match first {
            Some(first) => first,
            None => next_line(&mut watcher, &wanted).await?,
        };
        Some((Ok::<_, Infallible>(Bytes::from(line)), (watcher, wanted, None)))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(response)
}

async fn next_line(watcher: &mut Watcher, wanted: &Wanted) -> Option<String> {
    let news = async {
        loop {
            match watcher.next().await? {
                News::Ended(entry) if wanted.fits(&entry) => {
                    let view = AttemptView::new(&entry);
                    return Some(serde_json::to_string(&view).expect("an attempt is plain data") + "\n");
                }
                News::Ended(_) => {}
                News::Skipped(missed) => return Some(json!({"skipped": missed}).to_string() + "\n"),
            }
        }
    };
    tokio::time::timeout(HEARTBEAT, news).await.unwrap_or_else(|_| Some("\n".into()))
}
