//! The units of this node: claimed, opened, drained, cut, released.

use std::time::Duration;

use super::{Action, Answer, Ask, Life, Question, Request, Snapshot};
use crate::cluster::keys::{self, ClaimRecord, PROTOCOL};
use crate::cluster::{UnitId, Version};

/// What the node does about a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// The claim is asked for.
    Claiming,
    /// The claim may be the node's or not: the next list says so.
    Unsure,
    /// The claim is the node's, and it has no epoch yet.
    Claimed {
        /// Of the claim.
        version: Version,
        /// When an epoch is asked for.
        again: Duration,
    },
    /// An epoch is asked for.
    TakingEpoch {
        /// Of the claim.
        version: Version,
    },
    /// The epoch is written into the claim.
    Publishing,
    /// Its lanes are being opened.
    Opening {
        /// Of the claim.
        version: Version,
        /// Of the ledger.
        epoch: u64,
    },
    /// It is at work.
    Running {
        /// Of the claim.
        version: Version,
        /// Of the ledger.
        epoch: u64,
    },
    /// What is in flight is finished.
    Draining {
        /// Of the claim.
        version: Version,
        /// Until then; what is in flight then is cut.
        until: Duration,
    },
    /// It was cut, and something of it may still run.
    Closing {
        /// What follows.
        then: Then,
    },
    /// The claim is given back, and asked for anew if it is wanted again. Were it used again nothing would break: whoever uses a
    /// claim writes its epoch first, and a release that arrives late names the version from before that.
    Releasing,
}

/// What follows when nothing of a unit that was cut runs any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The session is gone, and the claim with it.
    Forget,
    /// The claim may still be the node's: look, and begin again under a new epoch.
    Look,
    /// The claim is given back.
    Release,
}

impl Life {
    /// It is assigned to this node, which is who it says it is.
    fn is_wanted(&self, unit: &UnitId) -> bool {
        let assigned = |snapshot: &Snapshot| {
            snapshot.assignment(unit).is_some_and(|assignment| assignment.node == self.settings.node)
        };
        let cut_alike = self.cuts.get(unit).is_none_or(|parts| self.parts(unit) == Some(*parts));
        !self.stopping && cut_alike && self.is_registered() && self.seen().is_some_and(|seen| assigned(seen))
    }

    /// Into how many parts that is cut by now which a unit is a part of.
    fn parts(&self, unit: &UnitId) -> Option<u32> {
        self.catalog.as_ref()?.get(unit).map(|existing| existing.parts)
    }

    fn claim_record(&self, unit: &UnitId, epoch: Option<u64>) -> Vec<u8> {
        let (node, parts) = (self.settings.node.clone(), self.cuts.get(unit).copied().unwrap_or(1));
        keys::write(&ClaimRecord { protocol: PROTOCOL, node, epoch, parts })
    }

    /// From now on the unit is a part of what it is a part of by now.
    fn cut_as_it_is(&mut self, unit: &UnitId) {
        match self.parts(unit) {
            Some(parts) => self.cuts.insert(unit.clone(), parts),
            None => self.cuts.remove(unit),
        };
    }

    /// Only what is listed from now on says something of the claim.
    fn touch(&mut self, unit: &UnitId) {
        self.since.insert(unit.clone(), self.next_ask);
    }

    fn is_told_by(&self, ask: Ask, unit: &UnitId) -> bool {
        #[cfg(test)]
        if self.breaks(super::check::Broken::BelievesOldLists) {
            return true;
        }
        self.since.get(unit).is_none_or(|since| ask >= *since)
    }

    pub(super) fn pursue_units(&mut self) {
        let Some((asked, seen)) = self.seen.clone() else { return };
        let held: Vec<UnitId> = self.tenures.keys().cloned().collect();
        for unit in held {
            self.pursue_tenure(unit);
        }
        let session = self.session().cloned();
        let assigned = seen.assignments().filter(|(_, assignment)| assignment.node == self.settings.node);
        let mine = seen.claims.iter().filter(|(_, claim)| claim.session == session).map(|(unit, _)| unit);
        let mut concerned: Vec<UnitId> = assigned.map(|(unit, _)| unit).chain(mine).cloned().collect();
        concerned.sort();
        concerned.dedup();
        for unit in concerned {
            if self.tenures.contains_key(&unit) {
                continue;
            }
            if !self.is_told_by(asked, &unit) {
                self.look = true;
                continue;
            }
            match (self.is_wanted(&unit), seen.claims.get(&unit)) {
                (true, None) if self.is_stuck() => {}
                (true, None) => self.claim(unit),
                (true, Some(claim)) if claim.session == session => {
                    let version = claim.version;
                    self.hold(unit, version);
                }
                // A claim that arrived after nobody wanted it any more.
                (false, Some(claim)) if claim.session == session => {
                    let version = claim.version;
                    self.release(unit, version);
                }
                // Another has it: the list changes when it is free.
                _ => {}
            }
        }
    }

    fn pursue_tenure(&mut self, unit: UnitId) {
        let now = self.now.monotonic;
        let wanted = self.is_wanted(&unit);
        match self.tenures.get(&unit).cloned() {
            Some(Tenure::Claimed { version, .. }) if !wanted => self.release(unit, version),
            Some(Tenure::Claimed { version, again }) if now >= again => {
                self.tenures.insert(unit.clone(), Tenure::TakingEpoch { version });
                self.ask(Question::Epoch(unit), Request::Epoch);
            }
            #[cfg(test)]
            Some(Tenure::Running { .. }) if self.gives_up_alone() => self.cut(unit, Then::Release),
            // What cannot be finished, or not be recorded, is not waited for.
            Some(Tenure::Running { .. }) if !wanted && self.cannot_finish(&unit) => {
                self.cut(unit, Then::Release);
            }
            Some(Tenure::Running { version, .. }) if !wanted => {
                let until = now + self.settings.drain_timeout;
                self.tenures.insert(unit.clone(), Tenure::Draining { version, until });
                self.actions.push(Action::Drain(unit));
            }
            Some(Tenure::Draining { until, .. }) if now >= until || self.cannot_finish(&unit) => {
                self.cut(unit, Then::Release);
            }
            _ => {}
        }
    }

    fn claim(&mut self, unit: UnitId) {
        self.cut_as_it_is(&unit);
        let value = self.claim_record(&unit, None);
        let request = Request::Create { key: keys::of_claim(&unit), value, session: self.session().cloned() };
        self.tenures.insert(unit.clone(), Tenure::Claiming);
        self.ask(Question::Claim(unit), request);
    }

    fn hold(&mut self, unit: UnitId, version: Version) {
        // It is cut as it is when its epoch is written.
        self.cuts.remove(&unit);
        self.touch(&unit);
        self.tenures.insert(unit, Tenure::Claimed { version, again: self.now.monotonic });
    }

    fn release(&mut self, unit: UnitId, version: Version) {
        self.cuts.remove(&unit);
        self.tenures.insert(unit.clone(), Tenure::Releasing);
        let request = Request::Delete { key: keys::of_claim(&unit), version };
        self.ask(Question::Release(unit), request);
    }

    fn unsure(&mut self, unit: UnitId) {
        self.touch(&unit);
        self.look = true;
        self.tenures.insert(unit, Tenure::Unsure);
    }

    pub(super) fn claimed(&mut self, unit: UnitId, answer: Answer) {
        match answer {
            Answer::Done(Some(version)) => self.hold(unit, version),
            Answer::Unknown => self.unsure(unit),
            _ => {
                self.touch(&unit);
                self.look = true;
                self.tenures.remove(&unit);
            }
        }
    }

    pub(super) fn epoch_taken(&mut self, unit: UnitId, answer: Answer) {
        let Some(Tenure::TakingEpoch { version }) = self.tenures.get(&unit).cloned() else { return };
        let Answer::Epoch(epoch) = answer else {
            let again = self.now.monotonic + self.settings.renew / 2;
            self.tenures.insert(unit, Tenure::Claimed { version, again });
            return;
        };
        if !self.may_act() {
            self.unsure(unit);
            return;
        }
        self.cut_as_it_is(&unit);
        let value = self.claim_record(&unit, Some(epoch));
        let request = Request::Replace { key: keys::of_claim(&unit), version, value };
        self.tenures.insert(unit.clone(), Tenure::Publishing);
        self.ask(Question::Publish(unit, epoch), request);
    }

    pub(super) fn published(&mut self, unit: UnitId, epoch: u64, answer: Answer) {
        match answer {
            Answer::Done(Some(version)) if self.may_act() => {
                self.touch(&unit);
                self.tenures.insert(unit.clone(), Tenure::Opening { version, epoch });
                self.actions.push(Action::Open { unit, epoch });
            }
            _ => self.unsure(unit),
        }
    }

    pub(super) fn opened(&mut self, unit: UnitId) {
        if let Some(Tenure::Opening { version, epoch }) = self.tenures.get(&unit).cloned() {
            self.tenures.insert(unit, Tenure::Running { version, epoch });
        }
    }

    pub(super) fn not_opened(&mut self, unit: UnitId) {
        match self.tenures.get(&unit).cloned() {
            Some(Tenure::Opening { version, .. }) => {
                let again = self.now.monotonic + self.settings.renew / 2;
                self.tenures.insert(unit, Tenure::Claimed { version, again });
            }
            // It was cut meanwhile, and nothing of it runs.
            Some(Tenure::Closing { .. }) => self.closed(unit),
            _ => {}
        }
    }

    pub(super) fn closed(&mut self, unit: UnitId) {
        match self.tenures.get(&unit).cloned() {
            Some(Tenure::Draining { version, .. }) if self.may_act() => self.release(unit, version),
            Some(Tenure::Draining { .. } | Tenure::Closing { then: Then::Look }) => self.unsure(unit),
            Some(Tenure::Closing { then: Then::Release }) => {
                self.touch(&unit);
                self.look = true;
                self.tenures.insert(unit, Tenure::Releasing);
            }
            Some(Tenure::Closing { then: Then::Forget }) => drop(self.tenures.remove(&unit)),
            _ => {}
        }
    }

    pub(super) fn released(&mut self, unit: UnitId, answer: Answer) {
        self.touch(&unit);
        match answer {
            Answer::Done(_) => drop(self.tenures.remove(&unit)),
            _ => self.look = true,
        }
    }

    /// Stops a unit at once, if anything of it runs.
    pub(super) fn cut(&mut self, unit: UnitId, then: Then) {
        let Some(tenure) = self.tenures.get_mut(&unit) else { return };
        match tenure {
            Tenure::Opening { .. } | Tenure::Running { .. } | Tenure::Draining { .. } => {
                *tenure = Tenure::Closing { then };
                self.actions.push(Action::Cut(unit));
            }
            Tenure::Closing { then: earlier } if then == Then::Forget => *earlier = then,
            _ => {}
        }
    }

    pub(super) fn cut_all(&mut self, then: Then) {
        let units: Vec<UnitId> = self.tenures.keys().cloned().collect();
        units.into_iter().for_each(|unit| self.cut(unit, then));
    }

    /// What the list says of the claims that the node has, believes to have, or has given back.
    pub(super) fn check_claims(&mut self, ask: Ask, snapshot: &Snapshot) {
        let session = self.session().cloned();
        let may_act = self.may_act();
        let units: Vec<UnitId> = self.tenures.keys().cloned().collect();
        for unit in units {
            if !self.is_told_by(ask, &unit) {
                continue;
            }
            let mine = snapshot
                .claims
                .get(&unit)
                .filter(|claim| claim.session == session)
                .map(|claim| claim.version);
            let releasing = self.asked.values().any(|question| *question == Question::Release(unit.clone()));
            match (self.tenures.get_mut(&unit), mine) {
                (Some(Tenure::Unsure), Some(version)) => self.hold(unit, version),
                (Some(Tenure::Unsure), None) => drop(self.tenures.remove(&unit)),
                (Some(Tenure::Releasing), Some(version)) if !releasing && may_act => {
                    self.release(unit, version);
                }
                (Some(Tenure::Releasing), None) if !releasing => drop(self.tenures.remove(&unit)),
                (
                    Some(
                        Tenure::Claimed { version, .. }
                        | Tenure::TakingEpoch { version }
                        | Tenure::Opening { version, .. }
                        | Tenure::Running { version, .. }
                        | Tenure::Draining { version, .. },
                    ),
                    Some(listed),
                ) => *version = listed,
                // The coordinator has lost it, or somebody took it away.
                (Some(Tenure::Claimed { .. } | Tenure::TakingEpoch { .. }), None) => {
                    self.tenures.remove(&unit);
                }
                (Some(Tenure::Opening { .. } | Tenure::Running { .. } | Tenure::Draining { .. }), None) => {
                    self.cut(unit, Then::Look);
                }
                _ => {}
            }
        }
        self.since.retain(|_, since| ask < *since);
    }

    pub(super) fn unit_wakes(&self) -> Vec<Duration> {
        if !self.may_act() {
            return Vec::new();
        }
        let of = |tenure: &Tenure| match tenure {
            Tenure::Claimed { again, .. } => Some(*again),
            Tenure::Draining { until, .. } => Some(*until),
            _ => None,
        };
        self.tenures.values().filter_map(of).collect()
    }
}
