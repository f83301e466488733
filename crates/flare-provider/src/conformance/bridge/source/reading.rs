//! Behaviours of reading: how much, in which order, and under which names.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::super::SourceSite;
use super::super::fixture::*;
use crate::bridge::Batch;

/// Though more is there.
pub async fn demand_is_never_exceeded(site: &dyn SourceSite) {
    let all = numbered(40);
    site.put(all.clone()).await;
    let mut reader = Reader::of(site).await;
    let mut open: BTreeSet<Bytes> = all.into_iter().collect();
    for most in (1..=7).cycle() {
        let batch = reader.next(most).await;
        reader.settle(&batch).await.expect("it is settled");
        for message in &batch {
            open.remove(&message.payload);
        }
        if open.is_empty() {
            break;
        }
    }
    assert_eq!(reader.rest(site, 0).await, []);
}

/// Empty ones and large ones too.
pub async fn payloads_of_any_bytes_come_as_they_were_put(site: &dyn SourceSite) {
    let every: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    let all = if site.can().text_only {
        texts(
            ["{\"a\": \"\u{e9}\u{4e16}\u{1f600}\"}", " ", "\t\r\nx"]
                .map(String::from)
                .into_iter()
                .chain(["y".repeat(100_000)]),
        )
    } else {
        vec![
            Bytes::from(every),
            Bytes::new(),
            Bytes::from(vec![0; 3]),
            Bytes::from(large),
            Bytes::from("\r\n"),
        ]
    };
    site.put(all.clone()).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.take(all.len()).await;
    reader.settle(&taken).await.expect("it is settled");
    let taken: BTreeSet<Bytes> = taken.into_iter().map(|message| message.payload).collect();
    assert_eq!(taken, all.into_iter().collect());
}

/// More than any source gives out at once.
pub async fn large_batches_come_whole(site: &dyn SourceSite) {
    let all = numbered(2000);
    site.put(all.clone()).await;
    let mut reader = Reader::of(site).await;
    let mut open: BTreeSet<Bytes> = all.into_iter().collect();
    while !open.is_empty() {
        let batch = reader.next(5000).await;
        reader.settle(&batch).await.expect("it is settled");
        for message in &batch {
            open.remove(&message.payload);
        }
    }
}

/// As long as nothing comes again.
pub async fn messages_come_in_order_where_that_is_promised(site: &dyn SourceSite) {
    let all = numbered(100);
    site.put(all.clone()).await;
    let mut reader = Reader::of(site).await;
    if !reader.source.nature().ordered {
        return;
    }
    let mut came = Vec::new();
    while came.len() < all.len() {
        let batch = reader.next(SOME).await;
        reader.settle(&batch).await.expect("it is settled");
        came.extend(batch.into_iter().map(|message| message.payload));
    }
    assert_eq!(came, all);
}

/// And the same message again has the same one, where the source names its messages.
pub async fn messages_are_told_apart_by_position(site: &dyn SourceSite) {
    // Of equal bytes, since nothing but their position tells these apart.
    site.put(texts(["same", "same", "other"])).await;
    let mut reader = Reader::of(site).await;
    let mut taken = Vec::new();
    while taken.len() < 3 {
        taken.extend(reader.next(3 - taken.len()).await);
    }
    let positions = |taken: &[crate::bridge::Message]| -> BTreeSet<String> {
        taken.iter().map(|message| message.position.clone()).collect()
    };
    let first = positions(&taken);
    assert_eq!(first.len(), 3);
    let names = reader.source.nature().names_messages;
    let mut reader = reader.reopen(site).await;
    let mut again = Vec::new();
    while again.len() < 3 {
        again.extend(reader.next(3 - again.len()).await);
    }
    assert_eq!(positions(&again).len(), 3);
    if names {
        assert_eq!(positions(&again), first);
    }
}

/// With each message that is given out for the first time.
pub async fn orders_grow(site: &dyn SourceSite) {
    site.put(numbered(30)).await;
    let mut reader = Reader::of(site).await;
    let mut taken = reader.take(10).await;
    reader.settle(&taken).await.expect("it is settled");
    let mut reader = reader.reopen(site).await;
    taken.extend(reader.take(10).await);
    if reader.source.nature().ordered {
        assert!(taken.windows(2).all(|pair| pair[0].order < pair[1].order), "{taken:?}");
    }
    let orders: BTreeSet<i64> = taken.iter().map(|message| message.order).collect();
    assert_eq!(orders.len(), taken.len());
}

/// At whatever moment it is dropped.
pub async fn a_dropped_question_loses_nothing(site: &dyn SourceSite) {
    let all = numbered(60);
    let mut reader = Reader::of(site).await;
    let mut open: BTreeSet<Bytes> = all.iter().cloned().collect();
    let mut later = all.chunks(6).map(<[Bytes]>::to_vec);
    let began = stopwatch();
    for turn in 0_u64.. {
        if open.is_empty() {
            break;
        }
        assert!(began() < PATIENCE, "{} messages never came", open.len());
        if let Some(some) = later.next() {
            site.put(some).await;
        }
        // From one that is never polled twice to one that has time for an answer.
        let patience = Duration::from_micros((turn % 8) * (turn % 8) * 400);
        if let Ok(batch) = tokio::time::timeout(patience, reader.stream.next(3)).await {
            let Ok(Batch::Messages(messages)) = batch else {
                panic!("messages were expected, not {batch:?}")
            };
            reader.settle(&messages).await.expect("it is settled");
            for message in &messages {
                open.remove(&message.payload);
            }
        }
    }
}

/// Nobody polls for it.
pub async fn what_is_put_later_wakes_whoever_waits(site: &dyn SourceSite) {
    let mut reader = Reader::of(site).await;
    for round in 0..3 {
        let put = async {
            tokio::time::sleep(LOOK).await;
            site.put(texts([format!("later {round}")])).await;
        };
        let (taken, ()) = tokio::join!(reader.next(1), put);
        assert_eq!(said(&taken), [format!("later {round}")]);
        reader.settle(&taken).await.expect("it is settled");
    }
}

/// Where the source says it at all.
pub async fn lag_says_what_was_not_read(site: &dyn SourceSite) {
    site.put(numbered(12)).await;
    let mut reader = Reader::of(site).await;
    drop(reader.stream);
    let until =
        async |source: &dyn crate::bridge::Source, partition: &str, after: Option<&str>, count: u64| {
            let said = async {
                while source.lag(partition, after).await.expect("it is there").messages != Some(count) {
                    tokio::time::sleep(LOOK).await;
                }
            };
            within(said, "the lag is what it should be").await
        };
    let lag = reader.source.lag(&reader.partition, None).await.expect("it is there");
    if !site.can().lag {
        assert_eq!(lag.messages, None, "it says that it can not say");
        return;
    }
    until(&*reader.source, &reader.partition, None, 12).await;
    reader = Reader::open(reader.source, reader.partition, None).await;
    let taken = reader.take(12).await;
    reader.settle(&taken).await.expect("it is settled");
    let settled = reader.settled.clone();
    until(&*reader.source, &reader.partition, settled.as_deref(), 0).await;
}
