//! In: requests of origins, changes as they become durable, attempts as they end. Out: spans, each under the right one.
//!
//! A trace goes with a change in memory only. Between the request and the tail lies the store, which knows nothing of
//! traces: the request leaves the context here under the document's url, and the witness of the commit claims it. So a
//! change that is not traced costs a look at one number, and a change that is read from the store has no trace.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flare_model::document::{Document, Intent, Write};
use flare_model::ids::SubscriptionNumber;
use flare_model::revision::Revision;
use http::HeaderMap;
use parking_lot::Mutex;

use super::accepting::Accepting;
use super::queue::Queue;
use super::sampler::Sampler;
use super::span::{Attempted, Operation, Span, What};
use crate::door::{Chance, Clock};
use crate::notification::Notification;
use crate::notification::compiled::Compiled;
use crate::notification::ending::Ending;
use crate::observe::{Outcome, Spans};
use crate::trace::{Context, Flags, Parent, SpanId, TraceId};

/// What makes spans. There is none where telemetry is off.
pub struct Tracer {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) queue: Arc<Queue>,
    sampler: Sampler,
    /// Two sources, since one has 64 bits only and ids of different nodes must not meet.
    chances: [Chance; 2],
    /// How many contexts are in `pending`, for a look without the lock.
    waiting: AtomicUsize,
    /// By the url of the document. Bound: the changes that are being committed.
    pending: Mutex<HashMap<Arc<str>, Vec<Pending>>>,
}

/// The context of a change that is not durable yet.
struct Pending {
    /// What the change will have, as far as that is known before it is compared.
    revision: Option<Revision>,
    deleted: bool,
    context: Box<Context>,
}

impl Tracer {
    /// Leaves what it makes in this queue.
    pub fn new(sampler: Sampler, clock: Arc<dyn Clock>, queue: Arc<Queue>) -> Tracer {
        Tracer {
            clock,
            queue,
            sampler,
            chances: [Chance::of_machine(), Chance::of_machine()],
            waiting: AtomicUsize::new(0),
            pending: Mutex::default(),
        }
    }

    /// A request of an origin begins. `None`: it is not traced and has no trace to pass on.
    pub fn begin(self: &Arc<Tracer>, headers: &HeaderMap, operation: Operation) -> Option<Box<Accepting>> {
        if let Some(parent) = Parent::of(headers) {
            let flags = parent.flags.with_sampled(self.sampler.follows(&parent));
            return Some(Accepting::new(self.clone(), operation, parent.trace, flags).under(parent));
        }
        let (trace, flags) = (self.new_trace(), Flags::of_own().with_sampled(true));
        self.sampler.takes(trace).then(|| Accepting::new(self.clone(), operation, trace, flags))
    }

    /// A change is about to be committed; whoever made it calls [`Tracer::forget`] when that is over.
    pub(super) fn expect(&self, write: &Write, context: &Context) {
        let (revision, deleted) = match &write.intent {
            Intent::Put { revision, .. } => (Some(revision.clone()), false),
            Intent::Delete { revision } => (revision.clone(), true),
        };
        let pending = Pending { revision, deleted, context: Box::new(context.clone()) };
        self.pending.lock().entry(write.url.clone()).or_default().push(pending);
        self.waiting.fetch_add(1, Ordering::Release);
    }

    /// A change is durable: its trace, if it has one. Of two equal changes at the same time, of which one counts, the
    /// first is taken for it.
    pub fn claim(&self, document: &Document) -> Option<Box<Context>> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        let fits = |pending: &Pending| {
            pending.deleted == document.row.deleted
                && pending.revision.as_ref().is_none_or(|revision| *revision == document.revision)
        };
        let mut context = self.take(&document.url, fits)?;
        context.committed = self.clock.monotonic();
        Some(context)
    }

    /// A commit is over: what it expected and nobody claimed changed nothing.
    pub(super) fn forget(&self, url: &Arc<str>, commit: SpanId) {
        let _ = self.take(url, |pending| pending.context.commit == commit);
    }

    fn take(&self, url: &str, fits: impl Fn(&Pending) -> bool) -> Option<Box<Context>> {
        let mut pending = self.pending.lock();
        let of_url = pending.get_mut(url)?;
        let at = of_url.iter().position(fits)?;
        let found = of_url.remove(at);
        if of_url.is_empty() {
            pending.remove(url);
        }
        self.waiting.fetch_sub(1, Ordering::Release);
        Some(found.context)
    }

    /// An attempt has ended. The first one of a notification also ends the wait of its client.
    pub fn attempted(&self, told: &Notification, ending: &Ending, began: Duration, spans: Spans) {
        let (Some(context), Some(id)) = (told.change.trace(), told.span) else { return };
        if !context.flags.sampled() {
            return;
        }
        let attempt = &told.attempt;
        let spread = spread_id(context, told.compiled.number, attempt.action as u64);
        if attempt.attempts == 0 && attempt.replay == 0 {
            self.spread(context, spread, told.compiled.clone(), began);
        }
        let failure = match ending {
            Ending::Answered(_) | Ending::Taken => None,
            Ending::Refused(error) => Some((error.clone(), false)),
            Ending::Failed { error, timed_out, .. } => Some((error.clone(), *timed_out)),
        };
        let attempted = Attempted {
            compiled: told.compiled.clone(),
            document: told.change.document.url.clone(),
            action: attempt.action,
            attempts: attempt.attempts,
            replay: attempt.replay,
            outcome: Outcome::of(&told.compiled.spec, ending),
            status: ending.status(),
            failure,
            spans,
        };
        // A replay is no part of the first wait.
        let parent = if attempt.replay == 0 { spread } else { context.commit };
        self.queue.push(Span {
            trace: context.trace,
            id,
            parent: Some(parent),
            state: context.state.clone(),
            began,
            ended: began + spans.total(),
            what: What::Attempt(Box::new(attempted)),
        });
    }

    /// A notification is handed out on a lease: the wait of its client is over, and what the client does with it is
    /// part of the wait's span, since how a lease ends may be heard in another life.
    pub fn leased(&self, compiled: &Arc<Compiled>, context: &Context, first: bool) -> SpanId {
        let spread = spread_id(context, compiled.number, 0);
        if first && context.flags.sampled() {
            self.spread(context, spread, compiled.clone(), self.clock.monotonic());
        }
        spread
    }

    fn spread(&self, context: &Context, id: SpanId, compiled: Arc<Compiled>, until: Duration) {
        self.queue.push(Span {
            trace: context.trace,
            id,
            parent: Some(context.commit),
            state: context.state.clone(),
            began: context.committed,
            ended: until.max(context.committed),
            what: What::Spread { compiled },
        });
    }

    /// A span that no other is like.
    pub fn new_span(&self) -> SpanId {
        loop {
            if let id @ 1.. = self.chances[1].bits() {
                return SpanId(id);
            }
        }
    }

    fn new_trace(&self) -> TraceId {
        let [high, low] = &self.chances;
        match u128::from(high.bits()) << 64 | u128::from(low.bits()) {
            0 => TraceId(1),
            id => TraceId(id),
        }
    }
}

/// The span of a client's wait for a change: worked out and not kept, so that every attempt finds it.
fn spread_id(context: &Context, number: SubscriptionNumber, action: u64) -> SpanId {
    let seed = context.commit.0 ^ number.0.rotate_left(8) ^ action;
    SpanId(Chance::from_seed(seed).bits().max(1))
}

#[cfg(test)]
#[path = "tracer_tests.rs"]
mod tests;
