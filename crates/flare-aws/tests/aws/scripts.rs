//! What no emulator does, played: shards that end, iterators whose time is over, records that were forgotten, reads that are too
//! many, answers that are lost, batches of which a part fails.

use std::sync::atomic::{AtomicU32, Ordering};

use flare_model::bridge::{self, Concurrency, KinesisSource, KinesisTarget, SqsSource, SqsTarget, StartAt};
use flare_model::duration::HumanDuration;
use flare_provider::bridge::{
    Batch, Bridge as _, BridgeErrorKind, Message, Partition, Sent, Sink, Source, Stream,
};
use flare_provider::conformance::bridge::fixture::{notification, receipts, refused, within};
use serde_json::{Value, json};

use crate::emulator::engine;
use crate::played::{Answer, Played, gives, refuses};

fn kinesis(played: &Played, start: StartAt) -> std::sync::Arc<dyn Source> {
    let settings = KinesisSource { stream: "orders".to_owned(), start, create: false };
    engine(&played.address, "flare").source("con_1", &bridge::Source::Kinesis(settings)).expect("a source")
}

fn sinks(played: &Played) -> [std::sync::Arc<dyn Sink>; 2] {
    let engine = engine(&played.address, "flare");
    [
        bridge::Target::Sqs(SqsTarget { queue: "http://played/1/orders".to_owned() }),
        bridge::Target::Kinesis(KinesisTarget { stream: "orders".to_owned() }),
    ]
    .map(|target| engine.sink(&target).expect("a sink"))
}

/// A record whose payload is `eA==`, an x.
fn record(number: &str) -> Value {
    json!({"SequenceNumber": number, "Data": "eA==", "PartitionKey": "k", "ApproximateArrivalTimestamp": 1.5})
}

fn shard(id: &str, parents: [Option<&str>; 2], closed: bool) -> Value {
    let mut shard = json!({"ShardId": id, "SequenceNumberRange": {"StartingSequenceNumber": "0"}});
    for (field, parent) in ["ParentShardId", "AdjacentParentShardId"].into_iter().zip(parents) {
        if let Some(parent) = parent {
            shard[field] = parent.into();
        }
    }
    if closed {
        shard["SequenceNumberRange"]["EndingSequenceNumber"] = "9".into();
    }
    shard
}

/// Iterators are `shard/type/number`, so that a read shows where it began.
fn iterator(input: &Value) -> Answer {
    let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
    let iterator =
        format!("{}/{}/{}", text("ShardId"), text("ShardIteratorType"), text("StartingSequenceNumber"));
    gives(json!({"ShardIterator": iterator}))
}

fn active() -> Answer {
    gives(json!({"StreamDescriptionSummary": {"StreamStatus": "ACTIVE"}}))
}

async fn messages(stream: &mut Box<dyn Stream>) -> Vec<Message> {
    match within(stream.next(100), "messages come").await {
        Ok(Batch::Messages(messages)) => messages,
        other => panic!("messages were expected, not {other:?}"),
    }
}

fn positions(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.position.as_str()).collect()
}

#[tokio::test]
async fn a_shard_that_was_split_is_read_to_its_end_and_its_children_come_after_it() {
    let played = Played::start(|operation, input| match operation {
        "DescribeStreamSummary" => active(),
        // In two pages: the second is asked for by its token alone.
        "ListShards" if input["NextToken"] == "more" => gives(json!({"Shards": [
            shard("s-3", [Some("s-1"), Some("s-2")], false),
        ]})),
        "ListShards" => gives(json!({"NextToken": "more", "Shards": [
            shard("s-0", [None, None], true),
            shard("s-1", [Some("s-0"), None], true),
            shard("s-2", [Some("s-0"), None], true),
        ]})),
        "GetShardIterator" => iterator(input),
        "GetRecords" => gives(json!({"Records": [record("1"), record("2")], "MillisBehindLatest": 0})),
        other => panic!("nobody asks for {other}"),
    })
    .await;
    let source = kinesis(&played, StartAt::Beginning);
    let partition = |id: &str, after: &[&str]| Partition {
        id: id.to_owned(),
        after: after.iter().map(|parent| (*parent).to_owned()).collect(),
    };
    assert_eq!(
        source.partitions().await.expect("it is there"),
        [
            partition("s-0", &[]),
            partition("s-1", &["s-0"]),
            partition("s-2", &["s-0"]),
            partition("s-3", &["s-1", "s-2"]),
        ]
    );
    assert_eq!(played.asked("ListShards")[1], json!({"NextToken": "more"}));
    let mut stream = source.open("s-0", None).await.expect("it opens");
    let came = messages(&mut stream).await;
    assert_eq!(positions(&came), ["1", "2"]);
    assert_eq!(came[0].sent_at.map(|at| at.millis()), Some(1500));
    for _ in 0..2 {
        assert_eq!(within(stream.next(10), "it ends").await.expect("it is there"), Batch::End);
    }
}

#[tokio::test]
async fn an_iterator_whose_time_is_over_is_made_anew_after_what_was_read() {
    let played = Played::start(|operation, input| match operation {
        "GetShardIterator" => iterator(input),
        "GetRecords" if input["ShardIterator"] == "s-0/TRIM_HORIZON/" => {
            gives(json!({"Records": [record("1")], "NextShardIterator": "old", "MillisBehindLatest": 9}))
        }
        "GetRecords" if input["ShardIterator"] == "old" => refuses(400, "ExpiredIteratorException"),
        "GetRecords" if input["ShardIterator"] == "s-0/AFTER_SEQUENCE_NUMBER/1" => {
            gives(json!({"Records": [record("2")], "NextShardIterator": "x", "MillisBehindLatest": 0}))
        }
        other => panic!("nobody asks for {other} with {input}"),
    })
    .await;
    let mut stream = kinesis(&played, StartAt::Beginning).open("s-0", None).await.expect("it opens");
    assert_eq!(positions(&messages(&mut stream).await), ["1"]);
    assert_eq!(positions(&messages(&mut stream).await), ["2"]);
}

#[tokio::test]
async fn reads_that_are_too_many_are_no_failure_and_are_made_later() {
    let reads = AtomicU32::new(0);
    let played = Played::start(move |operation, input| match operation {
        "GetShardIterator" => iterator(input),
        _ if reads.fetch_add(1, Ordering::Relaxed) < 2 => {
            refuses(400, "ProvisionedThroughputExceededException")
        }
        _ => gives(json!({"Records": [record("1")], "NextShardIterator": "x", "MillisBehindLatest": 0})),
    })
    .await;
    let mut stream = kinesis(&played, StartAt::Beginning).open("s-0", None).await.expect("it opens");
    assert_eq!(positions(&messages(&mut stream).await), ["1"]);
    assert_eq!(played.asked("GetRecords").len(), 3);
}

#[tokio::test]
async fn a_position_that_was_trimmed_is_forgotten_and_then_what_is_left_is_read() {
    let played = Played::start(|operation, input| match operation {
        "GetShardIterator" => iterator(input),
        _ => gives(json!({"Records": [record("5")], "NextShardIterator": "x", "MillisBehindLatest": 0})),
    })
    .await;
    let source = kinesis(&played, StartAt::Latest);
    assert_eq!(refused(source.open("s-0", Some("1")).await), BridgeErrorKind::Forgotten);
    let mut stream = source.open("s-0", None).await.expect("it opens");
    assert_eq!(positions(&messages(&mut stream).await), ["5"]);
    assert_eq!(played.asked("GetShardIterator")[1]["ShardIteratorType"], "TRIM_HORIZON");
}

#[tokio::test]
async fn a_position_of_another_stream_of_the_same_name_is_forgotten() {
    let played = Played::start(|_, _| refuses(400, "InvalidArgumentException")).await;
    let source = kinesis(&played, StartAt::Beginning);
    assert_eq!(refused(source.open("s-0", Some("1")).await), BridgeErrorKind::Forgotten);
}

#[tokio::test]
async fn with_latest_nothing_that_came_to_a_child_meanwhile_is_missed() {
    let played = Played::start(|operation, input| match operation {
        "ListShards" => gives(json!({"Shards": [
            shard("over-before", [None, None], true),
            shard("its-child", [Some("over-before"), None], false),
            shard("read", [None, None], false),
            shard("child-of-read", [Some("read"), None], false),
            shard("child-of-gone", [Some("gone"), None], false),
        ]})),
        "GetShardIterator" => iterator(input),
        other => panic!("nobody asks for {other}"),
    })
    .await;
    let source = kinesis(&played, StartAt::Latest);
    for shard in ["over-before", "its-child", "read", "child-of-read", "child-of-gone"] {
        source.open(shard, None).await.expect("it opens");
    }
    let began: Vec<Value> =
        played.asked("GetShardIterator").iter().map(|input| input["ShardIteratorType"].clone()).collect();
    assert_eq!(began, ["LATEST", "LATEST", "LATEST", "TRIM_HORIZON", "LATEST"]);
}

#[tokio::test]
async fn with_latest_what_came_before_anything_was_read_is_read_after_a_restart() {
    let played = Played::start(|operation, input| match operation {
        "ListShards" => gives(json!({"Shards": [shard("s-0", [None, None], false)]})),
        "GetShardIterator" => iterator(input),
        other => panic!("nobody asks for {other}"),
    })
    .await;
    let stream = kinesis(&played, StartAt::Latest).open("s-0", None).await.expect("it opens");
    let began = stream.began().expect("where it began can be written down");
    // Another process, which knows nothing but that.
    kinesis(&played, StartAt::Latest).open("s-0", Some(&began)).await.expect("it opens");
    let iterators = played.asked("GetShardIterator");
    let kinds: Vec<&Value> = iterators.iter().map(|input| &input["ShardIteratorType"]).collect();
    assert_eq!(kinds, ["LATEST", "AT_TIMESTAMP"]);
    assert!(iterators[1]["Timestamp"].is_f64(), "{iterators:?}");
}

#[tokio::test]
async fn an_answer_that_is_lost_is_doubt_and_one_that_asks_to_wait_is_not() {
    for (answer, expected) in [
        (None, "Unknown"),
        (Some((500, "InternalFailure")), "Unknown"),
        (Some((400, "ThrottlingException")), "Failed"),
        (Some((403, "AccessDeniedException")), "Failed"),
        (Some((400, "ValidationException")), "Refused"),
    ] {
        let played = Played::start(move |_, _| match answer {
            None => Answer::HangsUp,
            Some((status, code)) => refuses(status, code),
        })
        .await;
        for sink in sinks(&played) {
            let sent =
                within(sink.send(vec![notification("a", 1), notification("b", 1)]), "it answers").await;
            assert_eq!(sent.len(), 2);
            assert!(sent.iter().all(|one| format!("{one:?}").starts_with(expected)), "{answer:?}: {sent:?}");
        }
    }
}

#[tokio::test]
async fn of_a_batch_only_what_failed_is_said_to_have_failed() {
    let played = Played::start(|operation, _| match operation {
        "SendMessageBatch" => gives(json!({
            "Successful": [{"Id": "2"}, {"Id": "0"}],
            "Failed": [{"Id": "1", "SenderFault": false, "Code": "InternalError", "Message": "as played"},
                       {"Id": "3", "SenderFault": true, "Code": "InvalidMessageContents", "Message": "as played"}],
        })),
        _ => gives(json!({"FailedRecordCount": 2, "Records": [
            {"SequenceNumber": "1"},
            {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "as played"},
            {"SequenceNumber": "2"},
            {"ErrorCode": "InternalFailure", "ErrorMessage": "as played"},
        ]})),
    })
    .await;
    let batch: Vec<_> = ["a", "b", "c", "d"].map(|document| notification(document, 1)).into();
    let [sqs, kinesis] = sinks(&played);
    let sent = sqs.send(batch.clone()).await;
    assert!(
        matches!(&sent[..], [Sent::Delivered, Sent::Failed(_), Sent::Delivered, Sent::Refused(_)]),
        "{sent:?}"
    );
    let sent = kinesis.send(batch).await;
    assert!(
        matches!(&sent[..], [Sent::Delivered, Sent::Failed(_), Sent::Delivered, Sent::Failed(_)]),
        "{sent:?}"
    );
}

#[tokio::test]
async fn what_could_not_be_deleted_is_said_and_deleted_when_that_is_asked_again() {
    let deletes = AtomicU32::new(0);
    let played = Played::start(move |operation, input| match operation {
        "GetQueueAttributes" => gives(json!({"Attributes": {"VisibilityTimeout": "30"}})),
        "ReceiveMessage" => gives(json!({"Messages": [
            {"MessageId": "m-1", "ReceiptHandle": "h-1", "Body": "1", "Attributes": {"ApproximateReceiveCount": "4"}},
            {"MessageId": "m-2", "ReceiptHandle": "h-2", "Body": "2"},
        ]})),
        "DeleteMessageBatch" if deletes.fetch_add(1, Ordering::Relaxed) == 0 => gives(json!({
            "Successful": [{"Id": "0"}],
            "Failed": [{"Id": "1", "SenderFault": false, "Code": "InternalError"}],
        })),
        "DeleteMessageBatch" => {
            let entries = input["Entries"].as_array().expect("entries").len();
            let done: Vec<Value> = (0..entries).map(|id| json!({"Id": id.to_string()})).collect();
            gives(json!({"Successful": done}))
        }
        other => panic!("nobody asks for {other}"),
    })
    .await;
    let settings = SqsSource {
        queue: "http://played/1/orders".to_owned(),
        concurrency: Concurrency::Fixed(1),
        visibility: HumanDuration(std::time::Duration::from_secs(30)),
        create: false,
    };
    let engine = engine(&played.address, "flare");
    let source = engine.source("con_1", &bridge::Source::Sqs(settings)).expect("a source");
    let mut stream = source.open("0", None).await.expect("it opens");
    let came = messages(&mut stream).await;
    assert_eq!((positions(&came), came[0].deliveries), (vec!["m-1", "m-2"], Some(4)));
    let receipts = receipts(&came);
    let error = stream.acknowledge(&receipts).await.expect_err("one was not deleted");
    assert_eq!(error.kind, BridgeErrorKind::Unavailable);
    assert!(error.to_string().contains("1 message"), "{error}");
    stream.acknowledge(&receipts).await.expect("now it is");
    let again = &played.asked("DeleteMessageBatch")[1]["Entries"];
    assert_eq!(again, &json!([{"Id": "0", "ReceiptHandle": "h-2"}]), "only what is left");
}
