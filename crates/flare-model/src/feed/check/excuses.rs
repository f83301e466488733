//! What a crash excuses: the life after it cannot know what became of the last requests, and may doubt what they told.
//! What happens to a feed comes in; whether it may take a document as in doubt comes out.

use std::rc::Rc;

use super::super::{Ahead, Saved, State};
use super::print::Print;
use super::watch::Life;
use crate::document::Row;
use crate::ids::Seq;

/// What is excused: now, by the record under way, and by the last one that is durable, which is where a crash goes back to.
#[derive(Clone, Debug, Default)]
pub struct Excuses {
    now: Rc<Found>,
    taken: Rc<Found>,
    saved: Rc<Found>,
}

impl Excuses {
    /// There was no crash.
    pub fn none() -> Excuses {
        let now = Rc::new(Found::clean());
        Excuses { now: now.clone(), taken: Rc::default(), saved: now }
    }

    /// The feed meets a document. True if from now on it may take it as in doubt for no other reason than a crash.
    pub fn meets(&mut self, row: &Row) -> bool {
        !self.now.clean && Rc::make_mut(&mut self.now).excuses(row)
    }

    pub fn reaches_tail(&mut self, read: Seq) {
        if !self.now.clean && self.now.tail.is_none() {
            Rc::make_mut(&mut self.now).tail = Some(read);
        }
    }

    /// A record was taken, with this mark.
    pub fn takes(&mut self, issued: Seq) {
        self.taken = self.worth_keeping(issued);
    }

    pub fn commits(&mut self) {
        self.saved = std::mem::take(&mut self.taken);
    }

    /// A new life begins with what the ledger has. A clean stop forgets nothing.
    pub fn opens(&mut self, saved: &Saved, head: Seq, life: Life) {
        let before = if life == Life::Stop { &self.now } else { &self.saved };
        self.now = Rc::new(before.next(saved, head, life));
        (self.taken, self.saved) = (Rc::default(), self.worth_keeping(saved.issued));
    }

    /// What a crash goes back to. With a mark it forgets all that was certain, so that what was makes no difference.
    fn worth_keeping(&self, issued: Seq) -> Rc<Found> {
        if issued > Seq(0) && !self.now.clean { Rc::default() } else { self.now.clone() }
    }

    /// Everything may have been sent that there is.
    pub fn begins_again(&mut self, head: Seq) {
        self.now = Rc::new(Found { issued: head, ..Found::default() });
    }

    /// Whether the ledger had a doubt about this document when the life began.
    pub fn has_recorded(&self, doc: usize) -> bool {
        self.now.doubted.contains(&doc)
    }

    pub fn print(&self, print: &mut Print) {
        let Excuses { now, taken, saved } = self;
        [now, taken, saved].into_iter().for_each(|found| found.print(print));
    }
}

/// The marks that a life after a crash found. They say about which documents Flare cannot know better.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Found {
    cursor: Seq,
    issued: Seq,
    ahead: Ahead,
    /// Documents that waited for a retry when the crash was found, by number.
    waiting: Vec<usize>,
    /// Documents with a recorded doubt.
    doubted: Vec<usize>,
    /// Documents that were met since: each is judged once, whether the feed is stopped and opened between or not.
    met: Vec<usize>,
    /// Where the tail was when the reader first reached it.
    tail: Option<Seq>,
    /// Nothing is excused: no life was killed, or all that it may have sent is judged.
    clean: bool,
}

impl Found {
    fn clean() -> Found {
        Found { clean: true, ..Found::default() }
    }

    /// The excuses of the next life, after what was known by the time up to which things are not forgotten.
    fn next(&self, saved: &Saved, head: Seq, life: Life) -> Found {
        let numbers = |waiting: bool| {
            let of_kind = saved.standings.iter().filter(move |standing| match waiting {
                true => matches!(standing.state, State::Waiting { .. } | State::Passed),
                false => standing.doubt,
            });
            of_kind.map(|standing| standing.ordinal.0 as usize - 1).collect::<Vec<_>>()
        };
        let mut doubted = numbers(false);
        doubted.extend(saved.dead_in_doubt.iter().map(|ordinal| ordinal as usize - 1));
        let (mut waiting, mut met) = (numbers(true), Vec::new());
        let mut issued = saved.issued.max(saved.judging).min(head);
        // Without a mark nothing was sent: then there is an excuse for what an earlier life may have done, and for nothing
        // that was made certain since.
        let sent = life == Life::Crash && saved.issued > Seq(0);
        if !sent {
            met.clone_from(&self.met);
            waiting.retain(|doc| self.waiting.contains(doc) && !met.contains(doc));
            if self.tail.is_some() {
                issued = Seq(0);
            }
        }
        if !sent && (self.clean || waiting.is_empty() && issued <= saved.cursor) {
            return Found { doubted, ..Found::clean() };
        }
        let (cursor, ahead) = (saved.cursor, saved.ahead.clone());
        Found { cursor, issued, ahead, waiting, doubted, met, tail: None, clean: false }
    }

    /// The feed meets a document. True if from now on it may take it as in doubt for no other reason than
    /// the crash: it waited for a retry, which may have been under way; or it lies beyond the recorded
    /// cursor, is not known as settled, and something about it may have been sent, and the reader has not been
    /// at the tail yet.
    fn excuses(&mut self, row: &Row) -> bool {
        let doc = row.ordinal.0 as usize - 1;
        if self.met.contains(&doc) {
            return false;
        }
        self.met.push(doc);
        self.met.sort_unstable();
        let in_time = self.tail.is_none() && !self.ahead.contains(row.seq);
        let beyond = row.seq > self.cursor && self.issued > self.cursor && in_time;
        let sent = row.born <= self.issued || row.before > self.cursor;
        self.waiting.contains(&doc) || beyond && sent
    }

    fn print(&self, print: &mut Print) {
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
