//! What the clients remember: every notification of every document, and what they made of it. Each that comes is held
//! against the promises of the product, with everything that came before.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::beliefs::{Action, Beliefs, Ending};
use super::dice::Dice;
use super::mood::Mood;
use super::pair::{Begun, Pair, Proof, Way};
use super::told::{Payload, Told};
use super::wish::Filter;
use super::world::{Document, Said, Tick, World};

/// A request may reach the eyes of a client so much later than it began: the machine is busy.
const SLOW: Duration = Duration::from_secs(2);

/// So much later than it was decided a request may come under usual circumstances: its connection has to be opened.
const LATE: Duration = Duration::from_millis(500);

/// All clients of a run.
#[derive(Default)]
pub struct Clients {
    pub list: Vec<Client>,
    pub wrong: Vec<Wrong>,
    /// How often the node was killed.
    pub kills: u64,
    /// The wall clock was set: a restart may end leases before their time.
    clock_was_set: bool,
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
    /// When that was last.
    refiltered: Option<Instant>,
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
    applied_ids: HashSet<String>,
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
            refiltered: None,
            beginnings: 0,
            skips,
            blurred: 0,
            unseen: false,
            quiet: None,
            applied_ids: HashSet::new(),
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
        self.refiltered = Some(Instant::now());
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
        self.unseen = true;
        self.blurred = now;
        for pair in self.pairs.values_mut() {
            pair.blur();
        }
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
        // An attempt ends under the filter that began it, and may come after the answer to the change.
        let under_way = filter_changes % 2 == 1 || client.refiltered.is_some_and(|at| at.elapsed() < LATE);
        let begun = Begun { told: told.clone(), kills, filter_changes, refiltering: under_way, beginnings };
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
            let document = world.resources[client.resource].documents.get(&told.document);
            let sent = document.is_some_and(|document| may_have_been_sent(document, blurred));
            Pair::new(if sent { Beliefs::NOTHING.or_doubt() } else { Beliefs::NOTHING })
        });
        pair.conclude(kills);
        pair.end_leases();
        wrong.extend(pair.check_order(&begun));
        wrong.extend(pair.check_payload(world, client.resource, told));
        wrong.extend(pair.begins(request, begun, way));
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
        if client.skips && client.applied_ids.contains(&told.id) {
            return;
        }
        let pair = client.pairs.entry(told.document.clone()).or_default();
        let fits = pair.apply(told);
        client.applied_ids.insert(told.id.clone());
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
        self.note(|| format!("#{request} ends: {ending:?}"));
        let pair = self.list[number].pairs.entry(told.document.clone()).or_default();
        pair.ends(request, told, ending, proof, self.kills);
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
        pair.comes_late(told);
    }

    /// SIGTERM: leaves nothing in doubt that was not before.
    pub fn stopped(&mut self) {
        self.note(|| "stopped".into());
    }

    /// The wall clock was set: a lease that outlives a restart is measured by it.
    pub fn clock_was_set(&mut self) {
        self.clock_was_set = true;
        self.end_leases();
    }

    fn end_leases(&mut self) {
        for pair in self.list.iter_mut().flat_map(|client| client.pairs.values_mut()) {
            pair.clock_was_set();
        }
    }

    /// The node is on its way to another life.
    pub fn restarts(&mut self) {
        if self.clock_was_set {
            self.end_leases();
        }
    }

    /// kill -9: outcomes of the last moments are lost, and so is which requests were open. That excuses doubt.
    pub fn killed(&mut self, now: Tick) {
        self.kills += 1;
        self.note(|| "killed".into());
        for client in &mut self.list {
            client.blurred = now;
            for pair in client.pairs.values_mut() {
                pair.killed();
            }
        }
    }
}

/// Whether a document of which no client has seen anything may have been sent before a kill, for all that is stored.
///
/// The second promise allows a `delete` to a client that has the document or may have it; and what the client may have is
/// what a process cannot rule out that finds the store after a kill. Of each document the store has when its present life
/// began and when the one before ended, of each feed a mark beyond which nothing was sent. So whatever is older than the
/// kill may have been sent. What was created since was not, and a delete of that would be wrong; unless it was deleted and
/// has come back: when the life before began is not stored, and it may have been before the kill.
fn may_have_been_sent(document: &Document, killed: Tick) -> bool {
    let ends = document.said.iter().filter(|said| said.content.is_none()).map(|said| said.revision).min();
    let came_back = |said: &Said| said.content.is_some() && ends.is_some_and(|end| said.revision > end);
    killed > 0 && document.said.iter().any(|said| said.began < killed || came_back(said))
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
