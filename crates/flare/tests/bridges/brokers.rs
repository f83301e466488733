//! What users of brokers see: messages become documents and documents messages, with everything in its place; queues that are not there;
//! messages that cannot be read; processes and brokers that end in the middle of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flare_provider::conformance::bridge::Server;
use serde_json::{Value, json};

use crate::support::{Api, PATIENCE, Receiver, Reply, until};
use crate::world::{KINDS, Kind, World, turn, until_status};
use crate::{nats, rabbitmq};

fn payload() -> Value {
    json!({
        "id": "id", "revision": {"field": "rev"}, "delete": {"field": "gone", "equals": true},
    })
}

async fn consume(api: Api, source: Value, payload: Value) -> String {
    let draft = json!({"source": source, "payload": payload});
    api.post("/consumers", &draft).await.expect(201).header("location").to_owned()
}

async fn produce(api: Api, consumer: &str, target: Value) -> String {
    let draft = json!({"target": target, "metadata": {"service": "orders", "of": "{id}"}});
    api.post(&format!("{consumer}/producers"), &draft).await.expect(201).header("location").to_owned()
}

/// A message about a document, which is also its group.
fn message(id: &str, more: Value) -> (&str, String) {
    let mut message = json!({"id": id});
    message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    (id, message.to_string())
}

/// What a target got: the id of each, its headers by their names as HTTP has them, in lower case, and what it says. Where brokers tell small
/// letters from large ones they are written as they are described.
type Got = Vec<(String, BTreeMap<String, String>, Value)>;

fn lower(name: &str) -> String {
    assert!(!name.starts_with("flare-"), "{name} is not written as it is described");
    name.to_lowercase()
}

/// Targets of every type that keep names beside the body, and what came there.
struct Ends {
    rabbit: rabbitmq::outside::Site,
    nats: nats::outside::Site,
    fifo: String,
    stream: String,
}

impl Ends {
    async fn make(world: &World) -> Option<Ends> {
        let rabbit = rabbitmq::outside::Site::new(Server::Shared, true).await?;
        let nats = nats::outside::Site::new(Server::Shared).await?;
        let ends =
            Ends { fifo: format!("{}.fifo", rabbit.queue), stream: rabbit.queue.clone(), rabbit, nats };
        let made = json!({"QueueName": ends.fifo, "Attributes": {"FifoQueue": "true"}});
        world.sqs("CreateQueue", made).await;
        world.kinesis("CreateStream", json!({"StreamName": ends.stream, "ShardCount": 1})).await;
        Some(ends)
    }

    fn targets(&self) -> [Value; 4] {
        [
            json!({"type": "rabbitmq", "queue": self.rabbit.queue}),
            json!({"type": "nats", "subject": format!("{}.{{id}}", self.nats.stream)}),
            json!({"type": "aws.sqs", "queue": self.fifo}),
            json!({"type": "aws.kinesis", "stream": self.stream}),
        ]
    }

    async fn of_rabbit(&self) -> Got {
        let read = |one: lapin::message::Delivery| {
            let id = one.properties.message_id().as_ref().map(|id| id.as_str().to_owned());
            let headers = one.properties.headers().iter().flat_map(|headers| headers.inner());
            // The broker has one of its own, which is a number.
            let headers = headers.filter_map(|(name, value)| match value {
                lapin::types::AMQPValue::LongString(text) => {
                    Some((lower(name.as_str()), String::from_utf8_lossy(text.as_bytes()).into_owned()))
                }
                _ => None,
            });
            assert_eq!(*one.properties.delivery_mode(), Some(2), "the broker writes it to disk");
            (id.expect("it has an id"), headers.collect(), serde_json::from_slice(&one.data).expect("JSON"))
        };
        self.rabbit.take_all().await.into_iter().map(read).collect()
    }

    async fn of_nats(&self) -> Got {
        let read = |one: async_nats::Message| {
            assert_eq!(one.subject.as_str(), format!("{}.a%2F1", self.nats.stream));
            let headers = one.headers.expect("it has headers");
            let headers: BTreeMap<String, String> =
                headers.iter().map(|(name, values)| (lower(name.as_ref()), values[0].to_string())).collect();
            let id = headers["nats-msg-id"].clone();
            (id, headers, serde_json::from_slice(&one.payload).expect("JSON"))
        };
        self.nats.contents().await.into_iter().map(read).collect()
    }

    async fn of_fifo(&self, world: &World) -> Got {
        let url = world.url(&self.fifo).await;
        let asked = json!({"QueueUrl": url, "MaxNumberOfMessages": 10, "AttributeNames": ["All"], "MessageAttributeNames": ["All"]});
        let read = |one: &Value| {
            assert_eq!(one["Attributes"]["MessageGroupId"], "a/1");
            let attributes = one["MessageAttributes"].as_object().expect("attributes");
            assert!(
                attributes.contains_key("Flare-Document") && attributes.contains_key("webhook-id"),
                "{one}"
            );
            let text = |value: &Value| value["StringValue"].as_str().expect("a text").to_owned();
            let headers: BTreeMap<String, String> =
                attributes.iter().map(|(name, value)| (lower(name), text(value))).collect();
            let id = one["Attributes"]["MessageDeduplicationId"].as_str().expect("an id").to_owned();
            let body: Value = serde_json::from_str(one["Body"].as_str().expect("a body")).expect("JSON");
            (id, headers, body)
        };
        // The next of a group are given out once those before them are gone.
        let mut got = Vec::new();
        loop {
            let found = world.sqs("ReceiveMessage", asked.clone()).await;
            let messages = found["Messages"].as_array().cloned().unwrap_or_default();
            if messages.is_empty() {
                return got;
            }
            for one in &messages {
                let gone = json!({"QueueUrl": url, "ReceiptHandle": one["ReceiptHandle"]});
                world.sqs("DeleteMessage", gone).await;
            }
            got.extend(messages.iter().map(read));
        }
    }

    /// The partition keys and bodies of all records.
    async fn of_kinesis(&self, world: &World) -> Vec<(String, Value)> {
        use base64::Engine as _;
        let asked = json!({"StreamName": self.stream, "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"});
        let iterator = world.kinesis("GetShardIterator", asked).await;
        let found = world.kinesis("GetRecords", json!({"ShardIterator": iterator["ShardIterator"]})).await;
        let read = |one: &Value| {
            let body = base64::engine::general_purpose::STANDARD.decode(one["Data"].as_str().expect("data"));
            let body = serde_json::from_slice(&body.expect("base64")).expect("JSON");
            (one["PartitionKey"].as_str().expect("a key").to_owned(), body)
        };
        found["Records"].as_array().expect("records").iter().map(read).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_comes_in_over_a_broker_goes_out_over_every_other() {
    let _turn = turn().await;
    let Some(world) = World::new(Server::Shared).await else { return };
    let flare = world.flare().await;
    let api = flare.api();
    for kind in KINDS {
        let Some(ends) = Ends::make(&world).await else { return };
        if kind != Kind::Nats {
            world.make(kind).await;
        }
        let consumer = consume(api, world.source(kind), payload()).await;
        let receiver = Receiver::start().await;
        let http = json!({"type": "http", "url": receiver.url("/told/{id}/{revision}")});
        let mut producers = vec![produce(api, &consumer, http).await];
        for target in ends.targets() {
            producers.push(produce(api, &consumer, target).await);
        }
        until_status(api, &consumer, "it reads", |status| status["status"] == "active").await;
        let told = [json!({"rev": 1, "name": "\u{e9}"}), json!({"rev": 3}), json!({"rev": 4, "gone": true})];
        for (count, change) in told.into_iter().enumerate() {
            world.put(kind, &[message("a/1", change)]).await;
            for producer in &producers {
                let what = format!("{kind:?} reached the target {count}");
                until_status(api, producer, &what, |status| status["delivered"] == count + 1).await;
            }
            if count == 1 {
                world
                    .put(kind, &[message("a/1", json!({"rev": 2})), message("a/1", json!({"rev": 3}))])
                    .await;
            }
        }
        let status =
            until_status(api, &consumer, "all are settled", |status| status["acknowledged"] == 5).await;
        let counts =
            ["received", "accepted", "stale", "unchanged", "rejected"].map(|name| status[name].clone());
        assert_eq!(counts, [5, 3, 1, 1, 0].map(Value::from), "{kind:?}: {status}");
        assert_eq!(status["units"][0]["state"], "running", "{status}");

        let requests = receiver.requests();
        let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
        assert_eq!(paths, ["/told/a%2F1/1", "/told/a%2F1/3", "/told/a%2F1/4"]);
        let over_http: Got = requests
            .iter()
            .map(|one| {
                (one.header("webhook-id").to_owned(), one.headers.clone().into_iter().collect(), one.json())
            })
            .collect();
        for (target, got) in [
            ("http", over_http),
            ("rabbitmq", ends.of_rabbit().await),
            ("nats", ends.of_nats().await),
            ("aws.sqs", ends.of_fifo(&world).await),
        ] {
            let said: Vec<(&str, &str)> = got
                .iter()
                .map(|(_, headers, _)| (headers["flare-action"].as_str(), headers["flare-revision"].as_str()))
                .collect();
            assert_eq!(said, [("create", "1"), ("update", "3"), ("delete", "4")], "{kind:?} to {target}");
            let ids: BTreeSet<&String> = got.iter().map(|(id, ..)| id).collect();
            assert_eq!(ids.len(), 3, "{target}: each has an id of its own");
            for (id, headers, body) in &got {
                assert_eq!(
                    (&headers["webhook-id"], headers["flare-document"].as_str()),
                    (id, "a/1"),
                    "{target}"
                );
                assert!(headers["webhook-signature"].starts_with("v1,"), "{target}: {headers:?}");
                assert_eq!(
                    (&body["id"], &body["data"]),
                    (&json!("a/1"), &json!({"service": "orders", "of": "a/1"}))
                );
            }
            assert_eq!((&got[0].2["document"]["name"], got[2].2.get("document")), (&json!("\u{e9}"), None));
        }
        let records = ends.of_kinesis(&world).await;
        let said: Vec<(&str, &Value)> =
            records.iter().map(|(key, body)| (key.as_str(), &body["action"])).collect();
        assert_eq!(said, [("a/1", &json!("create")), ("a/1", &json!("update")), ("a/1", &json!("delete"))]);
        nothing_is_lost_by_a_pause(&world, api, kind, &consumer, &receiver).await;
    }
}

/// What was acknowledged is known also to whoever asks while nobody reads, and what comes meanwhile is read afterwards.
async fn nothing_is_lost_by_a_pause(
    world: &World,
    api: Api,
    kind: Kind,
    consumer: &str,
    receiver: &Receiver,
) {
    api.post(&format!("{consumer}/pause"), &json!({})).await.expect(200);
    // Whoever was asked for messages just before must not take them along.
    world.put(kind, &[message("late", json!({"rev": 1}))]).await;
    let paused = until_status(api, consumer, "nobody reads", |status| status["node"].is_null()).await;
    assert!(paused["status"] == "paused" && paused["acknowledged"].as_u64() >= Some(5), "{kind:?}: {paused}");
    let resumed = api.post(&format!("{consumer}/resume"), &json!({})).await.expect(200).json();
    assert_ne!(resumed["status"], "paused");
    until(&format!("{kind:?}: what came meanwhile is told"), || async {
        receiver.requests().iter().any(|request| request.document() == "late").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_not_there_is_said_to_be_missing_and_fixup_brings_it_back() {
    let _turn = turn().await;
    let (Some(world), Some(others)) = (World::new(Server::Shared).await, World::new(Server::Shared).await)
    else {
        return;
    };
    for kind in KINDS.into_iter().filter(|kind| *kind != Kind::Nats) {
        others.make(kind).await;
    }
    world.delete(Kind::Nats).await;
    let flare = world.flare().await;
    let (api, receiver) = (flare.api(), Receiver::start().await);
    let mut consumers = BTreeMap::new();
    for kind in KINDS {
        // Without a revision the order of arrival counts, also where a queue that was made anew counts from one again.
        let consumer = consume(api, world.source(kind), json!({"id": "id"})).await;
        let target = json!({"type": "http", "url": receiver.url(&format!("/{kind:?}/{{id}}"))});
        produce(api, &consumer, target).await;
        consumers.insert(kind, consumer);
    }
    for round in ["it was never made", "it is deleted"] {
        let began = std::time::Instant::now();
        for (kind, consumer) in &consumers {
            let what = format!("{kind:?} is disabled: {round}");
            let status = until_status(api, consumer, &what, |status| status["status"] == "disabled").await;
            assert!(began.elapsed().as_secs() < 10, "{kind:?} took {:?}", began.elapsed());
            let why = status["reason"].as_str().unwrap_or_default();
            assert!(!why.is_empty() && status["lastFailure"]["error"] == why, "{kind:?}: {status}");
            assert_eq!(api.get(consumer).await.expect(200).json()["reason"], why);
        }
        let plan = world.plan(&["fixup", "--plan-only"], 1).await;
        let planned: BTreeSet<(&str, &str)> = plan["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .map(|change| {
                (change["action"].as_str().expect("a word"), change["name"].as_str().expect("a name"))
            })
            .collect();
        let made = |kind: &&Kind| **kind != Kind::Nats;
        let wanted: BTreeSet<(&str, &str)> =
            KINDS.iter().filter(made).map(|kind| ("create", world.name(*kind))).collect();
        assert_eq!((planned, &plan["applied"]), (wanted, &json!(false)), "{plan}");
        let words = world.command(&["fixup", "--plan-only"]).await;
        let words = String::from_utf8_lossy(&words.stdout).into_owned();
        assert!(words.contains(&format!("+ queue {}", world.name(Kind::Rabbit))), "{words}");
        assert_eq!(world.plan(&["fixup", "--yes"], 0).await["applied"], true);
        world.make(Kind::Nats).await;
        for (kind, consumer) in &consumers {
            if *kind == Kind::Nats && round == "it was never made" {
                // What comes from now on is what it begins with.
                until_status(api, consumer, "it reads", |status| status["status"] == "active").await;
            }
            world.put(*kind, &[message("a", json!({"said": round}))]).await;
        }
        until(&format!("delivery goes on after {round}"), || async {
            let told: BTreeSet<String> = receiver
                .requests()
                .into_iter()
                .filter(|request| request.json()["document"]["said"] == round)
                .map(|request| request.path)
                .collect();
            (told.len() == KINDS.len()).then_some(())
        })
        .await;
        assert_eq!(world.plan(&["fixup", "--plan-only"], 0).await["changes"], json!([]));
        if round == "it was never made" {
            for (kind, consumer) in &consumers {
                until_status(api, consumer, "it is settled", |status| status["acknowledged"] == 1).await;
                world.delete(*kind).await;
            }
        }
    }
    assert_eq!(world.plan(&["cleanup", "--plan-only"], 0).await["changes"], json!([]), "all of it is read");
    for consumer in consumers.values() {
        let listed = api.get(&format!("{consumer}/producers")).await.expect(200).json();
        let id = listed["producers"][0]["id"].as_str().expect("an id");
        api.delete(&format!("{consumer}/producers/{id}")).await.expect(204);
        api.delete(consumer).await.expect(204);
    }
    let plan = world.plan(&["cleanup", "--yes"], 0).await;
    let deleted =
        plan["changes"].as_array().expect("changes").iter().map(|one| one["name"].as_str().expect("a name"));
    let own = KINDS.map(|kind| world.name(kind));
    assert!(
        deleted
            .clone()
            .all(|name| own.iter().any(|own| name == *own || name.starts_with(&format!("{own}/")))),
        "{plan}"
    );
    assert_eq!(deleted.count(), KINDS.len(), "what others made is none of it: {plan}");
}

/// What a client was told.
#[derive(Default)]
struct Told {
    /// By its path and the name of the document: the newest revision.
    newest: BTreeMap<(String, String), i64>,
    /// Requests with a revision older than one before.
    wrong: Vec<String>,
}

/// A client that keeps only that.
async fn client() -> (Receiver, Arc<Mutex<Told>>) {
    let told = Arc::<Mutex<Told>>::default();
    let kept = told.clone();
    let receiver = Receiver::answering(move |request| {
        let mut kept = kept.lock().expect("nobody panicked");
        let key = (request.path.clone(), request.document().to_owned());
        let before = kept.newest.insert(key, request.revision());
        if before.is_some_and(|before| before > request.revision()) {
            kept.wrong.push(format!("{before:?}, and then {} {:?}", request.path, request.headers));
        }
        Reply::Status(200)
    });
    (receiver.await, told)
}

fn of(told: &Mutex<Told>, kind: Kind) -> BTreeMap<String, i64> {
    let path = format!("/{kind:?}");
    let told = told.lock().expect("nobody panicked");
    assert!(told.wrong.is_empty(), "{:?}", told.wrong);
    let own = told.newest.iter().filter(|((of, _), _)| *of == path);
    own.map(|((_, name), revision)| (name.clone(), *revision)).collect()
}

/// How much of something there is to be: `cargo xtask bridges` says more than is usual.
fn asked(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().map_or(usual, |value| value.parse().expect("a number"))
}

/// So many messages, of which every hundredth cannot be read, and the newest revision of each document.
fn messages(count: usize) -> (Vec<(String, String)>, BTreeMap<String, i64>) {
    let mut newest = BTreeMap::new();
    let message = |number: usize| {
        if number % 100 == 50 {
            return (format!("bad {number}"), format!("cannot be read: {number}"));
        }
        let name = format!("d{}", number * 7 % 500);
        newest.insert(name.clone(), number as i64);
        let text = message(&name, json!({"rev": number})).1;
        (name, text)
    };
    let all = (0..count).map(message).collect();
    (all, newest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_unreadable_holds_anything_up_when_processes_and_brokers_end() {
    let _turn = turn().await;
    let Some(mut world) = World::new(Server::Alone).await else { return };
    // What a process that is killed was given comes again after this.
    world.visibility = "5s";
    let mut flare = world.flare().await;
    let (receiver, told) = client().await;
    let mut consumers = Vec::new();
    for kind in KINDS {
        if kind != Kind::Nats {
            world.make(kind).await;
        }
        let consumer = consume(flare.api(), world.source(kind), payload()).await;
        let target = json!({"type": "http", "url": receiver.url(&format!("/{kind:?}"))});
        produce(flare.api(), &consumer, target).await;
        until_status(flare.api(), &consumer, "it reads", |status| status["status"] == "active").await;
        consumers.push((kind, consumer));
    }
    let (all, wanted) = messages(asked("FLARE_BRIDGE_MESSAGES", 1000));
    let all: Vec<(&str, String)> = all.iter().map(|(group, text)| (group.as_str(), text.clone())).collect();
    let (kills, restarts) = (asked("FLARE_BRIDGE_KILLS", 4), asked("FLARE_BRIDGE_RESTARTS", 1));
    for (part, some) in all.chunks(all.len().div_ceil(kills)).enumerate() {
        for (kind, _) in &consumers {
            world.put(*kind, some).await;
        }
        // One that is not ours is not started again.
        if part < restarts {
            world.rabbit.broker.restart().await;
            world.nats.server.restart().await;
        }
        flare.restart().await;
    }
    let api = flare.api();
    let bad: BTreeSet<&str> =
        all.iter().filter(|(group, _)| group.starts_with("bad")).map(|(_, text)| text.as_str()).collect();
    for (kind, consumer) in &consumers {
        let what = format!("{kind:?}: the newest of every document is told");
        within(all.len(), &what, || of(&told, *kind) == wanted).await;
        let what = format!("{kind:?}: what cannot be read is a dead letter");
        until_status(api, consumer, &what, |status| {
            status["status"] == "active" && status["deadLetters"].as_u64() >= Some(bad.len() as u64)
        })
        .await;
        let letters = api.get(&format!("{consumer}/dead-letters?limit=1000")).await.expect(200).json();
        let letters = letters["deadLetters"].as_array().expect("letters").clone();
        let said: BTreeSet<&str> =
            letters.iter().map(|one| one["excerpt"].as_str().expect("a text")).collect();
        // One that was kept a moment before the process was killed may come again; and a page has only so many.
        assert!(said == bad || (bad.len() > 50 && said.is_subset(&bad)), "{kind:?}: {said:?}");
        let tries = if *kind == Kind::Kinesis { 1 } else { 3 };
        for letter in &letters {
            assert!(letter["tries"].as_u64() >= Some(tries), "{kind:?}: {letter}");
            assert!(!letter["position"].as_str().unwrap_or_default().is_empty(), "{letter}");
        }
    }
}

/// Waits until it holds, for longer where there are more messages.
async fn within(messages: usize, what: &str, holds: impl Fn() -> bool) {
    let patience = PATIENCE + Duration::from_millis(10) * u32::try_from(messages).expect("not that many");
    let began = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if holds() {
            return;
        }
        assert!(began.elapsed() < patience, "waited in vain until {what}");
    }
}
