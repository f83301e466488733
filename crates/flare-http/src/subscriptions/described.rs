//! What the descriptions of several operations on subscriptions share.

use flare_model::duration::HumanDuration;
use serde_json::{Value, json};

use crate::openapi::{Notes, examples};

/// What the configuration says about a subscription's fields.
pub fn bounds(it: &mut Notes<'_>) {
    let delivery = &it.config.delivery;
    let (timeout, most_timeout) =
        (HumanDuration(delivery.default_timeout), HumanDuration(delivery.maximum_timeout));
    let (concurrency, most) = (delivery.default_concurrency, delivery.maximum_concurrency);
    let text = format!("How long an attempt may take: above 0s, at most {most_timeout}.");
    it.bound("DeliveryDraft", "timeout", json!({"default": timeout, "description": text}));
    it.bound("DeliveryDraft", "concurrency", json!({"default": concurrency, "minimum": 1, "maximum": most}));
}

/// `quantity` of the operations of pull mode.
pub fn quantity(it: &Notes<'_>) -> Value {
    let passive = &it.config.delivery.passive;
    json!({
        "type": "integer", "minimum": 1, "maximum": passive.maximum_quantity, "default": passive.default_quantity,
    })
}

/// `lease` of the operations of pull mode.
pub fn lease(it: &mut Notes<'_>) -> Value {
    let passive = &it.config.delivery.passive;
    let (default, most) = (HumanDuration(passive.default_lease), HumanDuration(passive.maximum_lease));
    let duration = it.schema::<HumanDuration>();
    json!({"allOf": [duration], "default": default, "description": format!("Above 0s, at most {most}.")})
}

/// `wait` of a reservation.
pub fn wait(it: &mut Notes<'_>) -> Value {
    let most = HumanDuration(it.config.delivery.passive.maximum_wait);
    let duration = it.schema::<HumanDuration>();
    json!({"allOf": [duration], "default": "0s", "description": format!("At most {most}.")})
}

/// A notification that is handed out.
pub fn message() -> Value {
    let body = json!({
        "id": examples::DOCUMENT, "action": "create", "revision": 1, "updatedAt": examples::TIME,
        "document": {"version": 1, "name": "Ada"},
    });
    json!({
        "id": "msg_6f1c8d03a2b94e57", "document": examples::DOCUMENT, "action": "create", "revision": 1, "attempt": 1,
        "lease": "lease_1-3-1-2f-0-1-19a8", "leaseExpiresAt": "2026-11-15T08:30:30.000Z",
        "headers": {"content-type": ["application/json"], "flare-action": ["create"]},
        "payload": body.to_string(), "body": body,
    })
}
