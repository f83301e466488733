//! A feed: what one client has of one lane, and what it still needs. The rules of the whole product, pure.
//!
//! Rows of the lane come in ([`Feed::read`], [`Feed::retry`], [`Feed::sweep`]); attempts come out, each to be
//! sent once and to be [settled](Feed::settle); now and then a [`Record`] comes out that has to become
//! durable as one. Nothing here does I/O or asks the time, so the same code runs in production, under an
//! exhaustive check of all small histories (`check`), and against a naive oracle (`oracle.rs`).
//!
//! The words: a change is *settled* when nothing more is to be done for it here: it was delivered, there was
//! nothing to send, or a [`Standing`] stands for it. Everything up to the *cursor* is settled. Changes beyond
//! it that are settled are *ahead*; those that were read and are not are *holes*. The client *holds* a
//! document when its create succeeded; it is *in doubt* when a create or delete has an unknown outcome.
//! *issued* is a durable mark that no attempt passes, so that after a crash it is known what may have been
//! sent.

mod decide;
mod few;
mod filtering;
mod glimpse;
mod history;
mod interest;
mod kept;
mod lease;
mod meet;
mod moments;
mod notes;
mod open;
mod pending;
mod record;
mod rule;
mod settle;
mod standing;
mod sweep;

#[cfg(test)]
mod check;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use roaring::RoaringTreemap;

pub use decide::{Action, decide};
pub use filtering::{Example, Filtering};
pub use glimpse::{ClientHas, Flight, Glimpse};
pub use history::Next;
pub use interest::{Everything, Interest};
pub use kept::Kept;
pub use lease::{Lent, Sent};
pub use notes::{Left, Note};
pub use record::{Ahead, Failure, Health, Receipt, Record, Saved, Sweep, SweepKind, Taken, Tally};
pub use standing::{Standing, State, TRANSITION, Trouble, Verdict};
pub use sweep::Filled;

use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;
use few::{Counted, Few};
#[cfg(test)]
use pending::Delta;
use pending::{Pending, UnderWay};
use rule::{Rule, Rules};

/// The state of one feed in memory. It is ahead of what is durable; a crash goes back to the last record.
///
/// There are many, and most are at rest: what such a one has nothing in is behind a pointer that leads nowhere, see `few.rs`
/// and `pending.rs`.
#[derive(Clone, Debug)]
pub struct Feed {
    /// All rows up to here were met by the reader.
    read: Seq,
    /// Durable mark: nothing beyond it was sent.
    issued: Seq,
    /// What the client has.
    held: RoaringTreemap,
    /// What few feeds have anything in.
    few: Few,
    /// How often the filter was changed, as far as the owner has said.
    changes: u64,
    filtering: Option<Box<Filtering>>,
    tally: Counted,
    /// The life whose kept states are believed.
    life: u64,
    /// What is under way, and what changed since the last record.
    delta: Pending,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    /// The change being sent.
    seq: Seq,
    action: Action,
    replay: u64,
    /// A newer change of the document that the reader met meanwhile.
    newer: Option<Seq>,
    /// The client has it on a lease.
    leased: bool,
}

/// One request to send. The feed takes the document as in flight until it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The document.
    pub ordinal: Ordinal,
    /// The change being sent.
    pub seq: Seq,
    /// What to tell.
    pub action: Action,
    /// The replay that asked for it, 0 for none.
    pub replay: u64,
    /// Attempts already made for this revision.
    pub attempts: u32,
    /// When the first of them began.
    pub first_attempt_at: Option<Timestamp>,
    /// Whether one of them, or one before a crash, was sent and not answered: the client may have this revision.
    pub unheard: bool,
}

/// What the reader is told about the row it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// Nothing to do.
    Settled,
    /// The document is in flight; it will be decided again.
    Busy,
    /// It waits until the outcome of the revision before is durable.
    Owed,
    /// Send this.
    Send(Attempt),
}

/// What follows from settling an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The document is done, or waits as the verdict said.
    Done,
    /// The document changed meanwhile: call [`Feed::retry`] with its newest row.
    Again,
    /// More of the document may be owed, once the next record is durable.
    Next,
}

impl Feed {
    /// The position of the reader: the next row to [read](Feed::read) is the first beyond it.
    pub fn position(&self) -> Seq {
        self.read
    }

    /// Everything up to here is settled. What is recorded may rest lower, see [`Feed::take_record`].
    pub fn cursor(&self) -> Seq {
        match self.delta.holes.first() {
            // The hole of an attempt that outran the reader does not move the cursor past the reader.
            Some((seq, _)) => Seq(seq.0 - 1).min(self.read),
            None => self.read,
        }
    }

    /// Whether a change at `seq` may be sent now. If not: [`Feed::want_issue`], record, and try again.
    pub fn may_issue(&self, seq: Seq) -> bool {
        seq <= self.issued || !self.rules.keeps(Rule::Issued)
    }

    /// Asks for the mark to be raised to `seq` with the next record.
    pub fn want_issue(&mut self, seq: Seq) {
        if seq > self.issued && seq > self.delta.issue {
            self.delta.issue = seq;
            self.delta.dirty = true;
        }
    }

    /// The durable mark.
    pub fn issued(&self) -> Seq {
        self.issued
    }

    /// How many changes are read, or being sent, and not settled.
    pub fn unsettled(&self) -> usize {
        self.delta.holes.len()
    }

    /// How many attempts are in flight.
    pub fn in_flight(&self) -> usize {
        self.delta.open.len()
    }

    /// Whether this document is in flight.
    pub fn is_open(&self, ordinal: Ordinal) -> bool {
        self.delta.open.contains_key(&ordinal)
    }

    /// Whether a document was asked for, or its lease ended, and no record that carries that is durable yet.
    pub fn is_unrecorded(&self, ordinal: Ordinal) -> bool {
        self.few.unrecorded.contains(&ordinal)
    }

    /// The documents that are owed, by ordinal.
    pub fn waiting(&self) -> &BTreeMap<Ordinal, Standing> {
        &self.few.waiting
    }

    /// Documents that changed while in flight and are to be decided again.
    pub fn to_decide_again(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.few.again.keys().copied()
    }

    /// Whether this document changed while it was in flight and is to be decided again.
    pub fn is_to_be_decided_again(&self, ordinal: Ordinal) -> bool {
        self.few.again.contains_key(&ordinal)
    }

    /// Whether something is owed of this document that [`Feed::retry`] could decide now.
    pub fn may_be_retried(&self, ordinal: Ordinal) -> bool {
        let owed = self.few.waiting.contains_key(&ordinal) || self.is_to_be_decided_again(ordinal);
        owed && !self.is_open(ordinal) && !self.is_unrecorded(ordinal)
    }

    /// What the client has.
    pub fn held(&self) -> &RoaringTreemap {
        &self.held
    }

    /// What the client may have or lack.
    pub fn doubt(&self) -> &RoaringTreemap {
        &self.few.doubt
    }

    /// What was given up.
    pub fn dead(&self) -> &RoaringTreemap {
        &self.few.dead
    }

    /// The counters; writing to them goes out with the next record.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The counters, to be changed.
    pub fn tally_mut(&mut self) -> &mut Tally {
        self.delta.dirty = true;
        &mut self.tally
    }

    /// The sweep under way.
    pub fn sweeping(&self) -> Option<&Sweep> {
        self.few.sweep.as_deref()
    }
}
