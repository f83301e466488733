//! What most feeds have nothing in: documents in trouble, or met out of turn, a sweep, what a crash has left to judge. A feed
//! at rest keeps no room for it, one on the usual way from read to delivered never makes any, and there are many feeds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use roaring::RoaringTreemap;

#[cfg(doc)]
use super::Feed;
use super::open::Judge;
use super::{Standing, Sweep, Tally};
use crate::ids::{Ordinal, Seq};

/// The sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sets {
    /// Documents that are owed.
    pub waiting: BTreeMap<Ordinal, Standing>,
    /// After a crash: how to tell what is in doubt, until all that may have been open then is settled.
    pub judge: Option<Box<Judge>>,
    /// The sweep under way.
    pub sweep: Option<Box<Sweep>>,
    /// Every revision is sent that was replaced after this change; `None`: only the newest. With
    /// [`Feed::NOTHING_OLDER`] only the newest too, but in the ways of `history.rs`.
    pub since: Option<Seq>,
    /// Changes beyond `read` that are settled already: a retry sent the document as it was by then.
    pub extras: BTreeSet<Seq>,
    /// The documents that a retry decided on beyond `read`, and where: an older row of one must not follow.
    pub outran: BTreeMap<Ordinal, Seq>,
    /// Documents whose last create or delete has an unknown outcome.
    pub doubt: RoaringTreemap,
    /// Documents that were given up.
    pub dead: RoaringTreemap,
    /// Documents that changed while they were in flight and are to be decided again, with the hole they keep.
    pub again: BTreeMap<Ordinal, Seq>,
    /// Documents handed over by a sweep, revived, or back from a lease, where that is not durable yet: not to be
    /// sent before. Where every revision is sent, also those whose last outcome is not durable yet.
    pub unrecorded: BTreeSet<Ordinal>,
    /// Standings found waiting when the feed was opened: an attempt for them may have been under way.
    pub unjudged: RoaringTreemap,
    /// Documents that wait, or are in flight with a standing, and of which more than one revision may be owed.
    pub more: BTreeSet<Ordinal>,
    /// Documents of which there is a [note](super::Note).
    pub noted: RoaringTreemap,
    /// Those of them that the client was not told of because of its own expressions.
    pub untold: RoaringTreemap,
}

impl Sets {
    fn is_empty(&self) -> bool {
        let Sets {
            waiting,
            judge,
            sweep,
            since,
            extras,
            outran,
            doubt,
            dead,
            again,
            unrecorded,
            unjudged,
            more,
            noted,
            untold,
        } = self;
        let bitmaps = doubt.is_empty() && dead.is_empty() && unjudged.is_empty();
        let notes = noted.is_empty() && untold.is_empty();
        let lists = extras.is_empty() && outran.is_empty() && again.is_empty();
        let owed = !waiting.is_empty() || judge.is_some() || sweep.is_some() || since.is_some();
        !owed && bitmaps && notes && lists && unrecorded.is_empty() && more.is_empty()
    }
}

static NOTHING: LazyLock<Sets> = LazyLock::new(Sets::default);

/// [`Sets`] that take room only while there is something in them. They are read as if they were there; who takes
/// something out asks [`Few::any`], and who puts something in calls [`Few::make`].
#[derive(Clone, Debug, Default)]
pub(super) struct Few(Option<Box<Sets>>);

impl Few {
    /// These sets, in room of their own if there is something in them.
    pub fn holding(sets: Sets) -> Few {
        Few((!sets.is_empty()).then(|| Box::new(sets)))
    }

    /// The sets, if there may be something in them.
    pub fn any(&mut self) -> Option<&mut Sets> {
        self.0.as_deref_mut()
    }

    /// The sets, to put something in.
    pub fn make(&mut self) -> &mut Sets {
        self.0.get_or_insert_default()
    }

    /// A document is not owed any more. What stood for it.
    pub fn take_waiting(&mut self, ordinal: &Ordinal) -> Option<Standing> {
        self.any()?.waiting.remove(ordinal)
    }

    /// What stands for a document, to be changed.
    pub fn waiting_mut(&mut self, ordinal: &Ordinal) -> Option<&mut Standing> {
        self.any()?.waiting.get_mut(ordinal)
    }

    /// How to tell what is in doubt, to be changed, while a crash has left anything to judge.
    pub fn judge_mut(&mut self) -> Option<&mut Judge> {
        self.any()?.judge.as_deref_mut()
    }

    /// The sweep under way, to be changed.
    pub fn sweep_mut(&mut self) -> Option<&mut Sweep> {
        self.any()?.sweep.as_deref_mut()
    }

    /// A change beyond the reader that was settled: not any more. Whether it was.
    pub fn take_extras(&mut self, seq: &Seq) -> bool {
        self.any().is_some_and(|sets| sets.extras.remove(seq))
    }

    /// The reader passes a document that a retry outran. Where that was.
    pub fn take_outran(&mut self, ordinal: &Ordinal) -> Option<Seq> {
        self.any()?.outran.remove(ordinal)
    }

    /// A document is decided again. The hole it kept.
    pub fn take_again(&mut self, ordinal: &Ordinal) -> Option<Seq> {
        self.any()?.again.remove(ordinal)
    }

    /// It is known what the client has of a document. Whether it was not.
    pub fn take_doubt(&mut self, ordinal: u64) -> bool {
        self.any().is_some_and(|sets| sets.doubt.remove(ordinal))
    }

    /// A document is not given up any more. Whether it was.
    pub fn take_dead(&mut self, ordinal: u64) -> bool {
        self.any().is_some_and(|sets| sets.dead.remove(ordinal))
    }

    /// A standing of an earlier life was judged. Whether it had not been.
    pub fn take_unjudged(&mut self, ordinal: u64) -> bool {
        self.any().is_some_and(|sets| sets.unjudged.remove(ordinal))
    }

    /// What was asked of a document is durable. Whether that was open.
    pub fn take_unrecorded(&mut self, ordinal: &Ordinal) -> bool {
        self.any().is_some_and(|sets| sets.unrecorded.remove(ordinal))
    }

    /// No more is owed of a document than what is known. Whether there was.
    pub fn take_more(&mut self, ordinal: &Ordinal) -> bool {
        self.any().is_some_and(|sets| sets.more.remove(ordinal))
    }

    /// Gives the room back if there is nothing left in it.
    pub fn tidy(&mut self) {
        if self.0.as_ref().is_some_and(|sets| sets.is_empty()) {
            self.0 = None;
        }
    }
}

impl Deref for Few {
    type Target = Sets;

    fn deref(&self) -> &Sets {
        match &self.0 {
            Some(sets) => sets,
            None => &NOTHING,
        }
    }
}

/// A [`Tally`] that takes room only once something was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted(Option<Box<Tally>>);

static UNCOUNTED: Tally = Tally::NOTHING;

impl From<Tally> for Counted {
    fn from(tally: Tally) -> Counted {
        Counted((tally != Tally::NOTHING).then(|| Box::new(tally)))
    }
}

impl Deref for Counted {
    type Target = Tally;

    fn deref(&self) -> &Tally {
        self.0.as_deref().unwrap_or(&UNCOUNTED)
    }
}

impl DerefMut for Counted {
    fn deref_mut(&mut self) -> &mut Tally {
        self.0.get_or_insert_default()
    }
}
