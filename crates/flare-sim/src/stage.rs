//! Everything outside of Flare, in one place: what origins said, what clients were told and made of it, and what was found
//! to be wrong. Parts of a simulation reach for it one at a time; nobody keeps it over a wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use flare_core::operations::Failure;
use flare_promises::beliefs::Ending;
use flare_promises::dice::Dice;
use flare_promises::mood::Mood;
use flare_promises::told::{Payload, Told};
use flare_promises::world::World;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::clock::Time;
use crate::cue::{Cue, Moment};
use crate::line::Arrival;
use crate::pair::{Begun, Way};
use crate::together::tenures::{Sender, Tenures};

/// So long at most a node of several may not know what another has changed: as long as one may stand still or be cut off.
const LAG: Duration = Duration::from_secs(15);

/// How many findings of one schedule are told.
const MOST_TOLD: usize = 4;

/// What all parts outside of Flare share.
pub struct Stage {
    pub time: Time,
    inside: Mutex<Inside>,
    /// Requests that reach clients. Bound: one for each connection that Flare has open.
    pub arrivals: mpsc::UnboundedSender<Arrival>,
}

/// What they share, in hand.
pub struct Inside {
    pub world: World,
    /// A client for each subscription that was ever made.
    pub clients: Vec<Client>,
    pub wrong: Vec<String>,
    /// Operations that are being done.
    pub performing: Vec<String>,
    /// How often the node crashed.
    pub crashes: u64,
    pub requests: u64,
    /// How often Flare was asked what it knows, and that was held against what is so.
    pub probed: u64,
    /// Nothing goes wrong any more.
    pub healed: bool,
    /// Whose each feed is, where there are several nodes.
    pub tenures: Option<Tenures>,
    /// How long the node had no turns, in all; and since when it has none now.
    stood: Duration,
    standing: Option<Duration>,
    /// The wall clock was set: a restart may end leases before their time.
    pub clock_was_set: bool,
    /// Notifications by their ids, over all clients.
    ids: HashMap<String, (usize, Told)>,
    /// What happened, in order, if someone wants to know.
    trace: Option<Vec<String>>,
    /// What the schedule waits for.
    pub cue: Cue,
    /// For what clients and connections do.
    pub dice: Dice,
    time: Time,
}

impl Stage {
    pub fn new(
        time: Time,
        dice: Dice,
        traced: bool,
        several: bool,
        arrivals: mpsc::UnboundedSender<Arrival>,
    ) -> Arc<Stage> {
        let inside = Inside {
            world: World::default(),
            clients: Vec::new(),
            wrong: Vec::new(),
            performing: Vec::new(),
            crashes: 0,
            requests: 0,
            probed: 0,
            healed: false,
            tenures: several.then(Tenures::default),
            stood: Duration::ZERO,
            standing: None,
            clock_was_set: false,
            ids: HashMap::new(),
            trace: traced.then(Vec::new),
            cue: Cue::default(),
            dice,
            time: time.clone(),
        };
        Arc::new(Stage { time, inside: Mutex::new(inside), arrivals })
    }

    pub fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock()
    }

    /// Something happened.
    pub fn note(&self, line: impl FnOnce() -> String) {
        self.lock().note(line);
    }

    /// Something is wrong.
    pub fn wrong(&self, what: impl Into<String>) {
        self.lock().wrong(None, "", what.into());
    }

    /// The trace, taken away.
    pub fn take_trace(&self) -> Vec<String> {
        self.lock().trace.take().unwrap_or_default()
    }
}

impl Inside {
    /// Something happened.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let passed = self.time.passed();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>10.3} {}", passed.as_secs_f64(), line()));
        }
    }

    /// Something is wrong, with a client and a document, or in general.
    pub fn wrong(&mut self, client: Option<usize>, document: &str, what: String) {
        self.note(|| format!("WRONG {what}: client {client:?} {document}"));
        if self.wrong.len() >= MOST_TOLD {
            return;
        }
        let mut text = match client {
            Some(client) => format!("{what}\n  client {client} document {document}"),
            None => what,
        };
        let pair = client.and_then(|client| self.clients[client].pairs.get(document));
        for line in pair.iter().flat_map(|pair| &pair.log) {
            text.push_str(&format!("\n    {line}"));
        }
        self.wrong.push(text);
    }

    /// An operation on a subscription failed, which is none that is leaving.
    pub fn fails(&mut self, number: usize, what: &str, failure: &Failure) {
        let client = &self.clients[number];
        if client.name.is_some() && !client.busy {
            self.wrong(Some(number), "", format!("{what} failed: {failure}"));
        }
    }

    /// A client behaves otherwise, unless all are well for good.
    pub fn set_mood(&mut self, number: usize, mood: Mood) {
        if !self.healed {
            self.clients[number].mood = mood;
        }
    }

    /// How long it has lasted.
    pub fn now(&self) -> Duration {
        self.time.passed()
    }

    /// So much later what was changed may not be known yet where it counts.
    pub fn lag(&self) -> Duration {
        if self.tenures.is_some() { LAG } else { Duration::ZERO }
    }

    /// How long the node had turns so far: what it does takes so long by its own measure. Of several each stands for itself.
    pub fn node_time(&self) -> Duration {
        let now = self.time.passed();
        let standing = self.standing.map_or(Duration::ZERO, |since| now - since);
        now - self.stood - standing
    }

    /// The node has no turns any more, or has them again.
    pub fn node_stands(&mut self, node: usize, stands: bool) {
        let now = self.time.passed();
        if let Some(tenures) = &mut self.tenures {
            return tenures.stands(node, stands, now);
        }
        if let Some(since) = self.standing.take() {
            self.stood += now - since;
        }
        self.standing = stands.then_some(now);
    }

    /// A notification begins. Answers the number under which it will end.
    pub fn begins(&mut self, number: usize, told: &Told, way: Way, sender: Sender) -> u64 {
        self.requests += 1;
        self.cue.comes(Moment::Begins, sender.node);
        if self.slips_out(sender, number, told, self.requests) {
            return self.requests;
        }
        let (crashes, request, now) = (self.crashes, self.requests, self.time.passed());
        let node_time = self.node_time();
        let client = &mut self.clients[number];
        let (filter_changes, refiltering) = (client.filter_changes, client.is_refiltering(node_time, way));
        let begun = Begun {
            told: told.clone(),
            sender,
            crashes,
            filter_changes,
            refiltering,
            replays: client.replays,
        };
        let mut wrong = Vec::new();
        wrong.extend(client.check_quiet(node_time, way));
        wrong.extend(self.check_id(number, told, &begun));
        let document = self.world.resources[self.clients[number].resource].documents.get(&told.document);
        let client = &mut self.clients[number];
        wrong.extend(client.check_membership(document, told, node_time, way));
        let pair = client.pair(document, &told.document);
        pair.conclude();
        pair.end_leases(now);
        wrong.extend(pair.check_order(&begun));
        wrong.extend(pair.check_payload(document, told));
        wrong.extend(pair.begins(request, begun, way));
        self.note(|| format!("#{request} to client {number} begins: {told} {}", told.document));
        for what in wrong {
            self.wrong(Some(number), &told.document, what);
        }
        request
    }

    /// One id for one notification, and one notification under one id.
    fn check_id(&mut self, number: usize, told: &Told, begun: &Begun) -> Option<String> {
        let known = self.ids.entry(told.id.clone()).or_insert_with(|| (number, told.clone()));
        if known.0 != number || known.1.document != told.document || !known.1.repeats(told) {
            return Some(format!("one id for two notifications: {told} and {}", known.1));
        }
        // A filter that was changed has what is told under it be another notification.
        let pair = self.clients[number].pairs.get(&told.document)?;
        let before = pair.begun.as_ref().filter(|before| !begun.under_another_filter(before))?;
        (before.told.repeats(told) && before.told.id != told.id)
            .then(|| format!("one notification under two ids: {told} and {}", before.told))
    }

    /// Flare knows how a request ended.
    pub fn ends(&mut self, number: usize, request: u64, told: &Told, ending: Ending, by: Sender) {
        self.note(|| format!("#{request} ends: {ending:?}"));
        self.cue.comes(Moment::Ends, by.node);
        self.takes(number, ending);
        if let Some(pair) = self.clients[number].pairs.get_mut(&told.document) {
            pair.ends(request, told, ending);
        }
    }

    fn takes(&mut self, number: usize, ending: Ending) {
        self.clients[number].taken += u64::from(ending == Ending::Delivered);
    }

    /// Nobody knows whether Flare heard how a lease ended.
    pub fn ends_perhaps(&mut self, number: usize, request: u64, told: &Told, ending: Ending) {
        self.note(|| format!("#{request} ends, perhaps: {ending:?}"));
        self.takes(number, ending);
        if let Some(pair) = self.clients[number].pairs.get_mut(&told.document) {
            pair.ends_perhaps(request, told, ending);
        }
    }

    /// The client says how its leases end: from now on they may have ended, whether or not it hears of it.
    pub fn settles(&mut self, number: usize, requests: &[(u64, &Told, Ending)]) {
        for (request, told, ending) in requests {
            self.takes(number, *ending);
            if let Some(pair) = self.clients[number].pairs.get_mut(&told.document) {
                pair.settles(*request, *ending);
            }
        }
    }

    /// The client says that it has a notification.
    pub fn has_all_of(&mut self, number: usize, told: &Told) {
        self.takes(number, Ending::Delivered);
        if let Some(pair) = self.clients[number].pairs.get_mut(&told.document) {
            pair.has_all_of(&told.id);
        }
    }

    /// It is back.
    pub fn came_back(&mut self, number: usize, told: &Told) {
        if let Some(pair) = self.clients[number].pairs.get_mut(&told.document) {
            pair.came_back(&told.id);
        }
    }

    /// The client processes what came with a request. Where another node has its feed by now, that may have told more.
    pub fn processes_request(&mut self, number: usize, request: u64, told: &Told) {
        match self.tenures.as_ref().is_some_and(|tenures| tenures.is_overtaken(request)) {
            true => self.processes_late(number, told),
            false => self.processes(number, told),
        }
    }

    /// The client processes a notification.
    pub fn processes(&mut self, number: usize, told: &Told) {
        if !self.clients[number].apply(told) {
            let what = format!("it cannot be applied to what the client has: {told}");
            self.wrong(Some(number), &told.document, what);
        }
    }

    /// It answers as if it had not.
    pub fn denies(&mut self, number: usize, told: &Told) {
        if let Some(pair) = self.clients[number].pairs.get_mut(&told.document) {
            pair.denied = true;
        }
    }

    /// The same, after the sender gave it up: only if nothing as new came since.
    pub fn processes_late(&mut self, number: usize, told: &Told) {
        let known = self.clients[number].pairs.get(&told.document);
        let newer = known.is_none_or(|pair| told.sequence > pair.sequence);
        if newer && !matches!(told.payload, Payload::Patch { .. }) {
            self.note(|| format!("client {number} processes late: {told}"));
            self.processes(number, told);
        }
    }

    /// The node is gone without a word: outcomes of the last moments are lost. That excuses doubt.
    pub fn crashed(&mut self, node: usize) {
        self.crashes += 1;
        let now = self.world.now();
        self.note(|| format!("node {node} crashes"));
        // Of several, whoever takes its feeds over finds what it has recorded.
        if let Some(tenures) = &mut self.tenures {
            return tenures.ends(node, false);
        }
        for client in &mut self.clients {
            client.blurred = now;
            client.pairs.values_mut().for_each(|pair| pair.crashed());
        }
        self.restarts();
    }

    /// The node has ended, and left nothing undone.
    pub fn stopped(&mut self, node: usize) {
        match &mut self.tenures {
            Some(tenures) => tenures.ends(node, true),
            None => self.restarts(),
        }
    }

    /// The node is on its way to another life, in which leases are measured by the wall clock.
    fn restarts(&mut self) {
        if self.clock_was_set {
            self.end_leases();
        }
    }

    /// The wall clock was set.
    pub fn clock_is_set(&mut self) {
        self.clock_was_set = true;
        self.end_leases();
    }

    /// An operator ends the leases of a client: from now on they may have ended.
    pub fn operator_ends_leases(&mut self, number: usize) {
        let now = self.time.passed();
        self.clients[number].pairs.values_mut().for_each(|pair| pair.may_have_ended(now));
    }

    fn end_leases(&mut self) {
        let now = self.time.passed();
        for pair in self.clients.iter_mut().flat_map(|client| client.pairs.values_mut()) {
            pair.may_have_ended(now);
        }
    }
}
