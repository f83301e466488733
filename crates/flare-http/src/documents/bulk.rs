//! `POST /documents`: NDJSON lines in, an NDJSON line for each out, while both are under way.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use flare_core::journey::accept::{Draft, Word};
use flare_core::operations::App;
use flare_core::telemetry::{Accepting, Operation};
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
pub async fn handle(State(app): AppState, headers: HeaderMap, body: Body) -> Response {
    let bulk = Bulk { app, headers, body, buffer: BytesMut::new(), line: 0, state: Reading::Open };
    let answers = stream::unfold(bulk, |mut bulk| async move {
        let answer = bulk.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(answer), bulk))
    });
    let mut response = (StatusCode::OK, Body::from_stream(answers)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}

#[derive(PartialEq)]
enum Reading {
    Open,
    Ended,
    /// Nothing more is read: what follows cannot be told apart.
    Broken,
}

struct Bulk {
    app: Arc<App>,
    headers: HeaderMap,
    body: Body,
    /// Bound: one line of the body limit, and what one read brought.
    buffer: BytesMut,
    line: u64,
    state: Reading,
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
        while reads.len() < BATCH_LINES && bytes < BATCH_BYTES && self.state != Reading::Broken {
            match self.take_line() {
                Some(line) => {
                    self.line += 1;
                    if span.is_none() {
                        span = Some(self.app.tracer().and_then(|t| t.begin(&self.headers, Operation::Bulk)));
                    }
                    if !line.iter().all(u8::is_ascii_whitespace) {
                        bytes += line.len();
                        reads.push(self.read(&line));
                    }
                }
                None if self.state == Reading::Ended => break,
                // What is complete is committed while more comes.
                None if !reads.is_empty() => break,
                None => {
                    if let Err(error) = self.fill().await {
                        self.state = Reading::Broken;
                        self.line += 1;
                        reads.push(Read { number: self.line, id: String::new(), draft: Err(error) });
                    }
                }
            }
        }
        if reads.is_empty() {
            return None;
        }
        Some(answer(&self.app, reads, span.flatten()).await)
    }

    fn take_line(&mut self) -> Option<Bytes> {
        if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(at + 1).freeze();
            return Some(line.slice(..at));
        }
        if self.state == Reading::Ended && !self.buffer.is_empty() {
            return Some(self.buffer.split().freeze());
        }
        None
    }

    async fn fill(&mut self) -> Result<(), ApiError> {
        let limit = self.app.config.http.server.body_limit.as_usize();
        if self.buffer.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        let frame = tokio::time::timeout(self.app.config.http.server.timeout, self.body.frame()).await;
        match frame.map_err(|_| body::too_slow(&self.app))? {
            None => self.state = Reading::Ended,
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.buffer.extend_from_slice(&data);
                }
            }
            Some(Err(error)) => {
                return Err(ApiError::bad_request(format!("the body could not be read: {error}")));
            }
        }
        Ok(())
    }

    fn read(&self, line: &Bytes) -> Read {
        let mut read = Read { number: self.line, id: String::new(), draft: Err(ApiError::bad_request("")) };
        let parsed: Result<Line<'_>, ApiError> =
            match line.len() > self.app.config.http.server.body_limit.as_usize() {
                true => Err(ApiError::too_large(self.app.config.http.server.body_limit.as_usize())),
                false => body::json(line),
            };
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
            Ok(self.app.draft(url, word)?)
        });
        read
    }
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
        span.committing(&drafts);
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
             answer, in order; a line that is refused changes nothing about the others. The schemas are those of the \
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
