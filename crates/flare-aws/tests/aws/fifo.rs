//! FIFO queues as sources: the order of each group, whatever becomes of the others.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use flare_model::bridge::Concurrency;
use flare_provider::bridge::{Batch, Bridge as _};
use flare_provider::conformance::bridge::fixture::{PATIENCE, stopwatch, text, within};

use crate::emulator::{Emulator, engine};
use crate::sources::{Kind, Named, send_ten};

const GROUPS: [&str; 3] = ["a", "b", "c"];

const EACH: usize = 8;

/// Of every group messages come in their order, with one that is rejected twice and holds up its group and no other.
async fn messages_of_a_group_come_in_order(emulator: Emulator, receivers: u32) {
    let Some(address) = emulator.address().await else { return };
    let named = Named::make(address, Kind::Fifo).await;
    let Named::Queue(queue) = &named else { panic!("a queue was made") };
    let all: Vec<(Bytes, &str)> = (0..EACH)
        .flat_map(|number| GROUPS.map(|group| (Bytes::from(format!("{group} {number}")), group)))
        .collect();
    for (tens, ten) in all.chunks(10).enumerate() {
        let ten = ten.iter().enumerate();
        let ten = ten.map(|(one, (payload, group))| (payload, Some((*group, tens * 10 + one)))).collect();
        send_ten(address, queue, ten).await;
    }
    let source = engine(address, "flare").source("con_1", &named.source(Concurrency::Fixed(receivers)));
    let source = source.expect("it has such sources");
    let mut stream = source.open("0", None).await.expect("it is there");
    let mut settled: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut rejected = 0;
    let began = stopwatch();
    while settled.values().map(Vec::len).sum::<usize>() < all.len() {
        assert!(began() < PATIENCE, "{settled:?}");
        let Ok(Batch::Messages(messages)) = within(stream.next(20), "messages come").await else {
            panic!("messages were expected")
        };
        let mut held = false;
        for message in messages {
            let said = text(&message);
            let (group, number) = said.split_once(' ').expect("a group and a number");
            // What was given out behind it has to wait with it.
            held |= said == "b 3" && rejected < 2;
            if held && group == "b" {
                rejected += usize::from(said == "b 3");
                stream.reject(message.receipt, Duration::ZERO).await.expect("it is rejected");
                continue;
            }
            stream.acknowledge(&[message.receipt]).await.expect("it is settled");
            settled.entry(group.to_owned()).or_default().push(number.parse().expect("a number"));
        }
    }
    assert_eq!(rejected, 2);
    for (group, numbers) in settled {
        assert_eq!(numbers, (0..EACH).collect::<Vec<_>>(), "of {group}");
    }
}

#[tokio::test]
async fn on_ministack_messages_of_a_group_come_in_order() {
    messages_of_a_group_come_in_order(Emulator::Ministack, 2).await;
}

#[tokio::test]
async fn on_moto_messages_of_a_group_come_in_order() {
    // With two, what moto decided when a request began holds until it is answered, whatever was given out meanwhile.
    messages_of_a_group_come_in_order(Emulator::Moto, 1).await;
}
