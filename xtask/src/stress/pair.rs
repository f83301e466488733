//! What one client knows of one document, and whether what it is told next keeps the promises.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::beliefs::{Action, Beliefs, Ending};
use super::connection::Connection;
use super::told::{Payload, Told, patched};
use super::world::World;

/// So many of the last requests of a document are shown when something is wrong with it.
const LOG: usize = 16;

/// What one client knows of one document.
pub struct Pair {
    beliefs: Beliefs,
    /// The last that began.
    pub begun: Option<Begun>,
    /// The last that Flare surely knows to be delivered.
    delivered: Option<Begun>,
    /// An answer of which it is not known yet whether it arrived.
    answered: Option<Answered>,
    open: Vec<Open>,
    /// The document as the client has it.
    pub has: Option<(i64, Value)>,
    /// The sequence of that.
    pub sequence: u64,
    /// The revision that the client answered with success, if nothing is uncertain since.
    certain: Option<i64>,
    /// How the last one ended that ended.
    pub ended: Option<Ending>,
    /// Everything it was told, repetitions left out.
    pub revisions: Vec<(i64, Action)>,
    pub log: VecDeque<String>,
}

#[derive(Clone, Debug)]
pub struct Begun {
    pub told: Told,
    /// How often by then the node was killed, the filter changed, and the feed begun again.
    pub kills: u64,
    pub filter_changes: u64,
    /// The filter may be either the former or the new one.
    pub refiltering: bool,
    pub beginnings: u64,
}

impl Begun {
    /// Whether the filter may have been another for one that began before.
    pub fn under_another_filter(&self, before: &Begun) -> bool {
        self.filter_changes != before.filter_changes || self.refiltering || before.refiltering
    }
}

struct Answered {
    proof: Proof,
    ending: Ending,
    begun: Begun,
}

/// How it is known whether Flare got an answer.
pub enum Proof {
    /// It said so.
    Sure,
    /// The connection, and the number of the request on it, will tell.
    On(Arc<Connection>, u64),
    /// It never will be.
    None,
}

struct Open {
    number: u64,
    /// Of a request.
    connection: Option<Arc<Connection>>,
    /// Of a lease: it does not end before.
    until: Option<Instant>,
}

impl Default for Pair {
    fn default() -> Pair {
        Pair::new(Beliefs::NOTHING)
    }
}

impl Pair {
    /// Nothing was told yet; what Flare can believe all the same.
    pub fn new(beliefs: Beliefs) -> Pair {
        Pair {
            beliefs,
            begun: None,
            delivered: None,
            answered: None,
            open: Vec::new(),
            has: None,
            sequence: 0,
            certain: None,
            ended: None,
            revisions: Vec::new(),
            log: VecDeque::new(),
        }
    }
}

/// How a notification came.
pub enum Way {
    Request(Arc<Connection>),
    /// Taken by a reservation or a stream, on a lease that does not end before.
    Lease(Instant),
}

impl Pair {
    /// Flare may be in doubt. What the client answered with success it has all the same, and nothing else happened to it.
    pub fn blur(&mut self) {
        self.conclude(u64::MAX);
        self.beliefs = self.beliefs.or_doubt();
        self.delivered = None;
    }

    /// Whether the last answer arrived is known now, as far as it ever will be.
    pub fn conclude(&mut self, kills: u64) {
        let Some(Answered { proof, ending, begun }) = self.answered.take() else { return };
        // A connection that is still open, or was used again, shows that Flare took the answer: one that timed out it
        // closes.
        let taken = match proof {
            Proof::Sure => true,
            Proof::On(connection, number) => connection.proves_answer(number),
            Proof::None => false,
        };
        let taken = taken && begun.kills == kills;
        if taken {
            self.beliefs = self.beliefs.after_end(begun.told.action, ending);
            if ending == Ending::Delivered {
                self.delivered = Some(begun);
            }
        } else {
            self.beliefs = self.beliefs.after_end_or_loss(begun.told.action, ending);
        }
    }

    /// A lease whose time is over, and of which nothing was said, has ended: nobody knows what the client did with it.
    pub fn end_leases(&mut self) {
        let over = |open: &Open| open.until.is_some() && !open.is_open();
        if self.open.iter().any(over) {
            self.open.retain(|open| !over(open));
            self.certain = None;
            self.ended = Some(Ending::Failed);
            if let Some(begun) = &self.begun {
                self.beliefs = self.beliefs.after_end(begun.told.action, Ending::Failed);
            }
        }
    }

    fn note(&mut self, line: String) {
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(line);
    }

    /// The client processes a notification: lower sequences are ignored. False if a patch does not fit.
    pub fn apply(&mut self, told: &Told) -> bool {
        if told.sequence < self.sequence {
            return true;
        }
        let state = match (&told.payload, told.action) {
            (_, Action::Delete) => None,
            (Payload::Whole(document), _) => Some((told.revision, document.clone())),
            (Payload::Patch { patch, .. }, _) => {
                let has = self.has.as_ref().and_then(|(_, document)| patched(document, patch));
                let Some(document) = has else { return false };
                Some((told.revision, document))
            }
            (Payload::Nothing, _) => return false,
        };
        (self.has, self.sequence) = (state, told.sequence);
        true
    }

    /// Something begins. What is wrong with that.
    pub fn begins(&mut self, request: u64, begun: Begun, way: Way) -> Option<String> {
        let wrong = self
            .open
            .iter()
            .any(Open::stays_open)
            .then(|| "a request begins while another one is open".into());
        let (connection, until) = match way {
            Way::Request(connection) => (Some(connection), None),
            Way::Lease(until) => (None, Some(until)),
        };
        let told = &begun.told;
        self.beliefs = self.beliefs.after_begin(told.action);
        self.open.retain(Open::is_open);
        self.open.push(Open { number: request, connection, until });
        if self.revisions.last() != Some(&(told.revision, told.action)) {
            self.revisions.push((told.revision, told.action));
        }
        self.note(format!("#{request} begins: {}", begun.told));
        self.begun = Some(begun);
        wrong
    }

    /// What began under this number ends.
    pub fn ends(&mut self, request: u64, told: &Told, ending: Ending, proof: Proof, kills: u64) {
        self.open.retain(|open| open.number != request);
        self.note(format!("#{request} ends: {ending:?}"));
        // After a kill all that was open counts as lost already; but a lease outlives it.
        let survived = matches!(proof, Proof::Sure);
        let known = |begun: &Begun| begun.told.repeats(told) && (survived || begun.kills == kills);
        let Some(begun) = self.begun.clone().filter(known) else { return };
        self.ended = Some(ending);
        match ending {
            Ending::Delivered => self.certain = (told.action != Action::Delete).then_some(told.revision),
            Ending::Discarded => {}
            Ending::Failed => self.certain = None,
        }
        match ending {
            Ending::Failed => self.beliefs = self.beliefs.after_end(told.action, ending),
            _ => self.answered = Some(Answered { proof, ending, begun: Begun { kills, ..begun } }),
        }
    }

    /// It was read only now that its sender had given it up.
    pub fn comes_late(&mut self, told: &Told) {
        self.note(format!("late: {told}"));
        self.blur();
        self.ended = Some(Ending::Failed);
    }

    /// A lease that outlives a restart is measured by the wall clock.
    pub fn clock_was_set(&mut self) {
        for open in self.open.iter_mut().filter(|open| open.until.is_some()) {
            open.until = Some(Instant::now());
        }
    }

    /// Requests that were open are lost; leases are not.
    pub fn killed(&mut self) {
        if self.open.iter().any(|open| open.connection.is_some()) {
            self.ended = Some(Ending::Failed);
            self.certain = None;
        }
        self.open.retain(|open| open.connection.is_none());
        self.blur();
        self.note("killed".into());
    }
}

impl Pair {
    /// Promises 1 and 2: sequences and revisions never fall, nothing is told twice without a reason, and the action is
    /// one that fits what the client can be taken to have.
    pub fn check_order(&self, begun: &Begun) -> Vec<String> {
        let told = &begun.told;
        let mut wrong = Vec::new();
        if let Some(before) = &self.begun {
            if told.sequence < before.told.sequence {
                wrong.push(format!("the sequence falls: {told} after {}", before.told));
            }
            if told.revision < before.told.revision {
                wrong.push(format!("the revision falls: {told} after {}", before.told));
            }
        }
        if let Some(delivered) = &self.delivered {
            // After a kill it may not be known any more that it was delivered; a changed filter has documents enter and
            // leave at the sequence they have; a replay is asked for; a feed that begins again sends everything.
            let since = delivered.kills == begun.kills && delivered.beginnings == begun.beginnings;
            let transition = begun.under_another_filter(delivered) && told.action != Action::Update;
            if since && told.replay.is_none() && told.sequence <= delivered.told.sequence && !transition {
                wrong.push(format!("it is told again though it was delivered: {told}"));
            }
        }
        if !self.beliefs.allow(told.action) {
            wrong.push(format!(
                "{:?} does not fit what the client can be taken to have ({:?})",
                told.action, self.beliefs
            ));
        }
        wrong
    }

    /// What is told of the document is what the origin said; a patch starts from what the client surely has.
    pub fn check_payload(&self, world: &World, resource: usize, told: &Told) -> Option<String> {
        let document = world.resources[resource].documents.get(&told.document)?;
        let said = document.find(told.revision, false).and_then(|said| said.content.as_ref());
        match (&told.payload, told.action) {
            (Payload::Nothing, Action::Delete) => None,
            (_, Action::Delete) => Some(format!("a delete with a document: {told}")),
            (Payload::Nothing, _) => Some(format!("the document is missing: {told}")),
            (Payload::Whole(document), _) => {
                (Some(document) != said).then(|| format!("not what the origin said: {told}: {document}"))
            }
            (Payload::Patch { from, .. }, _) if self.certain != Some(*from) => {
                Some(format!("a patch from {from} to a client that surely has {:?}", self.certain))
            }
            (Payload::Patch { patch, .. }, _) => {
                let now = self.has.as_ref().and_then(|(_, document)| patched(document, patch));
                (now.as_ref() != said)
                    .then(|| format!("a patch that does not lead to what the origin said: {patch}"))
            }
        }
    }
}

impl Open {
    /// Whether it is still open at the sender's end, for longer than a word that it is not may be on its way.
    fn stays_open(&self) -> bool {
        self.is_open() && self.connection.as_ref().is_none_or(|connection| connection.stays_open())
    }

    /// Whether it is still open at the sender's end. It may have given it up, or its lease may have ended.
    fn is_open(&self) -> bool {
        let connection = self.connection.as_ref().is_none_or(|connection| connection.is_open());
        connection && self.until.is_none_or(|until| Instant::now() < until)
    }
}
