//! What a feed still needs of what is kept for it: of the tombstones of its lane, and of the history.

use std::collections::HashMap;

use flare_model::feed::Ahead;
use flare_model::ids::{Ordinal, Seq, SubscriptionNumber};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use crate::journey::merge::Merge;
use crate::journey::subscriber::Standstill;
use crate::journey::worker::Worker;

/// What a feed needs of its lane's tombstones: those beyond the cursor, and those of these documents.
#[derive(Debug)]
pub struct TombstonesNeeded {
    /// Everything up to here is settled.
    pub cursor: Seq,
    /// Held, doubted, waiting or given up.
    pub documents: RoaringTreemap,
    /// Of one that is disabled, those of them that its client has or may have.
    pub has: RoaringTreemap,
    /// When the client last took something of this lane.
    pub moved_at: Option<Timestamp>,
    /// It began again in this process, because its numbers were those of another log.
    pub begun: bool,
}

/// What a feed needs of its lane's history: of what was replaced after `since`, all beyond the cursor that is not settled,
/// and of the documents that wait all from a change on.
#[derive(Debug)]
pub struct RevisionsNeeded {
    /// The mark of the feed.
    pub since: Seq,
    /// A crash goes back no further than this, once a record is durable that is taken now.
    pub cursor: Seq,
    /// What is settled beyond it, in that record too.
    pub ahead: Ahead,
    /// By document, the first change that is owed.
    pub owed: HashMap<Ordinal, Seq>,
    /// By document, the change in flight: nobody knows yet whether it is still needed.
    pub in_flight: HashMap<Ordinal, Seq>,
}

impl Merge for TombstonesNeeded {
    /// A lane has one thread; nothing is said twice.
    fn merge(self, _: TombstonesNeeded) -> TombstonesNeeded {
        self
    }
}

impl Merge for RevisionsNeeded {
    /// A lane has one thread; nothing is said twice.
    fn merge(self, _: RevisionsNeeded) -> RevisionsNeeded {
        self
    }
}

impl Worker {
    /// What a feed needs of its lane's tombstones, after a crash too.
    pub(in crate::journey) fn tombstones_needed(
        &self,
        number: SubscriptionNumber,
        lane: u8,
    ) -> Option<TombstonesNeeded> {
        let subscriber = self.subscribers.of(number)?;
        let slot = subscriber.lanes.get(lane)?;
        let feed = &slot.feed;
        let has = match subscriber.standstill {
            Standstill::Disabled => feed.held() | feed.doubt(),
            Standstill::None | Standstill::Paused => Default::default(),
        };
        Some(TombstonesNeeded {
            cursor: feed.cursor(),
            documents: feed.needed(),
            has,
            moved_at: feed.tally().last_success_at,
            begun: slot.begun,
        })
    }

    /// What a feed still needs of the history. `None` if it needs nothing.
    pub fn revisions_needed(&self, number: SubscriptionNumber, lane: u8) -> Option<RevisionsNeeded> {
        let subscriber = self.subscribers.of(number)?;
        let feed = &subscriber.lanes.get(lane)?.feed;
        let since = feed.since()?;
        let owed = feed.waiting().values().map(|standing| (standing.ordinal, standing.owed_from()));
        let (cursor, ahead) = feed.recorded_position();
        let in_flight = feed.revisions_in_flight().collect();
        Some(RevisionsNeeded { since, cursor, ahead, owed: owed.collect(), in_flight })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journey::testing::fixture::Thread;
    use crate::journey::worker::subscribers::FeedPlace;
    use flare_model::feed::Saved;
    use tokio::task::LocalSet;

    #[tokio::test]
    async fn a_feed_of_another_log_says_that_it_began_again() {
        let all = async {
            let thread = Thread::new();
            for (number, strange) in [(1, true), (2, false)] {
                let saved = Saved { cursor: Seq(5), strange, ..Saved::default() };
                let FeedPlace { place, lane } = thread.open(number, saved, Standstill::None);
                let needs = thread
                    .worker
                    .borrow()
                    .tombstones_needed(place.number(), lane)
                    .expect("it is served here");
                assert_eq!((needs.begun, needs.cursor), (strange, Seq(if strange { 0 } else { 5 })));
            }
        };
        LocalSet::new().run_until(all).await;
    }
}
