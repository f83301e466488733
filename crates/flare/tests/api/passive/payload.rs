//! What pull clients can verify: the payload is what was signed, byte for byte.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::{passively, reserve_one, settle};
use crate::support::{Receiver, Request, Setup, document_url, verify};

/// A message as the request that it would have been.
fn request(message: &Value) -> Request {
    let headers = message["headers"].as_object().expect("headers by name").iter();
    let headers: HashMap<String, String> = headers
        .map(|(name, values)| (name.clone(), values[0].as_str().expect("a text").to_owned()))
        .collect();
    let body = message["payload"].as_str().expect("a payload").as_bytes().to_vec();
    Request { method: "POST".into(), path: "/".into(), headers, body, at: Instant::now() }
}

#[tokio::test]
async fn the_payload_of_a_message_is_what_was_signed() {
    let (story, _) = passively(Setup::default(), Receiver::start().await, json!({})).await;
    let contents = [json!({}), json!({"envelope": false}), json!({"envelope": false, "document": false})];
    for (place, content) in contents.into_iter().enumerate() {
        let endpoint = json!({"url": story.receiver.url(&format!("/{place}"))});
        let body = json!({"endpoint": endpoint, "content": content, "mode": "passive"});
        let created = story.api().post(&story.subscriptions(), &body).await.expect(201);
        let (secret, path) = (created.json()["secret"].clone(), created.header("location").to_owned());
        // Blanks, an order of its own, an escape and a letter that is not ASCII: all that parsing would lose.
        let document = format!("{{ \"z\": \"\\u00df \u{df}\",\n \"rev\" : {} , \"a\":1.0}}", place + 1);
        let put = format!("/documents/{}", document_url(1));
        story.api().send("PUT", &put, &[], document.clone()).await.expect(202);
        let message = reserve_one(&story, &path, "").await;
        let payload = message["payload"].as_str().expect("a payload");
        match place {
            0 => assert!(payload.contains(&document), "{payload}"),
            1 => assert_eq!(payload, document),
            _ => assert_eq!((payload, &message["body"]), ("", &Value::Null)),
        }
        assert_eq!(message["encoding"], Value::Null);
        if place < 2 {
            assert_eq!(message["body"], serde_json::from_str::<Value>(payload).expect("JSON"));
        }
        let secret = secret.as_str().expect("it is shown once").to_owned();
        let mut forged = request(&message);
        forged.body.push(b' ');
        if let Some(verdicts) = verify(&[(&request(&message), &secret), (&forged, &secret)]) {
            assert_eq!(verdicts[0], "verified", "{message}");
            assert_ne!(verdicts[1], "verified");
        }
        settle(&story, &path, &[message], "success").await;
    }
}
