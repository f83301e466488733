//! Behaviours in trouble: what does not exist, what is deleted, what cannot be reached.

use std::time::Duration;

use super::super::SourceSite;
use super::super::fixture::*;
use crate::bridge::{Batch, BridgeErrorKind};

/// Whichever way it is asked.
pub async fn a_queue_that_does_not_exist_is_missing(site: &dyn SourceSite) {
    let source = site.nowhere().await;
    let partitions = within(source.partitions(), "it answers").await;
    assert_eq!(refused(partitions), BridgeErrorKind::Missing);
    let known = site.source().await.partitions().await.expect("it is there");
    let opened = within(source.open(&known[0].id, None), "it answers").await;
    let kind = match opened {
        Err(error) => error.kind,
        Ok(mut stream) => refused(within(stream.next(1), "it answers").await),
    };
    assert_eq!(kind, BridgeErrorKind::Missing);
    // And that was no harm to what exists.
    site.put(texts(["fine"])).await;
    let mut reader = Reader::of(site).await;
    assert_eq!(said(&reader.next(1).await), ["fine"]);
}

/// Within ten seconds, though nothing comes.
pub async fn a_queue_deleted_while_it_is_read_is_noticed(site: &dyn SourceSite) {
    site.put(texts(["first"])).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.next(1).await;
    reader.settle(&taken).await.expect("it is settled");
    let next = async {
        let ended = within(reader.stream.next(10), "it is noticed").await;
        (refused(ended), now())
    };
    let deleted = async {
        tokio::time::sleep(LOOK).await;
        site.delete().await;
        now()
    };
    let ((kind, noticed), deleted) = tokio::join!(next, deleted);
    assert_eq!(kind, BridgeErrorKind::Missing);
    let took = noticed.saturating_duration_since(deleted);
    assert!(took < Duration::from_secs(10), "after {took:?}");
    let partitions = within(reader.source.partitions(), "it answers").await;
    assert_eq!(refused(partitions), BridgeErrorKind::Missing);
}

/// The stream says that it is broken, and what was not settled comes by another.
pub async fn a_broken_connection_loses_nothing(site: &dyn SourceSite) {
    let all = numbered(30);
    site.put(all.clone()).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.take(5).await;
    reader.settle(&taken).await.expect("it is settled");
    reader.take(5).await;
    if !site.cut().await {
        return;
    }
    let unseen: Vec<_> =
        all.into_iter().filter(|payload| !taken.iter().any(|seen| seen.payload == *payload)).collect();
    reader.settle_all(site, &unseen).await;
}

/// A stream that was open, and whoever wants to open one.
pub async fn a_source_that_is_away_is_unavailable_and_works_again(site: &dyn SourceSite) {
    let mut reader = Reader::of(site).await;
    if !site.set_away(true).await {
        return;
    }
    let away = [BridgeErrorKind::Broken, BridgeErrorKind::Unavailable];
    let kind = refused(within(reader.stream.next(1), "it is noticed").await);
    assert!(away.contains(&kind), "{kind:?}");
    let other = site.source().await;
    let kind = refused(within(other.open(&reader.partition, None), "it is noticed").await);
    assert!(away.contains(&kind), "{kind:?}");
    assert!(site.set_away(false).await);
    site.put(texts(["back"])).await;
    let mut reader = reader.reopen(site).await;
    assert_eq!(said(&reader.next(1).await), ["back"]);
}

/// However often.
pub async fn a_call_dropped_while_it_is_away_leaves_the_source_usable(site: &dyn SourceSite) {
    let source = site.source().await;
    let partition = source.partitions().await.expect("it is there").remove(0).id;
    if !site.set_away(true).await {
        return;
    }
    for turn in 0..10_u64 {
        let patience = Duration::from_millis(turn * 3);
        // However it ends: nobody waits for it.
        let _ = tokio::time::timeout(patience, source.open(&partition, None)).await;
        let _ = tokio::time::timeout(patience, source.lag(&partition, None)).await;
    }
    assert!(site.set_away(false).await);
    site.put(texts(["usable"])).await;
    let mut reader = Reader::open(source, partition, None).await;
    match within(reader.stream.next(1), "a message comes").await {
        Ok(Batch::Messages(messages)) => assert_eq!(said(&messages), ["usable"]),
        other => panic!("a message was expected, not {other:?}"),
    }
}
