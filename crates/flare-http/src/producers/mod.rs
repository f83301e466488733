//! `/consumers/:cid/producers`. What is below a producer, and showing and deleting one, are the operations of subscriptions.

pub mod create;
pub mod list;
pub mod patch;
pub mod replace;

use flare_model::duration::HumanDuration;
use serde_json::{Value, json};

use crate::openapi::Notes;

/// A producer as a user writes it, with this url.
fn draft(url: &str) -> Value {
    json!({
        "target": {"type": "http", "url": url, "method": "post"},
        "delivery": {"timeout": "15s", "concurrency": 10, "rateLimit": {"quantity": 100, "interval": "1s"},
            "revision": "last"},
        "content": {"envelope": true, "document": true},
        "metadata": {"service": "orders", "id": "{id}"},
        "filter": "document.total > 0",
        "ttl": "24h", "mode": "active", "start": "now", "shards": 1,
    })
}

/// What the configuration says about a producer's fields.
fn bounds(it: &mut Notes<'_>) {
    let delivery = &it.config.delivery;
    let (timeout, most_timeout) =
        (HumanDuration(delivery.default_timeout), HumanDuration(delivery.maximum_timeout));
    let (concurrency, most) = (delivery.default_concurrency, delivery.maximum_concurrency);
    let text = format!("How long an attempt may take: above 0s, at most {most_timeout}.");
    it.bound("ProducerDeliveryDraft", "timeout", json!({"default": timeout, "description": text}));
    it.bound(
        "ProducerDeliveryDraft",
        "concurrency",
        json!({"default": concurrency, "minimum": 1, "maximum": most}),
    );
}

/// When a target cannot be had.
const TAKEN: &str =
    "Another producer of the consumer has the same target, or the same url for the same action.";
