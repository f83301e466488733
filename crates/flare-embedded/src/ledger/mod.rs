//! The ledger: calls of the contract come in; records go through the writer, readers answer the rest.

mod kept;
mod notes;
mod open;
mod standings;
mod sweeping;
mod write;

use async_trait::async_trait;
use flare_model::feed::{Kept, Note, Standing};
use flare_model::ids::{FeedId, LaneId, Ordinal, SubscriptionNumber};
use flare_provider::{FeedNeeds, FeedOwes, FeedSummary, FeedWrite, Ledger, ListStandings, Opened, Result};

pub(crate) use open::held;
pub(crate) use standings::{read as read_standing, standing_columns};
pub(crate) use write::Deltas;

use crate::engine::Engine;
use crate::readers::Reader;
use sweeping::Of;

/// What a record takes of a commit beside its lists, about.
const RECORD_BYTES: usize = 256;

#[async_trait]
impl Ledger for Engine {
    async fn open(&self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>> {
        const OPERATION: &str = "ledger.open";
        let asked = feeds.to_vec();
        let bytes = feeds.len() * 64;
        self.queue.work(OPERATION, bytes, move |desk| open::raise(desk, &asked, epoch)).await?;
        let incarnation = self.incarnation;
        let mut opened = Vec::with_capacity(feeds.len());
        for slice in feeds.chunks(open::SLICE) {
            let slice = slice.to_vec();
            let read = move |reader: &mut Reader| open::read(&reader.connection, &slice, incarnation);
            opened.extend(self.read(OPERATION, read).await?);
        }
        Ok(opened)
    }

    async fn next_epoch(&self) -> Result<u64> {
        self.queue.work("ledger.next_epoch", RECORD_BYTES, open::next_epoch).await
    }

    async fn write(&self, writes: Vec<FeedWrite>) -> Result<Vec<Result<()>>> {
        let bytes = writes.iter().map(record_bytes).sum();
        self.queue.work("ledger.write", bytes, move |desk| write::write_all(desk, writes)).await
    }

    async fn needs(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedNeeds>> {
        let of = Of { lane, after, limit, history: false, incarnation: self.incarnation };
        let read = move |reader: &mut Reader| sweeping::feeds(&reader.connection, of);
        Ok(self.read("ledger.needs", read).await?.into_iter().map(FeedNeeds::of).collect())
    }

    async fn owes(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedOwes>> {
        let of = Of { lane, after, limit, history: true, incarnation: self.incarnation };
        let read = move |reader: &mut Reader| sweeping::feeds(&reader.connection, of);
        Ok(self.read("ledger.owes", read).await?.into_iter().filter_map(FeedOwes::of).collect())
    }

    async fn summary(&self, subscription: SubscriptionNumber) -> Result<Vec<FeedSummary>> {
        let incarnation = self.incarnation;
        let read =
            move |reader: &mut Reader| sweeping::summary(&reader.connection, subscription, incarnation);
        self.read("ledger.summary", read).await
    }

    async fn standings(&self, list: ListStandings) -> Result<(u64, Vec<(u8, Standing)>)> {
        self.read("ledger.standings", move |reader| standings::list(&reader.connection, list)).await
    }

    async fn standing(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Standing>> {
        self.read("ledger.standing", move |reader| standings::one(&reader.connection, feed, ordinal)).await
    }

    async fn note(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Note>> {
        self.read("ledger.note", move |reader| notes::read(&reader.connection, feed, ordinal)).await
    }

    async fn state(&self, feed: FeedId, life: u64, ordinal: Ordinal) -> Result<Option<Kept>> {
        self.read("ledger.state", move |reader| kept::read(&reader.connection, feed, life, ordinal)).await
    }
}

fn record_bytes(write: &FeedWrite) -> usize {
    let record = &write.record;
    let standings = record.standings.len() + record.cleared.len() + record.notes.len() + record.unnoted.len();
    let numbers =
        record.held.len() + record.dropped.len() + record.ahead.holes.len() + record.ahead.extras.len();
    RECORD_BYTES + standings * RECORD_BYTES + numbers * 8 + kept::bytes(record)
}
