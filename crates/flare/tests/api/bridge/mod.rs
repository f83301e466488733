//! Other ways in and out: consumers and what they read, producers and what they pass on.

mod consumers;
mod hostile;
mod letters;
mod poll;
mod producers;

use serde_json::{Value, json};

use crate::support::{Api, Receiver, Reply, until};

/// An answer with this JSON, under this name.
pub fn page(etag: Option<&str>, body: &Value) -> Reply {
    let headers = etag.map(|etag| ("ETag", etag.to_owned())).into_iter().collect();
    Reply::Full { status: 200, headers, body: body.to_string() }
}

/// A consumer that polls a list of orders every second, with more of its source and payload.
pub async fn poll_orders(api: Api, origin: &Receiver, source: Value, payload: Value) -> String {
    let mut draft = json!({
        "source": {"type": "http.poll", "url": origin.url("/orders"), "interval": "1s", "items": "orders"},
        "payload": {"id": "id", "revision": {"field": "rev"}},
    });
    for (part, more) in [("source", source), ("payload", payload)] {
        let fields = draft[part].as_object_mut().expect("an object");
        for (name, value) in more.as_object().expect("an object") {
            match value.is_null() {
                true => fields.remove(name),
                false => fields.insert(name.clone(), value.clone()),
            };
        }
    }
    let created = api.post("/consumers", &draft).await.expect(201);
    created.header("location").to_owned()
}

/// Waits until the status of a consumer says so.
pub async fn until_status(api: Api, consumer: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(what, || async {
        let status = api.get(&format!("{consumer}/status")).await.expect(200).json();
        holds(&status).then_some(status)
    })
    .await
}
