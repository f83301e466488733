//! An attempt that has ended: a compact entry for each, and for some the whole exchange, secrets taken out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Attempt;
use flare_model::revision::Revision;
use flare_model::subscription::Spec;
use flare_model::time::Timestamp;
use http::HeaderMap;
use serde::{Deserialize, Serialize};

use super::redact;
use crate::journey::{Compiled, Ending, Job, message};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The client has it.
    Delivered,
    /// The client asked to drop it.
    Discarded,
    /// Anything else.
    Failed,
}

impl Outcome {
    /// All of them, as users write them.
    pub const NAMES: [(&'static str, Outcome); 3] =
        [("delivered", Outcome::Delivered), ("discarded", Outcome::Discarded), ("failed", Outcome::Failed)];

    /// What an ending means by these settings.
    pub fn of(spec: &Spec, ending: &Ending) -> Outcome {
        match ending {
            Ending::Answered(answer) if spec.is_success(answer.status) => Outcome::Delivered,
            Ending::Answered(answer) if spec.is_discard(answer.status) => Outcome::Discarded,
            _ => Outcome::Failed,
        }
    }
}

/// When the parts of an attempt ended, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    began: Duration,
    /// How long connecting took, where a connection was made.
    pub connect: Option<Duration>,
    /// From the beginning to the head of the answer.
    pub first_byte: Option<Duration>,
    /// From the beginning to the end.
    pub total: Duration,
}

impl Phases {
    /// It begins.
    pub fn begin(now: Duration) -> Phases {
        Phases { began: now, connect: None, first_byte: None, total: Duration::ZERO }
    }

    /// Connecting took from `since` to `now`.
    pub fn connected(&mut self, since: Duration, now: Duration) {
        self.connect = Some(now.saturating_sub(since));
    }

    /// The head of the answer is there.
    pub fn answered(&mut self, now: Duration) {
        self.first_byte = Some(now.saturating_sub(self.began));
    }

    /// It has ended.
    pub fn end(mut self, now: Duration) -> Phases {
        self.total = now.saturating_sub(self.began);
        self
    }
}

/// Which attempt of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    /// Of the process.
    pub epoch: u64,
    /// Of the delivery thread.
    pub thread: usize,
    /// Within the thread.
    pub number: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "att_{:x}_{:x}_{:x}", self.epoch, self.thread, self.number)
    }
}

/// What is kept of every attempt. Small: what can be worked out from it later is not in it.
pub struct Entry {
    /// Which one.
    pub id: Id,
    /// When it began.
    pub began: Timestamp,
    /// How long its parts took.
    pub phases: Phases,
    /// What was told.
    pub attempt: Attempt,
    /// Who was told, as it was then.
    pub compiled: Arc<Compiled>,
    /// About which document.
    pub url: Arc<str>,
    /// In which revision.
    pub revision: Revision,
    /// When Flare accepted that.
    pub updated_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer's status.
    pub status: Option<u16>,
    /// The whole exchange, for attempts that did not succeed and for some that did.
    pub exchange: Option<Box<Exchange>>,
}

/// The request and the answer, secrets taken out.
pub struct Exchange {
    /// Of the request.
    pub headers: Vec<(String, String)>,
    /// The beginning of the request's body.
    pub body: Vec<u8>,
    /// How long the whole body was.
    pub body_bytes: usize,
    /// The answer's headers.
    pub answer_headers: Vec<(String, String)>,
    /// The beginning of the answer's body.
    pub answer: Vec<u8>,
    /// What went wrong where there was no answer.
    pub error: Option<String>,
}

impl Entry {
    /// An entry; with the whole exchange, and so many bytes of each body, where `excerpt` says so.
    pub fn new(
        id: Id,
        job: &Job,
        ending: &Ending,
        outcome: Outcome,
        began: Timestamp,
        phases: Phases,
        excerpt: Option<usize>,
    ) -> Entry {
        let status = match ending {
            Ending::Answered(answer) => Some(answer.status),
            Ending::Failed { .. } => None,
        };
        let exchange = excerpt.map(|excerpt| {
            // Built again, as it was sent: to keep every request in case it fails would cost those that do not.
            let request =
                message::request(&job.compiled, &job.change, &job.attempt, job.state.as_deref(), began);
            Box::new(Exchange::of(&request, ending, excerpt))
        });
        let document = &job.change.document;
        Entry {
            id,
            began,
            phases,
            attempt: job.attempt,
            compiled: job.compiled.clone(),
            url: document.url.clone(),
            revision: document.revision.clone(),
            updated_at: document.updated_at,
            outcome,
            status,
            exchange,
        }
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        size_of::<Entry>() + self.exchange.as_ref().map_or(0, |exchange| exchange.bytes())
    }
}

impl Exchange {
    /// What is kept of a request and how it ended.
    pub fn of(request: &message::Outgoing, ending: &Ending, excerpt: usize) -> Exchange {
        let whole = request.body();
        let body = whole[..whole.len().min(excerpt)].to_vec();
        let (answer_headers, answer, error) = match ending {
            Ending::Answered(answer) => (shown(&answer.headers), answer.excerpt.clone(), None),
            Ending::Failed { error, .. } => (Vec::new(), Vec::new(), Some(error.clone())),
        };
        Exchange {
            headers: shown(request.headers()),
            body,
            body_bytes: whole.len(),
            answer_headers,
            answer,
            error,
        }
    }

    fn bytes(&self) -> usize {
        let headers = self.headers.iter().chain(&self.answer_headers);
        let headers: usize = headers.map(|(name, value)| name.len() + value.len() + 48).sum();
        let error = self.error.as_ref().map_or(0, String::len);
        size_of::<Exchange>() + headers + self.body.len() + self.answer.len() + error
    }
}

/// Headers as they may be shown.
fn shown(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |name: &str, value: &[u8]| match redact::is_secret(name) {
        true => redact::REDACTED.to_owned(),
        false => String::from_utf8_lossy(value).into_owned(),
    };
    headers.iter().map(|(name, value)| (name.to_string(), text(name.as_str(), value.as_bytes()))).collect()
}
