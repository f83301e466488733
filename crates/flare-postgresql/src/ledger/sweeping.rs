//! What feeds have, read without taking them over: by lane, for whoever sweeps, and by subscription, for whoever asks.

use std::collections::HashMap;

use flare_model::ids::{FeedId, LaneId, SubscriptionNumber};
use flare_provider::{FeedSummary, Opened};

use super::open;
use crate::catalog::subscriptions_of;
use crate::connect::Session;
use crate::documents::row::number;
use crate::error::Work;

/// Which feeds.
#[derive(Clone, Copy)]
pub(super) struct Of {
    pub lane: LaneId,
    pub after: SubscriptionNumber,
    pub limit: usize,
    /// Only those that send every revision.
    pub history: bool,
}

/// A page of the feeds of a lane, in order of subscription, within one snapshot.
pub(super) async fn feeds(session: &Session, of: Of) -> Work<Vec<Opened>> {
    let (mut after, mut feeds) = (of.after.0, Vec::new());
    let every =
        session.prepare("SELECT id FROM feeds WHERE id = ANY($1) AND since IS NOT NULL ORDER BY id").await?;
    while feeds.len() < of.limit {
        let numbers = subscriptions_of(session, of.lane.resource.0, after, of.limit - feeds.len()).await?;
        let Some(last) = numbers.last() else { break };
        after = *last;
        let feed = |number| FeedId { subscription: SubscriptionNumber(number), lane: of.lane.index };
        let mut some: Vec<FeedId> = numbers.into_iter().map(feed).collect();
        if of.history {
            let keys: Vec<i64> = some.iter().map(|feed| feed.packed() as i64).collect();
            let rows = session.client.query(&every, &[&keys]).await?;
            some = rows.iter().map(|row| number(row, 0).map(FeedId::unpacked)).collect::<Work<_>>()?;
        }
        feeds.extend(some);
    }
    open::read(session, &feeds).await
}

/// The feeds of a subscription in numbers, within one snapshot.
pub(super) async fn summary(session: &Session, subscription: SubscriptionNumber) -> Work<Vec<FeedSummary>> {
    let list = session.prepare("SELECT id, epoch FROM feeds WHERE id BETWEEN $1 AND $2 ORDER BY id").await?;
    let key = |lane| FeedId { subscription, lane }.packed() as i64;
    let mut epochs = HashMap::new();
    let mut feeds = Vec::new();
    for row in session.client.query(&list, &[&key(0), &key(u8::MAX)]).await? {
        let feed = FeedId::unpacked(number(&row, 0)?);
        epochs.insert(feed, number(&row, 1)?);
        feeds.push(feed);
    }
    let opened = open::read(session, &feeds).await?;
    Ok(opened
        .into_iter()
        .map(|opened| {
            let epoch = epochs.get(&opened.feed).copied().unwrap_or(0);
            FeedSummary::of(opened, epoch)
        })
        .collect())
}
