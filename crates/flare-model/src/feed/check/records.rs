//! Records in a world: taken, made durable, and handed back, as the journey does it; and what must hold of each.

use std::rc::Rc;

use super::super::{Record, Saved, Taken};
use super::act::leases;
use super::ledger;
use super::watch::Watch;
use super::world::{Lease, Pause, World};
use crate::document::Row;
use crate::feed::rule::{Rule, Rules};
use crate::ids::Seq;

impl<W: Watch> World<W> {
    /// All that is known now becomes durable, after what was known before.
    pub(super) fn record_at_once(&mut self) -> Result<(), String> {
        if self.hand.is_some() {
            self.commit();
        }
        self.take_record()?;
        if self.hand.is_some() {
            self.commit();
        }
        Ok(())
    }

    /// A tombstone that the feed does not need may go at any moment, and then nothing in the ledger may tell of it.
    pub(super) fn may_forget(&self) -> Result<(), String> {
        if !self.is_sound() && self.feed.rules.keeps(Rule::NeededUntilDurable) {
            return Ok(());
        }
        let (needed, cursor) = (self.feed.needed(), self.feed.cursor());
        let free = |row: &&Row| row.deleted && row.seq <= cursor && !needed.contains(row.ordinal.0);
        for Row { ordinal, .. } in self.rows.iter().filter(free) {
            let Saved { held, dead, standings, .. } = &*self.saved;
            let stands = standings.iter().any(|standing| standing.ordinal == *ordinal);
            if held.contains(ordinal.0) || dead.contains(ordinal.0) || stands {
                return Err(format!("the tombstone of {ordinal} may go, and the ledger tells of it"));
            }
        }
        Ok(())
    }

    pub(super) fn take_record(&mut self) -> Result<(), String> {
        let Some(taken) = self.feed.take_record() else { return Ok(()) };
        if self.is_sound() {
            self.covers(&taken.record)?;
        }
        self.watch.takes(taken.record.issued);
        self.hand = Some(taken);
        if self.paused == Pause::Begun {
            self.paused = Pause::Taken;
        }
        Ok(())
    }

    /// With a rule removed, what matters is which promise breaks in the end.
    pub(super) fn is_sound(&self) -> bool {
        self.feed.rules == Rules::default()
    }

    /// Everything that is owed or open is beyond the recorded position, or stands.
    fn covers(&self, record: &Record) -> Result<(), String> {
        let passed = |seq: Seq| seq <= record.cursor || record.ahead.contains(seq);
        let swept = |row: &Row| {
            record.sweep.as_ref().is_some_and(|sweep| row.seq > sweep.position && row.seq <= sweep.end)
        };
        let beyond = |row: &&Row| row.seq > self.created || self.rows.contains(row);
        for row in self.visible().filter(beyond).filter(|row| passed(row.seq) && !swept(row)) {
            // What stands for an older one is decided on the newest, or on this one in its turn.
            let stands = self.feed.owed_from(row.ordinal).is_some_and(|from| from <= row.seq);
            if !stands && self.watch.owes(row) {
                return Err(format!(
                    "the recorded position passes {row:?}, which is owed and does not stand"
                ));
            }
        }
        for attempt in self.open.iter().flatten().filter(|attempt| attempt.seq <= record.cursor) {
            if !self.feed.few.waiting.contains_key(&attempt.ordinal) {
                return Err(format!("the recorded cursor passes {attempt:?}, which is open"));
            }
        }
        Ok(())
    }

    pub(super) fn commit(&mut self) {
        let Taken { record, receipt } = self.hand.take().expect("a step that can happen");
        ledger::write(Rc::make_mut(&mut self.saved), &record);
        if let Some(states) = &mut self.states {
            states.commits(&record);
        }
        self.feed.recorded(receipt);
        self.watch.commits();
        if self.paused == Pause::Taken {
            self.paused = Pause::Durable;
        }
        for lease in leases(&self.saved) {
            let doc = lease.ordinal.0 as usize - 1;
            if self.out[doc] == Lease::No && self.open[doc].is_some_and(|open| open.seq == lease.seq) {
                self.out[doc] = Lease::Out;
            }
        }
    }
}
