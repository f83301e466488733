//! A row comes in; what the feed knows of that document goes out, for people to read. It changes nothing.

use roaring::RoaringTreemap;

use super::sweep::{MetBySweep, is_old};
use super::{Action, Feed, Interest, Note, Standing, State, SweepKind, TRANSITION, decide};
use crate::document::Row;
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

/// What a feed knows of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glimpse {
    /// The client has it, in some revision.
    pub held: bool,
    /// Whether the client has it is unknown: a create or delete was not answered with a yes, or may have been sent before
    /// a crash.
    pub doubt: bool,
    /// The feed knows so already: it has met the document since.
    pub doubted: bool,
    /// The newest change may have been sent before a crash.
    pub unheard: bool,
    /// It was given up.
    pub dead: bool,
    /// Its dead letter, once somebody has looked it up: the feed does not keep them.
    pub letter: Option<Box<Standing>>,
    /// The client lacks a change of which nothing is owed, or lacked one.
    pub noted: bool,
    /// That note says that its own expressions held the change back.
    pub untold: bool,
    /// The note, once somebody has looked it up: the feed does not keep them.
    pub note: Option<Box<Note>>,
    /// It is in flight.
    pub open: Option<Flight>,
    /// It changed while it was in flight, and is decided again next.
    pub again: bool,
    /// It waits for a retry, or a replay asks for it.
    pub waiting: Option<Standing>,
    /// The reader has not come to the newest change yet.
    pub unread: bool,
    /// There is something to tell once the reader comes to it.
    pub to_tell: bool,
    /// A sweep under way, or one that follows it, has yet to come to it.
    pub sweep: Option<SweepKind>,
    /// That sweep will take it.
    pub to_sweep: bool,
    /// The client is told every revision, of those that were replaced beyond this change.
    pub since: Option<Seq>,
    /// The life whose kept states are believed.
    pub life: u64,
    /// Everything up to here is settled.
    pub cursor: Seq,
    /// The reader is here.
    pub position: Seq,
}

/// An attempt in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The change being sent.
    pub seq: Seq,
    /// What is told.
    pub action: Action,
    /// The replay that asked for it, 0 for none.
    pub replay: u64,
}

/// What a client has of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientHas {
    /// The newest state; of a deleted document: nothing, and that is right.
    Newest,
    /// An older state.
    Older,
    /// Nothing.
    Nothing,
    /// It cannot be known: a request is open, or was not answered, or the answer does not say.
    Unknown,
}

impl Glimpse {
    /// Whether the client lacks something of the document that it is or was to have: it is owed, was given up, asked to be
    /// dropped, or is in doubt.
    pub fn lags(&self) -> bool {
        self.pends() || self.is_to_come()
    }

    /// Whether the client is going to be told something of it, if nothing changes.
    pub fn is_owed(&self) -> bool {
        self.open.is_some() || self.again || self.waiting.is_some() || self.is_to_come()
    }

    /// Whether it lags only because the reader, or a sweep, has yet to come to it.
    fn is_to_come(&self) -> bool {
        self.unread && self.to_tell || self.to_sweep
    }

    /// Whether it is among [`Feed::owed`]: it lags, whatever the reader and sweeps have yet to come to.
    pub fn pends(&self) -> bool {
        let stands = self.open.is_some() || self.again || self.waiting.is_some();
        stands || self.dead || self.doubted || self.noted && !self.untold
    }

    /// The same where it is known what the client is interested in, and when the document was accepted: what is to come
    /// will be told, or will not.
    pub fn under(self, row: &Row, updated_at: Timestamp, interest: &mut impl Interest) -> Glimpse {
        let wants = if row.deleted { Some(false) } else { interest.includes() };
        let to_tell = self.unread && self.tells(wants, interest);
        let met = |kind| MetBySweep {
            held: self.held,
            doubt: self.doubt,
            waits: self.waiting.is_some(),
            dead: self.dead,
            old: is_old(kind, updated_at),
        };
        let to_sweep = self.sweep.is_some_and(|kind| met(kind).is_wanted(kind, row, || wants));
        Glimpse { to_tell, to_sweep, ..self }
    }

    /// Whether the client is told of a revision that the reader has yet to come to, if it has been told of none of those
    /// before it that are to come as well.
    pub fn tells_of(&self, row: &Row, interest: &mut impl Interest) -> bool {
        let wants = if row.deleted { Some(false) } else { interest.includes() };
        self.tells(wants, interest)
    }

    fn tells(&self, wants: Option<bool>, interest: &mut impl Interest) -> bool {
        let action = wants.and_then(|wants| decide(wants, self.held, self.doubt));
        action.is_some_and(|action| interest.tells(action) == Some(true))
    }

    /// What the client has.
    pub fn client_has(&self, row: &Row) -> ClientHas {
        match (row.deleted, self.held) {
            _ if self.doubt => ClientHas::Unknown,
            (_, false) if self.open.is_some() => ClientHas::Unknown,
            (true, false) => ClientHas::Newest,
            (false, false) => ClientHas::Nothing,
            (_, true) => self.how_new(row),
        }
    }

    /// Of a document that the client has for sure, unless it is being told otherwise.
    fn how_new(&self, row: &Row) -> ClientHas {
        let has_the_rest = |seq: Seq, replay: u64| replay != 0 && replay != TRANSITION && seq == row.seq;
        if let Some(open) = self.open {
            return match open.action {
                Action::Update if open.seq < row.seq => ClientHas::Older,
                Action::Update if has_the_rest(open.seq, open.replay) => match self.by_note(row) {
                    ClientHas::Newest => ClientHas::Newest,
                    _ => ClientHas::Unknown,
                },
                _ => ClientHas::Unknown,
            };
        }
        if self.unheard {
            return ClientHas::Unknown;
        }
        let unheard = |standing: &Standing| standing.trouble.as_ref().is_some_and(|trouble| trouble.unheard);
        if let Some(standing) = self.waiting.as_ref().or(self.letter.as_deref()) {
            return match standing.state {
                _ if has_the_rest(standing.seq, standing.replay) => match self.by_note(row) {
                    ClientHas::Older if unheard(standing) => ClientHas::Unknown,
                    has => has,
                },
                _ if standing.seq == row.seq && unheard(standing) => ClientHas::Unknown,
                State::Passed if standing.seq == row.seq && standing.trouble.is_none() => self.by_note(row),
                // A changed filter asks for what was settled before.
                _ if standing.replay == TRANSITION && standing.seq == row.seq => self.by_note(row),
                _ => ClientHas::Older,
            };
        }
        match self.dead || self.again || self.unread {
            true => ClientHas::Older,
            false => self.by_note(row),
        }
    }

    /// Of a document whose newest change is settled.
    fn by_note(&self, row: &Row) -> ClientHas {
        match &self.note {
            _ if !self.noted && !row.deleted => ClientHas::Newest,
            Some(note) if note.seq == row.seq && note.left.stays() && !row.deleted => ClientHas::Newest,
            Some(note) if note.seq == row.seq && note.may_have_arrived() != Some(false) => ClientHas::Unknown,
            _ => ClientHas::Older,
        }
    }
}

impl Feed {
    /// What is known of the document with this newest row.
    pub fn glimpse(&self, row: &Row) -> Glimpse {
        let ordinal = row.ordinal;
        let held = self.held.contains(ordinal.0);
        let doubt = self.judgement(row);
        let ahead = self.few.extras.contains(&row.seq) || self.was_ahead(row.seq);
        let unread = row.seq > self.read && !ahead;
        // Who has nothing of what is deleted lacks nothing; the note goes when the reader comes to it.
        let lacks = held || doubt || !row.deleted;
        let next = self.filtering.as_ref().is_some_and(|filtering| filtering.swept < self.changes);
        let under_way =
            self.few.sweep.as_deref().filter(|sweep| row.seq > sweep.position && row.seq <= sweep.end);
        Glimpse {
            held,
            doubt,
            doubted: self.few.doubt.contains(ordinal.0),
            unheard: (unread || self.few.waiting.contains_key(&ordinal)) && self.may_have_been_sent(row),
            dead: self.few.dead.contains(ordinal.0),
            letter: None,
            noted: lacks && self.few.noted.contains(ordinal.0),
            untold: lacks && self.few.untold.contains(ordinal.0),
            note: None,
            open: self.delta.open.get(&ordinal).map(|open| Flight {
                seq: open.seq,
                action: open.action,
                replay: open.replay,
            }),
            again: self.few.again.contains_key(&ordinal),
            waiting: self.few.waiting.get(&ordinal).cloned(),
            unread,
            to_tell: unread && decide(!row.deleted, held, doubt).is_some(),
            sweep: under_way
                .map(|sweep| sweep.kind)
                .or(next.then_some(SweepKind::Filter))
                .filter(|_| !unread),
            to_sweep: false,
            since: self.since(),
            life: self.life,
            cursor: self.cursor(),
            position: self.read,
        }
    }

    /// The documents that are owed, doubted, given up or lacked, of all that the reader and sweeps have met.
    pub fn owed(&self) -> RoaringTreemap {
        let mut owed = &self.few.dead | &self.few.doubt;
        owed |= &self.few.noted - &self.few.untold;
        owed |= self.pending();
        owed
    }

    /// Those of them that are going to be told something.
    pub fn pending(&self) -> RoaringTreemap {
        let pending = self.few.waiting.keys().chain(self.delta.open.keys()).chain(self.few.again.keys());
        pending.map(|ordinal| ordinal.0).collect()
    }

    /// How many these are.
    pub fn pending_count(&self) -> u64 {
        let waits = |ordinal: &&Ordinal| self.few.waiting.contains_key(ordinal);
        let open = self.delta.open.keys().filter(|ordinal| !waits(ordinal)).count();
        let again =
            self.few.again.keys().filter(|ordinal| !waits(ordinal) && !self.delta.open.contains_key(ordinal));
        (self.few.waiting.len() + open + again.count()) as u64
    }

    /// Whether some of what lies beyond the reader is settled already.
    pub fn is_ahead(&self) -> bool {
        !self.few.extras.is_empty()
            || self.few.judge.as_ref().is_some_and(|judge| judge.ahead.horizon > self.read)
    }

    /// From where on there is something that the reader, or a sweep, has yet to come to.
    pub fn to_come_from(&self) -> Seq {
        let next = self.filtering.as_ref().is_some_and(|filtering| filtering.swept < self.changes);
        let swept = self.few.sweep.as_ref().map_or(self.read, |sweep| sweep.position);
        if next { Seq(0) } else { swept.min(self.read) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{Everything, Left, Met, Saved, Sweep, Trouble, Verdict};

    fn row(seq: u64, born: u64, deleted: bool) -> Row {
        Row { ordinal: Ordinal(0), seq: Seq(seq), born: Seq(born), before: Seq(0), deleted }
    }

    fn feed() -> Feed {
        let mut feed = Feed::open(Saved::default(), Seq(0));
        feed.want_issue(Seq(100));
        let taken = feed.take_record().expect("a mark is asked for");
        feed.recorded(taken.receipt);
        feed
    }

    fn trouble() -> Box<Trouble> {
        let at = Timestamp::from_millis(0);
        Box::new(Trouble {
            attempts: 1,
            first_attempt_at: at,
            last_attempt_at: at,
            action: Action::Create,
            status: Some(500),
            error: None,
            response: None,
            unheard: false,
            has: None,
            lent: None,
        })
    }

    /// What a filter says.
    struct Says(Option<bool>);

    impl Interest for Says {
        fn includes(&mut self) -> Option<bool> {
            self.0
        }

        fn tells(&mut self, _: Action) -> Option<bool> {
            Some(true)
        }
    }

    #[test]
    fn what_the_client_has_follows_the_life_of_a_document() {
        let mut feed = feed();
        let created = row(1, 1, false);
        let seen = feed.glimpse(&created);
        assert!(seen.unread && seen.lags());
        assert_eq!(seen.client_has(&created), ClientHas::Nothing);

        assert!(matches!(feed.read(&created, &mut Everything), Met::Send(_)));
        let seen = feed.glimpse(&created);
        assert_eq!(seen.open.map(|open| open.action), Some(Action::Create));
        assert!(!seen.unread && seen.lags());

        let due = Timestamp::from_millis(5);
        feed.settle(Ordinal(0), Verdict::Retry { due, doubtful: true, trouble: trouble() });
        let seen = feed.glimpse(&created);
        assert_eq!(seen.client_has(&created), ClientHas::Unknown, "the create may have arrived");
        assert_eq!(seen.waiting.as_ref().and_then(|s| s.trouble.as_ref()).map(|t| t.attempts), Some(1));
        assert_eq!(feed.owed().iter().collect::<Vec<_>>(), [0]);

        assert!(feed.retry(&created, &mut Everything).is_some());
        feed.settle(Ordinal(0), Verdict::Delivered);
        let seen = feed.glimpse(&created);
        assert!(!seen.lags());
        assert_eq!(seen.client_has(&created), ClientHas::Newest);

        let updated = row(2, 1, false);
        assert_eq!(feed.glimpse(&updated).client_has(&updated), ClientHas::Older);
        assert!(matches!(feed.read(&updated, &mut Everything), Met::Send(_)));
        feed.settle(Ordinal(0), Verdict::GiveUp { doubtful: true, trouble: trouble() });
        let seen = feed.glimpse(&updated);
        assert!(seen.dead && seen.lags());
        assert_eq!(seen.client_has(&updated), ClientHas::Older, "an update leaves no doubt");

        let deleted = row(3, 1, true);
        assert_eq!(feed.glimpse(&deleted).client_has(&deleted), ClientHas::Older);
        assert!(matches!(feed.read(&deleted, &mut Everything), Met::Send(_)));
        feed.settle(Ordinal(0), Verdict::Delivered);
        let seen = feed.glimpse(&deleted);
        assert_eq!((seen.client_has(&deleted), seen.lags()), (ClientHas::Newest, false));
        assert!(feed.owed().is_empty());
    }

    #[test]
    fn whoever_has_nothing_of_what_was_deleted_lacks_nothing_whatever_it_dropped_before() {
        let mut feed = feed();
        let created = row(1, 1, false);
        assert!(matches!(feed.read(&created, &mut Everything), Met::Send(_)));
        feed.settle(Ordinal(0), Verdict::Discarded { doubtful: false, story: Some(trouble()) });
        assert!(feed.glimpse(&created).lags());
        let deleted = row(2, 1, true);
        let seen = feed.glimpse(&deleted);
        assert!(seen.unread && !seen.lags() && !seen.is_owed());
        assert_eq!(seen.client_has(&deleted), ClientHas::Newest);
    }

    #[test]
    fn what_a_changed_filter_takes_away_the_client_has_until_it_takes_the_delete() {
        for discarded in [true, false] {
            let mut feed = feed();
            let created = row(1, 1, false);
            assert!(matches!(feed.read(&created, &mut Everything), Met::Send(_)));
            feed.settle(Ordinal(0), Verdict::Delivered);
            assert!(feed.start_sweep(SweepKind::Filter, TRANSITION));
            let now = Timestamp::from_millis(0);
            assert_eq!(feed.sweep(&created, now, now, &mut Says(Some(false))), crate::feed::Filled::Taken);
            let taken = feed.take_record().expect("something changed");
            feed.recorded(taken.receipt);
            assert!(feed.retry(&created, &mut Says(Some(false))).is_some());
            let refused = Box::new(Trouble { status: None, action: Action::Delete, ..*trouble() });
            let verdict = match discarded {
                true => Verdict::Discarded { doubtful: false, story: Some(refused) },
                false => Verdict::GiveUp { doubtful: false, trouble: refused },
            };
            feed.settle(Ordinal(0), verdict);
            if !discarded {
                assert!(feed.glimpse(&created).dead);
                assert!(feed.drop_dead(Ordinal(0), Seq(1), None));
            }
            let taken = feed.take_record().expect("something changed");
            let mut seen = feed.glimpse(&created);
            seen.note = taken.record.notes.first().cloned().map(Box::new);
            let left = if discarded { Left::LeaveDiscarded } else { Left::LeaveDropped };
            assert_eq!(seen.note.as_ref().map(|note| note.left), Some(left));
            assert_eq!((seen.client_has(&created), seen.lags()), (ClientHas::Newest, true));
        }
    }

    #[test]
    fn a_tombstone_that_the_client_never_had_is_not_owed() {
        let seen = feed().glimpse(&row(4, 4, true));
        assert!(seen.unread && !seen.lags());
    }

    #[test]
    fn what_the_filter_leaves_out_is_owed_only_to_a_client_that_has_it() {
        let mut feed = feed();
        let (created, updated) = (row(1, 1, false), row(2, 1, false));
        let lags = |feed: &Feed, row: &Row, included| {
            feed.glimpse(row).under(row, Timestamp::from_millis(0), &mut Says(included)).lags()
        };
        assert!(lags(&feed, &created, Some(true)));
        assert!(!lags(&feed, &created, Some(false)) && !lags(&feed, &created, None));
        feed.read(&created, &mut Everything);
        feed.settle(Ordinal(0), Verdict::Delivered);
        assert!(lags(&feed, &updated, Some(false)), "a delete is due");
        assert!(!lags(&feed, &updated, None));
        let deleted = row(3, 1, true);
        assert!(lags(&feed, &deleted, None), "a tombstone is not asked about");
    }

    #[test]
    fn a_replay_of_what_it_has_is_owed_and_it_has_it_all_the_same() {
        let mut feed = feed();
        let created = row(1, 1, false);
        feed.read(&created, &mut Everything);
        feed.settle(Ordinal(0), Verdict::Delivered);
        assert!(feed.request(&created, 7, Timestamp::from_millis(0)));
        let seen = feed.glimpse(&created);
        assert_eq!((seen.client_has(&created), seen.lags()), (ClientHas::Newest, true));
    }

    /// Sends a row and settles it.
    fn sent(feed: &mut Feed, row: &Row, verdict: Verdict) {
        assert!(matches!(feed.read(row, &mut Everything), Met::Send(_)));
        feed.settle(row.ordinal, verdict);
    }

    fn discarded() -> Verdict {
        Verdict::Discarded { doubtful: false, story: Some(trouble()) }
    }

    #[test]
    fn a_discarded_revision_is_noted_until_a_newer_one_is_taken() {
        let mut feed = feed();
        let (created, updated, again) = (row(1, 1, false), row(2, 1, false), row(3, 1, false));
        sent(&mut feed, &created, Verdict::Delivered);
        sent(&mut feed, &updated, discarded());
        let seen = feed.glimpse(&updated);
        assert_eq!((seen.client_has(&updated), seen.lags(), seen.is_owed()), (ClientHas::Older, true, false));
        assert_eq!(feed.owed().iter().collect::<Vec<_>>(), [0]);
        let record = feed.take_record().expect("it was settled");
        assert_eq!((record.record.notes.len(), record.record.notes[0].left), (1, Left::Discarded));
        feed.recorded(record.receipt);
        let saved =
            Saved { noted: [0].into_iter().collect(), held: [0].into_iter().collect(), ..Saved::default() };
        let saved = Saved { cursor: Seq(2), ..saved };
        let next = Feed::open(saved, Seq(2));
        assert_eq!(next.glimpse(&updated).client_has(&updated), ClientHas::Older, "after a restart too");
        sent(&mut feed, &again, Verdict::Delivered);
        let seen = feed.glimpse(&again);
        assert_eq!((seen.client_has(&again), seen.lags()), (ClientHas::Newest, false));
        let record = feed.take_record().expect("it was settled").record;
        assert_eq!((record.notes.len(), record.unnoted), (0, vec![Ordinal(0)]));
    }

    #[test]
    fn a_discarded_delete_leaves_the_client_with_it_and_needs_its_tombstone() {
        let mut feed = feed();
        sent(&mut feed, &row(1, 1, false), Verdict::Delivered);
        let deleted = row(2, 1, true);
        sent(&mut feed, &deleted, discarded());
        assert_eq!(feed.glimpse(&deleted).client_has(&deleted), ClientHas::Older);
        assert!(feed.needed().contains(0));
    }

    #[test]
    fn a_note_of_a_create_goes_with_its_document_and_keeps_no_tombstone() {
        let mut feed = feed();
        sent(&mut feed, &row(1, 1, false), discarded());
        assert_eq!(feed.glimpse(&row(1, 1, false)).client_has(&row(1, 1, false)), ClientHas::Nothing);
        let deleted = row(2, 1, true);
        assert_eq!(feed.read(&deleted, &mut Everything), Met::Settled);
        assert!(feed.owed().is_empty());
        assert!(feed.needed().contains(0), "the ledger says something of it until the next record");
        let taken = feed.take_record().expect("it was settled");
        feed.recorded(taken.receipt);
        assert!(!feed.needed().contains(0));
    }

    #[test]
    fn a_dropped_dead_letter_of_an_update_leaves_the_client_with_an_older_state() {
        let mut feed = feed();
        sent(&mut feed, &row(1, 1, false), Verdict::Delivered);
        let updated = row(2, 1, false);
        let lost = Box::new(Trouble { unheard: true, status: None, ..*trouble() });
        sent(&mut feed, &updated, Verdict::GiveUp { doubtful: true, trouble: lost.clone() });
        assert!(feed.drop_dead(Ordinal(0), Seq(2), None));
        let mut seen = feed.glimpse(&updated);
        assert_eq!((seen.client_has(&updated), seen.lags()), (ClientHas::Older, true));
        let note = feed.take_record().and_then(|mut taken| taken.record.notes.pop()).expect("a note");
        assert_eq!((note.left, note.seq, &note.story), (Left::Dropped, Seq(2), &Some(lost)));
        seen.note = Some(Box::new(note));
        assert_eq!(seen.client_has(&updated), ClientHas::Unknown, "it was not answered: it may have arrived");
    }

    #[test]
    fn an_update_that_was_not_answered_may_have_arrived() {
        let mut feed = feed();
        sent(&mut feed, &row(1, 1, false), Verdict::Delivered);
        let updated = row(2, 1, false);
        assert!(matches!(feed.read(&updated, &mut Everything), Met::Send(_)));
        assert_eq!(feed.glimpse(&updated).client_has(&updated), ClientHas::Unknown, "it is on its way");
        let due = Timestamp::from_millis(5);
        let lost = Box::new(Trouble { unheard: true, status: None, ..*trouble() });
        feed.settle(Ordinal(0), Verdict::Retry { due, doubtful: true, trouble: lost });
        assert_eq!(feed.glimpse(&updated).client_has(&updated), ClientHas::Unknown);
        let again = feed.retry(&updated, &mut Everything).expect("it is owed");
        assert!(again.unheard, "the next attempt remembers it");
        let newer = row(3, 1, false);
        assert_eq!(feed.glimpse(&newer).client_has(&newer), ClientHas::Older, "that one was never sent");
    }

    #[test]
    fn what_may_have_been_sent_before_a_crash_is_unknown() {
        let saved =
            Saved { cursor: Seq(1), issued: Seq(5), held: [0].into_iter().collect(), ..Saved::default() };
        let mut feed = Feed::open(saved, Seq(2));
        let updated = row(2, 1, false);
        assert_eq!(feed.glimpse(&updated).client_has(&updated), ClientHas::Unknown);
        let Met::Send(attempt) = feed.read(&updated, &mut Everything) else { panic!("it is owed") };
        assert!(attempt.unheard);
        let other = Row { ordinal: Ordinal(7), ..row(3, 3, false) };
        assert_eq!(feed.glimpse(&other).client_has(&other), ClientHas::Nothing, "it came after the crash");
    }

    #[test]
    fn what_the_beginning_has_yet_to_come_to_is_owed() {
        let sweep = Sweep { replay: 0, kind: SweepKind::Beginning, position: Seq(0), end: Seq(1), met: 0 };
        let feed = Feed::open(Saved { cursor: Seq(1), sweep: Some(sweep), ..Saved::default() }, Seq(1));
        let old = row(1, 1, false);
        let seen = feed.glimpse(&old).under(&old, Timestamp::from_millis(0), &mut Everything);
        assert!(seen.is_owed() && seen.lags() && !seen.pends());
        assert_eq!(feed.to_come_from(), Seq(0));
        let left_out = feed.glimpse(&old).under(&old, Timestamp::from_millis(0), &mut Says(Some(false)));
        assert!(!left_out.is_owed());
    }

    #[test]
    fn each_document_that_is_pending_counts_once() {
        let mut feed = feed();
        for ordinal in 0..3 {
            let row = Row { ordinal: Ordinal(ordinal), ..row(ordinal + 1, ordinal + 1, false) };
            assert!(matches!(feed.read(&row, &mut Everything), Met::Send(_)));
        }
        let due = Timestamp::from_millis(5);
        feed.settle(Ordinal(0), Verdict::Retry { due, doubtful: true, trouble: trouble() });
        assert_eq!((feed.pending_count(), feed.pending().len()), (3, 3));
        feed.displace(1, due);
        assert_eq!((feed.pending_count(), feed.pending().len()), (3, 3), "set aside, and still in flight");
    }
}
