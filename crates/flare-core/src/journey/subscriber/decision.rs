//! That a subscription is to be disabled, and why: decided on its delivery thread, and kept there until it is durable.

use flare_model::time::Timestamp;

use crate::journey::merge::Merge;

/// Why a subscription is to be disabled, and since when it begins nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Why, in words.
    pub reason: String,
    /// When it was made.
    pub at: Timestamp,
}

impl Merge for Decision {
    /// The first one counts.
    fn merge(self, other: Decision) -> Decision {
        if other.at < self.at { other } else { self }
    }
}
