//! How many documents a client is going to be told of. A subscription comes in; a number goes out, and whether it is exact.
//!
//! Its thread knows how many documents have changed beyond what was read, but not which of them its expressions choose, nor
//! which deletes mean nothing to it. Where they are few they are looked at, one by one; where they are many, some of them
//! all over the log, and the number is a bound. Meanwhile the thread goes on: what it
//! had yet to come to when it was asked may be owed, or sent, when it is looked at. So a document is counted if it was owed
//! when the thread was asked, or is owed when it is looked at, and none that is owed all the while falls between.

use flare_model::document::Document;
use flare_model::ids::{LaneId, Seq};
use flare_provider::ScanLane;

use crate::journey::{Command, Lagging, ListOwed, Owed, OwedOfLane};
use crate::operations::App;
use crate::operations::Done;
use crate::registry::Subscription;

/// Documents looked at to count, about. When there are more: the number is a bound, and says so.
const LOOKED_AT: u64 = 10_000;
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
        let mut to_come = ToCome::default();
        if owed.to_come > LOOKED_AT {
            return self.look_at_some(subscription, owed).await;
        }
        // Also where nothing is to come in one lane: what it was owed may have come meanwhile.
        for (index, met) in owed.lanes.iter().filter(|_| owed.to_come > 0) {
            let mut after = met.to_come_from;
            loop {
                let scan = self.slice(subscription, *index, after, Seq(u64::MAX));
                let page = self.store.documents.scan(scan).await?;
                to_come.add(self.count(subscription, met, &page.documents).await?);
                if page.upto <= after || page.upto >= page.head {
                    break;
                }
                after = page.upto;
            }
        }
        Ok(to_come)
    }

    /// Looks at some of the documents that are to come, from all over each lane, and concludes from them on the others.
    async fn look_at_some(&self, subscription: &Subscription, owed: &Owed) -> Done<ToCome> {
        let (mut seen, mut rows) = (ToCome::default(), 0);
        let (known, others): (Vec<_>, Vec<_>) = owed.lanes.iter().partition(|(_, met)| met.all_to_come);
        let known: u64 = known.iter().map(|(_, met)| met.to_come).sum();
        let all = owed.to_come - known;
        for (index, met) in others.into_iter().filter(|(_, met)| met.to_come > 0) {
            let pages = (LOOKED_AT * met.to_come).div_ceil(all * SLICE as u64).max(1);
            let (from, span) = (met.to_come_from.0, met.head.0.saturating_sub(met.to_come_from.0));
            let place =
                |page: u64| Seq(from + (u128::from(span) * u128::from(page) / u128::from(pages)) as u64);
            for page in 0..pages {
                let scan = self.slice(subscription, *index, place(page), place(page + 1));
                let documents = self.store.documents.scan(scan).await?.documents;
                rows += documents.len() as u64;
                seen.add(self.count(subscription, met, &documents).await?);
            }
        }
        let mut to_come = if all > 0 { seen.of_all(rows, all) } else { ToCome::default() };
        to_come.owed += known;
        to_come.lagging += known;
        Ok(to_come)
    }

    fn slice(&self, subscription: &Subscription, index: u8, after: Seq, upto: Seq) -> ScanLane {
        let lane = LaneId { resource: subscription.compiled.resource.number, index };
        ScanLane { lane, after, upto, rows: SLICE, bytes: SLICE_BYTES }
    }

    /// What becomes of some documents that are to come.
    async fn count(
        &self,
        subscription: &Subscription,
        met: &OwedOfLane,
        documents: &[Document],
    ) -> Done<ToCome> {
        let mut counted = ToCome::default();
        let (seen, _) = self.look_at(subscription, documents).await?;
        for (document, seen) in documents.iter().zip(seen) {
            let (ordinal, Some(seen)) = (document.row.ordinal.0, seen) else { continue };
            let glimpse = &seen.glimpse;
            counted.owed += u64::from(glimpse.is_owed() && !met.pending.contains(ordinal));
            let lagged = met.all.contains(ordinal);
            counted.lagging += u64::from(glimpse.lags() && !lagged);
            counted.settled += u64::from(!glimpse.lags() && lagged);
        }
        Ok(counted)
    }
}

impl ToCome {
    fn add(&mut self, other: ToCome) {
        self.owed += other.owed;
        self.lagging += other.lagging;
        self.settled += other.settled;
    }

    /// What was seen of so many documents, taken for all of them: no fewer, but for rare chance, and within twice of what is
    /// so where eight or more were seen.
    fn of_all(self, seen: u64, all: u64) -> ToCome {
        let most = |found: u64| {
            let margin = 2.0 * (found as f64).sqrt() + 3.0;
            (((found as f64 + margin) * all as f64 / seen.max(1) as f64).ceil() as u64).min(all)
        };
        // What is taken away is taken for as few as it can be.
        ToCome { owed: most(self.owed), lagging: most(self.lagging), settled: self.settled, is_bound: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_concluded_from_a_part_is_no_less_and_within_twice_of_what_is_so() {
        let seen = |owed| ToCome { owed, lagging: owed, settled: 2, is_bound: false };
        for (owed, all) in [(8, 1_000_000), (500, 1_000_000), (10_000, 1_000_000), (500, 20_000)] {
            let so = owed * all / 10_000;
            let ToCome { owed, lagging, settled, is_bound } = seen(owed).of_all(10_000, all);
            assert!((so..=so * 2 + so / 10).contains(&owed) && owed == lagging, "{owed} of {so}");
            assert_eq!((settled, is_bound), (2, true));
        }
        assert_eq!(seen(0).of_all(10_000, 1_000_000).owed, 300, "three in ten thousand may have been missed");
        assert_eq!(seen(9).of_all(0, 7).owed, 7, "there is no more than all");
    }
}
