//! What is under way in a feed, and what changed in it since its last record. A feed at rest has nothing pending and keeps
//! no room for it: most feeds are at rest, and there are many. One at work has all of it in one piece, which it keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use super::kept::Keeping;
use super::{Note, Open, Standing};
use crate::ids::{Ordinal, Seq};
use crate::sorted::Sorted;

/// What is under way, what changed since the last record was taken, and what the one under way will have made durable.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Delta {
    /// Changes that were read and are not settled, with their documents; and those in flight beyond `read`.
    pub holes: Sorted<Seq, Ordinal>,
    /// Attempts in flight, by document: never two for one.
    pub open: Sorted<Ordinal, Open>,
    pub dirty: bool,
    pub held: Sorted<Ordinal, bool>,
    pub standings: BTreeSet<Ordinal>,
    /// Dead letters are not kept in memory: this is the way of one to the ledger.
    pub dead: BTreeMap<Ordinal, Standing>,
    pub doubtful: BTreeMap<Ordinal, Seq>,
    /// Notes on their way to the ledger; nothing for one that goes.
    pub notes: BTreeMap<Ordinal, Option<Note>>,
    /// The mark that the next record is to have, unless the one in force is higher.
    pub issue: Seq,
    /// Kept states on their way to the ledger; a feed that keeps none pays a pointer.
    pub keeping: Option<Box<Keeping>>,
    /// A record was taken and is not durable yet: there is no other before it is.
    pub under_way: Option<UnderWay>,
}

/// What a record that was taken will have made durable.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UnderWay {
    /// The mark. 0 if it was taken back meanwhile: then this record raises it no more.
    pub issued: Seq,
    /// Documents that wait for this record and for no later one.
    pub documents: BTreeSet<Ordinal>,
    /// Documents of which the ledger still says something that this record takes away.
    pub gone: Vec<Ordinal>,
}

static NOTHING: Delta = Delta {
    holes: Sorted::new(),
    open: Sorted::new(),
    dirty: false,
    held: Sorted::new(),
    standings: BTreeSet::new(),
    dead: BTreeMap::new(),
    doubtful: BTreeMap::new(),
    notes: BTreeMap::new(),
    issue: Seq(0),
    keeping: None,
    under_way: None,
};

/// A [`Delta`] that takes room only while there is something in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending(Option<Box<Delta>>);

impl Pending {
    /// Nothing but attempts that the life before has left on lease.
    pub fn leased(open: Sorted<Ordinal, Open>) -> Pending {
        Pending((!open.is_empty()).then(|| Box::new(Delta { open, ..Delta::default() })))
    }

    /// Everything that was pending is durable: the room goes, unless more has come meanwhile. A mark that was
    /// asked for is raised by now.
    pub fn settle(&mut self) {
        let delta: &Delta = self;
        let lists = delta.held.is_empty() && delta.standings.is_empty() && delta.under_way.is_none();
        let aside = delta.dead.is_empty() && delta.doubtful.is_empty() && delta.notes.is_empty();
        let works = !delta.holes.is_empty() || !delta.open.is_empty() || delta.keeping.is_some();
        if !delta.dirty && !works && lists && aside {
            self.0 = None;
        }
    }

    /// The parts, if there may be something in them.
    pub fn any(&mut self) -> Option<&mut Delta> {
        self.0.as_deref_mut()
    }

    /// What is under way, if anything is.
    pub fn under_way(&mut self) -> Option<&mut UnderWay> {
        self.0.as_mut()?.under_way.as_mut()
    }
}

impl Deref for Pending {
    type Target = Delta;

    fn deref(&self) -> &Delta {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Pending {
    fn deref_mut(&mut self) -> &mut Delta {
        self.0.get_or_insert_default()
    }
}
