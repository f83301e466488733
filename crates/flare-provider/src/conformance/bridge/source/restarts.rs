//! Behaviours around a server that ends and is started again.

use super::super::SourceSite;
use super::super::fixture::*;
use crate::bridge::{Batch, BridgeErrorKind};

/// Whoever waits is told, and everything that was not settled comes.
pub async fn a_server_that_starts_again_loses_nothing(site: &dyn SourceSite) {
    let all = numbered(40);
    site.put(all.clone()).await;
    let mut reader = Reader::of(site).await;
    let settled = reader.take(10).await;
    reader.settle(&settled).await.expect("it is settled");
    reader.take(10).await;
    if !site.restart().await {
        return;
    }
    let unseen: Vec<_> =
        all.iter().filter(|&payload| !settled.iter().any(|seen| seen.payload == *payload)).cloned().collect();
    let reader = reader.settle_all(site, &unseen).await;

    // Once more, with somebody who waits for what does not come. A server that ends may not have written down yet what was settled a moment
    // ago, and gives that out again.
    let mut waiting = reader.reopen(site).await;
    let noticed = async {
        loop {
            match within(waiting.stream.next(1), "it is noticed").await {
                Ok(Batch::Messages(again)) => assert!(all.contains(&again[0].payload), "{again:?}"),
                other => return refused(other),
            }
        }
    };
    let (kind, restarted) = tokio::join!(noticed, site.restart());
    assert!(restarted);
    assert!([BridgeErrorKind::Broken, BridgeErrorKind::Unavailable].contains(&kind), "{kind:?}");
    let reader = waiting.reopen(site).await;
    let last = texts(["after all"]);
    site.put(last.clone()).await;
    let mut reader = reader.settle_all(site, &last).await;
    for message in reader.rest(site, 0).await {
        assert!(all.contains(&message.payload), "{message:?}");
    }
}
