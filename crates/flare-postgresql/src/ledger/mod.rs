//! The ledger: calls of the contract come in; records go through the recorder, sessions of the pool answer the rest.

mod kept;
mod notes;
mod open;
mod standings;
mod sweeping;
pub(crate) mod write;

use std::sync::Arc;

use async_trait::async_trait;
use flare_model::feed::{Kept, Note, Standing};
use flare_model::ids::{FeedId, LaneId, Ordinal, SubscriptionNumber};
use flare_provider::{FeedNeeds, FeedOwes, FeedSummary, FeedWrite, Ledger, ListStandings, Opened, Result};

use crate::engine::Engine;
use crate::numbers;
use crate::pool::Borrowed;
use sweeping::Of;

#[async_trait]
impl Ledger for Engine {
    async fn open(&self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>> {
        const OPERATION: &str = "ledger.open";
        let asked = feeds.to_vec();
        self.change(OPERATION, move |session| {
            Box::pin(async move { open::raise(session, &asked, epoch).await })
        })
        .await?;
        let mut opened = Vec::with_capacity(feeds.len());
        for slice in feeds.chunks(open::SLICE) {
            let slice = slice.to_vec();
            let read = self.snapshot(OPERATION, move |session| {
                Box::pin(async move { open::read(session, &slice).await })
            });
            opened.extend(read.await?);
        }
        Ok(opened)
    }

    async fn next_epoch(&self) -> Result<u64> {
        self.change("ledger.next_epoch", move |session| Box::pin(numbers::next(session, "epoch"))).await
    }

    async fn write(&self, writes: Vec<FeedWrite>) -> Result<Vec<Result<()>>> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        self.recorder.write(writes).await
    }

    async fn needs(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedNeeds>> {
        let of = Of { lane, after, limit, history: false };
        let read = self.snapshot("ledger.needs", move |session| Box::pin(sweeping::feeds(session, of)));
        Ok(read.await?.into_iter().map(FeedNeeds::of).collect())
    }

    async fn owes(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedOwes>> {
        let of = Of { lane, after, limit, history: true };
        let read = self.snapshot("ledger.owes", move |session| Box::pin(sweeping::feeds(session, of)));
        Ok(read.await?.into_iter().filter_map(FeedOwes::of).collect())
    }

    async fn summary(&self, subscription: SubscriptionNumber) -> Result<Vec<FeedSummary>> {
        let summary = self
            .snapshot("ledger.summary", move |session| Box::pin(sweeping::summary(session, subscription)));
        summary.await
    }

    async fn standings(&self, list: ListStandings) -> Result<(u64, Vec<(u8, Standing)>)> {
        let read = move |session: Arc<Borrowed>| async move { standings::list(&session, list).await };
        self.read("ledger.standings", read).await
    }

    async fn standing(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Standing>> {
        let read = move |session: Arc<Borrowed>| async move { standings::one(&session, feed, ordinal).await };
        self.read("ledger.standing", read).await
    }

    async fn note(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Note>> {
        let read = move |session: Arc<Borrowed>| async move { notes::read(&session, feed, ordinal).await };
        self.read("ledger.note", read).await
    }

    async fn state(&self, feed: FeedId, life: u64, ordinal: Ordinal) -> Result<Option<Kept>> {
        let read =
            move |session: Arc<Borrowed>| async move { kept::read(&session, feed, life, ordinal).await };
        self.read("ledger.state", read).await
    }
}
