//! What a tracer makes of requests and changes.

use std::time::Duration;

use bytes::Bytes;
use flare_model::document::Row;
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq};
use flare_model::time::Timestamp;
use http::HeaderValue;

use super::*;
use crate::door::ManualClock;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn tracer(ratio: f64) -> Arc<Tracer> {
    let queue = Arc::new(Queue::new(64, 64));
    Arc::new(Tracer::new(Sampler::new(ratio, true), Arc::new(ManualClock::default()), queue))
}

fn headers(parent: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", HeaderValue::from_str(parent).unwrap());
    headers
}

fn context(tracer: &Tracer) -> Context {
    Context {
        trace: TraceId(7),
        commit: tracer.new_span(),
        flags: Flags::of_own(),
        state: None,
        committed: Duration::ZERO,
    }
}

fn document(revision: i64, deleted: bool) -> Document {
    let row = Row { ordinal: Ordinal(0), seq: Seq(1), born: Seq(1), before: Seq(0), deleted };
    Document {
        lane: LaneId { resource: ResourceNumber(1), index: 0 },
        row,
        url: "http://h/1".into(),
        revision: Revision::Integer(revision),
        updated_at: Timestamp::from_millis(0),
        content: Bytes::new(),
    }
}

fn write(revision: i64) -> Write {
    let document = document(revision, false);
    let intent = Intent::Put { revision: document.revision, content: Bytes::new() };
    Write { lane: document.lane, url: document.url, intent, at: document.updated_at, routed_by: 0 }
}

#[test]
fn a_durable_change_claims_the_trace_of_its_own_revision_once() {
    let tracer = tracer(1.0);
    let (first, second) = (context(&tracer), context(&tracer));
    tracer.expect(&write(1), &first);
    tracer.expect(&write(2), &second);
    assert!(tracer.claim(&document(3, false)).is_none());
    assert!(tracer.claim(&document(2, true)).is_none(), "a delete is another change");
    assert_eq!(tracer.claim(&document(2, false)).unwrap().commit, second.commit);
    assert!(tracer.claim(&document(2, false)).is_none());
    tracer.forget(&"http://h/1".into(), first.commit);
    assert!(tracer.claim(&document(1, false)).is_none());
    assert_eq!(tracer.waiting.load(Ordering::Relaxed), 0);
    assert!(tracer.pending.lock().is_empty(), "nothing is left behind");
}

#[test]
fn a_request_that_is_dropped_in_the_middle_of_its_commit_leaves_nothing_behind() {
    let tracer = tracer(1.0);
    let mut request = tracer.begin(&HeaderMap::new(), Operation::Put).unwrap();
    request.committing([write(1)].iter());
    assert_eq!(tracer.waiting.load(Ordering::Relaxed), 1);
    drop(request);
    assert_eq!(tracer.waiting.load(Ordering::Relaxed), 0);
    assert_eq!(tracer.queue.take().len(), 2, "the commit and the request");
}

#[test]
fn without_a_parent_the_ratio_decides_and_with_one_the_parent() {
    let never = tracer(0.0);
    assert!(never.begin(&HeaderMap::new(), Operation::Put).is_none());
    drop(never.begin(&headers(PARENT), Operation::Put));
    assert_eq!(never.queue.take().len(), 1);
    let always = tracer(1.0);
    let unsampled = always.begin(&headers(&PARENT.replace("-01", "-00")), Operation::Put);
    assert!(unsampled.is_some(), "its trace is passed on all the same");
    drop(unsampled);
    assert!(always.queue.take().is_empty());
}

#[test]
fn every_attempt_finds_the_wait_of_its_own_client() {
    let tracer = tracer(1.0);
    let context = context(&tracer);
    let id = |number| spread_id(&context, SubscriptionNumber(number), 0);
    assert_eq!(id(1), id(1));
    assert_ne!(id(1), id(2));
}
