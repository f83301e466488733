//! The node's own session: begun, renewed, halted near its deadline, lost at it.

use std::time::Duration;

use super::leading::Leading;
use super::units::Then;
use super::{
    Action, Answer, Ask, Event, Exit, Life, Moment, NodeRecordWritten, Question, Request, Snapshot, Tenure,
};
use crate::cluster::keys::{self, NodeRecord};
use crate::cluster::{NodeState, SessionId, Version};

/// Whether the node is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It has no session, and asks for one then.
    Out {
        /// When.
        again: Duration,
    },
    /// It has asked for one.
    Asking,
    /// It has one.
    In(Sitting),
    /// It has left for good.
    Left,
}

/// A session that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sitting {
    /// Its name.
    pub session: SessionId,
    /// Until when it surely lives.
    pub deadline: Duration,
    /// The deadline is so near that nothing is done.
    pub halted: bool,
    /// It was asked to be ended, and may be over before that is answered: nothing is done under it any more.
    ending: bool,
    /// The node has its name: its key was there in this session, and nobody else has taken it since.
    named: bool,
    /// The version of its key, and what stands there.
    written: Option<(Version, Vec<u8>)>,
    /// Nothing is tried about the key until a list from here on has said whose it is.
    unclear_since: Option<Ask>,
    renew_at: Duration,
    /// Since when another session has the name.
    name_taken_since: Option<Duration>,
}

impl Life {
    /// Whether it is in the cluster.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Until when what it does is its to do.
    pub fn acts_until(&self) -> Option<Duration> {
        #[cfg(feature = "planted")]
        if crate::planted::Bug::RenewedAfterExpiry.is_planted() && self.session().is_some() {
            return Some(self.now.monotonic + self.settings.lease * 10);
        }
        match &self.membership {
            Membership::In(sitting) if !sitting.ending => {
                Some(sitting.deadline.saturating_sub(self.settings.margin))
            }
            _ => None,
        }
    }

    pub(super) fn may_act(&self) -> bool {
        matches!(&self.membership, Membership::In(sitting) if !sitting.halted && !sitting.ending)
    }

    pub(super) fn is_ending(&self) -> bool {
        matches!(&self.membership, Membership::In(sitting) if sitting.ending)
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        match &self.membership {
            Membership::In(sitting) => Some(&sitting.session),
            _ => None,
        }
    }

    pub(super) fn is_registered(&self) -> bool {
        matches!(&self.membership, Membership::In(sitting) if sitting.named)
    }

    /// A renewal that came counts from when it was sent, so it counts before the clock is looked at: a node that was paused
    /// with the answer in hand has not lost what it holds.
    pub(super) fn renewal_first(&mut self, event: Event) -> Event {
        let Event::Answered { ask, answer: Answer::Renewed(ttl) } = &event else { return event };
        let Some(Question::Renew { sent }) = self.asked.get(ask) else { return Event::Woke };
        let counts_from = *sent;
        #[cfg(test)]
        let counts_from = if self.breaks(super::check::Broken::DeadlineFromAnswer) {
            self.now.monotonic
        } else {
            counts_from
        };
        let until = counts_from + *ttl;
        self.asked.remove(ask);
        let margin = self.settings.margin;
        if let Membership::In(sitting) = &mut self.membership {
            sitting.deadline = sitting.deadline.max(until);
            if sitting.halted && sitting.deadline > self.now.monotonic + margin {
                sitting.halted = false;
                self.look = true;
            }
        }
        Event::Woke
    }

    /// Halts a margin before the deadline; at the deadline all is lost.
    pub(super) fn keep_time(&mut self) {
        #[cfg(test)]
        if self.breaks(super::check::Broken::KeepsWhatItBelieved) {
            return;
        }
        #[cfg(feature = "planted")]
        if crate::planted::Bug::RenewedAfterExpiry.is_planted() {
            return;
        }
        let Moment { monotonic: now, .. } = self.now;
        let margin = self.settings.margin;
        let Membership::In(sitting) = &mut self.membership else { return };
        if now >= sitting.deadline {
            self.lose();
        } else if now + margin >= sitting.deadline && !sitting.halted {
            sitting.halted = true;
            self.cut_all(Then::Look);
        }
    }

    pub(super) fn lose(&mut self) {
        self.cut_all(Then::Forget);
        self.tenures.retain(|_, tenure| matches!(tenure, Tenure::Closing { .. }));
        self.since.clear();
        self.cuts.clear();
        self.asked.clear();
        self.seen = None;
        self.look = true;
        self.leading = Leading::No;
        self.members = Default::default();
        self.membership = Membership::Out { again: self.now.monotonic };
    }

    pub(super) fn pursue_session(&mut self) {
        let Moment { monotonic: now, .. } = self.now;
        let awake = self.is_awake();
        match &mut self.membership {
            Membership::Out { .. } if self.stopping && self.tenures.is_empty() => self.left(),
            Membership::Out { .. } if self.stopping => {}
            // Nobody would do what it is told.
            Membership::Out { .. } if !awake => {}
            Membership::Out { again } if now >= *again => {
                self.membership = Membership::Asking;
                let ttl = self.settings.lease;
                self.ask(Question::Grant { sent: now }, Request::Grant { ttl });
            }
            Membership::In(sitting) => {
                let session = sitting.session.clone();
                if now >= sitting.renew_at && awake {
                    sitting.renew_at = now + self.settings.renew;
                    self.ask(Question::Renew { sent: now }, Request::Renew { session });
                }
                if self.may_act() {
                    self.pursue_registration();
                }
            }
            _ => {}
        }
    }

    pub(super) fn granted(&mut self, sent: Duration, answer: Answer) {
        if self.membership != Membership::Asking {
            return;
        }
        let Moment { monotonic: now, .. } = self.now;
        let Answer::Granted { session, ttl } = answer else {
            self.membership = Membership::Out { again: now + self.settings.renew / 2 };
            return;
        };
        if sent + ttl <= now + self.settings.margin {
            // It took too long to be of use, and ends by itself.
            self.membership = Membership::Out { again: now };
            return;
        }
        self.membership = Membership::In(Sitting {
            session,
            deadline: sent + ttl,
            halted: false,
            ending: false,
            named: false,
            written: None,
            unclear_since: None,
            renew_at: sent + self.settings.renew,
            name_taken_since: None,
        });
        self.look = true;
        self.look_at = now;
    }

    /// It failed, or nobody knows: tried again soon, and otherwise as if it had not been asked.
    pub(super) fn not_renewed(&mut self) {
        let soon = self.now.monotonic + self.settings.renew / 4;
        if let Membership::In(sitting) = &mut self.membership {
            sitting.renew_at = sitting.renew_at.min(soon);
        }
    }

    /// Registers, or says what has changed.
    fn pursue_registration(&mut self) {
        if self.asked.values().any(|question| matches!(question, Question::Register(_))) {
            return;
        }
        let drained = self.tenures.is_empty() && self.record.state == NodeState::Draining && !self.stopping;
        let state = if drained { NodeState::Drained } else { self.record.state };
        let value = keys::write(&NodeRecord { state, trouble: self.trouble(), ..self.record.clone() });
        let key = keys::of_node(&self.settings.node);
        let Membership::In(sitting) = &self.membership else { return };
        if sitting.unclear_since.is_some() {
            return;
        }
        let request = match &sitting.written {
            Some((_, written)) if *written == value => return,
            Some((version, _)) => Request::Replace { key, version: *version, value: value.clone() },
            None => Request::Create { key, value: value.clone(), session: Some(sitting.session.clone()) },
        };
        self.ask(Question::Register(Box::new(NodeRecordWritten(value))), request);
    }

    pub(super) fn registered(&mut self, written: Vec<u8>, answer: Answer) {
        let next_ask = self.next_ask;
        let Membership::In(sitting) = &mut self.membership else { return };
        self.look = true;
        if let Answer::Done(Some(version)) = answer {
            sitting.named = true;
            sitting.written = Some((version, written));
        } else {
            sitting.unclear_since = Some(next_ask);
        }
    }

    /// Whose the name is, as listed.
    pub(super) fn check_registration(&mut self, ask: Ask, snapshot: &Snapshot) {
        let asking = self.asked.values().any(|question| matches!(question, Question::Register(_)));
        let now = self.now.monotonic;
        let Membership::In(sitting) = &mut self.membership else { return };
        if asking || sitting.unclear_since.is_some_and(|since| ask < since) {
            self.look |= !asking;
            return;
        }
        match snapshot.nodes.get(&self.settings.node) {
            Some(found) if found.session.as_ref() == Some(&sitting.session) => {
                sitting.named = true;
                sitting.unclear_since = None;
                sitting.name_taken_since = None;
                // A list from before the last write is corrected by the next.
                sitting.written = Some((found.version, keys::write(&found.record)));
            }
            Some(_) => {
                (sitting.named, sitting.written) = (false, None);
                sitting.unclear_since = Some(ask + 1);
                let since = *sitting.name_taken_since.get_or_insert(now);
                self.look_at = self.look_at.min(now + self.settings.renew);
                // A process that was killed leaves its name for a lease at most.
                if now >= since + self.settings.lease * 3 {
                    self.actions.push(Action::Exit(Exit::NameTaken));
                }
            }
            None => (sitting.written, sitting.unclear_since, sitting.name_taken_since) = (None, None, None),
        }
    }

    /// Once nothing runs any more the session is ended, and all its keys with it.
    pub(super) fn pursue_leaving(&mut self) {
        let asked = self.asked.values().any(|question| *question == Question::End);
        if self.stopping
            && self.tenures.is_empty()
            && !asked
            && let Membership::In(sitting) = &mut self.membership
        {
            sitting.ending = true;
            let session = sitting.session.clone();
            self.ask(Question::End, Request::End { session });
        }
    }

    pub(super) fn left(&mut self) {
        if self.membership != Membership::Left {
            self.membership = Membership::Left;
            self.actions.push(Action::Exit(Exit::Left));
        }
    }

    pub(super) fn session_wakes(&self) -> Vec<Duration> {
        match &self.membership {
            // It asks for none any more, and waits for its units to be closed.
            Membership::Out { .. } if self.stopping || !self.is_awake() => Vec::new(),
            Membership::Out { again } => vec![*again],
            Membership::In(sitting) => {
                let renews = self.is_awake().then_some(sitting.renew_at);
                let margin = if sitting.halted { Duration::ZERO } else { self.settings.margin };
                renews.into_iter().chain([sitting.deadline.saturating_sub(margin)]).collect()
            }
            Membership::Asking | Membership::Left => Vec::new(),
        }
    }
}
