//! What the node asks about a subscription as a whole: how it stands, what it needs, what it has given up. Nothing here
//! changes anything.

use flare_model::feed::{Standing, State, SweepKind, TRANSITION};
use flare_model::ids::{Ordinal, SubscriptionNumber};

use crate::journey::control::{Inspection, Needs};
use crate::journey::subscriber::Standstill;
use crate::journey::worker::Worker;

impl Worker {
    /// How a subscription stands here.
    pub(in crate::journey) fn inspect(&self, number: SubscriptionNumber) -> Option<Inspection> {
        let key = *self.by_number.get(&number)?;
        let subscriber = &self.subscribers[key];
        let leased = subscriber.leases.as_ref().map_or(0, |leases| leases.out()) as u64;
        let mut seen = Inspection {
            lagging: self.lagging(key),
            in_flight: u64::from(subscriber.in_flight) + leased,
            failing_since: subscriber.fortune.failing_since,
            decision: subscriber.decision.as_deref().cloned(),
            ..Inspection::default()
        };
        let (now, monotonic) = (self.tools.clock.now(), self.tools.clock.monotonic());
        seen.breaker = subscriber.hosts.iter().find_map(|host| {
            let until = self.hosts[*host].breaker.open_until()?;
            let retry_at = now.saturating_add(until.saturating_sub(monotonic));
            Some((self.hosts[*host].key.clone(), retry_at))
        });
        for lane in subscriber.lanes.iter() {
            let feed = &lane.feed;
            let head = lane.tail.head();
            seen.cursor += feed.cursor().0;
            seen.head += head.0;
            seen.waiting += feed.waiting().len() as u64;
            seen.dead_letters += feed.dead().len();
            seen.held += feed.held().len();
            let tally = feed.tally();
            seen.tally.delivered += tally.delivered;
            seen.tally.discarded += tally.discarded;
            seen.tally.failed += tally.failed;
            seen.tally.skipped += tally.skipped;
            seen.tally.last_success_at = seen.tally.last_success_at.max(tally.last_success_at);
            if tally.last_failure.as_ref().map(|f| f.at) > seen.tally.last_failure.as_ref().map(|f| f.at) {
                seen.tally.last_failure = tally.last_failure.clone();
            }
            if let Some(filtering) = feed.filtering() {
                seen.filtering.get_or_insert_default().add(filtering);
            }
            if let Some(sweep) = feed.sweeping() {
                seen.sweep = seen.sweep.or(Some(sweep.kind));
                seen.preparing |= sweep.kind == SweepKind::Beginning;
                let left = seen.replays.entry(sweep.replay).or_default();
                left.sweeping.push((lane.id.lane, sweep.met));
            }
            let replayed = |standing: &&Standing| !matches!(standing.replay, 0 | TRANSITION);
            for standing in feed.waiting().values().filter(replayed) {
                if matches!(standing.state, State::Waiting { .. } | State::Leased { .. }) {
                    seen.replays.entry(standing.replay).or_default().waiting += 1;
                }
            }
        }
        // What is leased is in flight.
        seen.waiting -= leased;
        Some(seen)
    }

    /// Changes read and not settled, unread ones, and documents that wait.
    pub(in crate::journey) fn lagging(&self, key: usize) -> u64 {
        let lanes = self.subscribers[key].lanes.iter();
        let lagging = lanes.map(|lane| {
            let unread = lane.tail.head().0.saturating_sub(lane.feed.position().0);
            lane.feed.waiting().len() as u64 + lane.feed.unsettled() as u64 + unread
        });
        lagging.sum()
    }

    /// What a feed needs of its lane's tombstones, after a crash too.
    pub(in crate::journey) fn needs(&self, number: SubscriptionNumber, lane: u8) -> Option<Needs> {
        let subscriber = &self.subscribers[*self.by_number.get(&number)?];
        let slot = subscriber.lanes.get(lane)?;
        let feed = &slot.feed;
        let has = match subscriber.standstill {
            Standstill::Disabled => feed.held() | feed.doubt(),
            Standstill::None | Standstill::Paused => Default::default(),
        };
        Some(Needs {
            cursor: feed.cursor(),
            documents: feed.needed(),
            has,
            moved_at: feed.tally().last_success_at,
            begun: slot.begun,
        })
    }

    /// Which documents were given up, by lane.
    pub(in crate::journey) fn dead(&self, number: SubscriptionNumber) -> Vec<(u8, Ordinal)> {
        let Some(&key) = self.by_number.get(&number) else { return Vec::new() };
        let lanes = self.subscribers[key].lanes.iter();
        lanes.flat_map(|lane| lane.feed.dead().iter().map(|n| (lane.id.lane, Ordinal(n)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journey::testing::fixture::Thread;
    use flare_model::feed::Saved;
    use flare_model::ids::Seq;
    use tokio::task::LocalSet;

    #[tokio::test]
    async fn a_feed_of_another_log_says_that_it_began_again() {
        let all = async {
            let thread = Thread::new();
            for (number, strange) in [(1, true), (2, false)] {
                let saved = Saved { cursor: Seq(5), strange, ..Saved::default() };
                let (_, number, lane) = thread.open(number, saved, Standstill::None);
                let needs = thread.worker.borrow().needs(number, lane).expect("it is served here");
                assert_eq!((needs.begun, needs.cursor), (strange, Seq(if strange { 0 } else { 5 })));
            }
        };
        LocalSet::new().run_until(all).await;
    }
}
