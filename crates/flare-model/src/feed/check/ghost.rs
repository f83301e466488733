//! What can be known of the client by someone who remembers every request and every answer, and which request
//! that allows.
//!
//! The client applies a request unless it has seen a higher sequence. An equal one it applies again: all
//! requests with one sequence leave it with the document, or all without it, since they tell of one row. So
//! what it has is what the request with the highest sequence told that reached it. A success is such a
//! request, and nothing begun before it can change anything afterwards; a lost request may arrive at any
//! time until then. Hence two flags are all there is to know: whether it may have the document, and whether
//! it may lack it.

use super::super::{Action, Attempt, Feed, Saved};
use super::excuses::Excuses;
use super::print::Print;
use super::step::Answer;
use super::watch::{Life, Watch};
use crate::document::Row;
use crate::ids::Seq;

#[derive(Clone, Debug)]
pub struct Ghost {
    docs: Vec<Doc>,
    excuses: Excuses,
}

#[derive(Clone, Copy, Debug)]
struct Doc {
    may_have: bool,
    may_lack: bool,
    /// The change that the client certainly has, and nothing newer: the last success, if nothing was lost since.
    certain: Option<Seq>,
    /// The last request that began: sequence, action, replay.
    tried: Option<(Seq, Action, u64)>,
    /// A request is open that began after the last replay was asked for.
    answering: bool,
    /// The same for the last change of the filter.
    sifting: bool,
    now: Kept,
    taken: Kept,
    saved: Kept,
}

/// What a crash takes back to the last record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kept {
    /// Up to this change nothing is owed any more.
    ended: Seq,
    how: How,
    /// The replay that is owed, 0 for none.
    asked: u64,
    /// The replay that will come to it, 0 for none.
    promised: u64,
    /// The crash excuses doubt about it, until a success or a decision to send nothing.
    excused: bool,
    /// The filter has changed since it was last decided.
    sifted: bool,
    /// The filter has changed, and what was discarded was not told once more since.
    passing: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum How {
    /// It was never this client's.
    #[default]
    Never,
    Delivered,
    Discarded,
    GivenUp,
    Dropped,
    NothingToSend,
}

/// The table of the product, said again in terms of what is known: what a client has to be told.
fn due(row: &Row, may_have: bool, may_lack: bool) -> Option<Action> {
    match row.deleted {
        false if may_lack => Some(Action::Create),
        false => Some(Action::Update),
        true if may_have => Some(Action::Delete),
        true => None,
    }
}

impl Ghost {
    pub fn new(docs: usize) -> Ghost {
        let kept = Kept::default();
        let (now, taken, saved) = (kept, kept, kept);
        let doc = Doc {
            may_have: false,
            may_lack: true,
            certain: None,
            tried: None,
            answering: false,
            sifting: false,
            now,
            taken,
            saved,
        };
        Ghost { docs: vec![doc; docs], excuses: Excuses::none() }
    }

    fn doc(&mut self, row: &Row) -> &mut Doc {
        &mut self.docs[row.ordinal.0 as usize - 1]
    }
}

impl Doc {
    fn end(&mut self, seq: Seq, how: How) {
        // It was told once more.
        self.now.passing &= seq > self.now.ended;
        self.now.ended = seq;
        self.now.how = how;
        if self.answering || how == How::NothingToSend {
            (self.now.asked, self.now.promised) = (0, 0);
        }
        if how == How::Delivered && self.sifting {
            self.now.sifted = false;
        }
    }

    fn begins(&mut self, row: &Row, attempt: &Attempt) -> Result<(), String> {
        let told = (attempt.seq, attempt.action, attempt.replay);
        let due = due(row, self.may_have, self.may_lack);
        let in_doubt = if row.deleted { Action::Delete } else { Action::Create };
        if due != Some(attempt.action) && !(self.now.excused && attempt.action == in_doubt) {
            return Err(format!("{told:?} is sent where {due:?} is due: {self:?}"));
        }
        // A changed filter makes it the client's or no longer; what stays as it was is not told again. Discarding changes
        // nothing about what the client is taken to have, so that what it was not to be told is told once more when the
        // sweep comes by, which decides by that: also if it was decided, and discarded, under the new filter already.
        let once_more = self.now.how == How::Discarded && self.now.passing;
        let transition = (self.now.sifted || once_more) && attempt.action != Action::Update;
        if attempt.replay == 0 && attempt.seq <= self.now.ended && !transition {
            return Err(format!("{told:?} is sent though nothing is owed: {self:?}"));
        }
        if attempt.replay != 0 && attempt.replay != self.now.asked {
            return Err(format!("{told:?} is sent though this replay is not owed: {self:?}"));
        }
        if let Some((seq, action, replay)) = self.tried {
            if attempt.seq < seq {
                return Err(format!("{told:?} begins after {:?}", self.tried));
            }
            let excused = self.now.excused && attempt.action == Action::Create;
            let same = (action == attempt.action || excused) && replay == attempt.replay;
            if attempt.seq == seq && !same {
                return Err(format!("{told:?} is another notification than {:?}", self.tried));
            }
        }
        self.tried = Some(told);
        (self.answering, self.sifting) = (true, true);
        Ok(())
    }

    fn ends(&mut self, attempt: &Attempt, answer: Answer) {
        let deletes = attempt.action == Action::Delete;
        match answer {
            Answer::Success => {
                (self.may_have, self.may_lack) = (!deletes, deletes);
                self.certain = (!deletes).then_some(attempt.seq);
                self.now.excused = false;
            }
            Answer::Lost | Answer::LostAtLast => {
                self.may_have |= !deletes;
                self.may_lack |= deletes;
                self.certain = None;
            }
            Answer::Discard | Answer::Refused | Answer::RefusedAtLast => {}
        }
        match answer {
            Answer::Success => self.end(attempt.seq, How::Delivered),
            Answer::Discard => self.end(attempt.seq, How::Discarded),
            Answer::LostAtLast | Answer::RefusedAtLast => self.end(attempt.seq, How::GivenUp),
            Answer::Lost | Answer::Refused => {}
        }
        self.answering = false;
    }

    fn rests(&self, row: &Row, feed: &Feed, saved: &Saved) -> Result<(), String> {
        let ordinal = row.ordinal.0;
        let (held, doubt) = (feed.held().contains(ordinal), feed.doubt().contains(ordinal));
        let recorded = saved.dead_in_doubt.contains(ordinal)
            || saved.standings.iter().any(|s| s.ordinal == row.ordinal && s.doubt);
        let unknown = self.may_have && self.may_lack;
        let Kept { ended, how, asked, promised, excused, sifted, passing: _ } = self.now;
        let transition =
            matches!(due(row, self.may_have, self.may_lack), Some(Action::Create | Action::Delete));
        let dead = feed.dead().contains(ordinal);
        let wrong = match how {
            _ if ended != row.seq => "the newest change is still owed",
            _ if asked != 0 || promised != 0 => "a replay is still owed",
            _ if sifted && transition && !dead && how != How::Discarded => {
                "what the filter has changed is still owed"
            }
            _ if unknown && !doubt => "doubt is forgotten",
            _ if doubt && !unknown && !excused => "doubt where there is none",
            _ if doubt != recorded => "doubt is not what is recorded",
            _ if !doubt && held != self.may_have => "what the client has is not what it is taken to have",
            How::Delivered if unknown || self.may_have == row.deleted => "delivered, and yet not there",
            // It was nothing to the client until the filter changed.
            How::NothingToSend if sifted => return Ok(()),
            How::NothingToSend if self.may_have || !row.deleted => "there was something to send",
            How::GivenUp if !feed.dead().contains(ordinal) => "a dead letter is missing",
            How::Never | How::Delivered | How::Discarded | How::Dropped | How::NothingToSend
                if feed.dead().contains(ordinal) =>
            {
                "a dead letter is left over"
            }
            _ => return Ok(()),
        };
        Err(format!("at rest: {wrong}: {row:?} {self:?} held {held} doubt {doubt}"))
    }
}

impl Watch for Ghost {
    fn starts(&mut self, rows: &[Row], beginning: bool) {
        for row in rows.iter().filter(|row| !beginning || row.deleted) {
            let doc = self.doc(row);
            (doc.now.ended, doc.saved.ended) = (row.seq, row.seq);
        }
    }

    fn meets(&mut self, row: &Row) {
        if self.excuses.meets(row) {
            self.doc(row).now.excused = true;
        }
    }

    fn begins(&mut self, row: &Row, attempt: &Attempt) -> Result<(), String> {
        self.doc(row).begins(row, attempt)
    }

    fn builds_on(&self, attempt: &Attempt, state: Seq) -> Result<(), String> {
        let doc = &self.docs[attempt.ordinal.0 as usize - 1];
        match doc.certain == Some(state) {
            true => Ok(()),
            false => Err(format!("{attempt:?} builds on {state} where the client may have another: {doc:?}")),
        }
    }

    fn ends(&mut self, attempt: &Attempt, answer: Answer) {
        self.docs[attempt.ordinal.0 as usize - 1].ends(attempt, answer);
    }

    fn passes(&mut self, row: &Row, stands: bool) -> Result<(), String> {
        if row.seq <= self.doc(row).now.ended { Ok(()) } else { self.passes_by(row, stands) }
    }

    fn passes_by(&mut self, row: &Row, stands: bool) -> Result<(), String> {
        let doc = self.doc(row);
        if stands {
            return Ok(());
        }
        let due = due(row, doc.may_have, doc.may_lack);
        // Two changes of the filter that amount to none.
        if due == Some(Action::Update) && doc.now.sifted && row.seq <= doc.now.ended {
            return Ok(());
        }
        if let Some(due) = due {
            return Err(format!("nothing is sent for {row:?} where {due:?} is due: {doc:?}"));
        }
        doc.now.excused = false;
        doc.end(row.seq, How::NothingToSend);
        Ok(())
    }

    fn leaves(&mut self, row: &Row) {
        let doc = self.doc(row);
        doc.answering = true;
        doc.end(row.seq.max(doc.now.ended), How::Discarded);
        doc.answering = false;
    }

    fn refilters(&mut self) {
        for doc in &mut self.docs {
            (doc.tried, doc.sifting) = (None, false);
            for kept in [&mut doc.now, &mut doc.taken, &mut doc.saved] {
                (kept.sifted, kept.passing) = (true, true);
            }
        }
    }

    fn owes(&self, row: &Row) -> bool {
        row.seq > self.docs[row.ordinal.0 as usize - 1].now.ended
    }

    fn sweeps(&mut self, rows: &[Row], replay: u64) {
        for row in rows {
            let doc = self.doc(row);
            doc.now.promised = replay;
            doc.answering = false;
        }
    }

    fn asks(&mut self, row: &Row, replay: u64) {
        let doc = self.doc(row);
        if replay != 0 {
            doc.now.asked = replay;
            doc.tried = None;
        }
        if doc.now.promised == replay {
            doc.now.promised = 0;
        }
    }

    fn drops(&mut self, doc: usize) {
        self.docs[doc].now.how = How::Dropped;
    }

    fn reaches_tail(&mut self, read: Seq) {
        self.excuses.reaches_tail(read);
    }

    fn takes(&mut self, issued: Seq) {
        self.excuses.takes(issued);
        for doc in &mut self.docs {
            doc.taken = doc.now;
        }
    }

    fn commits(&mut self) {
        self.excuses.commits();
        for doc in &mut self.docs {
            doc.saved = doc.taken;
            doc.taken = Kept::default();
        }
    }

    fn opens(&mut self, saved: &Saved, head: Seq, life: Life) {
        self.excuses.opens(saved, head, life);
        for (number, doc) in self.docs.iter_mut().enumerate() {
            doc.taken = Kept::default();
            doc.now = doc.saved;
            doc.now.excused &= self.excuses.has_recorded(number);
            doc.answering = false;
        }
    }

    fn reopens(&mut self, attempt: &Attempt, answered: bool) {
        let doc = &mut self.docs[attempt.ordinal.0 as usize - 1];
        doc.answering = doc.now.promised == 0;
        doc.now.excused |= answered;
    }

    fn begins_again(&mut self, rows: &[Row], head: Seq) {
        self.excuses.begins_again(head);
        for row in rows {
            self.doc(row).now = Kept::default();
        }
    }

    /// The client may have anything; whatever the log has is owed again. A document that the log has
    /// forgotten is out of anyone's hands until the origin names it again.
    fn restores(&mut self, rows: &[Row]) {
        self.excuses = Excuses::none();
        for (number, doc) in self.docs.iter_mut().enumerate() {
            let kept = Kept::default();
            (doc.now, doc.taken, doc.saved, doc.tried) = (kept, kept, kept, None);
            doc.certain = None;
            match rows.get(number) {
                Some(_) => (doc.may_have, doc.may_lack) = (true, true),
                None => (doc.may_have, doc.may_lack) = (false, true),
            }
        }
    }

    fn rests(&self, rows: &[Row], feed: &Feed, saved: &Saved) -> Result<(), String> {
        rows.iter().zip(&self.docs).try_for_each(|(row, doc)| doc.rests(row, feed, saved))
    }

    fn print(&self, print: &mut Print) {
        let Ghost { docs, excuses } = self;
        print.list(docs, |print, doc| {
            let Doc { may_have, may_lack, certain, tried, answering, sifting, now, taken, saved } = doc;
            print.list(certain, |print, seq| print.word(seq.0));
            let flags = u64::from(*may_have) | u64::from(*may_lack) << 1 | u64::from(*answering) << 2;
            print.word(flags | u64::from(*sifting) << 3);
            print.list(tried, |print, (seq, action, replay)| {
                print.words([seq.0, *action as u64, *replay]);
            });
            for Kept { ended, how, asked, promised, excused, sifted, passing } in [now, taken, saved] {
                let flags = u64::from(*excused) | u64::from(*sifted) << 1 | u64::from(*passing) << 2;
                print.words([ended.0, *how as u64, *asked, *promised, flags]);
            }
        });
        excuses.print(print);
    }
}
