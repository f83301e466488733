//! What each step does to a world, and the promises that can be seen without knowing the client.

use std::rc::Rc;

use super::super::{
    Attempt, Filled, Met, Next, Receipt, Saved, Standing, State, SweepKind, TRANSITION, Trouble, Verdict,
};
use super::step::{Answer, Left, Look, Records, Scope, Step};
use super::watch::{Life, Watch};
use super::world::{Asked, Backup, Lease, NOW, Pause, World};
use crate::document::{Effect, Intent, Row, apply};
use crate::ids::{Ordinal, Seq};
use crate::revision::Revision;

impl<W: Watch> World<W> {
    /// One step, taken. An error is a promise broken.
    pub fn take(&mut self, step: Step, scope: &Scope) -> Result<(), String> {
        self.happens(step, scope)?;
        if let Some(ordinal) =
            self.feed.few.waiting.keys().find(|ordinal| self.feed.few.dead.contains(ordinal.0))
        {
            return Err(format!("document {ordinal} is owed and given up"));
        }
        self.may_forget()?;
        let Left { crashes, stops, restores, .. } = self.left;
        match scope.records {
            // In the last life nobody will ever look at the ledger again, so when it is written makes no
            // difference; except that it must be, for marks and replays.
            Records::AtOnce if crashes + stops + restores == 0 => self.record_at_once(),
            Records::AtOnce if step == Step::Take => self.record_at_once(),
            Records::AtOnce | Records::Apart => Ok(()),
        }
    }

    fn happens(&mut self, step: Step, scope: &Scope) -> Result<(), String> {
        match step {
            Step::Put(doc) | Step::PutAs(doc, _) | Step::Delete(doc) => {
                self.left.events -= 1;
                if scope.outdated {
                    self.stale[doc] = self.rows.get(doc).copied();
                }
                let look = if let Step::PutAs(_, look) = step { look } else { Look::In };
                self.originates(doc, matches!(step, Step::Delete(_)), look);
            }
            Step::Refilter => {
                self.left.refilters -= 1;
                self.changes += 1;
            }
            Step::Hear => self.hear(),
            Step::Read => self.read(self.next().expect("a step that can happen"), scope)?,
            Step::ReadStale(doc) => self.read(self.stale[doc].expect("a step that can happen"), scope)?,
            Step::Skip => {
                let next = self.next().expect("a step that can happen");
                self.feed.skip_to(Seq(next.seq.0 - 1));
            }
            Step::Tail => {
                self.feed.skip_to(self.head);
                self.feed.reached_tail();
                self.watch.reaches_tail(self.feed.position());
            }
            Step::Retry(doc) if self.feed.is_in_turn() => self.retry_revision(doc, scope)?,
            Step::Retry(doc) => self.retry(self.rows[doc], scope)?,
            Step::RetryStale(doc) => self.retry(self.stale[doc].expect("a step that can happen"), scope)?,
            Step::Answer(doc, answer) => {
                let attempt = self.open[doc].take().expect("a step that can happen");
                self.out[doc] = Lease::No;
                let verdict = verdict(&attempt, answer);
                // What was handed out on a lease is not kept: its end may be heard in another life.
                if let Some(states) = &self.states
                    && self.feed.leased(attempt.ordinal).is_none()
                {
                    states.ends(&mut self.feed, &attempt, &verdict);
                }
                self.feed.settle(attempt.ordinal, verdict);
                self.watch.ends(&attempt, answer);
            }
            Step::Lease(doc) => {
                self.left.leases -= 1;
                let attempt = self.open[doc].expect("a step that can happen");
                self.feed.lease(attempt.ordinal, NOW, trouble(&attempt));
            }
            Step::Displace => self.feed.displace(scope.window.expect("a step that can happen"), NOW),
            Step::Take => self.take_record()?,
            Step::Commit => self.commit(),
            Step::RecordNothing => self.feed.recorded(Receipt::forged()),
            Step::Pause => {
                self.left.pauses -= 1;
                self.feed.pause();
                let unknown = self.hand.is_some() || self.feed.is_changed();
                self.paused = if unknown { Pause::Begun } else { Pause::Durable };
            }
            Step::Resume => self.paused = Pause::No,
            Step::Crash => {
                self.left.crashes -= 1;
                self.crash()?;
            }
            Step::Stop => {
                self.left.stops -= 1;
                self.stop()?;
            }
            Step::Replay => {
                let replay = u64::from(self.left.replays);
                self.left.replays -= 1;
                self.feed.start_sweep(SweepKind::Replay { since: NOW }, replay);
                self.watch.sweeps(&self.rows, replay);
            }
            Step::Sweep => self.sweep()?,
            Step::Ask(doc) => {
                let (row, replay) = (self.rows[doc], u64::from(self.left.replays));
                let with_others = self.comes_with_others(&row);
                if self.feed.request(&row, replay, NOW) {
                    self.left.replays -= 1;
                    if !with_others {
                        self.watch.meets(&row);
                    }
                    self.watch.asks(&row, replay);
                }
            }
            Step::Drop(doc) => {
                self.left.drops -= 1;
                self.feed.drop_dead(Ordinal(doc as u64 + 1), self.rows[doc].seq, None);
                self.watch.drops(doc);
            }
            Step::BeginAgain => {
                self.left.beginnings -= 1;
                self.stale.fill(None);
                self.feed.begin_again(self.head);
                self.watch.begins_again(&self.rows, self.head);
            }
            Step::Change => {
                self.left.changes -= 1;
                self.all = !self.all;
                self.follow_the_catalog();
            }
            Step::Trim => {
                self.left.trims -= 1;
                let (row, _) = self.history.remove(0);
                self.feed.lose(&[(row.ordinal, row.seq)]);
            }
            Step::Backup => self.backup = Some(Rc::new(self.back_up())),
            Step::Restore { ledger } => {
                self.left.restores -= 1;
                self.restore(ledger)?;
            }
        }
        Ok(())
    }

    pub(super) fn originates(&mut self, doc: usize, delete: bool, look: Look) {
        let revision = Revision::Integer(self.head.0 as i64 + 1);
        let current = self.rows.get(doc).map(|row| (*row, Revision::Integer(row.seq.0 as i64)));
        let intent = match delete {
            true => Intent::Delete { revision: Some(revision) },
            false => Intent::Put { revision, content: Default::default() },
        };
        let (seq, ordinal) = (Seq(self.head.0 + 1), Ordinal(doc as u64 + 1));
        match apply(current.as_ref().map(|(row, has)| (row, has)), &intent, seq, ordinal) {
            Effect::Change { row, .. } => {
                self.head = seq;
                // A log that was restored gives the numbers of the one before again.
                self.looks.truncate(seq.0 as usize);
                self.looks.push(look);
                match self.rows.get_mut(doc) {
                    Some(newest) => {
                        let replaced = std::mem::replace(newest, row);
                        if self.keeps_history {
                            self.history.push((replaced, seq));
                        }
                    }
                    None => self.rows.push(row),
                }
            }
            Effect::Nothing(outcome) => unreachable!("a newer revision is {outcome:?}"),
            Effect::OtherKind => unreachable!("all of them are integers"),
        }
    }

    fn read(&mut self, row: Row, scope: &Scope) -> Result<(), String> {
        if !self.feed.may_issue(row.seq) {
            return self.raise_mark(row.seq, scope);
        }
        // A row that stands already is decided on when it is retried.
        let stands = self.feed.few.waiting.get(&row.ordinal);
        let settled = self.feed.was_ahead(row.seq) || self.feed.few.extras.contains(&row.seq);
        let decided = match self.feed.is_in_turn() {
            false => stands.is_none_or(|standing| standing.seq != row.seq),
            true => stands.is_none() && !settled && !self.feed.is_open(row.ordinal),
        };
        if decided {
            self.watch.meets(&row);
        }
        let mut asked = self.asked(&row);
        match self.feed.read(&row, &mut asked) {
            Met::Send(attempt) => self.begin(&row, attempt),
            Met::Busy | Met::Owed => Ok(()),
            // An outdated row is passed by because a newer one was sent; that one is watched.
            Met::Settled if !self.feed.is_in_turn() && row != self.rows[row.ordinal.0 as usize - 1] => Ok(()),
            Met::Settled if asked.left => {
                self.watch.leaves(&row);
                Ok(())
            }
            Met::Settled => {
                let stands = self.feed.few.waiting.contains_key(&row.ordinal);
                self.watch.passes(&self.seen(&row), stands)
            }
        }
    }

    fn retry(&mut self, row: Row, scope: &Scope) -> Result<(), String> {
        if !self.feed.may_issue(row.seq) {
            return self.raise_mark(row.seq, scope);
        }
        self.watch.meets(&row);
        let mut asked = self.asked(&row);
        match self.feed.retry(&row, &mut asked) {
            Some(attempt) => self.begin(&row, attempt),
            None if asked.left => {
                self.watch.leaves(&row);
                Ok(())
            }
            None => {
                let stands = self.may_retry(row.ordinal.0 as usize - 1);
                self.watch.passes_by(&self.seen(&row), stands)
            }
        }
    }

    /// The first revision that a document is owed is looked for, and decided on.
    fn retry_revision(&mut self, doc: usize, scope: &Scope) -> Result<(), String> {
        let ordinal = Ordinal(doc as u64 + 1);
        let from = self.feed.owed_from(ordinal).expect("a step that can happen");
        let owed = self.visible().filter(|row| row.ordinal == ordinal && row.seq >= from);
        let found = owed.min_by_key(|row| row.seq).copied();
        if let Some(row) = found {
            if !self.feed.may_issue(row.seq) {
                return self.raise_mark(row.seq, scope);
            }
            self.watch.meets(&row);
        }
        let mut asked = Asked { look: found.map_or(Look::In, |row| self.look(&row)), left: false };
        match (self.feed.next_revision(ordinal, found.as_ref(), &mut asked), found) {
            (Next::Send(attempt), Some(row)) => self.begin(&row, attempt),
            (Next::Passed, Some(row)) if asked.left => {
                self.watch.leaves(&row);
                Ok(())
            }
            (Next::Passed, Some(row)) => self.watch.passes_by(&self.seen(&row), false),
            (Next::Done | Next::Wait, _) => Ok(()),
            (next, None) => Err(format!("{next:?} where there is no revision")),
        }
    }

    fn raise_mark(&mut self, seq: Seq, scope: &Scope) -> Result<(), String> {
        self.feed.want_issue(Seq(seq.0 + scope.block - 1));
        match scope.records {
            Records::AtOnce => self.record_at_once(),
            Records::Apart => Ok(()),
        }
    }

    fn begin(&mut self, row: &Row, attempt: Attempt) -> Result<(), String> {
        self.begun += 1;
        let doc = row.ordinal.0 as usize - 1;
        if self.open[doc].is_some() {
            return Err(format!("a second request for document {doc} while one is open"));
        }
        if attempt.seq > self.saved.issued && self.is_sound() {
            return Err(format!("change {} is sent beyond the mark {}", attempt.seq, self.saved.issued));
        }
        if attempt.seq != row.seq || attempt.ordinal != row.ordinal {
            return Err(format!("{attempt:?} is not about {row:?}"));
        }
        let skipped = |older: &&Row| {
            let earlier = older.ordinal == row.ordinal && older.seq < row.seq && older.seq > self.created;
            earlier && self.watch.owes(older)
        };
        if self.feed.since().is_some()
            && let Some(skipped) = self.visible().find(skipped)
        {
            return Err(format!("{attempt:?} is sent before {skipped:?}"));
        }
        if let Some(state) = self.states.as_ref().and_then(|states| states.known(&self.feed, &attempt)) {
            self.watch.builds_on(&attempt, state)?;
        }
        self.watch.begins(&self.seen(row), &attempt)?;
        self.open[doc] = Some(attempt);
        Ok(())
    }

    /// The process dies, or another owner takes the feed over: what was open may still arrive.
    fn crash(&mut self) -> Result<(), String> {
        let leases = leases(&self.saved);
        let mut answered = Vec::new();
        for (doc, out) in self.out.iter_mut().enumerate() {
            let lease = leases.iter().find(|lease| lease.ordinal.0 as usize - 1 == doc);
            let before = std::mem::replace(out, Lease::No);
            answered.extend(lease.filter(|_| before == Lease::Answered).map(|lease| lease.ordinal));
            if before != Lease::No && lease.is_none() {
                return Err(format!("the lease of document {doc} is out, and forgotten"));
            }
        }
        for (doc, open) in self.open.iter_mut().enumerate() {
            let lease = leases.iter().find(|lease| lease.ordinal.0 as usize - 1 == doc);
            answered.extend(lease.filter(|_| open.is_none()).map(|lease| lease.ordinal));
            if let Some(attempt) = open.take().filter(|open| lease.is_none_or(|lease| lease.seq != open.seq))
            {
                self.watch.ends(&attempt, Answer::Lost);
            }
        }
        self.hand = None;
        let life = match self.paused {
            Pause::Durable => Life::Pause,
            Pause::No | Pause::Begun | Pause::Taken => Life::Crash,
        };
        self.watch.opens(&self.saved, self.head, life);
        for lease in leases {
            let (doc, answered) = (lease.ordinal.0 as usize - 1, answered.contains(&lease.ordinal));
            self.watch.reopens(&lease, answered);
            self.open[doc] = Some(lease);
            self.out[doc] = if answered { Lease::Answered } else { Lease::Reopened };
        }
        if self.saved.strange {
            self.watch.restores(&self.rows);
        }
        self.reopen(self.feed.rules);
        Ok(())
    }

    /// A clean stop: all is settled, the last record is durable.
    fn stop(&mut self) -> Result<(), String> {
        self.feed.close();
        self.record_at_once()?;
        self.watch.opens(&self.saved, self.head, Life::Stop);
        for lease in leases(&self.saved) {
            let out = &mut self.out[lease.ordinal.0 as usize - 1];
            self.watch.reopens(&lease, *out == Lease::Answered);
            if *out != Lease::Answered {
                *out = Lease::Reopened;
            }
        }
        self.reopen(self.feed.rules);
        Ok(())
    }

    fn sweep(&mut self) -> Result<(), String> {
        let sweep = self.feed.few.sweep.clone().expect("a step that can happen");
        let ahead = self.rows.iter().filter(|row| row.seq > sweep.position && row.seq <= sweep.end);
        let Some(row) = ahead.min_by_key(|row| row.seq).copied() else {
            self.feed.sweep_to(sweep.end);
            return Ok(());
        };
        let with_others = self.comes_with_others(&row);
        let mut asked = self.asked(&row);
        let filled = self.feed.sweep(&row, NOW, NOW, &mut asked);
        // The last row and the end of the page that it came with are one step, as for those who read pages.
        let last = !self.rows.iter().any(|other| other.seq > row.seq && other.seq <= sweep.end);
        if last && filled != Filled::Blocked {
            self.feed.sweep_to(sweep.end);
        }
        match filled {
            Filled::Taken => {
                if !with_others {
                    self.watch.meets(&row);
                }
                self.watch.asks(&row, if sweep.replay == TRANSITION { 0 } else { sweep.replay });
                Ok(())
            }
            // What is owed with those before it is decided in its turn.
            Filled::Passed if asked.left && !with_others => {
                self.watch.leaves(&row);
                Ok(())
            }
            // What the beginning passes because it is none of the client's is settled by that.
            Filled::Passed
                if sweep.kind == SweepKind::Beginning
                    && self.look(&row) == Look::Out
                    && !self.feed.held.contains(row.ordinal.0)
                    && !self.feed.few.doubt.contains(row.ordinal.0) =>
            {
                let stands = self.feed.few.waiting.contains_key(&row.ordinal);
                self.watch.passes(&self.seen(&row), stands)
            }
            Filled::Passed if !matches!(sweep.kind, SweepKind::Replay { .. }) => Ok(()),
            Filled::Passed => {
                let stands = self.feed.owed_from(row.ordinal).is_some_and(|from| from <= row.seq);
                self.watch.passes_by(&self.seen(&row), stands)
            }
            Filled::Blocked => Ok(()),
        }
    }

    /// Whether older revisions are owed before this one: then those are decided on first.
    fn comes_with_others(&self, row: &Row) -> bool {
        let before = self.feed.owed_from(row.ordinal).is_some_and(|from| from < row.seq);
        self.feed.is_in_turn() && before
    }

    fn back_up(&self) -> Backup {
        Backup {
            rows: self.rows.clone(),
            history: self.history.clone(),
            head: self.head,
            saved: self.saved.clone(),
        }
    }

    /// Log and ledger, or the log alone, are again what they were at the backup.
    fn restore(&mut self, ledger: bool) -> Result<(), String> {
        let backup = self.backup.take().expect("a step that can happen");
        let Backup { rows, history, head, saved } = backup.as_ref();
        self.crash()?;
        (self.rows, self.history, self.head) = (rows.clone(), history.clone(), *head);
        if ledger {
            self.saved = saved.clone();
        }
        // A cursor beyond the tail is seen without being told. But only as long as the log has not grown
        // again: after that nobody sees it who has not noted it, so the engine has to tell from then on.
        Rc::make_mut(&mut self.saved).strange = self.saved.cursor <= self.head;
        self.watch.restores(&self.rows);
        self.reopen(self.feed.rules);
        Rc::make_mut(&mut self.saved).strange = true;
        Ok(())
    }
}

fn verdict(attempt: &Attempt, answer: Answer) -> Verdict {
    let trouble = trouble(attempt);
    match answer {
        Answer::Success => Verdict::Delivered,
        Answer::Discard => Verdict::Discarded { doubtful: false, story: None },
        Answer::Lost => Verdict::Retry { due: NOW, doubtful: true, trouble },
        Answer::Refused => Verdict::Retry { due: NOW, doubtful: false, trouble },
        Answer::LostAtLast => Verdict::GiveUp { doubtful: true, trouble },
        Answer::RefusedAtLast => Verdict::GiveUp { doubtful: false, trouble },
    }
}

fn trouble(attempt: &Attempt) -> Box<Trouble> {
    // The count stands still, or there would be no end of states.
    Box::new(Trouble {
        attempts: 1,
        first_attempt_at: NOW,
        last_attempt_at: NOW,
        action: attempt.action,
        status: None,
        error: None,
        response: None,
        unheard: false,
        has: None,
        lent: None,
    })
}

/// The attempts that are out on a lease, by what the ledger says.
pub(super) fn leases(saved: &Saved) -> Vec<Attempt> {
    let leased = saved.standings.iter().filter(|standing| matches!(standing.state, State::Leased { .. }));
    let attempt = |standing: &Standing| Attempt {
        ordinal: standing.ordinal,
        seq: standing.seq,
        action: standing.trouble.as_ref().expect("a lease says what it told").action,
        replay: if standing.replay == TRANSITION { 0 } else { standing.replay },
        attempts: 0,
        first_attempt_at: None,
        unheard: false,
    };
    leased.map(attempt).collect()
}
