//! Kept states in the world of the checks: what the journey and an engine do with them, in its shortest form. A
//! document's state is its seq.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::super::{Attempt, Feed, Kept, Record, Verdict};
use crate::ids::{Ordinal, Seq};
use crate::revision::Revision;

/// The states in the ledger, with the life that wrote each; and what may be taken away to show that it is seen.
#[derive(Clone, Debug)]
pub struct States {
    pub ledger: BTreeMap<Ordinal, (u64, Arc<Kept>)>,
    /// An unknown outcome makes a state unknown.
    pub forgets: bool,
    /// States of other lives are not believed.
    pub lives: bool,
}

impl States {
    pub fn new() -> States {
        States { ledger: BTreeMap::new(), forgets: true, lives: true }
    }

    /// A record is durable.
    pub fn commits(&mut self, record: &Record) {
        for ordinal in &record.forgotten {
            self.ledger.remove(ordinal);
        }
        for (ordinal, state) in &record.kept {
            self.ledger.insert(*ordinal, (record.life, state.clone()));
        }
    }

    /// An attempt ends, just before the feed settles it.
    pub fn ends(&self, feed: &mut Feed, attempt: &Attempt, verdict: &Verdict) {
        if !self.forgets && !matches!(verdict, Verdict::Delivered) {
            return;
        }
        let revision = Revision::Integer(attempt.seq.0 as i64);
        feed.keep_as(attempt, verdict, || Some(Arc::new(Kept { revision, content: Bytes::new() })));
    }

    /// What a patch would start from.
    pub fn known(&self, feed: &Feed, attempt: &Attempt) -> Option<Seq> {
        if !attempt.builds_on_state() {
            return None;
        }
        let durable = || {
            let (life, state) = self.ledger.get(&attempt.ordinal)?;
            (*life == feed.life() || !self.lives).then(|| state.clone())
        };
        let state = feed.keeping(attempt.ordinal).unwrap_or_else(durable)?;
        match state.revision {
            Revision::Integer(seq) => Some(Seq(seq as u64)),
            Revision::Date(_) => None,
        }
    }
}
