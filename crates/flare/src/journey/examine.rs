//! What people ask about: rows come in, and what their feeds know of them goes out; or which documents a client is
//! owed, a page at a time. Nothing here changes anything.

use flare_model::document::Row;
use flare_model::explain::Condition;
use flare_model::feed::Glimpse;
use flare_model::ids::{Ordinal, Seq, SubscriptionNumber};
use roaring::RoaringTreemap;

use super::shard::Shard;

/// What is known of some documents of a subscription, in the order asked.
#[derive(Debug)]
pub struct Examined {
    /// By row.
    pub glimpses: Vec<Glimpse>,
    /// How the subscription stands.
    pub condition: Condition,
}

/// Which documents are asked for, by lane and ordinal.
#[derive(Clone, Copy, Debug)]
pub struct ListOwed {
    /// Of which subscription.
    pub subscription: SubscriptionNumber,
    /// Only those beyond this one.
    pub after: Option<(u8, Ordinal)>,
    /// Skip so many of them.
    pub skip: u64,
    /// Answer at most so many.
    pub limit: usize,
}

/// The documents that a client is owed, of those its feeds have read, and how far these have read.
#[derive(Debug, Default)]
pub struct Owed {
    /// How many there are in all.
    pub total: u64,
    /// How many of the skip were skipped.
    pub skipped: u64,
    /// The part.
    pub documents: Vec<(u8, Ordinal)>,
    /// By lane: the reader's position, and the lane's newest change.
    pub lanes: Vec<(Seq, Seq)>,
}

impl Shard {
    /// What is known of these documents; nothing when the subscription is not here.
    pub fn examine(&mut self, number: SubscriptionNumber, rows: &[(u8, Row)]) -> Option<Examined> {
        let now = self.shared.clock.monotonic();
        let subscriber = &mut self.subscribers[*self.by_number.get(&number)?];
        let glimpses =
            rows.iter().map(|(lane, row)| subscriber.lanes[usize::from(*lane)].feed.glimpse(row)).collect();
        let fortune = &subscriber.fortune;
        let condition = Condition {
            in_flight: subscriber.in_flight,
            room: subscriber.room(),
            failures: fortune.failures,
            failing_since: fortune.failing_since,
            probe_in: fortune.struggling().then(|| fortune.probe_at.saturating_sub(now)),
            rate_wait: subscriber.bucket.as_mut().map(|bucket| bucket.wait(now)).unwrap_or_default(),
            sweeping: subscriber.lanes.iter().any(|lane| lane.feed.sweeping().is_some()),
        };
        Some(Examined { glimpses, condition })
    }

    /// A page of what is owed; nothing when the subscription is not here.
    pub fn owed(&self, list: ListOwed) -> Option<Owed> {
        let subscriber = &self.subscribers[*self.by_number.get(&list.subscription)?];
        let mut owed = Owed::default();
        for slot in &subscriber.lanes {
            let lane = slot.id.lane;
            owed.lanes.push((slot.feed.position(), slot.tail.head()));
            let here = slot.feed.owed();
            owed.total += here.len();
            let before = match list.after {
                Some((after, _)) if lane < after => continue,
                Some((after, ordinal)) if lane == after => here.rank(ordinal.0),
                _ => 0,
            };
            let skip = (list.skip - owed.skipped).min(here.len() - before);
            owed.skipped += skip;
            let room = list.limit - owed.documents.len();
            owed.documents.extend(part(&here, before + skip, room).map(|ordinal| (lane, ordinal)));
        }
        Some(owed)
    }
}

/// Members by their place in the order, without walking over those before them.
fn part(set: &RoaringTreemap, from: u64, room: usize) -> impl Iterator<Item = Ordinal> + '_ {
    (from..set.len().min(from.saturating_add(room as u64))).filter_map(|place| set.select(place)).map(Ordinal)
}
