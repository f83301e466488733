//! Tables of what is taken and what is refused, and of what messages say.

use serde_json::{Value, json};

use super::*;
use crate::bridge::Source;
use crate::revision::Revision;

fn check(json: Value) -> Result<Consumer, Invalid> {
    let draft: ConsumerDraft = serde_json::from_value(json).expect("a draft");
    draft.check(&ResourceId::new("con_1"))
}

#[test]
fn each_source_is_completed_with_what_was_left_out() {
    for (source, completed) in [
        (
            json!({"type": "aws.sqs", "queue": "orders"}),
            json!({"type": "aws.sqs", "queue": "orders", "concurrency": "auto", "visibility": "30s", "create": false}),
        ),
        (
            json!({"type": "aws.kinesis", "stream": "s"}),
            json!({"type": "aws.kinesis", "stream": "s", "start": "latest", "create": false}),
        ),
        (
            json!({"type": "rabbitmq", "queue": "q"}),
            json!({"type": "rabbitmq", "queue": "q", "prefetch": 100, "create": false}),
        ),
        (
            json!({"type": "nats", "stream": "s"}),
            json!({"type": "nats", "stream": "s", "durable": "flare-con_1", "start": "latest"}),
        ),
        (
            json!({"type": "http.poll", "url": " http://h/orders "}),
            json!({"type": "http.poll", "url": "http://h/orders", "interval": "30s", "timeout": "15s", "deletes": false}),
        ),
    ] {
        let kind = source["type"].as_str().expect("a type").to_owned();
        let consumer = check(json!({"source": source, "payload": {"id": "id"}})).expect("a consumer");
        assert_eq!(serde_json::to_value(&consumer.draft.source).expect("plain data"), completed);
        assert_eq!(consumer.source.kind(), kind);
    }
}

#[test]
fn what_is_wrong_is_named() {
    let sqs = json!({"type": "aws.sqs", "queue": "q"});
    let poll = |more: Value| {
        let mut source = json!({"type": "http.poll", "url": "http://h/a"});
        source.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"source": source, "payload": {"id": "id"}})
    };
    for (draft, field) in [
        (json!({"source": {"type": "aws.sqs"}, "payload": {"id": "id"}}), "source.queue"),
        (
            json!({"source": {"type": "aws.sqs", "queue": "q", "stream": "s"}, "payload": {"id": "id"}}),
            "source.stream",
        ),
        (
            json!({"source": {"type": "aws.sqs", "queue": "q", "concurrency": 0}, "payload": {"id": "id"}}),
            "source.concurrency",
        ),
        (
            json!({"source": {"type": "aws.sqs", "queue": "q", "visibility": "1d"}, "payload": {"id": "id"}}),
            "source.visibility",
        ),
        (
            json!({"source": {"type": "aws.kinesis", "stream": "s", "start": "soon"}, "payload": {"id": "id"}}),
            "source.start",
        ),
        (
            json!({"source": {"type": "rabbitmq", "queue": "q", "prefetch": 0}, "payload": {"id": "id"}}),
            "source.prefetch",
        ),
        (
            json!({"source": {"type": "rabbitmq", "queue": "q", "routingKey": "k"}, "payload": {"id": "id"}}),
            "source.routingKey",
        ),
        (
            json!({"source": {"type": "nats", "stream": "s", "durable": "a.b"}, "payload": {"id": "id"}}),
            "source.durable",
        ),
        (json!({"source": {"type": "nats", "stream": "a b"}, "payload": {"id": "id"}}), "source.stream"),
        (json!({"source": {"type": "aws.sqs", "queue": "a b"}, "payload": {"id": "id"}}), "source.queue"),
        (
            json!({"source": {"type": "aws.sqs", "queue": "http://h/a b"}, "payload": {"id": "id"}}),
            "source.queue",
        ),
        (
            json!({"source": {"type": "aws.kinesis", "stream": "a/b"}, "payload": {"id": "id"}}),
            "source.stream",
        ),
        (json!({"source": {"type": "http.poll"}, "payload": {"id": "id"}}), "source.url"),
        (poll(json!({"url": "ftp://h/a"})), "source.url"),
        (poll(json!({"url": "http://h/{id}"})), "source.url"),
        (poll(json!({"interval": "10ms"})), "source.interval"),
        (poll(json!({"next": "links.next"})), "source.next"),
        (poll(json!({"deletes": true})), "source.deletes"),
        (poll(json!({"items": "a..b"})), "source.items"),
        (poll(json!({"headers": {"Host": ["x"]}})), "source.headers.Host"),
        (json!({"source": sqs, "payload": {}}), "payload.id"),
        (json!({"source": sqs}), "payload.id"),
        (json!({"source": sqs, "payload": {"id": "a..b"}}), "payload.id"),
        (
            json!({"source": sqs, "payload": {"id": "id", "revision": {"field": "r", "format": "RFC3339"}}}),
            "payload.revision",
        ),
        (
            json!({"source": sqs, "payload": {"id": "id", "delete": {"field": "", "equals": 1}}}),
            "payload.delete.field",
        ),
        (json!({"source": sqs, "payload": {"format": "raw", "id": "id"}}), "payload.id"),
        (
            json!({"source": sqs, "payload": {"format": "raw", "revision": {"field": "r"}}}),
            "payload.revision",
        ),
    ] {
        let problem = check(draft.clone()).expect_err(&draft.to_string());
        assert_eq!(problem.field, field, "{draft}: {problem}");
    }
    let unknown =
        serde_json::from_value::<ConsumerDraft>(json!({"source": {"type": "aws.sqs", "queu": "q"}}));
    assert!(unknown.expect_err("an unknown field").to_string().contains("queu"));
}

#[test]
fn a_message_says_which_document_and_how_new_it_is() {
    let consumer = check(json!({
        "source": {"type": "aws.sqs", "queue": "q"},
        "payload": {"id": "order.id", "revision": {"field": "rev"}, "delete": {"field": "gone", "equals": true}},
    }))
    .expect("a consumer");
    let read = |text: &str| consumer.reader.understand(text.as_bytes());
    let understood = |name: &str, revision, is_delete| Understood {
        name: name.to_owned(),
        revision: Some(Revision::Integer(revision)),
        is_delete,
    };
    assert_eq!(read(r#"{"order":{"id":"a/1 é"},"rev":7}"#).expect("read"), understood("a/1 é", 7, false));
    assert_eq!(read(r#"{"order":{"id":42},"rev":8,"gone":true}"#).expect("read"), understood("42", 8, true));
    assert_eq!(read(r#"{"order":{"id":"x"},"rev":8,"gone":1}"#).expect("read"), understood("x", 8, false));
    for (text, words) in [
        ("no json", "must be a JSON object"),
        (r#"{"rev":1}"#, "\"order.id\", which names the document, is missing"),
        (r#"{"order":{"id":""},"rev":1}"#, "between 1 and 1024"),
        (r#"{"order":{"id":"a\n"},"rev":1}"#, "control"),
        (r#"{"order":{"id":1.5},"rev":1}"#, "a text or an integer"),
        (r#"{"order":{"id":[]},"rev":1}"#, "a text or an integer"),
        (r#"{"order":{"id":"a"}}"#, "\"rev\""),
        (r#"{"order":{"id":"a"},"rev":"soon"}"#, "rev"),
    ] {
        let problem = read(text).expect_err(text).to_string();
        assert!(problem.contains(words), "{text}: {problem}");
    }
}

#[test]
fn a_source_is_shown_without_its_credentials() {
    let consumer = check(json!({
        "source": {"type": "http.poll", "url": "http://h/a?token=abc&x=1", "headers": {"Authorization": ["b"], "X": ["y"]}},
        "payload": {"id": "id"},
    }))
    .expect("a consumer");
    assert!(matches!(&consumer.source, Source::HttpPoll(poll) if poll.url.contains("abc")));
    let shown = serde_json::to_string(&consumer.draft.source.redacted()).expect("plain data");
    assert!(!shown.contains("abc") && !shown.contains("\"b\"") && shown.contains("\"y\""), "{shown}");
    assert!(!consumer.label().contains("abc"));
}

#[test]
fn an_excerpt_is_text_whatever_the_message_is() {
    assert_eq!(excerpt_of(b"abc", 10), "abc");
    assert_eq!(excerpt_of("aé".as_bytes(), 2), "a");
    assert_eq!(excerpt_of(&[b'a', 0xff, 0], 10), "a\u{fffd}\u{fffd}");
}
