//! What one node does in a cluster, as a machine without I/O: events and the time come in, actions go out. Whoever runs it makes
//! each [`Request`] a call of the coordinator (or, for an epoch, of the ledger), hands the answer back under the number of the question,
//! does as it is told about units, and calls again at [`Life::wakes_at`].
//!
//! - A node acts as a leader or an owner only while its own deadline holds, which counts from before the request that was
//!   answered last was sent. A renewal that failed or was not answered moves nothing: at the deadline all is lost.
//! - A margin before that (`session`) nothing new is begun, what is open is cut, and nothing is written. If a renewal still comes, units are
//!   opened again, under new epochs.
//! - A unit (`units`) is claimed before its epoch is taken, and released when nothing of it runs any more. The next owner
//!   waits for that, or for the end of the lease. Whether a claim is there after an answer was lost is looked up.
//! - A leader (`leading`) takes an epoch, reads everything, and then plans. What it writes carries the epoch.
//! - A node that lives and does not work (`fitness`) says so, and gives up what another can have.

#[cfg(test)]
mod check;
mod fitness;
mod leading;
mod session;
mod snapshot;
#[cfg(test)]
mod tests;
mod units;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fitness::Fitness;
pub use fitness::Signs;
pub use session::{Membership, Sitting};
pub use snapshot::{Claim, Keyed, Registered, Snapshot};
pub use units::{Tenure, Then};

use super::keys::NodeRecord;
use super::{NodeId, NodeState, Reason, SessionId, UnitId, Version};
use crate::time::Timestamp;
use leading::{Leading, Members};

/// The number of a question. Each is answered once at most; a late answer to what nobody waits for any more does nothing.
pub type Ask = u64;

/// How the node is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Its name.
    pub node: NodeId,
    /// How long its lease lasts.
    pub lease: Duration,
    /// How often it is renewed.
    pub renew: Duration,
    /// So long before the end of the lease units stop.
    pub margin: Duration,
    /// So long may what is in flight take when a unit moves.
    pub drain_timeout: Duration,
    /// So long the members have to stay the same until units move for balance.
    pub rebalance_delay: Duration,
    /// Units under way at once for balance.
    pub moves: u32,
}

/// A moment: by the clock of the node that only grows, and by the one that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Decides.
    pub monotonic: Duration,
    /// Is only written down.
    pub wall: Timestamp,
}

/// A unit that there is.
#[derive(Clone, Debug, PartialEq)]
pub struct Existing {
    /// How much work it is.
    pub weight: f64,
    /// Why it is there.
    pub origin: Reason,
    /// In how many parts that which it is a part of is cut.
    pub parts: u32,
    /// It goes where this one goes, whose weight is that of both.
    pub with: Option<UnitId>,
}

/// What happens to the node.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed.
    Woke,
    /// A question is answered.
    Answered {
        /// The question.
        ask: Ask,
        /// The answer.
        answer: Answer,
    },
    /// A watch says that keys changed, or that it lost track.
    Changed,
    /// The catalog has these units.
    Units(Arc<BTreeMap<UnitId, Existing>>),
    /// What is said of the node changed: its load, whether it gives units back.
    Describes(NodeRecord),
    /// The node is to hand its units over, or to take some again.
    Drains(bool),
    /// The node is to leave.
    Stops,
    /// A unit is at work.
    Opened(UnitId),
    /// A unit could not be opened; nothing of it runs.
    NotOpened(UnitId),
    /// Nothing of a unit runs any more: it was drained or cut.
    Closed(UnitId),
    /// The ledger refused what a unit wrote: another has it, or had it.
    Fenced(UnitId),
    /// What the node notices of itself: whether it works.
    Notices(Signs),
}

/// What is asked of the coordinator, or of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begin a session of this node.
    Grant {
        /// For so long.
        ttl: Duration,
    },
    /// Renew it, as this node's.
    Renew {
        /// The session.
        session: SessionId,
    },
    /// End it.
    End {
        /// The session.
        session: SessionId,
    },
    /// Create a key.
    Create {
        /// Its name.
        key: String,
        /// Its value.
        value: Vec<u8>,
        /// The session that it is in.
        session: Option<SessionId>,
    },
    /// Replace a key of this version.
    Replace {
        /// Its name.
        key: String,
        /// The version.
        version: Version,
        /// Its new value.
        value: Vec<u8>,
    },
    /// Delete a key of this version.
    Delete {
        /// Its name.
        key: String,
        /// The version.
        version: Version,
    },
    /// List all keys.
    List,
    /// Take an epoch from the ledger.
    Epoch,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A session began.
    Granted {
        /// Its name.
        session: SessionId,
        /// How long it lives, counted from when it was asked for.
        ttl: Duration,
    },
    /// A session was renewed for so long.
    Renewed(Duration),
    /// Written, with this version; or deleted or ended, with none.
    Done(Option<Version>),
    /// All keys.
    Listed(Arc<Snapshot>),
    /// An epoch.
    Epoch(u64),
    /// The key is there already, or its version is another one: nothing was written.
    Conflict,
    /// There is no such session of this node any more: nothing was written.
    Fenced,
    /// Nothing was written.
    Failed,
    /// May be written, now or later.
    Unknown,
}

/// What the node is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask this.
    Ask {
        /// Under this number.
        ask: Ask,
        /// What.
        request: Request,
    },
    /// Open a unit under this epoch.
    Open {
        /// The unit.
        unit: UnitId,
        /// The epoch.
        epoch: u64,
    },
    /// Begin nothing new of a unit, finish what is in flight, record it.
    Drain(UnitId),
    /// Stop a unit at once: what is open is in doubt, and nothing more is written.
    Cut(UnitId),
    /// The node has left, or may not join.
    Exit(Exit),
}

/// Why a node is out of the cluster for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to leave, and has.
    Left,
    /// Another live node has its name.
    NameTaken,
}

/// What a question was about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    Grant { sent: Duration },
    Renew { sent: Duration },
    End,
    Register(Box<NodeRecordWritten>),
    Read,
    Elect,
    LeaderEpoch,
    Resign,
    Part,
    Claim(UnitId),
    Epoch(UnitId),
    Publish(UnitId, u64),
    Release(UnitId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeRecordWritten(Vec<u8>);

/// A node in the cluster.
pub struct Life {
    settings: Settings,
    /// What it says of itself.
    record: NodeRecord,
    now: Moment,
    next_ask: Ask,
    asked: BTreeMap<Ask, Question>,
    membership: Membership,
    tenures: BTreeMap<UnitId, Tenure>,
    /// What the node did last about a claim: only what was listed after that says something of it.
    since: BTreeMap<UnitId, Ask>,
    /// Into how many parts that was cut which each unit is a part of, when the unit was taken. One that is cut otherwise by
    /// now is given up, and taken anew.
    cuts: BTreeMap<UnitId, u32>,
    /// What was listed last, and when it was asked for.
    seen: Option<(Ask, Arc<Snapshot>)>,
    /// Something may have changed since the list that was asked for last.
    look: bool,
    /// When to look even though nothing was heard.
    look_at: Duration,
    /// The last list failed: not again before this.
    look_not_before: Duration,
    leading: Leading,
    members: Members,
    fitness: Fitness,
    catalog: Option<Arc<BTreeMap<UnitId, Existing>>>,
    stopping: bool,
    actions: Vec<Action>,
    #[cfg(test)]
    broken: Option<check::Broken>,
}

impl Life {
    /// A node that is about to join.
    pub fn new(settings: Settings, record: NodeRecord, now: Moment) -> Life {
        Life {
            settings,
            record,
            now,
            next_ask: 1,
            asked: BTreeMap::new(),
            membership: Membership::Out { again: now.monotonic },
            tenures: BTreeMap::new(),
            since: BTreeMap::new(),
            cuts: BTreeMap::new(),
            seen: None,
            look: true,
            look_at: now.monotonic,
            look_not_before: now.monotonic,
            leading: Leading::No,
            members: Members::default(),
            fitness: Fitness::new(now.monotonic),
            catalog: None,
            stopping: false,
            actions: Vec::new(),
            #[cfg(test)]
            broken: None,
        }
    }

    /// Something happens; what is to be done about it comes out, in order.
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Action> {
        self.now = Moment { monotonic: now.monotonic.max(self.now.monotonic), ..now };
        let event = self.renewal_first(event);
        self.keep_time();
        match event {
            Event::Woke => {}
            Event::Answered { ask, answer } => self.answered(ask, answer),
            Event::Changed => self.look = true,
            Event::Units(units) => self.catalog = Some(units),
            Event::Describes(record) => self.record = NodeRecord { state: self.record.state, ..record },
            Event::Drains(drains) => {
                self.record.state = if drains { NodeState::Draining } else { NodeState::Live };
            }
            Event::Stops => {
                self.stopping = true;
                self.record.state = NodeState::Draining;
            }
            Event::Opened(unit) => self.opened(unit),
            Event::NotOpened(unit) => self.not_opened(unit),
            Event::Closed(unit) => self.closed(unit),
            Event::Fenced(unit) => self.cut(unit, units::Then::Look),
            Event::Notices(signs) => self.fitness.hears(signs, self.now.monotonic),
        }
        self.fitness.look(self.now.monotonic, self.settings.lease);
        self.pursue();
        std::mem::take(&mut self.actions)
    }

    /// When to be called even though nothing happens.
    pub fn wakes_at(&self) -> Duration {
        let looks = if self.look { self.look_not_before } else { self.look_at.max(self.look_not_before) };
        let under_way = self.asked.values().any(|question| *question == Question::Read);
        let looks = (self.may_act() && !under_way).then_some(looks);
        let times = self.session_wakes().into_iter().chain(self.unit_wakes()).chain(self.leader_wakes());
        let times = times.chain(self.fitness_wakes());
        times.chain(looks).fold(self.now.monotonic + self.settings.lease, Duration::min)
    }

    /// The epoch under which it leads, if it does.
    pub fn leads(&self) -> Option<u64> {
        match &self.leading {
            Leading::Leads { epoch, .. } if self.may_act() => Some(*epoch),
            _ => None,
        }
    }

    /// Its units, with what it does about each.
    pub fn tenures(&self) -> &BTreeMap<UnitId, Tenure> {
        &self.tenures
    }

    /// What it knows of the cluster: as it was listed last.
    pub fn seen(&self) -> Option<&Arc<Snapshot>> {
        self.seen.as_ref().map(|(_, snapshot)| snapshot)
    }

    fn ask(&mut self, question: Question, request: Request) -> Ask {
        let ask = self.next_ask;
        self.next_ask += 1;
        self.asked.insert(ask, question);
        self.actions.push(Action::Ask { ask, request });
        ask
    }

    fn answered(&mut self, ask: Ask, answer: Answer) {
        let Some(question) = self.asked.remove(&ask) else { return };
        if matches!(answer, Answer::Fenced) && !matches!(question, Question::Grant { .. }) {
            // The session is over, whatever the clock says.
            self.lose();
            return;
        }
        match question {
            Question::Grant { sent } => self.granted(sent, answer),
            Question::Renew { .. } => self.not_renewed(),
            Question::End => self.left(),
            Question::Register(written) => self.registered(written.0, answer),
            Question::Read => self.listed(ask, answer),
            Question::Elect => self.elected(answer),
            Question::LeaderEpoch => self.leader_epoch(answer),
            Question::Resign => self.resigned(),
            Question::Part => self.part_written(answer),
            Question::Claim(unit) => self.claimed(unit, answer),
            Question::Epoch(unit) => self.epoch_taken(unit, answer),
            Question::Publish(unit, epoch) => self.published(unit, epoch, answer),
            Question::Release(unit) => self.released(unit, answer),
        }
    }

    fn listed(&mut self, ask: Ask, answer: Answer) {
        let Answer::Listed(snapshot) = answer else {
            self.look = true;
            self.look_not_before = self.now.monotonic + self.settings.renew / 4;
            return;
        };
        self.seen = Some((ask, snapshot.clone()));
        self.check_registration(ask, &snapshot);
        self.check_claims(ask, &snapshot);
        self.check_leader(ask, &snapshot);
    }

    /// Does what there is to do.
    fn pursue(&mut self) {
        self.pursue_session();
        if self.is_ending() {
            self.pursue_leaving();
        }
        if !self.may_act() {
            return;
        }
        self.pursue_units();
        self.pursue_leading();
        self.pursue_looking();
        self.pursue_leaving();
    }

    fn pursue_looking(&mut self) {
        let now = self.now.monotonic;
        let under_way = self.asked.values().any(|question| *question == Question::Read);
        if (self.look || now >= self.look_at) && now >= self.look_not_before && !under_way {
            self.look = false;
            self.look_at = now + self.settings.lease;
            self.ask(Question::Read, Request::List);
        }
    }
}
