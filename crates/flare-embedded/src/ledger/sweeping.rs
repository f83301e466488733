//! What feeds have, read without taking them over: by lane, for whoever sweeps, and by subscription, for whoever asks.

use flare_model::ids::{FeedId, LaneId, SubscriptionNumber};
use flare_provider::{FeedSummary, Opened};
use rusqlite::Connection;

use super::open;
use crate::catalog::subscriptions_of;
use crate::error::Work;
use crate::place::feed_key;
use crate::snapshot::snapshot;

/// Which feeds.
#[derive(Clone, Copy)]
pub(super) struct Of {
    pub lane: LaneId,
    pub after: SubscriptionNumber,
    pub limit: usize,
    /// Only those that send every revision.
    pub history: bool,
    pub incarnation: u64,
}

/// A page of the feeds of a lane, in order of subscription.
pub(super) fn feeds(connection: &Connection, of: Of) -> Work<Vec<Opened>> {
    snapshot(connection, |connection| {
        let (mut after, mut feeds) = (of.after.0, Vec::new());
        let mut every =
            connection.prepare_cached("SELECT 1 FROM feeds WHERE id = ?1 AND since IS NOT NULL")?;
        while feeds.len() < of.limit {
            let numbers = subscriptions_of(connection, of.lane.resource.0, after, of.limit - feeds.len())?;
            let Some(last) = numbers.last() else { break };
            after = *last;
            for number in numbers {
                let feed = FeedId { subscription: SubscriptionNumber(number), lane: of.lane.index };
                let Some(key) = feed_key(feed) else { continue };
                if !of.history || every.exists([key])? {
                    feeds.push(feed);
                }
            }
        }
        open::find(connection, &feeds, of.incarnation)
    })
}

/// The feeds of a subscription in numbers.
pub(super) fn summary(
    connection: &Connection,
    subscription: SubscriptionNumber,
    incarnation: u64,
) -> Work<Vec<FeedSummary>> {
    snapshot(connection, |connection| {
        let feeds: Vec<FeedId> = (0..=u8::MAX).map(|lane| FeedId { subscription, lane }).collect();
        let mut epoch = connection.prepare_cached("SELECT epoch FROM feeds WHERE id = ?1")?;
        let mut summaries = Vec::new();
        for opened in open::find(connection, &feeds, incarnation)? {
            let epoch = epoch.query_row([feed_key(opened.feed)], |row| row.get::<_, i64>(0))? as u64;
            summaries.push(FeedSummary::of(opened, epoch));
        }
        Ok(summaries)
    })
}
