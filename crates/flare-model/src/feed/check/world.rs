//! The world of the checks: an origin and its log, one feed with its ledger, and requests under way. A step
//! goes in; the world after it, or the promise it broke, comes out.
//!
//! It does what an engine and the journey do around a feed, and nothing more: it hands rows over in order,
//! asks for the mark, makes records durable, and forgets everything but the ledger in a crash. What became of
//! a request is chosen by whoever explores. A request that was lost may be processed by the client at any
//! later time; so this world has no step for it: the [`Watch`] counts with it from then on.

use std::rc::Rc;

use super::super::{Action, Attempt, Feed, Interest, Saved, State, Sweep, SweepKind, Taken};
use super::print::Print;
use super::states::States;
use super::step::{Answer, Left, Look, Scope, Step};
use super::watch::Watch;
use crate::document::Row;
use crate::feed::rule::{Rule, Rules};
use crate::ids::Seq;
use crate::time::Timestamp;

/// No rule of a feed looks at the time, so it stands still.
pub const NOW: Timestamp = Timestamp::from_millis(0);

/// Log and ledger as they were once.
pub struct Backup {
    pub rows: Vec<Row>,
    pub history: Vec<(Row, Seq)>,
    pub head: Seq,
    pub saved: Rc<Saved>,
}

/// Whether an open attempt is on a lease, and what the client may say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    No,
    /// It was handed out.
    Out,
    /// It was handed out by a life before this one.
    Reopened,
    /// The same, and the client has settled it already, which was lost: it does not say otherwise now.
    Answered,
}

/// Whether the feed's owner sends nothing, and how much of that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    No,
    /// Nothing is sent since a moment that no record has.
    Begun,
    /// The record under way has it.
    Taken,
    /// A life after this one knows that nothing was under way.
    Durable,
}

/// What a feed is told when it asks about a row.
pub(super) struct Asked {
    pub look: Look,
    /// The client is left as it is.
    pub left: bool,
}

impl Interest for Asked {
    fn includes(&mut self) -> Option<bool> {
        self.left = self.look == Look::Error;
        (!self.left).then_some(self.look != Look::Out)
    }

    fn tells(&mut self, _: Action) -> Option<bool> {
        self.left |= self.look == Look::Untold;
        Some(!self.left)
    }
}

#[derive(Clone)]
pub struct World<W> {
    /// The log: the newest row of each document.
    pub rows: Vec<Row>,
    /// What the rows were before, and which change replaced them, in order; where a scope needs it.
    pub history: Vec<(Row, Seq)>,
    pub(super) keeps_history: bool,
    /// What the catalog says: the client wants every revision.
    pub(super) all: bool,
    /// The newest change when the feed was created.
    pub(super) created: Seq,
    /// The row before the newest, where a scope wants rows to be outdated when they reach the feed.
    pub(super) stale: Vec<Option<Row>>,
    /// How the client sees each change, by its number.
    pub(super) looks: Vec<Look>,
    /// How often the filter was changed, and how much of that the feed has heard.
    pub(super) changes: u64,
    pub(super) heard: u64,
    filtered: bool,
    pub head: Seq,
    pub feed: Feed,
    pub saved: Rc<Saved>,
    /// A record that was taken and is not durable.
    pub(super) hand: Option<Taken>,
    pub(super) paused: Pause,
    pub open: Vec<Option<Attempt>>,
    /// Of the open ones, those that a client has on a lease.
    pub(super) out: Vec<Lease>,
    pub left: Left,
    pub(super) backup: Option<Rc<Backup>>,
    pub watch: W,
    /// Where states are kept; that makes many more worlds.
    pub states: Option<States>,
    /// How many requests were begun. Not part of the state.
    pub begun: usize,
}

impl Lease {
    /// A lease that is handed over cannot be taken back as never sent.
    pub(super) fn allows(self, answer: Answer) -> bool {
        match answer {
            Answer::Success | Answer::Lost | Answer::LostAtLast => true,
            Answer::Discard => self != Lease::Answered,
            Answer::Refused | Answer::RefusedAtLast => matches!(self, Lease::No | Lease::Out),
        }
    }
}

impl<W: Watch> World<W> {
    /// A feed that was just created on a log that has `scope.before` already.
    pub fn new(scope: &Scope, watch: W, removed: Option<Rule>) -> World<W> {
        let mut world = World {
            rows: Vec::new(),
            history: Vec::new(),
            keeps_history: scope.all || scope.left.changes > 0,
            all: scope.all,
            created: Seq(0),
            stale: vec![None; scope.docs],
            looks: vec![Look::In],
            changes: 0,
            heard: 0,
            filtered: !scope.looks.is_empty(),
            head: Seq(0),
            feed: Feed::open(Saved::default(), Seq(0)),
            saved: Rc::default(),
            hand: None,
            paused: Pause::No,
            open: vec![None; scope.docs],
            out: vec![Lease::No; scope.docs],
            left: scope.left,
            backup: None,
            watch,
            states: scope.states.then(States::new),
            begun: 0,
        };
        for step in scope.before {
            match *step {
                Step::Put(doc) => world.originates(doc, false, Look::In),
                Step::PutAs(doc, look) => world.originates(doc, false, look),
                Step::Delete(doc) => world.originates(doc, true, Look::In),
                other => unreachable!("{other:?} is not the origin's"),
            }
        }
        let kind = SweepKind::Beginning;
        let sweep = Sweep { replay: 0, kind, position: Seq(0), end: world.head, met: 0 };
        world.created = world.head;
        world.saved = Rc::new(Saved {
            cursor: world.head,
            since: scope.all.then_some(world.head),
            sweep: scope.beginning.then_some(sweep),
            ..Saved::default()
        });
        let seen = world.seen_rows();
        world.watch.starts(&seen, scope.beginning);
        world.reopen(Rules::without(removed));
        world
    }

    pub(super) fn reopen(&mut self, rules: Rules) {
        // A new life fetches its rows anew.
        self.stale.fill(None);
        self.paused = Pause::No;
        self.feed = Feed::open_under(rules, Saved::clone(&self.saved), self.head);
        self.feed.keep_states(self.states.is_some());
        self.follow_the_catalog();
        self.hear();
    }

    /// The feed sends what the client wants; that was changed in the catalog before the ledger knows it.
    pub(super) fn follow_the_catalog(&mut self) {
        match self.all {
            true => drop(self.feed.every_revision(self.head)),
            false => self.feed.newest_only(),
        }
    }

    /// What the feed can see of the log, in no order.
    pub(super) fn visible(&self) -> impl Iterator<Item = &Row> {
        let since = self.feed.since();
        let older = self.history.iter().filter(move |(_, until)| since.is_some_and(|since| *until > since));
        self.rows.iter().chain(older.map(|(row, _)| row))
    }

    /// The feed is told what the catalog says of its filter.
    pub(super) fn hear(&mut self) {
        let news = self.heard < self.changes;
        self.heard = self.changes;
        self.feed.select(self.filtered, self.changes);
        if news {
            self.watch.refilters();
        }
    }

    /// How the feed sees a row.
    pub(super) fn look(&self, row: &Row) -> Look {
        match self.looks[row.seq.0 as usize] {
            Look::In if self.heard % 2 == 1 => Look::Out,
            Look::Out if self.heard % 2 == 1 => Look::In,
            other => other,
        }
    }

    pub(super) fn asked(&self, row: &Row) -> Asked {
        Asked { look: self.look(row), left: false }
    }

    /// A row as it is to the client.
    pub(super) fn seen(&self, row: &Row) -> Row {
        Row { deleted: row.deleted || self.look(row) == Look::Out, ..*row }
    }

    pub(super) fn seen_rows(&self) -> Vec<Row> {
        self.rows.iter().map(|row| self.seen(row)).collect()
    }

    pub(super) fn next(&self) -> Option<Row> {
        let beyond = self.visible().filter(|row| row.seq > self.feed.position());
        beyond.min_by_key(|row| row.seq).copied()
    }

    /// Whether the feed knows already that there is nothing beyond the reader.
    pub(super) fn at_tail(&self) -> bool {
        let told = self.feed.few.judge.as_ref().is_none_or(|judge| judge.until.is_some());
        told && self.feed.position() == self.head
    }

    /// Whether the reader may still hand over the row before the newest: it got its page before the change.
    pub(super) fn outdated(&self, doc: usize) -> bool {
        let next = self.next();
        self.stale[doc]
            .is_some_and(|row| row.seq > self.feed.position() && next.is_some_and(|next| row.seq < next.seq))
    }

    pub(super) fn too_wide(&self, window: u64) -> bool {
        let mut movable =
            self.feed.delta.holes.iter().filter(|(_, ordinal)| !self.feed.is_held_by_lease(**ordinal));
        movable.next().is_some_and(|(seq, _)| self.feed.read.0 >= seq.0 + window)
    }

    /// What must hold when a quiet run has come to its end.
    pub fn at_rest(&self) -> Result<(), String> {
        let feed = &self.feed;
        let owed =
            feed.few.waiting.len() + feed.few.again.len() + feed.few.unrecorded.len() + feed.delta.open.len();
        let waiting = |saved: &Saved| saved.standings.iter().any(|s| !matches!(s.state, State::Doubtful));
        let wrong = match () {
            () if feed.unsettled() > 0 => "there are holes",
            () if feed.cursor() != self.head => "the cursor is not at the head",
            () if self.saved.cursor != self.head => "the recorded cursor is not at the head",
            () if feed.few.judge.is_some() => "judging has not ended",
            () if !feed.few.extras.is_empty() => "settled changes are kept that the reader has passed",
            () if owed > 0 || waiting(&self.saved) => "something is still owed",
            () if feed.few.sweep.is_some() || self.saved.sweep.is_some() => "the sweep has not ended",
            () if feed.held != self.saved.held || feed.few.dead != self.saved.dead => "the ledger differs",
            () if self.heard != self.changes => "the feed has not heard of the filter",
            () => return self.watch.rests(&self.seen_rows(), feed, &self.saved),
        };
        Err(format!("at rest: {wrong}"))
    }

    /// The world in a line: requests that are open, the reader, the ledger.
    pub fn tell(&self) -> String {
        let open = self.open.iter().flatten().map(|attempt| {
            let Attempt { ordinal, seq, action, replay, .. } = attempt;
            format!("{} {}@{seq} replay {replay}, ", ordinal.0 - 1, action.as_str())
        });
        let Saved { cursor, issued, .. } = *self.saved;
        format!("{}read {}, recorded {cursor} of {issued}", open.collect::<String>(), self.feed.position())
    }

    pub fn print(&self) -> u128 {
        let World {
            rows,
            history,
            stale,
            looks,
            changes,
            heard,
            filtered: _,
            head,
            feed,
            saved,
            hand,
            paused,
            open,
            out,
            left,
            backup,
            watch,
            states,
            begun: _,
            keeps_history: _,
            all: _,
            created: _,
        } = self;
        let mut print = Print::new();
        print.words([*changes, *heard]);
        let look = |row: &Row| looks[row.seq.0 as usize] as u64;
        print.list(rows.iter().chain(history.iter().map(|(row, _)| row)), |print, row| print.word(look(row)));
        print.list(stale.iter().flatten(), |print, row| print.word(look(row)));
        print.list(rows, Print::row);
        print.list(history, Print::revision);
        print.flag(self.all);
        print.list(stale.iter().flatten(), Print::row);
        print.word(head.0);
        print.feed(feed);
        print.saved(saved);
        let hand = hand.as_ref().map(|taken| &taken.record);
        print.list(hand, Print::record);
        print.word(*paused as u64);
        print.list(open, |print, open| print.list(open, Print::attempt));
        print.list(out, |print, out| print.word(*out as u64));
        let Left {
            events,
            crashes,
            stops,
            pauses,
            replays,
            drops,
            restores,
            beginnings,
            leases,
            refilters,
            changes,
            trims,
        } = *left;
        let often = [events, crashes, stops, replays, drops, restores, beginnings, leases];
        let seldom = [refilters, changes, trims, pauses, 0, 0, 0, 0];
        print.words([often, seldom].map(u64::from_le_bytes));
        print.list(backup, |print, backup| {
            let Backup { rows, history, head, saved } = backup.as_ref();
            print.list(rows, Print::row);
            print.list(history, Print::revision);
            print.word(head.0);
            print.saved(saved);
        });
        if let Some(states) = states {
            let life = feed.life();
            print.flag(saved.life == life);
            for ordinal in rows.iter().map(|row| row.ordinal) {
                print.list(feed.keeping(ordinal), |print, state| print.list(&state, Print::state));
                print.list(states.ledger.get(&ordinal), |print, (of, state)| {
                    print.flag(*of == life);
                    print.state(state);
                });
            }
            print.list(hand, |print, record| {
                print.flag(record.life == life);
                print.list(&record.kept, |print, (ordinal, state)| {
                    print.word(ordinal.0);
                    print.state(state);
                });
                print.list(&record.forgotten, |print, ordinal| print.word(ordinal.0));
            });
        }
        watch.print(&mut print);
        print.end()
    }
}
