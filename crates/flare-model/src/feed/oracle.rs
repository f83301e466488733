//! The rules against a naive oracle: one row per document with every request that was ever made and what became
//! of it, and a client that is really there. More documents, events and crashes than an exhaustive check can
//! reach, along random ways.
//!
//! The client keeps its documents with the highest sequence it has seen of each, and ignores lower ones. A lost
//! request reaches it at once, later, long after a crash, or never.

mod shards;
mod ways;

use super::check::excuses::Excuses;
use super::check::print::Print;
use super::check::step::Answer;
use super::check::watch::{Life, Watch};
use super::{Action, Attempt, Feed, Saved};
use crate::document::Row;
use crate::ids::Seq;

/// A request that was made.
#[derive(Clone, Copy, Debug)]
struct Request {
    doc: usize,
    seq: Seq,
    action: Action,
    replay: u64,
    /// How often the filter had changed.
    filter: u64,
    /// What is known of it, once it has ended.
    end: Option<Answer>,
}

/// What Flare would keep if it kept everything.
#[derive(Clone, Debug, Default)]
struct Oracle {
    requests: Vec<Request>,
    rows: Vec<Pair>,
    /// The rows as they were when a record was taken, and when one became durable.
    taken: Vec<Pair>,
    saved: Vec<Pair>,
    excuses: Excuses,
    client: Client,
    /// How often the filter has changed.
    filter: u64,
}

/// One client and one document.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// Nothing is owed up to here.
    ended: Seq,
    /// The client is to get it, or to be left with what it has: what the last end meant.
    given: Given,
    /// A replay that was asked for, 0 for none.
    asked: u64,
    /// How many requests there were when it was asked for.
    since: usize,
    /// A crash allows doubt.
    excused: bool,
    /// The filter has changed since it was last decided, and how many requests there were then.
    sifted: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Given {
    #[default]
    Newest,
    /// It was discarded or given up.
    Less,
}

#[derive(Clone, Debug, Default)]
struct Client {
    /// By document: the highest sequence with the filter it was decided under, and whether it has it. What was
    /// lost under an earlier filter has the same sequence, and nothing tells a real client which of them is right:
    /// such a straggler is beyond anyone's promise, and ignored here.
    has: Vec<((Seq, u64), bool)>,
    late: Vec<Request>,
}

impl Client {
    fn gets(&mut self, request: Request) -> Result<(), String> {
        let (seen, has) = &mut self.has[request.doc];
        if (request.seq, request.filter) < *seen {
            return Ok(());
        }
        if request.action == Action::Update && !*has {
            return Err(format!("{request:?} reaches a client that does not have the document"));
        }
        (*seen, *has) = ((request.seq, request.filter), request.action != Action::Delete);
        Ok(())
    }
}

impl Oracle {
    fn new(docs: usize) -> Oracle {
        Oracle {
            rows: vec![Pair::default(); docs],
            saved: vec![Pair::default(); docs],
            excuses: Excuses::none(),
            client: Client { has: vec![((Seq(0), 0), false); docs], late: Vec::new() },
            ..Oracle::default()
        }
    }

    /// Whether the client may have the document, and whether it may lack it: what the last success told, and
    /// what every request since then told that may have reached it.
    fn knows(&self, doc: usize) -> (bool, bool) {
        let own = || self.requests.iter().filter(move |request| request.doc == doc);
        let (mut may_have, mut may_lack) = (false, true);
        for request in own() {
            let deletes = request.action == Action::Delete;
            match request.end {
                Some(Answer::Success) => (may_have, may_lack) = (!deletes, deletes),
                Some(Answer::Lost | Answer::LostAtLast) => {
                    may_have |= !deletes;
                    may_lack |= deletes;
                }
                Some(Answer::Discard | Answer::Refused | Answer::RefusedAtLast) | None => {}
            }
        }
        (may_have, may_lack)
    }

    /// What must be sent for a row, and what may be sent instead.
    fn due(&self, row: &Row) -> (Option<Action>, Option<Action>) {
        let doc = number(row);
        let (may_have, may_lack) = self.knows(doc);
        let must = match row.deleted {
            true => may_have.then_some(Action::Delete),
            false if may_lack => Some(Action::Create),
            false => Some(Action::Update),
        };
        let doubting = if row.deleted { Action::Delete } else { Action::Create };
        (must, self.rows[doc].excused.then_some(doubting))
    }

    /// Nothing is owed of a document, but the client has not what it is to have, or that is in doubt: a sweep for a
    /// changed filter that comes by later does not know that nobody wanted it, and tells it once more.
    fn may_be_told_again(&mut self, doc: usize) {
        if self.filter > 0 {
            self.rows[doc].sifted.get_or_insert(self.requests.len());
        }
    }

    /// The client gets what arrived late.
    fn arrives(&mut self, pick: usize) -> Result<(), String> {
        if self.client.late.is_empty() {
            return Ok(());
        }
        let request = self.client.late.swap_remove(pick % self.client.late.len());
        self.client.gets(request)
    }
}

fn number(row: &Row) -> usize {
    row.ordinal.0 as usize - 1
}

impl Watch for Oracle {
    fn starts(&mut self, _: &[Row], _: bool) {}

    fn meets(&mut self, row: &Row) {
        self.rows[number(row)].excused |= self.excuses.meets(row);
    }

    fn begins(&mut self, row: &Row, attempt: &Attempt) -> Result<(), String> {
        let doc = number(row);
        let Attempt { seq, action, replay, .. } = *attempt;
        let request = Request { doc, seq, action, replay, filter: self.filter, end: None };
        let (must, may) = self.due(row);
        if must != Some(action) && may != Some(action) {
            return Err(format!("{request:?} where {must:?} must be sent, or may {may:?}"));
        }
        let Pair { ended, asked, sifted, .. } = self.rows[doc];
        let transition = sifted.is_some() && action != Action::Update;
        if replay == 0 && seq <= ended && !transition || replay != 0 && replay != asked {
            return Err(format!("{request:?} is sent though nothing is owed"));
        }
        for before in self.requests.iter().filter(|before| before.doc == doc) {
            if before.seq > seq {
                return Err(format!("{request:?} begins after {before:?}"));
            }
            let same = before.action == action || may == Some(action);
            let again = before.replay == replay && before.filter == self.filter;
            if before.seq == seq && again && !same {
                return Err(format!("{request:?} has another identity than {before:?}"));
            }
        }
        let deletes = |late: &Request| late.doc == doc && late.action == Action::Delete;
        let (seen, has) = self.client.has[doc];
        let loses = self.client.late.iter().any(|late| deletes(late) && (late.seq, late.filter) >= seen);
        if action == Action::Update && (!has || loses) {
            return Err(format!("{request:?} to a client that may not have the document"));
        }
        self.requests.push(request);
        Ok(())
    }

    fn builds_on(&self, attempt: &Attempt, state: Seq) -> Result<(), String> {
        let doc = attempt.ordinal.0 as usize - 1;
        let newer = self.client.late.iter().any(|late| late.doc == doc && late.seq > state);
        match self.client.has[doc] {
            ((seen, _), true) if seen == state && !newer => Ok(()),
            has => {
                Err(format!("{attempt:?} builds on {state} where the client has {has:?}, or may have more"))
            }
        }
    }

    fn ends(&mut self, attempt: &Attempt, answer: Answer) {
        let doc = attempt.ordinal.0 as usize - 1;
        let last = self.requests.iter().rposition(|request| request.doc == doc).expect("it began");
        self.requests[last].end = Some(answer);
        let request = self.requests[last];
        let pair = &mut self.rows[doc];
        let given = match answer {
            Answer::Lost | Answer::LostAtLast => {
                self.client.late.push(request);
                Given::Less
            }
            Answer::Success => {
                self.client.gets(request).expect("begun only if it has the document");
                pair.excused = false;
                Given::Newest
            }
            Answer::Discard | Answer::Refused | Answer::RefusedAtLast => Given::Less,
        };
        if !matches!(answer, Answer::Lost | Answer::Refused) {
            (pair.ended, pair.given) = (attempt.seq, given);
            if last >= pair.since {
                pair.asked = 0;
            }
            // What was discarded may be told once more when the sweep comes by.
            pair.sifted.take_if(|since| last >= *since && given == Given::Newest);
        }
        // One that failed is owed, or given up: neither is the sweep's.
        if answer == Answer::Discard {
            self.may_be_told_again(doc);
        }
    }

    fn passes(&mut self, row: &Row, stands: bool) -> Result<(), String> {
        if row.seq <= self.rows[number(row)].ended { Ok(()) } else { self.passes_by(row, stands) }
    }

    fn passes_by(&mut self, row: &Row, stands: bool) -> Result<(), String> {
        if stands {
            return Ok(());
        }
        let (must, _) = self.due(row);
        let pair = &self.rows[number(row)];
        // Two changes of the filter that amount to none.
        if must == Some(Action::Update) && pair.sifted.is_some() && row.seq <= pair.ended {
            return Ok(());
        }
        if let Some(must) = must {
            return Err(format!("nothing is sent for {row:?} where {must:?} must be"));
        }
        let pair = &mut self.rows[number(row)];
        *pair = Pair { ended: row.seq, sifted: pair.sifted, ..Pair::default() };
        Ok(())
    }

    fn leaves(&mut self, row: &Row) {
        let pair = &mut self.rows[number(row)];
        let (ended, excused) = (row.seq.max(pair.ended), pair.excused);
        *pair = Pair { ended, excused, given: Given::Less, sifted: pair.sifted, ..Pair::default() };
        // What nobody tells now, nobody tells then; but what is in doubt is taken as lacking, or as there.
        let (may_have, may_lack) = self.knows(number(row));
        if may_have && may_lack || excused {
            self.may_be_told_again(number(row));
        }
    }

    fn refilters(&mut self) {
        self.filter += 1;
        let since = self.requests.len();
        for pair in self.rows.iter_mut().chain(&mut self.taken).chain(&mut self.saved) {
            pair.sifted = Some(since);
        }
    }

    fn owes(&self, row: &Row) -> bool {
        row.seq > self.rows[number(row)].ended
    }

    fn sweeps(&mut self, _: &[Row], _: u64) {}

    fn asks(&mut self, row: &Row, replay: u64) {
        let since = self.requests.len();
        let pair = &mut self.rows[number(row)];
        (pair.asked, pair.since) = (replay, since);
    }

    fn drops(&mut self, doc: usize) {
        self.may_be_told_again(doc);
    }

    fn reaches_tail(&mut self, read: Seq) {
        self.excuses.reaches_tail(read);
    }

    fn takes(&mut self, issued: Seq) {
        self.excuses.takes(issued);
        self.taken = self.rows.clone();
    }

    fn commits(&mut self) {
        self.excuses.commits();
        self.saved = self.taken.clone();
    }

    fn opens(&mut self, saved: &Saved, head: Seq, life: Life) {
        self.excuses.opens(saved, head, life);
        self.rows = self.saved.clone();
        for (doc, pair) in self.rows.iter_mut().enumerate() {
            pair.excused &= self.excuses.has_recorded(doc);
        }
    }

    fn reopens(&mut self, attempt: &Attempt, answered: bool) {
        self.rows[attempt.ordinal.0 as usize - 1].excused |= answered;
    }

    fn begins_again(&mut self, rows: &[Row], head: Seq) {
        self.excuses.begins_again(head);
        for row in rows {
            self.rows[number(row)] = Pair::default();
        }
    }

    fn restores(&mut self, _: &[Row]) {
        unreachable!("no restores here");
    }

    fn rests(&self, rows: &[Row], feed: &Feed, _: &Saved) -> Result<(), String> {
        for row in rows {
            let (doc, pair) = (number(row), &self.rows[number(row)]);
            let ((seen, _), has) = self.client.has[doc];
            if pair.ended != row.seq || pair.asked != 0 {
                return Err(format!("{row:?} is still owed: {pair:?}"));
            }
            if pair.given == Given::Less || feed.dead().contains(row.ordinal.0) {
                continue;
            }
            if has == row.deleted || has && seen != row.seq {
                return Err(format!("the client has {has} at {seen} where {row:?} is the newest"));
            }
            if feed.held().contains(row.ordinal.0) != has {
                return Err(format!("the client has {has} of {row:?}, and is not taken to"));
            }
        }
        Ok(())
    }

    fn print(&self, print: &mut Print) {
        print.word(self.requests.len() as u64);
    }
}
