//! The ledger as it really is, beneath all that goes wrong on the way to it: whose feeds are is noted when they are opened,
//! and under which epoch records are taken.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use flare_core::operations::App;
use flare_model::feed::{Kept, Note, Standing};
use flare_model::ids::{FeedId, LaneId, Ordinal, SubscriptionNumber};
use flare_provider::{FeedNeeds, FeedOwes, FeedSummary, FeedWrite, Ledger, ListStandings, Opened, Result};

use super::tenures::Sender;
use crate::stage::Stage;

/// The ledger of one life of a node.
pub struct Noted {
    pub inner: Arc<dyn Ledger>,
    pub sender: Sender,
    /// The node, once it is put together: it knows whose feeds are.
    pub app: Arc<OnceLock<Weak<App>>>,
    pub stage: Weak<Stage>,
}

impl Noted {
    /// The client of a subscription, by number: it is in the url.
    fn client(&self, number: SubscriptionNumber) -> Option<usize> {
        let app = self.app.get()?.upgrade()?;
        let found = app.registry.subscription_by_number(number)?;
        let draft = serde_json::to_value(&found.stored.draft).ok()?;
        let url = draft["endpoint"]["url"].as_str()?;
        url.split('/').nth(4)?.parse().ok()
    }
}

#[async_trait]
impl Ledger for Noted {
    async fn open(&self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>> {
        let opened = self.inner.open(feeds, epoch).await?;
        if let (Some(stage), Some(first)) = (self.stage.upgrade(), feeds.first())
            && let Some(client) = self.client(first.subscription)
        {
            stage.lock().takes_over(self.sender, client, feeds, epoch);
        }
        Ok(opened)
    }

    async fn write(&self, writes: Vec<FeedWrite>) -> Result<Vec<Result<()>>> {
        let about: Vec<(FeedId, u64)> = writes.iter().map(|write| (write.feed, write.epoch)).collect();
        let written = self.inner.write(writes).await?;
        if let Some(stage) = self.stage.upgrade() {
            let mut inside = stage.lock();
            for ((feed, epoch), written) in about.into_iter().zip(&written) {
                match written {
                    Ok(()) => inside.records(feed, epoch),
                    Err(error) => inside.note(|| format!("{feed:?} under {epoch}: {error}")),
                }
            }
        }
        Ok(written)
    }

    async fn next_epoch(&self) -> Result<u64> {
        self.inner.next_epoch().await
    }

    async fn needs(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedNeeds>> {
        self.inner.needs(lane, after, limit).await
    }

    async fn owes(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedOwes>> {
        self.inner.owes(lane, after, limit).await
    }

    async fn summary(&self, subscription: SubscriptionNumber) -> Result<Vec<FeedSummary>> {
        self.inner.summary(subscription).await
    }

    async fn standings(&self, list: ListStandings) -> Result<(u64, Vec<(u8, Standing)>)> {
        self.inner.standings(list).await
    }

    async fn standing(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Standing>> {
        self.inner.standing(feed, ordinal).await
    }

    async fn note(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Note>> {
        self.inner.note(feed, ordinal).await
    }

    async fn state(&self, feed: FeedId, life: u64, ordinal: Ordinal) -> Result<Option<Kept>> {
        self.inner.state(feed, life, ordinal).await
    }
}
