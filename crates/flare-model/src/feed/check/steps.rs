//! Which steps can happen in a world.

use super::super::Attempt;
use super::step::{Scope, Step};
use super::watch::Watch;
use super::world::{Pause, World};
use crate::feed::rule::Rule;
use crate::ids::Ordinal;

impl<W: Watch> World<W> {
    /// The steps that can happen now.
    pub fn steps(&self, scope: &Scope) -> Vec<Step> {
        let mut steps = Vec::with_capacity(16);
        self.steps_of_documents(scope, &mut steps);
        if self.paused == Pause::No {
            self.steps_of_the_reader(scope, &mut steps);
        }
        self.steps_of_the_origin(scope, &mut steps);
        self.steps_of_the_owner(scope, &mut steps);
        if self.left.restores > 0 {
            match self.backup {
                None => steps.push(Step::Backup),
                Some(_) => steps.extend([Step::Restore { ledger: true }, Step::Restore { ledger: false }]),
            }
        }
        steps
    }

    fn steps_of_documents(&self, scope: &Scope, steps: &mut Vec<Step>) {
        for doc in 0..self.rows.len() {
            if self.open[doc].is_some() {
                let answers = scope.answers.iter().filter(|answer| self.out[doc].allows(**answer));
                steps.extend(answers.map(|answer| Step::Answer(doc, *answer)));
                if self.left.leases > 0 && self.may_lease(doc) {
                    steps.push(Step::Lease(doc));
                }
            } else if self.may_retry(doc) && self.paused == Pause::No {
                steps.push(Step::Retry(doc));
                if self.stale[doc].is_some() {
                    steps.push(Step::RetryStale(doc));
                }
            }
        }
    }

    fn steps_of_the_reader(&self, scope: &Scope, steps: &mut Vec<Step>) {
        match self.next() {
            Some(row) => {
                steps.push(Step::Read);
                if scope.skips && row.seq.0 > self.feed.position().0 + 1 {
                    steps.push(Step::Skip);
                }
            }
            None if self.at_tail() => {}
            None => steps.push(Step::Tail),
        }
        if let Some(doc) = (0..self.rows.len()).find(|doc| self.outdated(*doc)) {
            steps.push(Step::ReadStale(doc));
        }
    }

    fn steps_of_the_origin(&self, scope: &Scope, steps: &mut Vec<Step>) {
        if self.left.events > 0 {
            let puttable = 0..scope.docs.min(self.rows.len() + 1);
            steps.extend(puttable.clone().map(Step::Put));
            for look in scope.looks {
                steps.extend(puttable.clone().map(|doc| Step::PutAs(doc, *look)));
            }
            let deletable = (0..self.rows.len()).filter(|doc| !self.rows[*doc].deleted || scope.again);
            steps.extend(deletable.map(Step::Delete));
            if scope.again && self.rows.len() < scope.docs {
                steps.push(Step::Delete(self.rows.len()));
            }
        }
    }

    fn steps_of_the_owner(&self, scope: &Scope, steps: &mut Vec<Step>) {
        let docs = 0..self.rows.len();
        // A page that was fetched before a pause is handed over in it.
        if self.feed.few.sweep.is_some() {
            steps.push(Step::Sweep);
        }
        match self.hand {
            Some(_) => steps.push(Step::Commit),
            None if self.feed.is_changed() => steps.push(Step::Take),
            None if scope.asked => steps.push(Step::RecordNothing),
            None => {}
        }
        if scope.window.is_some_and(|window| self.too_wide(window)) {
            steps.push(Step::Displace);
        }
        if self.left.refilters > 0 {
            steps.push(Step::Refilter);
        }
        if self.heard < self.changes {
            steps.push(Step::Hear);
        }
        if self.left.crashes > 0 {
            steps.push(Step::Crash);
        }
        if self.left.stops > 0 && self.nothing_but_leases() {
            steps.push(Step::Stop);
        }
        if self.paused != Pause::No {
            steps.push(Step::Resume);
        } else if self.left.pauses > 0 && self.nothing_but_leases() {
            steps.push(Step::Pause);
        }
        if self.left.replays > 0 {
            if scope.sweeps && self.feed.few.sweep.is_none() {
                steps.push(Step::Replay);
            }
            steps.extend(docs.clone().map(Step::Ask));
        }
        if self.left.drops > 0 {
            steps.extend(docs.filter(|doc| self.feed.few.dead.contains(*doc as u64 + 1)).map(Step::Drop));
        }
        if self.left.beginnings > 0
            && self.open.iter().all(Option::is_none)
            && self.feed.delta.open.is_empty()
        {
            steps.push(Step::BeginAgain);
        }
        // Whoever changes the subscription first makes durable what the last change did.
        if self.left.changes > 0 && self.hand.is_none() && self.saved.since == self.feed.few.since {
            steps.push(Step::Change);
        }
        if self.left.trims > 0 && !self.history.is_empty() {
            steps.push(Step::Trim);
        }
    }

    pub(super) fn may_retry(&self, doc: usize) -> bool {
        let ordinal = Ordinal(doc as u64 + 1);
        let durable =
            !self.feed.few.unrecorded.contains(&ordinal) || !self.feed.rules.keeps(Rule::ReplayDurable);
        self.feed.few.waiting.contains_key(&ordinal) && durable || self.feed.few.again.contains_key(&ordinal)
    }

    /// A lease is made of an attempt that was begun just now.
    fn may_lease(&self, doc: usize) -> bool {
        let open = self.feed.delta.open.get(&Ordinal(doc as u64 + 1));
        open.is_some_and(|open| !open.leased && open.newer.is_none())
    }

    fn nothing_but_leases(&self) -> bool {
        let leased = |attempt: &Attempt| self.feed.leased(attempt.ordinal).is_some();
        self.open.iter().flatten().all(leased)
    }
}
