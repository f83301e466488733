//! How many documents a client is going to be told of. A subscription comes in; a number goes out, and whether it is exact.
//!
//! Its thread knows how many documents have changed beyond what was read, but not which of them its expressions choose, nor
//! which deletes mean nothing to it. Where they are few they are looked at, one by one. Meanwhile the thread goes on: what it
//! had yet to come to when it was asked may be owed, or sent, when it is looked at. So a document is counted if it was owed
//! when the thread was asked, or is owed when it is looked at, and none that is owed all the while falls between.

use flare_model::ids::{LaneId, Seq};
use flare_provider::ScanLane;

use crate::journey::{Command, Lagging, ListOwed, Owed};
use crate::operations::App;
use crate::operations::Done;
use crate::registry::Subscription;

/// Documents looked at to count exactly, at most. When there are more: the number is a bound, and says so.
const LOOKED_AT: u64 = 2_000;
/// Documents read at once.
const SLICE: usize = 256;
const SLICE_BYTES: usize = 1 << 20;

/// What the readers and sweeps of a client have yet to come to.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::operations) struct ToCome {
    /// Documents that are not owed yet, and will be told.
    pub owed: u64,
    /// Documents that lag for no other reason.
    pub lagging: u64,
    /// Documents that lagged when the thread was asked, and do not: what is to come leaves nothing to lack, or it came.
    pub settled: u64,
    /// It may be fewer.
    pub is_bound: bool,
}

impl App {
    /// Counts the documents of lanes that are not counted yet, so that it is known how many of them are beyond a change.
    pub(in crate::operations) async fn count_lanes(&self) -> Done<()> {
        for lane in self.journey.uncounted() {
            self.journey.count(lane, self.store.documents.newest(lane).await?);
        }
        Ok(())
    }

    /// How many documents a client is going to be told of; exactly, where few have to be looked at for it.
    pub(in crate::operations) async fn count_lagging(&self, subscription: &Subscription) -> Done<Lagging> {
        self.count_lanes().await?;
        let number = subscription.number();
        let list = ListOwed { subscription: number, after: None, limit: 0 };
        let owed = self.journey.ask(number, |reply| Command::Owed(list, reply)).await;
        let owed = owed.flatten().ok_or_else(|| self.left(subscription))?;
        let to_come = self.to_come(subscription, &owed).await?;
        Ok(Lagging { documents: owed.pending() + to_come.owed, is_bound: to_come.is_bound })
    }

    /// What the readers and sweeps of a client have yet to come to.
    pub(in crate::operations) async fn to_come(
        &self,
        subscription: &Subscription,
        owed: &Owed,
    ) -> Done<ToCome> {
        if owed.to_come > LOOKED_AT {
            return Ok(ToCome { owed: owed.to_come, lagging: owed.to_come, settled: 0, is_bound: true });
        }
        let mut to_come = ToCome::default();
        if owed.to_come > 0 {
            self.walk(subscription, owed, &mut to_come).await?;
        }
        Ok(to_come)
    }

    async fn walk(&self, subscription: &Subscription, owed: &Owed, to_come: &mut ToCome) -> Done<()> {
        let resource = subscription.compiled.resource.number;
        for (index, met) in &owed.lanes {
            let mut after = met.to_come_from;
            loop {
                let scan = ScanLane {
                    lane: LaneId { resource, index: *index },
                    after,
                    upto: Seq(u64::MAX),
                    rows: SLICE,
                    bytes: SLICE_BYTES,
                };
                let page = self.store.documents.scan(scan).await?;
                let (seen, _) = self.look_at(subscription, &page.documents).await?;
                for (document, seen) in page.documents.iter().zip(seen) {
                    let (ordinal, Some(seen)) = (document.row.ordinal.0, seen) else { continue };
                    let glimpse = &seen.glimpse;
                    to_come.owed += u64::from(glimpse.is_owed() && !met.pending.contains(ordinal));
                    let lagged = met.all.contains(ordinal);
                    to_come.lagging += u64::from(glimpse.lags() && !lagged);
                    to_come.settled += u64::from(!glimpse.lags() && lagged);
                }
                if page.upto <= after || page.upto >= page.head {
                    break;
                }
                after = page.upto;
            }
        }
        Ok(())
    }
}
