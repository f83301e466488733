//! `GET /tail?node=&resource=&subscription=&document=`: attempts as they end, one JSON object a line, on all nodes or on one.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use flare_core::observe::{AttemptView, Entry, News, Watcher};
use flare_model::access::Caller;
use flare_model::cluster::NodeId;
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Uri};
use schemars::JsonSchema;
use serde_json::json;

use super::tail_of_others::{Asked, Others};
use crate::AppState;
use crate::access::By;
use crate::cluster::is_forwarded;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page;

/// After so long without news an empty line goes out, so that a reader who is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A line, as the description has it.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "it describes lines that are written one by one; the tests hold them to it")]
enum TailLine {
    /// The first line: what ends from now on is told.
    Watching {
        /// Always true.
        watching: bool,
    },
    /// Attempts came faster than the reader takes them.
    Skipped {
        /// How many are left out.
        skipped: u64,
    },
    /// An attempt ended.
    Ended(Box<AttemptView>),
}

/// Which attempts.
struct Wanted {
    by: Caller,
    /// The node that tells of them.
    node: NodeId,
    resource: Option<String>,
    subscription: Option<String>,
    document: Option<String>,
}

impl Wanted {
    fn fits(&self, entry: &Entry) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        self.by.sees_subscription(&entry.compiled.resource, &entry.compiled.id)
            && is(&self.resource, entry.compiled.resource.id().as_str())
            && is(&self.subscription, entry.compiled.id.as_str())
            && is(&self.document, &entry.url)
    }
}

/// Streams attempts until the reader has enough or the node stops.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let (node, mut of) = (app.about.node.clone(), None);
    let mut wanted = Wanted { by, node, resource: None, subscription: None, document: None };
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "resource" => wanted.resource = Some(value),
            "subscription" => wanted.subscription = Some(value),
            "document" => wanted.document = Some(app.document_url(&value)?.to_string()),
            "node" => of = Some(NodeId::new(value)),
            other => return Err(page::unknown(other, &["node", "resource", "subscription", "document"])),
        }
    }
    let asked =
        Asked { path: uri.path_and_query().map_or("/tail", |path| path.as_str()).to_owned(), headers };
    if let Some(node) = of.as_ref().filter(|node| **node != app.about.node) {
        return asked.of_one(&app, node).await;
    }
    let alone = of.is_some() || is_forwarded(&asked.headers);
    let watcher = app.watch_attempts()?;
    let others = match alone {
        true => None,
        false => Some(Others::watch(app.clone(), asked).await),
    };
    // The first line says that the watch is on: what ends from now on is told.
    let first = json!({"watching": true}).to_string() + "\n";
    let state = (watcher, wanted, others, Some(first));
    let lines = stream::unfold(state, |(mut watcher, wanted, mut others, first)| async {
        let line = match (first, &mut others) {
            (Some(first), _) => first,
            (None, None) => next_line(&mut watcher, &wanted).await?,
            (None, Some(others)) => tokio::select! {
                line = next_line(&mut watcher, &wanted) => line?,
                line = others.next() => line,
            },
        };
        Some((Ok::<_, Infallible>(Bytes::from(line)), (watcher, wanted, others, None)))
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
                    let view = AttemptView::new(&entry, &wanted.node);
                    return Some(serde_json::to_string(&view).expect("an attempt is plain data") + "\n");
                }
                News::Ended(_) => {}
                News::Skipped(missed) => return Some(json!({"skipped": missed}).to_string() + "\n"),
            }
        }
    };
    tokio::time::timeout(HEARTBEAT, news).await.unwrap_or_else(|_| Some("\n".into()))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let line = it.answer_schema::<TailLine>();
    let id = || json!({"type": "string"});
    it.is("tail", "Insight", "Attempts as they end")
        .text("NDJSON until either side has enough; an empty line after ten quiet seconds. The schema is that of the lines, as a list.")
        .query("node", id(), "Only attempts of this node; without it, those of all.", json!("node-a"))
        .query("resource", id(), "Only attempts of this resource.", json!(examples::RESOURCE))
        .query("subscription", id(), "Only attempts of this subscription.", json!(examples::SUBSCRIPTION))
        .query(
            "document",
            json!({"type": "string", "format": "document-url", "minLength": 1}),
            "Only attempts about this document.",
            json!(examples::DOCUMENT),
        )
        .answers_as(
            200,
            "A line for each attempt.",
            "application/x-ndjson",
            json!({"type": "array", "items": line}),
            json!([{"watching": true}, examples::attempt(), {"skipped": 12}]),
        )
        .refuses(429, "As many watch as may (`delivery.attempts.watchers`).")
        .answers_only(&[200, 400, 429]);
}
