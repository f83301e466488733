//! Behaviours around a server that ends and is started again.

use super::super::SourceSite;
use super::super::fixture::*;
use crate::bridge::BridgeErrorKind;

/// Whoever waits is told, what was settled stays settled, and everything else comes.
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
        all.into_iter().filter(|payload| !settled.iter().any(|seen| seen.payload == *payload)).collect();
    let reader = reader.settle_all(site, &unseen).await;

    // Once more, with somebody who waits for what does not come.
    let mut waiting = reader.reopen(site).await;
    let next = async { refused(within(waiting.stream.next(1), "it is noticed").await) };
    let (kind, restarted) = tokio::join!(next, site.restart());
    assert!(restarted);
    assert!([BridgeErrorKind::Broken, BridgeErrorKind::Unavailable].contains(&kind), "{kind:?}");
    let mut reader = waiting.reopen(site).await;
    site.put(texts(["after all"])).await;
    let rest = reader.rest(site).await;
    assert_eq!(said(&rest), ["after all"]);
}
