//! In: spans that have ended. Out: the message that tells a collector of them, by OpenTelemetry's semantic conventions.

use std::time::Duration;

use flare_model::subscription::Way;

use super::about::About;
use crate::observe::Outcome;
use crate::protobuf::Message;
use crate::telemetry::span::{Accept, Attempted, Operation, Span, What};

const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
const PRODUCER: u64 = 4;
const ERROR: u64 = 2;

/// Bits of a span's flags: it was recorded; it is known whether the parent is of another process; it is.
const SAMPLED: u32 = 1;
const KNOWS_REMOTE: u32 = 1 << 8;
const REMOTE: u32 = 1 << 9;

/// An `ExportTraceServiceRequest`. `zero` is the wall clock, in nanoseconds, at the beginning of monotonic time.
pub fn encode(about: &About, spans: &[Span], zero: i128) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |resource| about.resource(resource));
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| about.scope(scope));
            for span in spans {
                scope_spans.message(2, |message| write(message, span, zero));
            }
        });
    });
    request.into_bytes()
}

fn write(message: &mut Message, span: &Span, zero: i128) {
    let at = |time: Duration| u64::try_from(zero + time.as_nanos() as i128).unwrap_or(0);
    message.bytes(1, span.trace.0.to_be_bytes()).bytes(2, span.id.0.to_be_bytes());
    if let Some(state) = &span.state {
        message.bytes(3, state.as_bytes());
    }
    if let Some(parent) = span.parent {
        message.bytes(4, parent.0.to_be_bytes());
    }
    match &span.what {
        What::Accept(accept) => write_accept(message, accept),
        What::Commit { changes } => {
            message.bytes(5, "commit").number(6, INTERNAL);
            attribute_number(message, "flare.changes", *changes as u64);
        }
        What::Spread { compiled } => {
            message.bytes(5, "spread").number(6, INTERNAL);
            attribute(message, "flare.subscription.id", compiled.id.as_str());
        }
        What::Attempt(attempted) => write_attempt(message, attempted),
    }
    message.fixed64(7, at(span.began)).fixed64(8, at(span.ended));
    let remote = matches!(span.what, What::Accept(_)) && span.parent.is_some();
    message.fixed32(16, SAMPLED | KNOWS_REMOTE | if remote { REMOTE } else { 0 });
}

fn write_accept(message: &mut Message, accept: &Accept) {
    let (method, route) = match accept.operation {
        Operation::Put => ("PUT", "/documents/{url}"),
        Operation::Delete => ("DELETE", "/documents/{url}"),
        Operation::Bulk => ("POST", "/documents"),
    };
    message.bytes(5, format!("{method} {route}")).number(6, SERVER);
    attribute(message, "http.request.method", method);
    attribute(message, "http.route", route);
    attribute(message, "url.scheme", "http");
    match &accept.document {
        Some(document) => attribute(message, "url.path", format!("/documents/{document}")),
        None => attribute(message, "url.path", route),
    }
    if let Some(document) = &accept.document {
        attribute(message, "flare.document.url", &**document);
    }
    if let Some(resource) = &accept.resource {
        attribute(message, "flare.resource.id", resource.id().as_str());
    }
    if let Some(outcome) = accept.outcome {
        attribute(message, "flare.outcome", outcome.as_str());
    }
    match accept.status {
        Some(status) => {
            attribute_number(message, "http.response.status_code", u64::from(status));
            // What an origin does wrong is no error of the server.
            if status >= 500 {
                attribute(message, "error.type", status.to_string());
                error(message, "");
            }
        }
        None => {
            attribute(message, "error.type", "cancelled");
            error(message, "the request ended before it was answered");
        }
    }
}

/// Where an attempt went.
fn write_way(message: &mut Message, attempted: &Attempted) {
    let spec = &attempted.compiled.spec;
    if let Way::Sink(sink) = &spec.way {
        message.bytes(5, format!("send {sink}")).number(6, PRODUCER);
        attribute(message, "messaging.system", sink.kind());
        attribute(message, "messaging.operation.type", "send");
        attribute(message, "messaging.destination.name", sink.to_string());
    }
    let Some(target) = spec.target(attempted.action) else { return };
    // The template, which is one for all documents, and without the query, where keys are sometimes kept.
    let template = target.url.identity().split('?').next().unwrap_or_default();
    message.bytes(5, format!("{} {template}", target.method)).number(6, CLIENT);
    attribute(message, "http.request.method", target.method);
    attribute(message, "url.template", template);
    attribute(message, "server.address", target.url.host());
    attribute_number(message, "server.port", u64::from(target.url.port()));
    attribute(message, "network.protocol.version", "1.1");
}

fn write_attempt(message: &mut Message, attempted: &Attempted) {
    write_way(message, attempted);
    if attempted.attempts > 0 {
        attribute_number(message, "http.request.resend_count", u64::from(attempted.attempts));
    }
    attribute(message, "flare.subscription.id", attempted.compiled.id.as_str());
    attribute(message, "flare.resource.id", attempted.compiled.resource.id().as_str());
    attribute(message, "flare.document.url", &*attempted.document);
    attribute(message, "flare.action", attempted.action.as_str());
    if attempted.replay != 0 {
        attribute(message, "flare.replay.id", crate::notification::ids::replay_id(attempted.replay));
    }
    if let Some(connect) = attempted.spans.connect() {
        attribute_seconds(message, "flare.connect.duration", connect);
    }
    if let Some(first_byte) = attempted.spans.first_byte() {
        attribute_seconds(message, "flare.first_byte.duration", first_byte);
    }
    let outcome = match attempted.outcome {
        Outcome::Delivered => "delivered",
        Outcome::Discarded => "discarded",
        Outcome::Failed => "failed",
    };
    attribute(message, "flare.outcome", outcome);
    if let Some(status) = attempted.status {
        attribute_number(message, "http.response.status_code", u64::from(status));
    }
    // What the subscription calls a success is none of the errors, whatever the status.
    match (&attempted.failure, attempted.status) {
        (Some((why, timed_out)), _) => {
            attribute(message, "error.type", if *timed_out { "timeout" } else { "connection" });
            error(message, why);
        }
        (None, Some(status)) if attempted.outcome != Outcome::Delivered => {
            attribute(message, "error.type", status.to_string());
            error(message, "");
        }
        _ => {}
    }
}

fn error(message: &mut Message, why: &str) {
    message.message(15, |status| {
        status.bytes(2, why).number(3, ERROR);
    });
}

fn attribute(message: &mut Message, name: &str, value: impl AsRef<str>) {
    super::about::attribute(message, 9, name, value.as_ref());
}

fn attribute_number(message: &mut Message, name: &str, value: u64) {
    message.message(9, |pair| {
        pair.bytes(1, name).message(2, |any| {
            any.chosen_number(3, value);
        });
    });
}

fn attribute_seconds(message: &mut Message, name: &str, value: Duration) {
    message.message(9, |pair| {
        pair.bytes(1, name).message(2, |any| {
            any.double(4, value.as_secs_f64());
        });
    });
}
