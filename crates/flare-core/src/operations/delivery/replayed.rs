//! How many documents a replay of everything will send, by lane: those that the client is to have as they are now, and deletes
//! that it did not take.
//!
//! Without expressions that is known, but for deletes; with them, or since a time, every document has to be looked at, as the
//! replay itself will do. What the reader of a lane has yet to come to is sent anyway, and by no replay.

use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::time::Timestamp;
use flare_provider::ScanLane;

use crate::journey::{Command, ListOwed, Owed, OwedOfLane};
use crate::operations::App;
use crate::operations::Done;
use crate::registry::Subscription;

/// Documents looked at, at once.
const SLICE: usize = 256;
const SLICE_BYTES: usize = 1 << 20;

/// Documents that a client lacks something of and that are looked at for deletes, of one lane. When there are more: the
/// deletes among the rest are sent, and not counted.
const LACKING: usize = 2_000;

impl App {
    /// How many documents of each lane a replay sends, of those that were accepted since a time.
    pub(in crate::operations) async fn count_replayed(
        &self,
        subscription: &Subscription,
        since: Option<Timestamp>,
    ) -> Done<Vec<u64>> {
        self.count_lanes().await?;
        let number = subscription.number();
        let list = ListOwed { subscription: number, after: None, limit: 0 };
        let owed = self.journey.ask(number, |reply| Command::Owed(list, reply)).await;
        let Owed { lanes, .. } = owed.flatten().ok_or_else(|| self.left(subscription))?;
        let resource = &subscription.compiled.resource;
        let mut counts = vec![0; usize::from(resource.view.lanes)];
        let chooses = subscription.compiled.spec.has_expressions();
        for (index, met) in lanes {
            let lane = LaneId { resource: resource.number, index };
            counts[usize::from(index)] = match met.read.filter(|_| !chooses && since.is_none()) {
                Some(read) => read + self.count_deletes(subscription, lane, &met).await?,
                None => self.count_each(subscription, lane, since).await?,
            };
        }
        Ok(counts)
    }

    async fn count_each(
        &self,
        subscription: &Subscription,
        lane: LaneId,
        since: Option<Timestamp>,
    ) -> Done<u64> {
        let (mut after, mut count) = (Seq(0), 0);
        loop {
            let scan = ScanLane { lane, after, upto: Seq(u64::MAX), rows: SLICE, bytes: SLICE_BYTES };
            let page = self.store.documents.scan(scan).await?;
            let mut documents = page.documents;
            documents.retain(|document| since.is_none_or(|since| document.updated_at >= since));
            let (seen, _) = self.look_at(subscription, &documents).await?;
            count += seen.iter().flatten().filter(|seen| seen.to_replay).count() as u64;
            if page.upto <= after || page.upto >= page.head {
                return Ok(count);
            }
            after = page.upto;
        }
    }

    /// Only of a document that the client lacks something of can there be a delete that it is to be told again.
    async fn count_deletes(&self, subscription: &Subscription, lane: LaneId, met: &OwedOfLane) -> Done<u64> {
        let lacking: Vec<Ordinal> = met.all.iter().take(LACKING).map(Ordinal).collect();
        let mut count = 0;
        for slice in lacking.chunks(SLICE) {
            let (found, _) = self.store.documents.fetch(lane, slice).await?;
            let deleted: Vec<_> = found.into_iter().flatten().filter(|found| found.row.deleted).collect();
            let (seen, _) = self.look_at(subscription, &deleted).await?;
            count += seen.iter().flatten().filter(|seen| seen.to_replay).count() as u64;
        }
        Ok(count)
    }
}
