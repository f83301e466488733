//! What only this engine has: messages that come back, brokers that ask to wait, queues that are made and known again.

use flare_model::bridge::{RabbitMqSource, Source as Settings};
use flare_provider::bridge::{Bridge as _, BridgeErrorKind, Sent};
use flare_provider::conformance::bridge::Server;
use flare_provider::conformance::bridge::fixture::{LOOK, notification, refused, send_one, within};
use flare_provider::upkeep::{Action, Change};

use crate::outside::Site;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_back_is_refused_and_those_around_it_are_not() {
    let Some(site) = Site::new(Server::Shared, true).await else { return };
    // By the exchange without a name the key is the queue: every second document's name is one.
    let sink = site.sink_to("", "{id}");
    let names: Vec<&str> =
        (0..100).map(|number| if number % 2 == 0 { site.queue.as_str() } else { "none" }).collect();
    let batch: Vec<_> = names.iter().enumerate().map(|(number, name)| notification(name, number)).collect();
    let sent = within(sink.send(batch), "the sink answers").await;
    for (name, sent) in names.iter().zip(&sent) {
        match *name {
            "none" => assert!(matches!(sent, Sent::Refused(_)), "{sent:?}"),
            _ => assert_eq!(*sent, Sent::Delivered),
        }
    }
    assert_eq!(site.take_all().await.len(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_that_does_not_exist_refuses() {
    let Some(site) = Site::new(Server::Shared, true).await else { return };
    let sink = site.sink_to("never-made", "x");
    for number in 0..3 {
        let sent = send_one(&*sink, notification("d", number)).await;
        assert!(matches!(sent, Sent::Refused(_)), "{sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_refused_and_not_repeated_in_words() {
    let Some(site) = Site::new(Server::Shared, true).await else { return };
    let options = flare_rabbitmq::Options {
        url: format!("amqp://guest:s3cret@{}/%2f", site.broker.address),
        ca: None,
        owner: "test".to_owned(),
        timeout: std::time::Duration::from_secs(5),
        now: std::sync::Arc::new(|| flare_model::time::Timestamp::from_millis(0)),
    };
    assert!(!format!("{options:?}").contains("s3cret"));
    let engine = flare_rabbitmq::RabbitMq::new(options).expect("the url is right");
    let source =
        engine.source("con_1", &Settings::RabbitMq(site.settings(&site.queue))).expect("it has such");
    let error = within(source.partitions(), "it answers").await.expect_err("it is refused");
    assert_eq!(error.kind, BridgeErrorKind::Refused, "{error:?}");
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_asks_to_wait_has_not_taken_it_and_takes_it_later() {
    let Some(site) = Site::new(Server::Alone, true).await else { return };
    let sink = site.sink_to("", &site.queue);
    assert_eq!(send_one(&*sink, notification("d", 0)).await, Sent::Delivered);
    if !site.broker.control(&["set_vm_memory_high_watermark", "0"]) {
        return;
    }
    // The broker says so when it hears from the publisher again; what was under way then is taken once it goes on.
    let blocked = async {
        for number in 1.. {
            let sent = tokio::time::timeout(LOOK * 10, sink.send(vec![notification("d", number)])).await;
            if let Ok(sent) = sent
                && matches!(sent.as_slice(), [Sent::Failed(why)] if why.contains("wait"))
            {
                break;
            }
        }
    };
    within(blocked, "the broker asks to wait").await;
    site.broker.control(&["set_vm_memory_high_watermark", "0.4"]);
    let delivered = async {
        while send_one(&*sink, notification("later", 0)).await != Sent::Delivered {
            tokio::time::sleep(LOOK).await;
        }
    };
    within(delivered, "the broker goes on").await;
}

fn reads(queue: &str, exchange: Option<&str>) -> Settings {
    Settings::RabbitMq(RabbitMqSource {
        queue: queue.to_owned(),
        prefetch: 10,
        exchange: exchange.map(str::to_owned),
        routing_key: exchange.map(|_| "orders.#".to_owned()),
        create: true,
    })
}

fn names(changes: &[Change]) -> Vec<(Action, &str, &str)> {
    changes.iter().map(|change| (change.action, change.kind, change.name.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_made_and_what_nobody_reads_is_known_again() {
    // The queue of the site is a foreign one: the same broker, no mark.
    let Some(site) = Site::new(Server::Shared, true).await else { return };
    let owner = format!("owner-{}", site.queue);
    let engine = site.engine_of(&owner);
    let [one, two, exchange] = ["one", "two", "topic"].map(|name| format!("{}-{name}", site.queue));
    let sources = vec![
        ("con_1".to_owned(), reads(&one, Some(&exchange))),
        ("con_2".to_owned(), reads(&two, None)),
        ("con_3".to_owned(), reads(&site.queue, None)),
    ];
    assert_eq!(engine.left_over(&sources).await.expect("it answers"), []);
    let plan = engine.missing(&sources).await.expect("it answers");
    let expected = [
        (Action::Create, "exchange", exchange.as_str()),
        (Action::Create, "queue", one.as_str()),
        (Action::Create, "queue", two.as_str()),
    ];
    assert_eq!(names(&plan), expected);
    for _ in 0..2 {
        for change in &plan {
            engine.apply(&sources, change).await.expect("it is done, and may be done twice");
        }
    }
    assert_eq!(engine.missing(&sources).await.expect("it answers"), []);
    assert_eq!(engine.left_over(&sources).await.expect("it answers"), []);
    let source = engine.source("con_1", &sources[0].1).expect("it has such");
    assert_eq!(source.partitions().await.expect("it is there").len(), 1);

    let gone = engine.left_over(&sources[..1]).await.expect("it answers");
    assert_eq!(names(&gone), [(Action::Delete, "queue", two.as_str())], "the foreign one is not listed");
    assert_eq!(
        site.engine_of("another").left_over(&[]).await.expect("it answers"),
        [],
        "another cluster sees none"
    );
    for _ in 0..2 {
        engine.apply(&sources[..1], &gone[0]).await.expect("it is done, and may be done twice");
    }
    assert_eq!(engine.left_over(&sources[..1]).await.expect("it answers"), []);
    let gone = engine.source("con_2", &sources[1].1).expect("it has such");
    assert_eq!(refused(gone.partitions().await), BridgeErrorKind::Missing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_others_that_took_a_kept_name_is_left_alone() {
    let Some(site) = Site::new(Server::Shared, true).await else { return };
    let owner = format!("owner-{}", site.queue);
    let engine = site.engine_of(&owner);
    let sources = vec![("con_1".to_owned(), reads(&site.queue, None))];
    site.delete().await;
    let plan = engine.missing(&sources).await.expect("it answers");
    engine.apply(&sources, &plan[0]).await.expect("it is made");
    assert_eq!(engine.left_over(&[]).await.expect("it answers").len(), 1);
    // Somebody deletes it and makes one of that name.
    site.delete().await;
    site.declare().await;
    assert_eq!(engine.left_over(&[]).await.expect("it answers"), []);
}
