//! What the clients remember: every notification of every document, and what they made of it. Each that comes is held
//! against the promises of the product, with everything that came before.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::beliefs::{Action, Beliefs, Ending};
use super::connection::Connection;
use super::dice::Dice;
use super::mood::Mood;
use super::told::{Payload, Told, patched};
use super::wish::Filter;
use super::world::{Tick, World};

/// So many of the last requests of a document are shown when something is wrong with it.
const LOG: usize = 16;

/// A request may reach the eyes of a client so much later than it began: the machine is busy.
const SLOW: Duration = Duration::from_secs(2);

/// All clients of a run.
#[derive(Default)]
pub struct Clients {
    pub list: Vec<Client>,
    pub wrong: Vec<Wrong>,
    /// How often the node was killed.
    pub kills: u64,
    /// Notifications by their ids, over all clients.
    ids: HashMap<String, (usize, Told)>,
    pub requests: u64,
    journal: Journal,
}

/// What happened, in order: written to a file when a run fails. Bound: so many lines; further ones are left out.
#[derive(Default)]
struct Journal {
    began: Option<Instant>,
    lines: Vec<String>,
}

const JOURNAL: usize = 50_000;

/// A promise that was not kept.
#[derive(Clone, Debug)]
pub struct Wrong {
    pub what: String,
    pub client: usize,
    pub document: String,
    at: Instant,
}

/// The client of one subscription.
pub struct Client {
    pub resource: usize,
    pub mood: Mood,
    pub dice: Dice,
    pub pairs: BTreeMap<String, Pair>,
    /// Filters that may be in effect, with the time when they were replaced.
    pub filters: Vec<(Filter, Option<Instant>)>,
    /// How often its filter was begun to be changed, and was changed: odd while that is under way.
    pub filter_changes: u64,
    /// How often its feed was begun again, with everything in doubt.
    pub beginnings: u64,
    /// Skips notifications whose id it has applied, as the guide allows.
    pub skips: bool,
    /// Up to this moment something may have been sent that nobody saw.
    blurred: Tick,
    /// Something was sent that nobody saw, or not in its turn.
    pub unseen: bool,
    /// Nothing may begin since then: it is paused, disabled or deleted.
    pub quiet: Option<(Instant, &'static str)>,
    /// All that it answered with success, by their ids.
    applied_ids: HashMap<String, ()>,
}

/// What one client knows of one document.
pub struct Pair {
    beliefs: Beliefs,
    /// The last that began.
    begun: Option<Begun>,
    /// The last that Flare surely knows to be delivered.
    delivered: Option<Begun>,
    /// An answer of which it is not known yet whether it arrived.
    answered: Option<Answered>,
    open: Vec<Open>,
    /// The document as the client has it.
    pub has: Option<(i64, Value)>,
    /// The sequence of that.
    sequence: u64,
    /// The revision that the client answered with success, if nothing is uncertain since.
    certain: Option<i64>,
    /// How the last one ended that ended.
    pub ended: Option<Ending>,
    /// Everything it was told, repetitions left out.
    pub revisions: Vec<(i64, Action)>,
    pub log: VecDeque<String>,
}

#[derive(Clone, Debug)]
struct Begun {
    told: Told,
    kills: u64,
    filter_changes: u64,
    beginnings: u64,
}

impl Begun {
    /// Whether the filter may have been another for one that began before.
    fn under_another_filter(&self, before: &Begun) -> bool {
        self.filter_changes != before.filter_changes || self.filter_changes % 2 == 1
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
        Pair {
            beliefs: Beliefs::NOTHING,
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

impl Client {
    pub fn new(resource: usize, filter: Filter, dice: Dice, skips: bool) -> Client {
        Client {
            resource,
            mood: Mood::Healthy,
            dice,
            pairs: BTreeMap::new(),
            filters: vec![(filter, None)],
            filter_changes: 0,
            beginnings: 0,
            skips,
            blurred: 0,
            unseen: false,
            quiet: None,
            applied_ids: HashMap::new(),
        }
    }

    /// What it has, by document.
    pub fn state(&self) -> impl Iterator<Item = (&String, &(i64, Value))> {
        self.pairs.iter().filter_map(|(url, pair)| Some((url, pair.has.as_ref()?)))
    }

    /// The filter is about to be another.
    pub fn refilter(&mut self, filter: Filter) {
        self.filter_changes += 1 + self.filter_changes % 2;
        self.filters.push((filter, None));
    }

    /// From now on this filter counts and no other.
    pub fn refiltered(&mut self, filter: Filter) {
        self.filter_changes += self.filter_changes % 2;
        self.filters.retain(|(_, replaced)| replaced.is_none_or(|at| at.elapsed() < SLOW));
        for (_, replaced) in &mut self.filters {
            replaced.get_or_insert(Instant::now());
        }
        self.filters.push((filter, None));
    }

    /// Whether a filter that may be in effect says so of a document, or cannot say.
    fn may_judge(&self, document: &Value, included: bool) -> bool {
        let in_effect = self.filters.iter().filter(|(_, at)| at.is_none_or(|at| at.elapsed() < SLOW));
        in_effect.map(|(filter, _)| filter.includes(document)).any(|says| says == Some(included))
    }

    /// Something of it may have begun, or ended, that nobody saw: a reservation whose answer was lost, a connection that
    /// broke before the request was read.
    pub fn blur(&mut self, now: Tick) {
        (self.blurred, self.unseen) = (now, true);
        for pair in self.pairs.values_mut() {
            pair.blur();
        }
    }
}

impl Pair {
    /// Flare may be in doubt. What the client answered with success it has all the same, and nothing else happened to it.
    fn blur(&mut self) {
        self.conclude(u64::MAX);
        self.beliefs = self.beliefs.or_doubt();
        self.delivered = None;
    }

    /// Whether the last answer arrived is known now, as far as it ever will be.
    fn conclude(&mut self, kills: u64) {
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
    fn end_leases(&mut self) {
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
    fn apply(&mut self, told: &Told) -> bool {
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
}

impl Clients {
    /// Something happened.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let began = *self.journal.began.get_or_insert_with(Instant::now);
        if self.journal.lines.len() < JOURNAL {
            self.journal.lines.push(format!("{:>8.1} {}", began.elapsed().as_secs_f64() * 1e3, line()));
        }
    }

    /// All that happened.
    pub fn journal(&self) -> String {
        self.journal.lines.join("\n")
    }

    /// Something is wrong.
    pub fn wrong(&mut self, client: usize, document: &str, what: String) {
        self.note(|| format!("WRONG {what}: client {client} {document}"));
        self.wrong.push(Wrong { what, client, document: document.to_owned(), at: Instant::now() });
    }

    /// A notification begins. Answers the number under which it will end.
    pub fn begins(&mut self, world: &World, number: usize, told: &Told, way: Way) -> u64 {
        self.requests += 1;
        let (kills, request) = (self.kills, self.requests);
        let client = &mut self.list[number];
        let (filter_changes, beginnings) = (client.filter_changes, client.beginnings);
        let begun = Begun { told: told.clone(), kills, filter_changes, beginnings };
        let mut wrong = Vec::new();
        if let Some((since, why)) = client.quiet
            && since.elapsed() > SLOW
        {
            wrong.push(format!("it is told though it is {why}"));
        }
        wrong.extend(self.check_id(number, told, &begun));
        let client = &mut self.list[number];
        wrong.extend(client.check_membership(world, told));
        let blurred = client.blurred;
        let pair = client.pairs.entry(told.document.clone()).or_insert_with(|| {
            // Of a document that is older than a kill something may have been sent.
            let first = world.resources[client.resource].documents.get(&told.document);
            let older =
                first.and_then(|document| document.said.first()).is_some_and(|said| said.began < blurred);
            let beliefs = if older { Beliefs::NOTHING.or_doubt() } else { Beliefs::NOTHING };
            Pair { beliefs, ..Pair::default() }
        });
        pair.conclude(kills);
        pair.end_leases();
        wrong.extend(pair.check_order(&begun));
        wrong.extend(pair.check_payload(world, client.resource, told));
        if pair.open.iter().any(Open::is_open) {
            wrong.push("a request begins while another one is open".into());
        }
        let (connection, until) = match way {
            Way::Request(connection) => (Some(connection), None),
            Way::Lease(until) => (None, Some(until)),
        };
        pair.beliefs = pair.beliefs.after_begin(told.action);
        pair.open.retain(Open::is_open);
        pair.open.push(Open { number: request, connection, until });
        if pair.revisions.last() != Some(&(told.revision, told.action)) {
            pair.revisions.push((told.revision, told.action));
        }
        pair.begun = Some(begun);
        pair.note(format!("#{request} begins: {told}"));
        self.note(|| format!("#{request} to client {number} begins: {told} {}", told.document));
        for what in wrong {
            self.wrong(number, &told.document, what);
        }
        request
    }

    /// One id for one notification, and one notification under one id.
    fn check_id(&mut self, number: usize, told: &Told, begun: &Begun) -> Option<String> {
        let known = self.ids.entry(told.id.clone()).or_insert_with(|| (number, told.clone()));
        if known.0 != number || known.1.document != told.document || !known.1.repeats(told) {
            return Some(format!(
                "one id for two notifications: {told} and {} of client {}",
                known.1, known.0
            ));
        }
        // A filter that was changed has what is told under it be another notification.
        let pair = self.list[number].pairs.get(&told.document)?;
        let before = pair.begun.as_ref().filter(|before| !begun.under_another_filter(before))?;
        (before.told.repeats(told) && before.told.id != told.id)
            .then(|| format!("one notification under two ids: {told} and {}", before.told))
    }

    /// The client processes what began under this number, if it does at all.
    pub fn processes(&mut self, number: usize, told: &Told) {
        let client = &mut self.list[number];
        if client.skips && client.applied_ids.contains_key(&told.id) {
            return;
        }
        let pair = client.pairs.entry(told.document.clone()).or_default();
        let fits = pair.apply(told);
        client.applied_ids.insert(told.id.clone(), ());
        if !fits {
            self.wrong(
                number,
                &told.document,
                format!("it cannot be applied to what the client has: {told}"),
            );
        }
    }

    /// The same, long after the sender gave it up: only if nothing as new came since.
    pub fn processes_late(&mut self, number: usize, told: &Told) {
        let known = self.list[number].pairs.get(&told.document);
        let newer = known.is_none_or(|pair| told.sequence > pair.sequence);
        if newer && !matches!(told.payload, Payload::Patch { .. }) {
            self.processes(number, told);
        }
    }

    /// The client is about to answer, or the sender has left.
    pub fn ends(&mut self, number: usize, request: u64, told: &Told, ending: Ending, proof: Proof) {
        let kills = self.kills;
        let pair = self.list[number].pairs.entry(told.document.clone()).or_default();
        pair.open.retain(|open| open.number != request);
        pair.note(format!("#{request} ends: {ending:?}"));
        self.note(|| format!("#{request} ends: {ending:?}"));
        let pair = self.list[number].pairs.entry(told.document.clone()).or_default();
        // After a kill all that was open counts as lost already; but a lease outlives it.
        let survived = matches!(proof, Proof::Sure);
        let Some(begun) =
            pair.begun.clone().filter(|begun| begun.told.repeats(told) && (survived || begun.kills == kills))
        else {
            return;
        };
        pair.ended = Some(ending);
        match ending {
            Ending::Delivered => pair.certain = (told.action != Action::Delete).then_some(told.revision),
            Ending::Discarded => {}
            Ending::Failed => pair.certain = None,
        }
        match ending {
            Ending::Failed => pair.beliefs = pair.beliefs.after_end(told.action, ending),
            _ => pair.answered = Some(Answered { proof, ending, begun: Begun { kills, ..begun } }),
        }
    }

    /// A request is read only now that its sender has given it up: others that began after it may have been judged
    /// before. What was found in them is no finding, and nothing is certain until the next success.
    pub fn comes_late(&mut self, number: usize, told: &Told) {
        self.wrong.retain(|wrong| {
            wrong.client != number || wrong.document != told.document || wrong.at.elapsed() > SLOW
        });
        self.note(|| format!("late to client {number}: {told} {}", told.document));
        self.list[number].unseen = true;
        let pair = self.list[number].pairs.entry(told.document.clone()).or_default();
        pair.note(format!("late: {told}"));
        pair.blur();
        pair.ended = Some(Ending::Failed);
    }

    /// The wall clock was set: a lease that outlives a restart is measured by it.
    pub fn clock_was_set(&mut self) {
        let pairs = self.list.iter_mut().flat_map(|client| client.pairs.values_mut());
        for open in pairs.flat_map(|pair| &mut pair.open).filter(|open| open.until.is_some()) {
            open.until = Some(Instant::now());
        }
    }

    /// kill -9: outcomes of the last moments are lost, and so is which requests were open. That excuses doubt.
    pub fn killed(&mut self, now: Tick) {
        self.kills += 1;
        self.note(|| "killed".into());
        for client in &mut self.list {
            client.blurred = now;
            for pair in client.pairs.values_mut() {
                let open = pair.open.iter().any(|open| open.connection.is_some());
                pair.open.retain(|open| open.connection.is_none());
                if open {
                    pair.ended = Some(Ending::Failed);
                    pair.certain = None;
                }
                pair.blur();
                pair.note("killed".into());
            }
        }
    }
}

impl Client {
    /// What it is told is to be its own by a filter that may be in effect; and what it is told to be gone is gone, or
    /// not its own.
    fn check_membership(&self, world: &World, told: &Told) -> Option<String> {
        let document = world.resources[self.resource].documents.get(&told.document);
        let Some(document) = document else {
            return Some(format!("the origin never said {}", told.document));
        };
        let said = document.find(told.revision, false);
        let content = said.and_then(|said| said.content.as_ref());
        match told.action {
            Action::Delete => {
                let gone = document.find(told.revision, true).is_some();
                let left = content.is_some_and(|content| self.may_judge(content, false));
                (!gone && !left).then(|| format!("a delete of what is not gone: {told}"))
            }
            _ => match content {
                None => Some(format!("the origin never said this revision: {told}")),
                Some(content) => {
                    (!self.may_judge(content, true)).then(|| format!("not within the filter: {told}"))
                }
            },
        }
    }
}

impl Pair {
    /// Promises 1 and 2: sequences and revisions never fall, nothing is told twice without a reason, and the action is
    /// one that fits what the client can be taken to have.
    fn check_order(&self, begun: &Begun) -> Vec<String> {
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
    fn check_payload(&self, world: &World, resource: usize, told: &Told) -> Option<String> {
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
    /// Whether it is still open at the sender's end. It may have given it up, or its lease may have ended.
    fn is_open(&self) -> bool {
        let connection = self.connection.as_ref().is_none_or(|connection| connection.is_open());
        connection && self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Told { action, revision, sequence, id, replay, payload, .. } = self;
        write!(f, "{action:?} revision {revision} sequence {sequence} id {id}")?;
        if let Some(replay) = replay {
            write!(f, " replay {replay}")?;
        }
        if let Payload::Patch { from, .. } = payload {
            write!(f, " patch from {from}")?;
        }
        Ok(())
    }
}
