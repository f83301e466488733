//! In: a request of an origin under way. Out: its span and that of its commit, and the context that its changes carry.

use std::sync::Arc;
use std::time::Duration;

use flare_model::document::{Outcome, Write};
use flare_model::resource::Resource;

use super::span::{Accept, Operation, Span, What};
use super::tracer::Tracer;
use crate::trace::{Context, Flags, Parent, SpanId, TraceId};

/// A request that is traced, or that has a trace to pass on. Dropping it ends it.
pub struct Accepting {
    tracer: Arc<Tracer>,
    id: SpanId,
    parent: Option<SpanId>,
    began: Duration,
    context: Context,
    /// When the commit began and which documents it is about.
    commit: Option<(Duration, Vec<Arc<str>>)>,
    told: Accept,
}

impl Accepting {
    pub(super) fn new(
        tracer: Arc<Tracer>,
        operation: Operation,
        trace: TraceId,
        flags: Flags,
    ) -> Box<Accepting> {
        let (id, commit, began) = (tracer.new_span(), tracer.new_span(), tracer.clock.monotonic());
        let context = Context { trace, commit, flags, state: None, committed: began };
        let told = Accept { operation, document: None, resource: None, status: None, outcome: None };
        Box::new(Accepting { tracer, id, parent: None, began, context, commit: None, told })
    }

    /// The same as a part of what the origin does.
    pub(super) fn under(mut self: Box<Self>, parent: Parent) -> Box<Accepting> {
        self.parent = Some(parent.span);
        self.context.state = parent.state;
        self
    }

    /// It is about this document.
    pub fn about(&mut self, document: &str, resource: Option<Arc<Resource>>) {
        if self.context.flags.sampled() {
            (self.told.document, self.told.resource) = (Some(document.into()), resource);
        }
    }

    /// The commit begins: what changes by it carries the context.
    pub fn committing<'a>(&mut self, writes: impl Iterator<Item = &'a Write> + Clone) {
        writes.clone().for_each(|write| self.tracer.expect(write, &self.context));
        let urls = writes.map(|write| write.url.clone()).collect();
        self.commit = Some((self.tracer.clock.monotonic(), urls));
    }

    /// The commit is over.
    pub fn committed(&mut self) {
        let Some((began, urls)) = self.commit.take() else { return };
        urls.iter().for_each(|url| self.tracer.forget(url, self.context.commit));
        self.record(self.context.commit, Some(self.id), began, What::Commit { changes: urls.len() });
    }

    /// It is answered so; it ends when it is dropped.
    pub fn answered(&mut self, status: u16, outcome: Option<Outcome>) {
        (self.told.status, self.told.outcome) = (Some(status), outcome);
    }

    fn record(&self, id: SpanId, parent: Option<SpanId>, began: Duration, what: What) {
        if !self.context.flags.sampled() {
            return;
        }
        let (trace, state) = (self.context.trace, self.context.state.clone());
        let ended = self.tracer.clock.monotonic();
        self.tracer.queue.push(Span { trace, id, parent, state, began, ended, what });
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        // Whoever asked may have gone away in the middle of a commit.
        self.committed();
        let Accept { operation, status, outcome, .. } = self.told;
        let (document, resource) = (self.told.document.take(), self.told.resource.take());
        let told = Box::new(Accept { operation, document, resource, status, outcome });
        self.record(self.id, self.parent, self.began, What::Accept(told));
    }
}
