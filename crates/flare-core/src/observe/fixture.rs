//! For tests: a subscription of nothing in particular, and attempts of it.

use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Action;
use flare_model::ids::{ResourceId, ResourceNumber, Seq, SubscriptionId, SubscriptionNumber};
use flare_model::resource::{Resource, ResourceView};
use flare_model::revision::Revision;
use flare_model::subscription::{Draft, Limits, check};
use flare_model::time::Timestamp;

use super::attempt::{Entry, Exchange, Id, Outcome, Phases};
use crate::bridges::Bridges;
use crate::notification::compiled::{Appearance, Compiled};

/// What they follow.
pub fn resource() -> Arc<Resource> {
    let view = ResourceView {
        id: ResourceId::new("res"),
        endpoint: "http://h/{id}".into(),
        change: serde_json::from_str(r#"{"field":"rev"}"#).unwrap(),
        lanes: 1,
        created_at: Timestamp::from_millis(0),
    };
    Arc::new(Resource::compile(view, ResourceNumber(1)).unwrap())
}

/// A subscription with this number.
pub fn compiled(number: u64) -> Arc<Compiled> {
    compiled_of(resource(), number)
}

/// The same, of a resource that is there.
pub fn compiled_of(resource: Arc<Resource>, number: u64) -> Arc<Compiled> {
    let draft: Draft = serde_json::from_str(r#"{"endpoint":{"url":"http://c/"}}"#).unwrap();
    let limits = Limits {
        default_timeout: Duration::from_secs(1),
        maximum_timeout: Duration::from_secs(1),
        default_concurrency: 1,
        maximum_concurrency: 1,
        maximum_ttl: Duration::from_secs(1),
    };
    let spec = check(&draft, &resource, &limits).unwrap();
    let id = SubscriptionId::new(format!("sub_{number}"));
    Arc::new(Compiled::new(
        id,
        SubscriptionNumber(number),
        0,
        resource,
        spec,
        1,
        Appearance::named("test", &Bridges::default()),
    ))
}

/// An attempt of it that failed, with a body of so many bytes.
pub fn entry(compiled: &Arc<Compiled>, number: u64, bytes: usize) -> Entry {
    let exchange = Exchange {
        headers: Vec::new(),
        body: vec![0; bytes],
        body_bytes: bytes,
        answer_headers: Vec::new(),
        answer: Vec::new(),
        error: None,
    };
    Entry {
        id: Id::new(1, 0, number),
        began: Timestamp::from_millis(0),
        spans: Phases::begin(Duration::ZERO).end(Duration::ZERO),
        action: Action::Create,
        attempts: 0,
        seq: Seq(1),
        replay: 0,
        compiled: compiled.clone(),
        url: "http://h/1".into(),
        revision: Revision::Integer(1),
        updated_at: Timestamp::from_millis(0),
        outcome: Outcome::Failed,
        status: None,
        exchange: Some(Arc::new(exchange)),
    }
}
