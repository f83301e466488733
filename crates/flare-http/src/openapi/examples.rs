//! Values that many examples share, so that the examples of all operations tell one story.

use serde_json::{Value, json};

/// The id of a resource.
pub const RESOURCE: &str = "res_e13ezvc2975ntr7j40xm";

/// The id of a subscription.
pub const SUBSCRIPTION: &str = "sub_bshh5ta4fs6w8je0ny7b";

/// The id of a consumer.
pub const CONSUMER: &str = "con_3kq0v7d1m5c2xj4f8t9w";

/// The id of a producer.
pub const PRODUCER: &str = "prd_6h0z2v9c4k8d1q5w3m7x";

/// The id of a token.
pub const TOKEN: &str = "tok_7m2c0v9x4k8d1q5w3z6h";

/// The url of a document of the resource.
pub const DOCUMENT: &str = "http://api.company.com/users/1";

/// When it happens.
pub const TIME: &str = "2026-11-15T08:30:00.000Z";

/// The secret of the subscription.
pub const SECRET: &str = "whsec_tqD1m3PyUyPHD+ivXuqQ7VD0sE0fK8aFKx8hPTsEZzg=";

/// The resource.
pub fn resource() -> Value {
    json!({
        "id": RESOURCE, "endpoint": "http://api.company.com/users/{id}", "change": {"field": "version"},
        "lanes": 8, "createdAt": TIME,
    })
}

/// What a consumer is created from.
pub fn consumer_draft() -> Value {
    json!({
        "source": {"type": "http.poll", "url": "http://127.0.0.1:9000/orders", "interval": "30s", "items": "orders"},
        "payload": {"format": "json", "id": "id", "revision": {"field": "version"}},
    })
}

/// The consumer.
pub fn consumer() -> Value {
    json!({
        "id": CONSUMER,
        "source": {"type": "http.poll", "url": "http://127.0.0.1:9000/orders", "interval": "30s", "items": "orders",
            "deletes": false, "timeout": "15s"},
        "payload": {"format": "json", "id": "id", "revision": {"field": "version"}},
        "status": "active", "since": TIME, "reason": null, "createdAt": TIME, "updatedAt": TIME,
    })
}

/// The subscription.
pub fn subscription() -> Value {
    json!({
        "id": SUBSCRIPTION, "resource": RESOURCE,
        "endpoint": {"url": "http://127.0.0.1:9000/users/{id}", "method": "POST"},
        "delivery": {"timeout": "15s", "concurrency": 10, "revision": "last",
            "retry": {"quantity": 50, "ttl": "72h", "interval": "5s", "maxInterval": "1h", "ratio": 2,
                "progression": "geometric", "immediate": 0, "preBackoff": 0}},
        "content": {"envelope": true, "document": true}, "mode": "active", "start": "now", "shards": 1,
        "status": "active", "since": TIME, "createdAt": TIME, "updatedAt": TIME,
        "secrets": [{"createdAt": TIME}],
    })
}

/// The producer.
pub fn producer() -> Value {
    json!({
        "id": PRODUCER, "consumer": CONSUMER,
        "target": {"type": "http", "url": "http://127.0.0.1:9000/orders/{id}", "method": "POST"},
        "delivery": {"timeout": "15s", "concurrency": 10, "revision": "last",
            "retry": {"quantity": 50, "ttl": "72h", "interval": "5s", "maxInterval": "1h", "ratio": 2,
                "progression": "geometric", "immediate": 0, "preBackoff": 0}},
        "content": {"envelope": true, "document": true}, "ttl": "24h", "mode": "active", "start": "now", "shards": 1,
        "status": "active", "since": TIME, "createdAt": TIME, "updatedAt": TIME,
        "secrets": [{"createdAt": TIME}],
    })
}

/// How the subscription stands.
pub fn status() -> Value {
    json!({
        "status": "failing", "since": TIME, "reason": "nothing has succeeded since then: answered 503",
        "feed": {"cursor": 120, "head": 130, "lagging": 7, "waiting": 2, "inFlight": 1, "deadLetters": 0,
            "held": 1000, "forgotten": 0, "sweep": null},
        "delivered": 4711, "discarded": 0, "failed": 3, "skippedRevisions": 0, "lastSuccessAt": TIME,
        "lastFailure": {"at": TIME, "status": 503, "error": "answered 503", "node": "node-a"},
        "node": "node-a",
        "shards": [{"shard": 0, "node": "node-a", "epoch": 41, "lanes": [0, 1, 2, 3, 4, 5, 6, 7]}],
    })
}

/// An attempt of the subscription, as lists have it.
pub fn attempt() -> Value {
    json!({
        "id": "att_000500000000001f", "resource": RESOURCE, "subscription": SUBSCRIPTION, "document": DOCUMENT,
        "action": "update", "revision": 2, "attempt": 3, "outcome": "failed", "status": 503, "error": null,
        "beganAt": TIME, "timing": {"queued": null, "connect": null, "firstByte": "3.1ms", "total": "3.2ms"},
        "webhookId": "msg_9f0c5a1e", "node": "node-a",
    })
}

/// What was sent and what came back, as an attempt and a test show it.
pub fn exchange() -> (Value, Value) {
    (
        json!({"method": "POST", "url": "http://127.0.0.1:9000/users/1",
            "headers": {"authorization": ["[redacted]"], "flare-action": ["update"]},
            "body": "{\"id\":\"http://api.company.com/users/1\"}", "bodyBytes": 39}),
        json!({"status": 503, "headers": {"retry-after": ["5"]}, "body": "no database"}),
    )
}
