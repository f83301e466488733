//! Consumers over a broker and a store in memory, with time that passes only while everybody waits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_model::access::Account;
use flare_model::consumer::{Condition, ConsumerDraft, Progress};
use flare_model::document::Write;
use flare_model::ids::{ResourceId, ResourceNumber, Seq};
use flare_model::resource::Resource;
use flare_model::time::Timestamp;
use flare_provider::bridge::Bridge;
use flare_provider::memory::{Memory, MemoryBroker};
use flare_provider::{EntityKind, ListLetters, NewEntity, ProviderError, ScanLane, Start, Store};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::board::{Board, Now};
use super::reading::Ended;
use super::run::Run;
use super::{Accounts, Asked, Fitting, Page, Tools, Web};
use crate::bridges::Bridges;
use crate::door::{Chance, Clock};

/// The clock that the runtime's timers go by.
struct Paused(tokio::time::Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_767_323_045_678 + self.0.elapsed().as_millis() as i64)
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

struct Nowhere;

#[async_trait::async_trait]
impl Web for Nowhere {
    async fn get(&self, _: Asked<'_>) -> Result<Page, String> {
        Err("there is no network here".to_owned())
    }
}

/// Accounts without quotas.
struct Unbounded(Store);

#[async_trait::async_trait]
impl Accounts for Unbounded {
    fn messages(&self, _: &Account, wanted: usize) -> Result<usize, Duration> {
        Ok(wanted)
    }

    async fn commit(&self, _: &Account, writes: Vec<Write>) -> Result<Fitting, ProviderError> {
        Ok(Fitting { committed: self.0.documents.commit(writes).await?, full: None })
    }
}

struct Stage {
    store: Store,
    broker: MemoryBroker,
    tools: Arc<Tools>,
    resource: Arc<Resource>,
    tasks: JoinSet<Ended>,
}

struct Reader {
    board: Arc<Board>,
    stop: CancellationToken,
}

impl Stage {
    /// A consumer of the queue `orders`, which is there.
    #[expect(clippy::disallowed_methods, reason = "the time of a test is its runtime's")]
    async fn of(kind: &str, payload: Value) -> Stage {
        let clock = Arc::new(Paused(tokio::time::Instant::now()));
        let monotonic = clock.clone();
        let broker = MemoryBroker::new(Arc::new(move || monotonic.monotonic()), Duration::from_secs(30));
        broker.create("orders", &["0"]);
        let store = Memory::new().store();
        let name = if kind == "aws.kinesis" { "stream" } else { "queue" };
        let draft = json!({"source": {"type": kind, name: "orders"}, "payload": payload});
        let draft: ConsumerDraft = serde_json::from_value(draft).expect("a draft");
        let id = ResourceId::new("con_1");
        let settings = draft.check(&id).expect("a consumer");
        let new = NewEntity {
            kind: EntityKind::Consumer,
            id: id.to_string(),
            parent: None,
            keys: Vec::new(),
            body: String::new(),
            lanes: 1,
            start: Start::Now,
            history: false,
            capture: None,
        };
        let number = store.catalog.create(new).await.expect("created").number;
        let at = Timestamp::from_millis(0);
        let resource = Resource::of_consumer(id, ResourceNumber(number), settings, 1, at);
        let engine: Arc<dyn Bridge> = Arc::new(broker.clone());
        let bridges = Bridges::default().with(&["rabbitmq", "aws.sqs", "aws.kinesis"], &engine);
        let tools = Tools {
            store: store.clone(),
            clock,
            chance: Chance::from_seed(1),
            bridges: Arc::new(bridges),
            web: Arc::new(Nowhere),
            accounts: Arc::new(Unbounded(store.clone())),
            tries: 3,
            batch: 4,
            counted: Arc::new(Mutex::default()),
            commit_bytes: 1 << 20,
        };
        let (tools, resource) = (Arc::new(tools), Arc::new(resource));
        Stage { store, broker, tools, resource, tasks: JoinSet::new() }
    }

    fn put(&self, messages: &[Value]) {
        let payloads = messages.iter().map(|message| Bytes::from(message.to_string())).collect();
        self.broker.put("orders", "0", payloads);
    }

    async fn read(&mut self) -> Reader {
        let epoch = self.store.ledger.next_epoch().await.expect("an epoch");
        let (board, stop) = (Arc::new(Board::default()), CancellationToken::new());
        let run = Run {
            tools: self.tools.clone(),
            resource: self.resource.clone(),
            epoch,
            board: board.clone(),
            stop: stop.clone(),
        };
        self.tasks.spawn(run.run());
        Reader { board, stop }
    }

    /// Waits until it is so, a hundred seconds at the most.
    async fn until(&self, reader: &Reader, what: &str, holds: impl Fn(&Now) -> bool) -> Now {
        for _ in 0..1000 {
            let now = reader.board.now(self.tools.clock.monotonic());
            if holds(&now) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("waited in vain until {what}: {:?}", reader.board.now(self.tools.clock.monotonic()));
    }

    /// Names, revisions and contents of all documents, in order of their last change.
    async fn documents(&self) -> Vec<(String, String, String)> {
        let lane = self.resource.lanes().next().expect("a lane");
        let scan = ScanLane { lane, after: Seq(0), upto: Seq(u64::MAX), rows: 1000, bytes: 1 << 20 };
        let page = self.store.documents.scan(scan).await.expect("read");
        let live = page.documents.into_iter().filter(|document| !document.row.deleted);
        let shown = |content: Bytes| String::from_utf8_lossy(&content).into_owned();
        live.map(|one| (one.url.to_string(), one.revision.to_string(), shown(one.content))).collect()
    }

    async fn letters(&self) -> Vec<String> {
        let list = ListLetters { consumer: self.resource.number, after: 0, offset: 0, limit: 100 };
        let (_, letters) = self.store.intake.letters(list).await.expect("read");
        letters.into_iter().map(|letter| String::from_utf8_lossy(&letter.kept.payload).into_owned()).collect()
    }
}

fn counted(now: &Now) -> flare_model::consumer::Counted {
    now.partitions.get("0").map(|part| part.progress.counted).unwrap_or_default()
}

fn by_revision() -> Value {
    json!({"id": "id", "revision": {"field": "rev"}, "delete": {"field": "gone", "equals": true}})
}

#[tokio::test(start_paused = true)]
async fn messages_become_documents_and_are_acknowledged_then() {
    let mut stage = Stage::of("rabbitmq", by_revision()).await;
    stage.put(&[
        json!({"id": "a", "rev": 2}),
        json!({"id": "a", "rev": 1}),
        json!({"id": "b", "rev": 1}),
        json!({"id": "a", "rev": 2}),
        json!({"id": "b", "rev": 2, "gone": true}),
        json!({"id": 7, "rev": 1}),
    ]);
    let reader = stage.read().await;
    let now = stage.until(&reader, "all are read", |now| counted(now).acknowledged == 6).await;
    let counted = counted(&now);
    assert_eq!((counted.received, counted.accepted, counted.stale, counted.unchanged), (6, 4, 1, 1));
    assert_eq!(now.condition, Condition::Active);
    let names: Vec<_> =
        stage.documents().await.into_iter().map(|(name, revision, _)| (name, revision)).collect();
    assert_eq!(names, [("a".to_owned(), "2".to_owned()), ("7".to_owned(), "1".to_owned())]);
    assert_eq!(stage.broker.contents("orders").expect("a queue").len(), 0, "nothing is left of them");
    assert_eq!(stage.tools.counted.lock().accepted, 4);
    reader.stop.cancel();
    assert_eq!(stage.tasks.join_next().await.expect("it ends").expect("well"), Ended::Told);
    let readings = stage.store.intake.readings(stage.resource.number).await.expect("read");
    let recorded: Progress =
        serde_json::from_str(readings[0].progress.as_deref().expect("progress")).expect("JSON");
    assert_eq!(recorded.counted.acknowledged, 6, "whoever asks while nobody reads hears of all");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_tried_again_and_holds_up_nothing() {
    let mut stage = Stage::of("aws.sqs", by_revision()).await;
    stage.put(&[
        json!({"id": "a", "rev": 1}),
        json!({"name": "x"}),
        json!("no object"),
        json!({"id": "b", "rev": 1}),
    ]);
    let reader = stage.read().await;
    let now = stage.until(&reader, "the good ones are stored", |now| counted(now).accepted == 2).await;
    assert!(counted(&now).rejected >= 2);
    stage.put(&[json!({"id": "c", "rev": 1})]);
    stage.until(&reader, "those behind them are too", |now| counted(now).accepted == 3).await;
    let now = stage.until(&reader, "they are given up", |now| counted(now).acknowledged == 5).await;
    assert_eq!(counted(&now).rejected, 6, "each was tried three times");
    let mut letters = stage.letters().await;
    letters.sort();
    assert_eq!(letters, [r#""no object""#, r#"{"name":"x"}"#]);
    assert_eq!(stage.broker.contents("orders").expect("a queue").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_read_before_stores_no_progress_and_acknowledges_nothing() {
    let mut stage = Stage::of("aws.kinesis", by_revision()).await;
    stage.put(&[json!({"id": "a", "rev": 1})]);
    let first = stage.read().await;
    stage.until(&first, "it reads", |now| counted(now).accepted == 1).await;
    let second = stage.read().await;
    stage.until(&second, "another one reads", |now| now.condition == Condition::Active).await;
    stage.put(&[json!({"id": "b", "rev": 1})]);
    assert_eq!(stage.tasks.join_next().await.expect("the first ends").expect("well"), Ended::Fenced);
    let now = stage.until(&second, "the second goes on", |now| counted(now).received == 2).await;
    assert_eq!(counted(&now).received, 2, "it began where the first had come to");
}

#[tokio::test(start_paused = true)]
async fn where_reading_begins_is_durable_before_anything_comes() {
    let mut stage = Stage::of("aws.kinesis", by_revision()).await;
    let reader = stage.read().await;
    let begun = |now: &Now| now.partitions.get("0").is_some_and(|part| part.progress.position.is_some());
    stage.until(&reader, "it reads", begun).await;
    reader.stop.cancel();
    assert_eq!(stage.tasks.join_next().await.expect("it ends").expect("well"), Ended::Told);
    let readings = stage.store.intake.readings(stage.resource.number).await.expect("read");
    let progress: Progress =
        serde_json::from_str(readings[0].progress.as_deref().expect("some")).expect("progress");
    assert_eq!((progress.position.as_deref(), progress.counted.received), (Some("0"), 0));
}

#[tokio::test(start_paused = true)]
async fn raw_messages_are_all_kept_in_the_order_of_their_arrival() {
    let mut stage = Stage::of("rabbitmq", json!({"format": "raw"})).await;
    let every = NewEntity {
        kind: EntityKind::Producer,
        id: "prd_1".to_owned(),
        parent: Some("con_1".to_owned()),
        keys: Vec::new(),
        body: String::new(),
        lanes: 1,
        start: Start::Now,
        history: true,
        capture: None,
    };
    stage.store.catalog.create(every).await.expect("created");
    let messages: Vec<Value> = (0..10).map(|number| json!({"number": number})).collect();
    stage.put(&messages);
    stage.broker.put("orders", "0", vec![Bytes::from_static(&[0, 255]), Bytes::new()]);
    let reader = stage.read().await;
    stage.until(&reader, "all are read", |now| counted(now).acknowledged == 12).await;
    let lane = stage.resource.lanes().next().expect("a lane");
    let scan = ScanLane { lane, after: Seq(0), upto: Seq(u64::MAX), rows: 1000, bytes: 1 << 20 };
    let page = stage.store.documents.scan_revisions(scan, Seq(0)).await.expect("read");
    let contents: Vec<Bytes> = page.documents.iter().map(|document| document.content.clone()).collect();
    let expected = messages.iter().map(|message| Bytes::from(message.to_string()));
    let expected: Vec<Bytes> = expected.chain([Bytes::from_static(&[0, 255]), Bytes::new()]).collect();
    assert_eq!(contents, expected);
    let names: Vec<&str> =
        page.documents.iter().map(|one| stage.resource.name(&one.url, &one.revision)).collect();
    assert!(names.iter().all(|name| *name != "0"), "each is called by its position: {names:?}");
    assert!(stage.letters().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_deleted_disables_its_consumer_until_it_is_there_again() {
    let mut stage = Stage::of("rabbitmq", by_revision()).await;
    let reader = stage.read().await;
    stage.until(&reader, "it reads", |now| now.condition == Condition::Active).await;
    stage.broker.delete("orders");
    let before = stage.tools.clock.monotonic();
    let now = stage.until(&reader, "it is disabled", |now| now.condition == Condition::Disabled).await;
    assert!(stage.tools.clock.monotonic() - before < Duration::from_secs(10));
    assert!(now.reason.as_deref().is_some_and(|why| why.contains("orders")), "{now:?}");
    stage.broker.create("orders", &["0"]);
    stage.put(&[json!({"id": "a", "rev": 1})]);
    let now = stage.until(&reader, "it goes on", |now| counted(now).accepted == 1).await;
    assert_eq!((now.condition, now.reason), (Condition::Active, None));
    stage.broker.set_away(true);
    stage.until(&reader, "it fails", |now| now.condition == Condition::Failing).await;
    stage.broker.set_away(false);
    stage.put(&[json!({"id": "a", "rev": 2})]);
    stage.until(&reader, "it goes on again", |now| counted(now).accepted == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_never_was_is_a_failure_that_is_shown() {
    let mut stage = Stage::of("rabbitmq", by_revision()).await;
    stage.broker.delete("orders");
    let reader = stage.read().await;
    let now = stage.until(&reader, "it is disabled", |now| now.condition == Condition::Disabled).await;
    assert_eq!(now.not_found.map(|failed| failed.error), now.reason);
    assert!(now.partitions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_partition_is_read_after_those_before_it_have_ended() {
    let mut stage = Stage::of("aws.kinesis", by_revision()).await;
    stage.put(&[json!({"id": "a", "rev": 1})]);
    stage.broker.end("orders", "0", &["left", "right"]);
    stage.broker.put("orders", "left", vec![Bytes::from(json!({"id": "a", "rev": 2}).to_string())]);
    let reader = stage.read().await;
    let now = stage
        .until(&reader, "the child is read", |now| {
            now.partitions.get("left").is_some_and(|part| part.progress.counted.accepted == 1)
        })
        .await;
    assert!(now.partitions["0"].progress.ended);
    assert_eq!(now.condition, Condition::Active);
    assert_eq!(stage.documents().await[0].1, "2");
}
