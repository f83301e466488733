//! What only this engine has: durable consumers that are made, compared and known again, and servers that deduplicate.

use flare_model::bridge::{NatsSource, Source as Settings, StartAt};
use flare_provider::bridge::{Bridge as _, BridgeErrorKind, Sent};
use flare_provider::conformance::bridge::Server;
use flare_provider::conformance::bridge::fixture::{
    Reader, notification, refused, said, send_one, texts, within,
};
use flare_provider::upkeep::{Action, Change};
use serde_json::{Value, json};

use crate::outside::Site;

fn reads(settings: NatsSource) -> Settings {
    Settings::Nats(settings)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_subjects_that_were_named_are_read() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    let client = site.direct().await;
    for (subject, payload) in [("orders.1", "yes"), ("others.1", "no"), ("orders.2", "too")] {
        client.request(format!("{}.{subject}", site.stream), payload.into()).await.expect("it is stored");
    }
    let settings =
        NatsSource { subject: Some(format!("{}.orders.*", site.stream)), ..site.settings(&site.stream) };
    let source = site.engine().source("con_1", &reads(settings.clone())).expect("it has such");
    let mut reader = Reader::open(source, "0".to_owned(), None).await;
    let taken = reader.take(2).await;
    assert_eq!(said(&taken), ["yes", "too"]);
    reader.settle(&taken).await.expect("it is settled");

    // The subject is another one now: the same consumer goes on, with what it is to read from here.
    let changed = NatsSource { subject: Some(format!("{}.others.*", site.stream)), ..settings };
    let source = site.engine().source("con_1", &reads(changed)).expect("it has such");
    let mut reader = Reader::open(source, "0".to_owned(), None).await;
    client.request(format!("{}.others.2", site.stream), "now".into()).await.expect("it is stored");
    assert!(said(&reader.next(2).await).contains(&"now".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_before_is_not_read_when_it_begins_with_the_latest() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    site.put(texts(["before"])).await;
    let settings = NatsSource { start: StartAt::Latest, ..site.settings(&site.stream) };
    let source = site.engine().source("con_1", &reads(settings)).expect("it has such");
    let mut reader = Reader::open(source, "0".to_owned(), None).await;
    site.put(texts(["after"])).await;
    assert_eq!(said(&reader.next(5).await), ["after"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_of_others_that_cannot_serve_is_refused_by_setting() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    let operation = format!("CONSUMER.DURABLE.CREATE.{}.theirs", site.stream);
    let config = json!({"durable_name": "theirs", "ack_policy": "none", "deliver_policy": "all"});
    site.api(&operation, &json!({"stream_name": site.stream, "config": config})).await;
    let settings = NatsSource { durable: Some("theirs".to_owned()), ..site.settings(&site.stream) };
    let source = site.engine().source("con_1", &reads(settings)).expect("it has such");
    let Err(error) = source.open("0", None).await else { panic!("it has to be refused") };
    assert_eq!(error.kind, BridgeErrorKind::Refused);
    assert!(error.detail.contains("ack_policy") && error.detail.contains("theirs"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_deleted_by_others_is_noticed_and_made_again() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    let source = site.engine().source("con_1", &reads(site.settings(&site.stream))).expect("it has such");
    let mut reader = Reader::open(source, "0".to_owned(), None).await;
    let deleted =
        async { site.api(&format!("CONSUMER.DELETE.{}.flare-con_1", site.stream), &Value::Null).await };
    let next = async { refused(within(reader.stream.next(1), "it is noticed").await) };
    let (kind, _) = tokio::join!(next, deleted);
    assert_eq!(kind, BridgeErrorKind::Broken);
    let mut reader = reader.reopen(&site).await;
    site.put(texts(["again"])).await;
    assert_eq!(said(&reader.next(1).await), ["again"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_that_is_sent_again_soon_is_kept_once() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    let sink = site.sink_to(&format!("{}.out", site.stream));
    for _ in 0..3 {
        assert_eq!(send_one(&*sink, notification("d", 1)).await, Sent::Delivered);
    }
    assert_eq!(site.contents().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_that_is_too_large_is_refused() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    let sink = site.sink_to(&format!("{}.out", site.stream));
    let large = flare_provider::bridge::Outgoing { body: vec![0; 2 << 20].into(), ..notification("d", 1) };
    let sent =
        within(sink.send(vec![notification("d", 0), large, notification("e", 0)]), "the sink answers").await;
    assert!(matches!(sent.as_slice(), [Sent::Delivered, Sent::Refused(_), Sent::Delivered]), "{sent:?}");
}

fn names(changes: &[Change]) -> Vec<(Action, &str, &str)> {
    changes.iter().map(|change| (change.action, change.kind, change.name.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_made_and_what_nobody_reads_by_is_known_again() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    let owner = format!("owner-{}", site.stream);
    let engine = site.engine_of(&owner);
    // A foreign one beside it.
    let operation = format!("CONSUMER.DURABLE.CREATE.{}.theirs", site.stream);
    let config =
        json!({"durable_name": "theirs", "ack_policy": "explicit", "description": "flare: somebody"});
    site.api(&operation, &json!({"stream_name": site.stream, "config": config})).await;
    let sources: Vec<_> = ["con_1", "con_2"]
        .map(|id| (id.to_owned(), reads(site.settings(&site.stream))))
        .into_iter()
        .collect();
    let [one, two] = ["con_1", "con_2"].map(|id| format!("{}/flare-{id}", site.stream));
    let plan = engine.missing(&sources).await.expect("it answers");
    let expected = [(Action::Create, "consumer", one.as_str()), (Action::Create, "consumer", two.as_str())];
    assert_eq!(names(&plan), expected);
    for _ in 0..2 {
        for change in &plan {
            engine.apply(&sources, change).await.expect("it is done, and may be done twice");
        }
    }
    assert_eq!(engine.missing(&sources).await.expect("it answers"), []);
    assert_eq!(engine.left_over(&sources).await.expect("it answers"), []);
    let gone = engine.left_over(&sources[..1]).await.expect("it answers");
    assert_eq!(names(&gone), [(Action::Delete, "consumer", two.as_str())], "the foreign one is not listed");
    for _ in 0..2 {
        engine.apply(&sources[..1], &gone[0]).await.expect("it is done, and may be done twice");
    }
    assert_eq!(engine.left_over(&sources[..1]).await.expect("it answers"), []);
    let theirs = Change { name: format!("{}/theirs", site.stream), ..gone[0].clone() };
    assert_eq!(refused(engine.apply(&sources, &theirs).await), BridgeErrorKind::Refused);
}

#[test]
fn a_password_in_the_url_is_not_shown() {
    let options = flare_nats::Options {
        url: "nats://user:s3cret@127.0.0.1:1".to_owned(),
        credentials: None,
        ca: None,
        owner: "test".to_owned(),
        timeout: std::time::Duration::from_secs(1),
        lease: std::time::Duration::from_secs(1),
    };
    assert!(!format!("{options:?}").contains("s3cret"));
    let Err(error) =
        flare_nats::Nats::new(flare_nats::Options { url: "nats://user:s3cret@:x y".to_owned(), ..options })
    else {
        panic!("it has to be refused")
    };
    assert!(!format!("{error:?}").contains("s3cret"));
}
