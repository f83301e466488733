//! What is watched while a world runs, and what a crash excuses.

use super::super::{Ahead, Attempt, Feed, Saved, State};
use super::print::Print;
use super::step::Answer;
use crate::document::Row;
use crate::ids::Seq;

/// How the life before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Crash,
    /// It was paused, and that was durable: nothing was sent since. What it did else may be forgotten.
    Pause {
        cursor: Seq,
    },
    /// It stopped cleanly: everything was settled up to this cursor, or stood.
    Stop {
        cursor: Seq,
    },
}

/// Someone who hears of everything that happens in a world, and says when a promise is broken.
pub trait Watch: Clone {
    /// The feed was created on a log that has these rows. Here and everywhere else a live row that is none of
    /// the client's comes as deleted: to the client it is.
    fn starts(&mut self, rows: &[Row], beginning: bool);
    /// The feed was handed a row and decided on it.
    fn meets(&mut self, row: &Row);
    /// A request begins.
    fn begins(&mut self, row: &Row, attempt: &Attempt) -> Result<(), String>;
    /// An attempt that begins may be told as a difference to the state of this change.
    fn builds_on(&self, _attempt: &Attempt, _state: Seq) -> Result<(), String> {
        Ok(())
    }
    /// A request ended; `Lost` also for one that was open when the process died.
    fn ends(&mut self, attempt: &Attempt, answer: Answer);
    /// The reader sends nothing for a row. `stands`: because it waits for later.
    fn passes(&mut self, row: &Row, stands: bool) -> Result<(), String>;
    /// A retry or a replay finds nothing to send for a row.
    fn passes_by(&mut self, row: &Row, stands: bool) -> Result<(), String>;
    /// The client is left as it is about a row, whatever it has: it is not to be told, or nobody can tell.
    fn leaves(&mut self, row: &Row);
    /// The filter has changed: all is decided again, and what is the client's now or no longer is told.
    fn refilters(&mut self);
    /// Whether the client is still owed this row.
    fn owes(&self, row: &Row) -> bool;
    /// A replay of everything is promised.
    fn sweeps(&mut self, rows: &[Row], replay: u64);
    /// A document is to be sent again.
    fn asks(&mut self, row: &Row, replay: u64);
    /// A dead letter is dropped.
    fn drops(&mut self, doc: usize);
    fn reaches_tail(&mut self, read: Seq);
    fn takes(&mut self);
    fn commits(&mut self);
    /// A new life begins with what the ledger has, when the newest change is `head`.
    fn opens(&mut self, saved: &Saved, head: Seq, life: Life);
    /// A lease is out in the new life. `answered`: it had been settled, and that was lost.
    fn reopens(&mut self, attempt: &Attempt, answered: bool);
    /// The feed forgets the client: all there is is owed again, and in doubt.
    fn begins_again(&mut self, rows: &[Row], head: Seq);
    /// The log is another one.
    fn restores(&mut self, rows: &[Row]);
    /// A quiet run is at its end.
    fn rests(&self, rows: &[Row], feed: &Feed, saved: &Saved) -> Result<(), String>;
    fn print(&self, print: &mut Print);
}

/// The marks that a life after a crash found. They say about which documents Flare cannot know better.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Found {
    cursor: Seq,
    issued: Seq,
    ahead: Ahead,
    /// Documents that waited for a retry when the crash was found, by number.
    waiting: Vec<usize>,
    /// Documents with a recorded doubt.
    pub doubted: Vec<usize>,
    /// Documents the new life has met: each is judged once.
    met: Vec<usize>,
    /// Where the tail was when the reader first reached it.
    tail: Option<Seq>,
    /// Nothing is excused: the life before stopped cleanly, and so did those before it or were judged.
    clean: bool,
}

impl Found {
    pub fn clean() -> Found {
        Found { clean: true, ..Found::default() }
    }

    /// Everything up to `head` may have been sent.
    pub fn anything_up_to(head: Seq) -> Found {
        Found { issued: head, ..Found::default() }
    }

    /// The excuses of the next life.
    pub fn next(&self, saved: &Saved, head: Seq, life: Life) -> Found {
        let numbers = |waiting: bool| {
            let of_kind = saved.standings.iter().filter(move |standing| match waiting {
                true => matches!(standing.state, State::Waiting { .. } | State::Passed),
                false => standing.doubt,
            });
            of_kind.map(|standing| standing.ordinal.0 as usize - 1).collect::<Vec<_>>()
        };
        let mut doubted = numbers(false);
        doubted.extend(saved.dead_in_doubt.iter().map(|ordinal| ordinal as usize - 1));
        let through = |cursor: Seq| {
            let met = self.waiting.iter().all(|doc| self.met.contains(doc));
            met && self.tail.is_some_and(|tail| cursor >= tail)
        };
        // Without a mark nothing was sent: then there is an excuse for what an earlier life may have done, and for nothing
        // that this one has made certain.
        let mut waiting = numbers(true);
        let sent = life == Life::Crash && saved.issued > Seq(0);
        if !sent {
            let stopped = matches!(life, Life::Stop { .. });
            waiting.retain(|doc| self.waiting.contains(doc) && !(stopped && self.met.contains(doc)));
        }
        let issued = saved.issued.max(saved.judging).min(head);
        let over = match life {
            Life::Crash => self.clean,
            Life::Pause { cursor } | Life::Stop { cursor } => self.clean || through(cursor),
        };
        if !sent && (over || waiting.is_empty() && issued <= saved.cursor) {
            return Found { doubted, ..Found::clean() };
        }
        let (cursor, ahead) = (saved.cursor, saved.ahead.clone());
        Found { cursor, issued, ahead, waiting, doubted, met: Vec::new(), tail: None, clean: false }
    }

    pub fn reaches_tail(&mut self, read: Seq) {
        if !self.clean {
            self.tail.get_or_insert(read);
        }
    }

    /// The feed meets a document. True if from now on it may take it as in doubt for no other reason than
    /// the crash: it waited for a retry, which may have been under way; or it lies beyond the recorded
    /// cursor, is not known as settled, and something about it may have been sent, and the reader has not been
    /// at the tail yet.
    pub fn excuses(&mut self, row: &Row) -> bool {
        let doc = row.ordinal.0 as usize - 1;
        if self.clean || self.met.contains(&doc) {
            return false;
        }
        self.met.push(doc);
        self.met.sort_unstable();
        let in_time = self.tail.is_none() && !self.ahead.contains(row.seq);
        let beyond = row.seq > self.cursor && self.issued > self.cursor && in_time;
        let sent = row.born <= self.issued || row.before > self.cursor;
        self.waiting.contains(&doc) || beyond && sent
    }

    pub fn print(&self, print: &mut Print) {
        let Found { cursor, issued, ahead, waiting, doubted: _, met, tail, clean } = self;
        print.flag(*clean);
        print.word(cursor.0);
        print.word(issued.0);
        print.ahead(ahead);
        print.list(waiting, |print, doc| print.word(*doc as u64));
        print.list(met, |print, doc| print.word(*doc as u64));
        print.list(tail, |print, seq| print.word(seq.0));
    }
}
