//! How the client of a subscription fares, as far as its thread knows: what its lanes have recorded, and what came since.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use flare_model::health::Fares;
use flare_model::pace::Fortune;
use flare_model::time::Timestamp;

use crate::journey::subscriber::Subscriber;

/// How a client has fared lately. Most have always been well, and there are many: that takes no room.
#[derive(Default)]
pub struct Luck(Option<Box<Fortune>>);

/// Of all who are well.
static WELL: Fortune = Fortune::WELL;

impl Luck {
    /// A success, see [`Fortune::succeeded`].
    pub fn succeeded(&mut self, concurrency: u32) {
        self.0.take_if(|fortune| {
            fortune.succeeded(concurrency);
            **fortune == WELL
        });
    }

    /// Somebody wants to know now whether the client works, see [`Fortune::try_now`].
    pub fn try_now(&mut self) {
        if let Some(fortune) = &mut self.0 {
            fortune.try_now();
        }
    }

    /// The wall clock was set, by so many milliseconds.
    pub fn clock_moved(&mut self, by: i64) {
        if let Some(fortune) = &mut self.0 {
            fortune.clock_moved(by);
        }
    }
}

impl Deref for Luck {
    type Target = Fortune;

    fn deref(&self) -> &Fortune {
        self.0.as_deref().unwrap_or(&WELL)
    }
}

impl DerefMut for Luck {
    fn deref_mut(&mut self) -> &mut Fortune {
        self.0.get_or_insert_default()
    }
}

impl Subscriber {
    /// Whether it fails, as far as this thread knows.
    pub fn fares(&self) -> Fares {
        let lanes = self.lanes.iter().map(|lane| Fares::of(lane.feed.tally()));
        let recorded = lanes.reduce(Fares::and).unwrap_or_default();
        // What the thread has seen is exact; what the lanes say of each other is a comparison of times.
        Fares { failing_since: self.fortune.failing_since, ..recorded }
    }

    /// The same of all threads that serve it.
    pub fn fares_in_all(&self) -> Fares {
        self.borrowed.as_ref().map_or_else(|| self.fares(), |borrowed| borrowed.common.fares())
    }

    /// Whether it is shown as failing.
    pub fn is_shown_failing(&self, now: Timestamp, after: Duration) -> bool {
        let fails = match &self.borrowed {
            Some(borrowed) => borrowed.common.fails(),
            None => self.fortune.failing_since.is_some(),
        };
        fails && self.fares_in_all().is_failing(now, after).is_some()
    }

    /// Lanes came, as the ledger has them: one that failed when they were recorded fails still. Nothing was tried since.
    pub fn remember(&mut self, now: Timestamp, failing_after: Duration) {
        let lanes = self.lanes.iter().map(|lane| Fares::of(lane.feed.tally()));
        let Some(recorded) = lanes.reduce(Fares::and) else { return };
        let Fares { failing_since, failed_at, .. } = recorded;
        match (self.fortune.failing_since, failing_since, failed_at) {
            (Some(known), Some(since), _) => self.fortune.failing_since = Some(known.min(since)),
            (None, Some(since), Some(failed_at)) => {
                self.fortune.remember(since, failed_at, now, failing_after);
                // Whoever was told that it fails wants to hear of the end.
                self.recovering |= self.fortune.told;
            }
            _ => {}
        }
        self.share_fortune();
    }

    /// Other threads that serve it hear what this one knows.
    pub fn share_fortune(&self) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.common.fared(self.fares());
        }
    }

    /// They hear that the client was well.
    pub fn tell_others(&self, well_at: Timestamp) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.common.was_well(well_at);
        }
    }

    /// They hear that something failed.
    pub fn warn_others(&self, failed_at: Timestamp) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.common.failed(failed_at);
        }
    }

    /// How it fared says nothing any more: it begins anew. Answers the lanes that have to be recorded.
    pub fn forgive(&mut self) -> Vec<u8> {
        self.fortune = Luck::default();
        if let Some(borrowed) = &self.borrowed {
            borrowed.common.forgive();
        }
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
