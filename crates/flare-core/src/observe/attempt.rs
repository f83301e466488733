//! An attempt that has ended: a compact entry for each, and for some the whole exchange, secrets taken out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::{Action, Attempt};
use flare_model::ids::{Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::subscription::Spec;
use flare_model::time::Timestamp;
use flare_wire::{Request, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::redact;
use crate::notification::Notification;
use crate::notification::compiled::Compiled;
use crate::notification::echo::Echoes;
use crate::notification::ending::Ending;
use crate::notification::ids::notification_id;

/// How an attempt ended, and when.
#[derive(Clone, Copy)]
pub struct Ended<'a> {
    /// With an answer, or without.
    pub ending: &'a Ending,
    /// What that means.
    pub outcome: Outcome,
    /// When it began.
    pub began: Timestamp,
    /// How long its parts took.
    pub spans: Spans,
}

/// How an attempt ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AttemptOutcome")]
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
            Ending::Taken => Outcome::Delivered,
            _ => Outcome::Failed,
        }
    }
}

/// An attempt under way: when its parts ended, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    began: Duration,
    spans: Spans,
}

/// How long the parts of an attempt took, in microseconds; [`Spans::NONE`] for a part that there was not.
#[derive(Clone, Copy, Debug)]
pub struct Spans {
    /// Connecting, where a connection was made.
    connect: u32,
    /// From the beginning to the head of the answer.
    first_byte: u32,
    /// From the beginning to the end.
    total: u32,
}

impl Spans {
    const NONE: u32 = u32::MAX;

    /// How long connecting took.
    pub fn connect(&self) -> Option<Duration> {
        Self::known(self.connect)
    }

    /// How long it was until the head of the answer was there.
    pub fn first_byte(&self) -> Option<Duration> {
        Self::known(self.first_byte)
    }

    /// How long it took in all.
    pub fn total(&self) -> Duration {
        Duration::from_micros(u64::from(self.total))
    }

    fn known(micros: u32) -> Option<Duration> {
        (micros != Self::NONE).then(|| Duration::from_micros(u64::from(micros)))
    }

    /// No attempt may take as long as an hour, so they fit.
    fn between(since: Duration, now: Duration) -> u32 {
        u32::try_from(now.saturating_sub(since).as_micros()).unwrap_or(Self::NONE).min(Self::NONE - 1)
    }
}

impl Phases {
    /// It begins.
    pub fn begin(now: Duration) -> Phases {
        Phases { began: now, spans: Spans { connect: Spans::NONE, first_byte: Spans::NONE, total: 0 } }
    }

    /// Connecting took from `since` to `now`.
    pub fn connected(&mut self, since: Duration, now: Duration) {
        self.spans.connect = Spans::between(since, now);
    }

    /// The head of the answer is there.
    pub fn answered(&mut self, now: Duration) {
        self.spans.first_byte = Spans::between(self.began, now);
    }

    /// It has ended.
    pub fn end(&self, now: Duration) -> Spans {
        Spans { total: Spans::between(self.began, now), ..self.spans }
    }
}

/// Which attempt of all: 16 bits of the process, 8 of the delivery thread, and the number within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    const COUNTED: u64 = (1 << 40) - 1;

    /// The id of a thread's attempt with this number.
    pub fn new(epoch: u64, thread: usize, number: u64) -> Id {
        Id((epoch & 0xffff) << 48 | (thread as u64 & 0xff) << 40 | number & Self::COUNTED)
    }

    /// The number within its thread.
    #[cfg(test)]
    pub fn number(self) -> u64 {
        self.0 & Self::COUNTED
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "att_{:016x}", self.0)
    }
}

/// What is kept of every attempt. Small, and nothing is allocated for most: what can be worked out later is not in it.
#[derive(Clone)]
pub struct Entry {
    /// Which one.
    pub id: Id,
    /// When it began.
    pub began: Timestamp,
    /// How long its parts took.
    pub spans: Spans,
    /// What was told.
    pub action: Action,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer's status.
    pub status: Option<u16>,
    /// Attempts made before for the same revision.
    pub attempts: u32,
    /// The change.
    pub seq: Seq,
    /// The replay that asked for it, 0 for none.
    pub replay: u64,
    /// Who was told, as it was then.
    pub compiled: Arc<Compiled>,
    /// About which document.
    pub url: Arc<str>,
    /// In which revision.
    pub revision: Revision,
    /// When Flare accepted that.
    pub updated_at: Timestamp,
    /// The whole exchange, for attempts that did not succeed and for some that did.
    pub exchange: Option<Arc<Exchange>>,
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
    pub fn new(id: Id, told: &Notification, ended: Ended<'_>, excerpt: Option<usize>) -> Entry {
        let Ended { ending, outcome, began, spans } = ended;
        let exchange = excerpt.map(|excerpt| {
            // Built again, as it was sent: to keep every request in case it fails would cost those that do not.
            let request = told.request(told.state.as_deref(), began, Room::default());
            Arc::new(Exchange::of(&request, ending, excerpt, &told.compiled.echoes))
        });
        let document = &told.change.document;
        Entry {
            id,
            began,
            spans,
            action: told.attempt.action,
            outcome,
            status: ending.status(),
            attempts: told.attempt.attempts,
            seq: told.attempt.seq,
            replay: told.attempt.replay,
            compiled: told.compiled.clone(),
            url: document.url.clone(),
            revision: document.revision.clone(),
            updated_at: document.updated_at,
            exchange,
        }
    }

    /// The notification's id.
    pub fn webhook_id(&self) -> String {
        let Entry { action, seq, replay, attempts, .. } = *self;
        let (ordinal, first_attempt_at) = (Ordinal(0), None);
        let attempt = Attempt { ordinal, seq, action, replay, attempts, first_attempt_at, unheard: false };
        notification_id(&self.compiled, &self.url, &attempt).as_str().to_owned()
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        size_of::<Entry>() + self.exchange.as_ref().map_or(0, |exchange| exchange.bytes())
    }
}

impl Exchange {
    /// What is kept of a request and how it ended.
    pub fn of(request: &Request, ending: &Ending, excerpt: usize, echoes: &Echoes) -> Exchange {
        let whole = request.body();
        let body = whole[..whole.len().min(excerpt)].to_vec();
        let (answer_headers, answer, error) = match ending {
            Ending::Answered(answer) => (shown(answer.fields.iter(), echoes), answer.excerpt.clone(), None),
            Ending::Taken => (Vec::new(), Vec::new(), None),
            Ending::Refused(error) | Ending::Failed { error, .. } => {
                (Vec::new(), Vec::new(), Some(error.clone()))
            }
        };
        Exchange {
            headers: shown(request.fields(), &Echoes::default()),
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
fn shown<'f>(fields: impl Iterator<Item = (&'f str, &'f [u8])>, echoes: &Echoes) -> Vec<(String, String)> {
    let text = |name: &str, value: &[u8]| match redact::is_secret(name) {
        true => redact::REDACTED.to_owned(),
        false => String::from_utf8_lossy(&echoes.concealed(value)).into_owned(),
    };
    fields.map(|(name, value)| (name.to_owned(), text(name, value))).collect()
}
