//! What plans see and do, on each emulator: what is missing is made, what is left over is removed, and what others made is neither
//! listed nor touched.

use flare_model::bridge::{self, Concurrency, KinesisSource, SqsSource, StartAt};
use flare_model::duration::HumanDuration;
use flare_provider::bridge::{Bridge as _, BridgeErrorKind};
use flare_provider::conformance::bridge::fixture::refused;
use flare_provider::upkeep::{Action, Change};
use serde_json::json;

use crate::emulator::{Emulator, does, engine, fresh_name};
use crate::sources::url;

fn queue(name: &str, create: bool) -> bridge::Source {
    bridge::Source::Sqs(SqsSource {
        queue: name.to_owned(),
        concurrency: Concurrency::Auto,
        visibility: HumanDuration(std::time::Duration::from_secs(30)),
        create,
    })
}

fn stream(name: &str, create: bool) -> bridge::Source {
    bridge::Source::Kinesis(KinesisSource { stream: name.to_owned(), start: StartAt::Latest, create })
}

fn named(changes: &[Change]) -> Vec<(Action, &str, &str)> {
    changes.iter().map(|change| (change.action, change.kind, change.name.as_str())).collect()
}

async fn plans_make_what_is_missing_and_remove_what_is_left_over(emulator: Emulator) {
    let Some(address) = emulator.address().await else { return };
    let owner = fresh_name();
    let aws = engine(address, &owner);
    let (plain, fifo, kept) = (fresh_name(), format!("{}.fifo", fresh_name()), fresh_name());
    let sources = [
        ("con_1".to_owned(), queue(&plain, true)),
        ("con_2".to_owned(), queue(&plain, true)),
        ("con_3".to_owned(), queue(&fifo, true)),
        ("con_4".to_owned(), stream(&kept, true)),
        ("con_5".to_owned(), queue(&fresh_name(), false)),
    ];
    let plan = aws.missing(&sources).await.expect("it answers");
    let created = [
        (Action::Create, "queue", &plain),
        (Action::Create, "queue", &fifo),
        (Action::Create, "stream", &kept),
    ];
    assert_eq!(named(&plan), created.map(|(action, kind, name)| (action, kind, name.as_str())));
    for _ in 0..2 {
        for change in &plan {
            aws.apply(&sources, change).await.expect("it is done, and safe to repeat");
        }
    }
    assert_eq!(aws.missing(&sources).await.expect("it answers"), []);
    assert_eq!(aws.left_over(&sources).await.expect("it answers"), [], "all of it is read");
    for (consumer, source) in &sources[..4] {
        let source = aws.source(consumer, source).expect("it has such sources");
        assert_eq!(source.partitions().await.expect("it is there").len(), 1);
    }

    // Of the same names as far as anybody can see, and not ours.
    let foreign = fresh_name();
    does(address, "AmazonSQS.CreateQueue", json!({"QueueName": foreign})).await;
    let others =
        json!({"QueueName": format!("{foreign}-other"), "tags": {"flare-owner": format!("{owner}-2")}});
    does(address, "AmazonSQS.CreateQueue", others).await;
    does(address, "Kinesis_20131202.CreateStream", json!({"StreamName": foreign, "ShardCount": 1})).await;
    let left = aws.left_over(&sources[2..]).await.expect("it answers");
    assert_eq!(named(&left), [(Action::Delete, "queue", plain.as_str())]);
    for _ in 0..2 {
        aws.apply(&sources[2..], &left[0]).await.expect("it is done, and safe to repeat");
    }
    assert_eq!(aws.left_over(&sources[2..]).await.expect("it answers"), []);

    // A plan that was made before somebody began to read it again, or that names what is not ours, is refused.
    let mut all = aws.left_over(&[]).await.expect("it answers");
    all.sort_by_key(|change| change.kind);
    assert_eq!(
        named(&all),
        [(Action::Delete, "queue", fifo.as_str()), (Action::Delete, "stream", kept.as_str())]
    );
    assert_eq!(refused(aws.apply(&sources, &all[0]).await), BridgeErrorKind::Refused);
    for kind in ["queue", "stream"] {
        let forged = Change { action: Action::Delete, kind, name: foreign.clone(), detail: String::new() };
        assert_eq!(refused(aws.apply(&[], &forged).await), BridgeErrorKind::Refused);
    }
    url(address, &foreign).await;
    for change in &all {
        aws.apply(&[], change).await.expect("it is done");
    }
    let gone = aws.missing(&sources[2..]).await.expect("it answers");
    assert_eq!(gone.len(), 2, "{gone:?}");
}

#[tokio::test]
async fn on_ministack_plans_make_what_is_missing_and_remove_what_is_left_over() {
    plans_make_what_is_missing_and_remove_what_is_left_over(Emulator::Ministack).await;
}

#[tokio::test]
async fn on_moto_plans_make_what_is_missing_and_remove_what_is_left_over() {
    plans_make_what_is_missing_and_remove_what_is_left_over(Emulator::Moto).await;
}
