//! `POST /documents`: NDJSON lines in, an NDJSON line for each out, while both are under way.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flare_core::journey::accept::{Draft, Word};
use flare_core::operations::App;
use flare_core::telemetry::{Accepting, Operation};
use flare_model::access::Caller;
use flare_model::document::Outcome;
use flare_model::revision::Revision;
use flare_model::url::DocumentUrl;
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::lines::{Lines, Next};
use crate::access::By;
use crate::error::{ApiError, ErrorAnswer, ErrorBody};
use crate::openapi::Notes;
use crate::{AppState, body};
use serde_json::json;

/// Lines committed as one, at most; and the bytes with which a batch is full.
const BATCH_LINES: usize = 512;
const BATCH_BYTES: usize = 1 << 20;

/// A change of one document: `document`, or `"delete":true`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DocumentChange")]
struct Line<'a> {
    /// The url of the document.
    #[schemars(extend("format" = "document-url"))]
    id: String,
    /// The document as it is now.
    #[serde(borrow)]
    #[schemars(with = "Option<Map<String, Value>>")]
    document: Option<&'a RawValue>,
    /// Whether it is gone.
    delete: Option<bool>,
    /// The revision of the delete, as in `Flare-Revision`.
    #[schemars(with = "Option<Revision>")]
    revision: Option<&'a RawValue>,
}

/// What became of a line.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "DocumentOutcome")]
#[allow(dead_code, reason = "lines are written without it, as fast as can be; the tests hold them to it")]
enum LineView {
    /// It was taken.
    Taken {
        /// The url as it was given.
        id: String,
        /// What it did.
        outcome: Outcome,
    },
    /// It was refused.
    Refused {
        /// The number of the line, from 1, blank ones counted.
        line: u64,
        /// Why.
        error: ErrorBody,
    },
}

/// Reads a stream of lines; each line has its answer, in order.
pub async fn handle(State(app): AppState, By(by): By, headers: HeaderMap, body: Body) -> Response {
    if let Err(refusal) = body::as_it_is(&headers) {
        return refusal.into_response();
    }
    let lines = Lines::new(app.config.http.server.body_limit.as_usize());
    let bulk = Bulk { app, by, headers, body, lines, line: 0, broken: false };
    let answers = stream::unfold(bulk, |mut bulk| async move {
        let answer = bulk.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(answer), bulk))
    });
    let mut response = (StatusCode::OK, Body::from_stream(answers)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}

struct Bulk {
    app: Arc<App>,
    by: Caller,
    headers: HeaderMap,
    body: Body,
    lines: Lines,
    /// The number of the line that was taken last.
    line: u64,
    /// Whether nothing more is read: the body broke off, and what it has of a line is not one.
    broken: bool,
}

/// A line that was read: what it asks, or what is wrong with it.
struct Read {
    number: u64,
    id: String,
    draft: Result<Draft, ApiError>,
}

impl Bulk {
    /// The answers to the next lines, committed as one.
    async fn next(&mut self) -> Option<Bytes> {
        let mut reads = Vec::new();
        let mut bytes = 0;
        // Every batch is traced as a request of its own would be: the whole may go on for hours.
        let mut span = None;
        while reads.len() < BATCH_LINES && bytes < BATCH_BYTES && !self.broken {
            match self.lines.next() {
                Next::Line(line) => {
                    self.line += 1;
                    span.get_or_insert_with(|| self.trace());
                    if !line.iter().all(u8::is_ascii_whitespace) {
                        bytes += line.len();
                        reads.push(self.read(&line));
                    }
                }
                Next::TooLong => {
                    self.line += 1;
                    span.get_or_insert_with(|| self.trace());
                    reads.push(refused(self.line, self.too_long()));
                }
                // What is complete is committed while more comes.
                Next::Nothing if self.lines.has_ended() || !reads.is_empty() => break,
                Next::Nothing => {
                    if let Err(error) = self.fill().await {
                        self.broken = true;
                        reads.push(refused(self.line + 1, error));
                    }
                }
            }
        }
        if reads.is_empty() {
            return None;
        }
        Some(answer(&self.app, reads, span.flatten()).await)
    }

    fn trace(&self) -> Option<Box<Accepting>> {
        self.app.tracer().and_then(|tracer| tracer.begin(&self.headers, Operation::Bulk))
    }

    /// Waits for the next part of the body.
    async fn fill(&mut self) -> Result<(), ApiError> {
        let frame = tokio::time::timeout(self.app.config.http.server.timeout, self.body.frame()).await;
        match frame.map_err(|_| body::too_slow(&self.app))? {
            None => self.lines.end(),
            Some(Ok(frame)) => {
                // Trailers say nothing.
                if let Ok(part) = frame.into_data() {
                    self.lines.push(part);
                }
            }
            Some(Err(error)) => {
                return Err(ApiError::bad_request(format!("the body could not be read: {error}")));
            }
        }
        Ok(())
    }

    fn too_long(&self) -> ApiError {
        let limit = self.app.config.http.server.body_limit.as_usize();
        let detail = format!("a line may have {limit} bytes at most (http.server.body-limit)");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "The line is too long", detail)
    }

    fn read(&self, line: &Bytes) -> Read {
        let mut read = refused(self.line, ApiError::bad_request(""));
        let parsed: Result<Line<'_>, ApiError> = body::json(line);
        read.draft = parsed.and_then(|parsed| {
            read.id = parsed.id.clone();
            let url =
                DocumentUrl::parse(&parsed.id).map_err(|e| ApiError::bad_request(format!("id: {e}")))?;
            let word = match (parsed.document, parsed.delete) {
                (Some(_), None | Some(false)) if parsed.revision.is_some() => {
                    let detail = "revision: goes with a delete; a document carries its own";
                    return Err(ApiError::bad_request(detail));
                }
                (Some(document), None | Some(false)) => Word::Put(line.slice_ref(document.get().as_bytes())),
                (None, Some(true)) => Word::Delete(parsed.revision.map(revision_text)),
                _ => {
                    let detail = "a line has either `document` or `\"delete\":true`";
                    return Err(ApiError::bad_request(detail));
                }
            };
            Ok(self.app.draft(&self.by, url, word)?)
        });
        read
    }
}

fn refused(number: u64, error: ApiError) -> Read {
    Read { number, id: String::new(), draft: Err(error) }
}

/// Commits what was understood and answers every line.
async fn answer(app: &App, reads: Vec<Read>, mut span: Option<Box<Accepting>>) -> Bytes {
    let mut drafts = Vec::with_capacity(reads.len());
    let mut lines = Vec::with_capacity(reads.len());
    for read in reads {
        let error = match read.draft {
            Ok(draft) => {
                drafts.push(draft);
                None
            }
            Err(error) => Some(error),
        };
        lines.push((read.number, read.id, error));
    }
    if let Some(span) = &mut span {
        span.committing(drafts.iter().map(Draft::write));
    }
    let committed = app.commit(drafts).await;
    if let Some(mut span) = span {
        span.committed();
        span.answered(StatusCode::OK.as_u16(), None);
    }
    let mut unavailable = None;
    let mut outcomes = match committed {
        Ok(outcomes) => VecDeque::from(outcomes),
        Err(error) => {
            unavailable = Some(error);
            VecDeque::new()
        }
    };
    let whole = unavailable.map(|error| ApiError::from(error).into_body());
    let mut out = Vec::new();
    for (number, id, error) in lines {
        let outcome = match error {
            Some(error) => Err(error.into_body()),
            None => match (outcomes.pop_front(), &whole) {
                (Some(outcome), _) => outcome.map_err(|refused| ApiError::from(refused).into_body()),
                (None, Some(body)) => Err(ErrorBody { title: body.title, detail: body.detail.clone() }),
                (None, None) => unreachable!("a commit answers every write"),
            },
        };
        let line = match outcome {
            Ok(outcome) => serde_json::json!({"id": id, "outcome": outcome}),
            Err(body) => {
                let error = ErrorAnswer { error: &body };
                let mut line = serde_json::to_value(error).expect("an error is plain data");
                line["line"] = number.into();
                line
            }
        };
        out.extend_from_slice(line.to_string().as_bytes());
        out.push(b'\n');
    }
    out.into()
}

/// A revision as it would stand in the header.
fn revision_text(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let (line, answer) = (it.schema::<Line<'_>>(), it.answer_schema::<LineView>());
    it.is("changeDocuments", "Documents", "Change many documents")
        .text(
            "NDJSON in, NDJSON out, streamed both ways: a JSON object on each line. Each line that is not blank has an \
             answer, in order; a line that is refused, one that is too long among them, changes nothing about the others. The schemas are those of the \
             lines, as a list.",
        )
        .body_as(
            "application/x-ndjson",
            json!({"type": "array", "items": line}),
            true,
            json!([
                {"id": "http://api.company.com/users/1", "document": {"version": 2, "name": "Ada"}},
                {"id": "http://api.company.com/users/2", "delete": true},
            ]),
        )
        .answers_as(
            200,
            "What became of each line, on stable storage.",
            "application/x-ndjson",
            json!({"type": "array", "items": answer}),
            json!([
                {"id": "http://api.company.com/users/1", "outcome": "updated"},
                {"line": 2, "error": {"title": "Not found", "detail": "no resource matches"}},
            ]),
        )
        .answers_only(&[200]);
}
