//! How the client of a subscription fares, as far as its thread knows: what its lanes have recorded, and what came since.

use std::time::Duration;

use flare_model::health::Fares;
use flare_model::time::Timestamp;

use crate::journey::subscriber::Subscriber;
use crate::journey::subscriber::pace::Fortune;

impl Subscriber {
    /// Whether it fails, as far as this thread knows.
    pub fn fares(&self) -> Fares {
        let lanes = self.lanes.iter().map(|lane| Fares::of(lane.feed.tally()));
        let recorded = lanes.reduce(Fares::and).unwrap_or_default();
        // What the thread has seen is exact; what the lanes say of each other is a comparison of times.
        Fares { failing_since: self.fortune.failing_since, ..recorded }
    }

    /// The same with what other threads know that serve it too: some second later.
    pub fn fares_in_all(&self) -> Fares {
        let others = self.borrowed.as_ref().and_then(|borrowed| borrowed.common.well_at());
        match others {
            Some(_) => self.fares().and(Fares { well_at: others, ..Fares::default() }),
            None => self.fares(),
        }
    }

    /// Whether it is shown as failing.
    pub fn is_shown_failing(&self, now: Timestamp, after: Duration) -> bool {
        self.fortune.failing_since.is_some() && self.fares_in_all().is_failing(now, after).is_some()
    }

    /// Lanes came, as the ledger has them: one that failed when they were recorded fails still. Nothing was tried since.
    pub fn remember(&mut self, now: Timestamp, failing_after: Duration) {
        let lanes = self.lanes.iter().map(|lane| Fares::of(lane.feed.tally()));
        let Some(recorded) = lanes.reduce(Fares::and) else { return };
        self.tell_others(recorded.well_at);
        if self.fortune.failing_since.is_some() {
            return;
        }
        if let Fares { failing_since: Some(since), failed_at: Some(failed_at), .. } = recorded {
            self.fortune.remember(since, failed_at, now, failing_after);
            // Whoever was told that it fails wants to hear of the end.
            self.recovering |= self.fortune.told;
        }
    }

    /// Other threads that serve it hear when it was last well.
    pub fn tell_others(&self, well_at: Option<Timestamp>) {
        if let (Some(borrowed), Some(well_at)) = (&self.borrowed, well_at) {
            borrowed.common.was_well(well_at);
        }
    }

    /// How it fared says nothing any more: it begins anew. Answers the lanes that have to be recorded.
    pub fn forgive(&mut self) -> Vec<u8> {
        self.fortune = Fortune::default();
        let mut changed = Vec::new();
        for lane in self.lanes.iter_mut() {
            if lane.feed.tally().health.as_ref().is_some_and(|health| health.failing_since.is_some()) {
                lane.feed.tally_mut().health_mut().failing_since = None;
                changed.push(lane.id.lane);
            }
        }
        changed
    }
}
