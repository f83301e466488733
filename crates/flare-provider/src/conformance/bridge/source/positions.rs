//! Behaviours of positions, and of partitions that end.

use super::super::SourceSite;
use super::super::fixture::*;
use crate::bridge::{Batch, Progress};

/// At every message, the last one too.
pub async fn a_position_resumes_exactly_after(site: &dyn SourceSite) {
    let source = site.source().await;
    if source.nature().progress != Progress::Positions {
        return;
    }
    site.put(numbered(8)).await;
    let mut reader = Reader::of(site).await;
    let taken = reader.take(8).await;
    for (index, message) in taken.iter().enumerate() {
        reader.settled = Some(message.position.clone());
        reader = reader.reopen(site).await;
        if index < 7 {
            let rest = reader.take(7 - index).await;
            assert_eq!(said(&rest), said(&taken[index + 1..]));
        }
    }
    site.put(texts(["next"])).await;
    assert_eq!(said(&reader.next(5).await), ["next"]);
}

/// For a source by positions whose settings begin with all there is; for others what was not acknowledged.
pub async fn without_a_position_all_comes_again(site: &dyn SourceSite) {
    site.put(numbered(5)).await;
    let mut reader = Reader::of(site).await;
    reader.take(5).await;
    reader.settled = None;
    let mut reader = reader.reopen(site).await;
    assert_eq!(reader.take(5).await.len(), 5);
}

/// What it has comes first, and what follows it names it.
pub async fn a_partition_that_ends_says_so_and_is_followed(site: &dyn SourceSite) {
    site.put(numbered(5)).await;
    let mut reader = Reader::of(site).await;
    let first = reader.partition.clone();
    if !site.end_partition().await {
        return;
    }
    site.put(texts(["after"])).await;
    let taken = reader.take(5).await;
    reader.settle(&taken).await.expect("it is settled");
    let end = within(reader.stream.next(10), "the partition ends").await.expect("it is there");
    assert_eq!(end, Batch::End);
    let partitions = reader.source.partitions().await.expect("it is there");
    let following: Vec<_> = partitions.into_iter().filter(|next| next.after.contains(&first)).collect();
    assert!(!following.is_empty(), "what follows {first} names it");
    let looked = async {
        for next in following.iter().cycle() {
            let mut next = Reader::open(reader.source.clone(), next.id.clone(), None).await;
            if let Ok(Ok(Batch::Messages(messages))) =
                tokio::time::timeout(QUIET * 10, next.stream.next(10)).await
            {
                return said(&messages);
            }
        }
        Vec::new()
    };
    assert_eq!(within(looked, "it comes in what follows").await, ["after"]);
}
