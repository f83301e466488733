//! One lane of a subscription on its delivery thread: its feed, what was read for it, and what it waits for.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use flare_model::feed::Feed;
use flare_model::ids::{FeedId, Ordinal, Seq};
use tokio::sync::oneshot;

use crate::journey::log::pages::{Fetched, Loaded};
use crate::journey::log::tail::LaneTail;
use crate::journey::subscriber::seldom::Seldom;
use crate::notification::change::Change;

/// One lane of a subscription.
pub struct FeedLane {
    /// Its id.
    pub id: FeedId,
    /// Under which it was opened: every record carries it, and an attempt that was begun under another is not its.
    pub epoch: u64,
    /// The rules.
    pub feed: Feed,
    /// The changes.
    pub tail: Arc<LaneTail>,
    /// Its numbers were those of another log when it came to this thread.
    pub begun: bool,
    /// In `unread`.
    pub queued: bool,
    /// Where it is in the list of those parked at the end of its lane, if it is.
    pub parked: Option<ParkedAt>,
    /// Which reads are for it as it is now.
    pub era: Era,
    /// What is read for it, and what it waits for.
    pub aside: Aside,
    /// In the recorder's list.
    pub dirty: bool,
    /// Waits for a record (a higher mark) before it can go on.
    pub wants_record: bool,
    /// In the recorder's list of what is to be written at once, though it can go on meanwhile.
    pub hurries: bool,
    /// Attempts open now, leases apart.
    pub in_flight: u32,
}

/// What a lane has while it is behind the tail, in trouble, swept, or about to leave.
#[derive(Default)]
pub struct Parts {
    /// A part of the store, while the feed is behind the tail.
    pub page: Option<Loaded>,
    /// A page or document is being read.
    pub loading: bool,
    /// Documents read by a sweep or for a retry. Bound: see [`Pages`](crate::journey::log::pages::Pages).
    pub fetched: Seldom<Fetched>,
    /// Next revisions that were looked for, where every one is sent. Bound: see [`Subscriber::may_fetch`].
    pub looked: Seldom<Looked>,
    /// Handed over by the sweep, or owed another revision, to be sent once recorded. Bound: a page, and those that
    /// wait.
    pub swept: Vec<Ordinal>,
    /// What its sweep is doing.
    pub sweeping: Sweeping,
    /// Documents being read for a retry.
    pub fetching: u32,
    /// It is about to go to another thread: nothing of it begins any more.
    pub leaving: Option<Leaving>,
    /// What its subscription's lanes have counted of it.
    noted: Noted,
}

/// Nothing of all that.
static NOTHING: Parts = Parts {
    page: None,
    loading: false,
    fetched: Seldom::nothing(),
    looked: Seldom::nothing(),
    swept: Vec::new(),
    sweeping: Sweeping::Rests,
    fetching: 0,
    leaving: None,
    noted: Noted { waiting: 0, sweeping: 0 },
};

/// [`Parts`] that take room only while there is something in them: most lanes are at rest, or keep up, and there are many.
/// They are read as if they were there; who changes something that may not be there asks [`Aside::any`]. A lane that had any
/// gives the room back with its next record.
#[derive(Default)]
pub struct Aside(Option<Box<Parts>>);

impl Aside {
    /// The parts, if there may be something in them.
    pub fn any(&mut self) -> Option<&mut Parts> {
        self.0.as_deref_mut()
    }

    /// What its subscription's lanes have counted of it.
    pub fn noted(&self) -> Noted {
        self.noted
    }

    /// They count this from now on.
    pub fn note(&mut self, noted: Noted) {
        if noted != self.noted {
            self.noted = noted;
        }
    }

    /// What was read of a document goes.
    pub fn let_go(&mut self, ordinal: &Ordinal) {
        if let Some(parts) = self.any() {
            parts.fetched.remove(ordinal);
        }
    }

    /// What was read, or is being read, was for another era.
    pub fn forget_what_was_read(&mut self) {
        if let Some(parts) = self.any() {
            let (swept, leaving) = (std::mem::take(&mut parts.swept), parts.leaving.take());
            *parts = Parts { swept, leaving, noted: parts.noted, ..Parts::default() };
            self.tidy();
        }
    }

    /// Gives the room back if there is nothing left in it.
    pub fn tidy(&mut self) {
        let nothing = |parts: &Parts| {
            let Parts { page, loading, fetched, looked, swept, sweeping, fetching, leaving, noted } = parts;
            let read = page.is_some() || !fetched.is_empty() || !looked.is_empty() || !swept.is_empty();
            let reads = *loading || *fetching > 0 || *sweeping != Sweeping::Rests;
            !read && !reads && leaving.is_none() && *noted == Noted::default()
        };
        self.0.take_if(|parts| nothing(parts));
    }
}

impl Deref for Aside {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Aside {
    fn deref_mut(&mut self) -> &mut Parts {
        self.0.get_or_insert_default()
    }
}

impl FeedLane {
    /// A lane that is taken over, with nothing read for it yet.
    pub fn new(id: FeedId, epoch: u64, feed: Feed, tail: Arc<LaneTail>, begun: bool) -> FeedLane {
        FeedLane {
            id,
            epoch,
            feed,
            tail,
            begun,
            queued: false,
            parked: None,
            era: Era::default(),
            aside: Aside::default(),
            dirty: false,
            wants_record: false,
            hurries: false,
            in_flight: 0,
        }
    }
}

/// A lane that is about to leave its thread.
#[derive(Default)]
pub struct Leaving {
    /// Whoever waits until nothing is open.
    pub drained: Option<oneshot::Sender<()>>,
}

/// Tells reads that were begun for a lane as it is now from those of an earlier time: before it was opened here again,
/// began again, or had to send other revisions. What those find is not what is needed now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Era(pub u64);

/// What the sweep of a lane is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweeping {
    /// Nothing, or there is none.
    #[default]
    Rests,
    /// Its page is being read.
    Reads,
    /// It stands before a document that is in flight, or on a lease.
    Before(Ordinal),
}

/// What was found when the next revision of a document was looked for.
pub struct Looked {
    /// From which change on.
    pub from: Seq,
    /// The first one, if there is one.
    pub change: Option<Arc<Change>>,
    /// The newest change that was known then.
    pub head: Seq,
}

impl Looked {
    /// Whether it still counts, looked for from there by a reader at this position. A revision that the reader has met is the first
    /// one for ever; that there is none, only up to the head.
    pub fn holds(&self, from: Seq, position: Seq) -> bool {
        let met = self.change.as_ref().is_some_and(|change| change.row().seq <= position);
        self.from == from && (met || self.head >= position)
    }
}

/// Where a feed is in the list of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkedAt(pub u32);

/// What is asked of all lanes on every delivery: looking at each would cost more than the delivery's own lane.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Noted {
    /// Documents that wait for a retry.
    pub waiting: u32,
    /// Lanes with a sweep.
    pub sweeping: u32,
}

impl Noted {
    /// What a lane has.
    pub fn of(lane: &FeedLane) -> Noted {
        Noted {
            waiting: lane.feed.waiting().len() as u32,
            sweeping: u32::from(lane.feed.sweeping().is_some()),
        }
    }

    /// What some lanes have together.
    pub fn sum<'a>(lanes: impl Iterator<Item = &'a FeedLane>) -> Noted {
        lanes.map(Noted::of).fold(Noted::default(), |sum, lane| Noted {
            waiting: sum.waiting + lane.waiting,
            sweeping: sum.sweeping + lane.sweeping,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_no_revision_is_believed_no_further_than_it_was_looked() {
        let none = Looked { from: Seq(5), change: None, head: Seq(8) };
        assert!(none.holds(Seq(5), Seq(8)));
        assert!(!none.holds(Seq(5), Seq(9)), "the reader has met what was not known then");
        assert!(!none.holds(Seq(6), Seq(8)));
    }
}
