//! Identifiers. Users see opaque strings; the log and the ledger count with small numbers, which the
//! catalog gives out once and never again, so that a number also tells one incarnation from the next.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

        impl $name {
            /// Takes any text; the catalog decides whether it exists.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The id as users see it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

opaque_id!(
    /// The id of a resource, as users see it.
    ResourceId
);
opaque_id!(
    /// The id of a subscription, as users see it.
    SubscriptionId
);
opaque_id!(
    /// The name of a node, the same in each of its lives.
    NodeId
);
opaque_id!(
    /// A session of a node with the coordinator, as the coordinator names it. Never given twice.
    SessionId
);

impl ResourceId {
    /// What the ids of consumers begin with.
    pub const CONSUMER: &'static str = "con";
}

impl SubscriptionId {
    /// What the ids of producers begin with.
    pub const PRODUCER: &'static str = "prd";

    /// Whether it is a producer's: those begin with a word of their own.
    pub fn is_producer(&self) -> bool {
        self.as_str().strip_prefix(Self::PRODUCER).is_some_and(|rest| rest.starts_with('_'))
    }

    /// The word for what has it.
    pub fn kind(&self) -> &'static str {
        if self.is_producer() { "producer" } else { "subscription" }
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// The position of a change in its lane, counted from 1. 0 stands before every change.
    Seq
);
number!(
    /// A document within its lane: dense, given once, never reused.
    Ordinal
);
number!(
    /// A resource as the log counts it; never reused.
    ResourceNumber
);
number!(
    /// A subscription as the ledger counts it; never reused.
    SubscriptionNumber
);

/// The most lanes a resource may have.
pub const MAX_LANES: u16 = 256;

/// One lane of one resource: an ordered log of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId {
    /// The resource.
    pub resource: ResourceNumber,
    /// Which of its lanes, below [`MAX_LANES`].
    pub index: u8,
}

impl LaneId {
    /// Both parts in one number, for keys.
    pub fn packed(self) -> u64 {
        self.resource.0 << 8 | u64::from(self.index)
    }

    /// The reverse of [`LaneId::packed`].
    pub fn unpacked(key: u64) -> Self {
        Self { resource: ResourceNumber(key >> 8), index: (key & 0xff) as u8 }
    }
}

/// One lane of one subscription: a position in that lane's log, and what the client has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedId {
    /// The subscription.
    pub subscription: SubscriptionNumber,
    /// Which lane of its resource.
    pub lane: u8,
}

impl FeedId {
    /// Both parts in one number, for keys.
    pub fn packed(self) -> u64 {
        self.subscription.0 << 8 | u64::from(self.lane)
    }

    /// The reverse of [`FeedId::packed`].
    pub fn unpacked(key: u64) -> Self {
        Self { subscription: SubscriptionNumber(key >> 8), lane: (key & 0xff) as u8 }
    }
}

/// Which lane a document belongs to: a hash of its url that never changes, since it is stored.
pub fn lane_of(url: &str, lanes: u16) -> u8 {
    (url_hash(url) % u64::from(lanes.clamp(1, MAX_LANES))) as u8
}

/// A stable 64-bit hash of a url (FNV-1a with a final mix). Stored: it must not change.
pub fn url_hash(url: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in url.as_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_keys_come_back_as_they_were() {
        let lane = LaneId { resource: ResourceNumber(77), index: 255 };
        assert_eq!(LaneId::unpacked(lane.packed()), lane);
        let feed = FeedId { subscription: SubscriptionNumber(1 << 40), lane: 3 };
        assert_eq!(FeedId::unpacked(feed.packed()), feed);
    }

    #[test]
    fn the_stored_hash_never_changes() {
        assert_eq!(url_hash("http://api.company.com/users/1"), 0x4c8a_9787_fc16_0e67);
        let spread: std::collections::BTreeSet<u8> =
            (0..64).map(|n| lane_of(&format!("http://h/users/{n}"), 8)).collect();
        assert_eq!(spread.len(), 8, "64 documents reach all 8 lanes");
    }
}
