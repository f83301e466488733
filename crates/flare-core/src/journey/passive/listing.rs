//! The leases of a subscription, for those who ask which are out.

use flare_model::feed::{Action, State};
use flare_model::ids::{Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;

use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

/// A lease that is out.
#[derive(Clone, Debug)]
pub struct LeaseOut {
    /// Of which lane.
    pub lane: u8,
    /// The document.
    pub ordinal: Ordinal,
    /// The change that was handed out.
    pub seq: Seq,
    /// What was told of it.
    pub action: Action,
    /// The revision that was handed out, where that is known: the document may have moved on.
    pub revision: Option<Revision>,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// When it ends by itself.
    pub until: Timestamp,
}

impl Worker {
    /// The leases of a subscription on this thread. Bound: the documents that wait, see `waiting-limit`.
    pub(super) fn leases_out(&self, place: Place) -> Vec<LeaseOut> {
        let mut out = Vec::new();
        for slot in self.subscribers[place].lanes.iter() {
            for standing in slot.feed.leases() {
                let (State::Leased { until }, Some(trouble)) = (standing.state, &standing.trouble) else {
                    continue;
                };
                out.push(LeaseOut {
                    lane: slot.id.lane,
                    ordinal: standing.ordinal,
                    seq: standing.seq,
                    action: trouble.action,
                    revision: trouble.lent.as_ref().and_then(|lent| lent.revision()),
                    attempt: trouble.attempts,
                    until,
                });
            }
        }
        out
    }
}
