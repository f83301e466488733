//! The fingerprint of a world: everything that can make its future differ, in canonical form, as 128 bits.
//!
//! Every struct is taken apart without `..`: a new field does not compile until it is decided what it means
//! here.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringTreemap;

use super::super::few::Sets;
use super::super::open::Judge;
use super::super::{
    Ahead, Attempt, Delta, Feed, Filtering, Kept, Open, Record, Saved, Standing, State, Sweep, SweepKind,
    UnderWay,
};
use crate::document::Row;
use crate::ids::{Ordinal, Seq};
use crate::revision::Revision;

/// Two lanes of a multiplying hash over words.
pub struct Print {
    lanes: [u64; 2],
}

impl Print {
    pub fn new() -> Print {
        Print { lanes: [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344] }
    }

    pub fn word(&mut self, word: u64) {
        const KEYS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
        for (lane, key) in self.lanes.iter_mut().zip(KEYS) {
            let mut mixed = (*lane ^ word).wrapping_mul(key);
            mixed ^= mixed >> 29;
            *lane = mixed.wrapping_add(key).rotate_left(23);
        }
    }

    pub fn words<const N: usize>(&mut self, words: [u64; N]) {
        for word in words {
            self.word(word);
        }
    }

    pub fn flag(&mut self, flag: bool) {
        self.word(u64::from(flag));
    }

    pub fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Print, T)) {
        for item in items {
            self.word(1);
            each(self, item);
        }
        self.word(0);
    }

    pub fn end(&self) -> u128 {
        let mut copy = Print { lanes: self.lanes };
        copy.word(0x5bd1);
        copy.word(0x27d4);
        u128::from(copy.lanes[0]) << 64 | u128::from(copy.lanes[1])
    }

    fn seqs<'a>(&mut self, seqs: impl IntoIterator<Item = &'a Seq>) {
        self.list(seqs, |print, seq| print.word(seq.0));
    }

    fn ordinals<'a>(&mut self, ordinals: impl IntoIterator<Item = &'a Ordinal>) {
        self.list(ordinals, |print, ordinal| print.word(ordinal.0));
    }

    fn places(&mut self, places: &BTreeMap<Ordinal, Seq>) {
        self.list(places, |print, (ordinal, seq)| print.words([ordinal.0, seq.0]));
    }

    fn bitmap(&mut self, bitmap: &RoaringTreemap) {
        self.list(bitmap.iter(), Print::word);
    }

    pub fn row(&mut self, row: &Row) {
        let Row { ordinal, seq, born, before, deleted } = row;
        self.words([ordinal.0, seq.0, born.0, before.0, u64::from(*deleted)]);
    }

    pub fn revision(&mut self, (row, until): &(Row, Seq)) {
        self.row(row);
        self.word(until.0);
    }

    pub fn state(&mut self, state: &Arc<Kept>) {
        match state.revision {
            Revision::Integer(seq) => self.word(seq as u64),
            Revision::Date(_) => unreachable!("a state is its seq here"),
        }
    }

    pub fn attempt(&mut self, attempt: &Attempt) {
        let Attempt { ordinal, seq, action, replay, attempts, first_attempt_at: _, unheard: _ } = attempt;
        self.words([ordinal.0, seq.0, *action as u64, *replay, u64::from(*attempts)]);
    }

    fn standing(&mut self, standing: &Standing) {
        let Standing { ordinal, seq, doubt, state, replay, trouble } = standing;
        let state = match state {
            State::Waiting { .. } => 0,
            State::GaveUp => 1,
            State::Doubtful => 2,
            State::Leased { .. } => 3,
            State::Passed => 4,
        };
        let attempts = trouble.as_ref().map_or(0, |trouble| u64::from(trouble.attempts));
        self.words([ordinal.0, seq.0, u64::from(*doubt), state, *replay, attempts]);
    }

    pub fn ahead(&mut self, ahead: &Ahead) {
        let Ahead { horizon, holes, extras } = ahead;
        self.word(horizon.0);
        self.seqs(holes);
        self.seqs(extras);
    }

    fn sweep(&mut self, sweep: &Sweep) {
        let Sweep { replay, kind, position, end, met: _ } = sweep;
        let kind = match kind {
            SweepKind::Beginning => 0,
            SweepKind::Replay { .. } => 1,
            SweepKind::Filter => 2,
        };
        self.words([*replay, kind, position.0, end.0]);
    }

    fn filtering(&mut self, filtering: &Option<Box<Filtering>>) {
        self.list(filtering, |print, filtering| {
            let Filtering { swept, selective, excluded: _, not_told: _, errors: _, last_error: _ } =
                filtering.as_ref();
            print.words([*swept, u64::from(*selective)]);
        });
    }

    pub fn saved(&mut self, saved: &Saved) {
        let Saved {
            cursor,
            issued,
            judging,
            unjudged,
            judged,
            ahead,
            held,
            standings,
            dead,
            dead_in_doubt,
            since,
            sweep,
            tally: _,
            life: _,
            filtering,
            noted: _,
            untold: _,
            strange,
        } = saved;
        self.filtering(filtering);
        self.word(cursor.0);
        self.word(issued.0);
        self.word(judging.0);
        self.bitmap(unjudged);
        self.bitmap(judged);
        self.ahead(ahead);
        self.bitmap(held);
        self.list(standings, Print::standing);
        self.bitmap(dead);
        self.bitmap(dead_in_doubt);
        self.seqs(since);
        self.list(sweep, Print::sweep);
        self.flag(*strange);
    }

    pub fn record(&mut self, record: &Record) {
        let Record {
            cursor,
            issued,
            judging,
            unjudged,
            judged,
            ahead,
            held,
            dropped,
            standings,
            cleared,
            since,
            sweep,
            tally: _,
            filtering,
            ..
        } = record;
        self.filtering(filtering);
        self.word(cursor.0);
        self.word(issued.0);
        self.word(judging.0);
        self.bitmap(unjudged);
        self.bitmap(judged);
        self.ahead(ahead);
        self.ordinals(held);
        self.ordinals(dropped);
        self.list(standings, Print::standing);
        self.ordinals(cleared);
        self.seqs(since);
        self.list(sweep, Print::sweep);
    }

    fn judge(&mut self, judge: &Judge) {
        let Judge { cursor, issued, ahead, done, until } = judge;
        self.word(cursor.0);
        self.word(issued.0);
        self.ahead(ahead);
        self.bitmap(done);
        self.seqs(until);
    }

    fn delta(&mut self, delta: &Delta, issued: Seq) {
        let Delta {
            holes,
            open,
            dirty,
            held,
            standings,
            dead,
            doubtful,
            notes: _,
            issue,
            keeping: _,
            under_way,
        } = delta;
        self.list(holes.iter(), |print, (seq, ordinal)| {
            print.word(seq.0);
            print.word(ordinal.0);
        });
        self.list(open.iter(), |print, (ordinal, open)| {
            let Open { seq, action, replay, newer, leased } = open;
            print.words([ordinal.0, seq.0, *action as u64, *replay, newer.map_or(0, |seq| seq.0)]);
            print.flag(*leased);
        });
        self.flag(*dirty);
        self.list(held.iter(), |print, (ordinal, has)| print.word(ordinal.0 << 1 | u64::from(*has)));
        self.ordinals(standings);
        self.list(dead.values(), Print::standing);
        self.places(doubtful);
        // What was asked for and granted means nothing any more.
        self.word(if *issue > issued { issue.0 } else { 0 });
        self.list(under_way, |print, under_way| {
            let UnderWay { issued, documents, gone } = under_way;
            print.word(issued.0);
            print.ordinals(documents);
            print.ordinals(gone);
        });
    }

    pub fn feed(&mut self, feed: &Feed) {
        let Feed { read, issued, held, few, changes, filtering, tally: _, life: _, delta, rules: _ } = feed;
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
            noted: _,
            untold: _,
        } = &**few;
        self.word(*changes);
        self.filtering(filtering);
        self.word(read.0);
        self.word(issued.0);
        self.seqs(extras);
        self.places(outran);
        self.bitmap(held);
        self.bitmap(doubt);
        self.list(waiting.values(), Print::standing);
        self.bitmap(dead);
        self.places(again);
        self.ordinals(unrecorded);
        self.list(judge.as_deref(), Print::judge);
        self.bitmap(unjudged);
        self.seqs(since);
        self.ordinals(more);
        self.list(sweep.as_deref(), Print::sweep);
        self.delta(delta, *issued);
    }
}
