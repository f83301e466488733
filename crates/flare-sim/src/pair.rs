//! What one client knows of one document, and whether what it is told next keeps the promises. Pure but for the time,
//! which comes in. In a simulation it is known of every answer whether Flare has read it, so nothing is guessed here.

use std::collections::VecDeque;
use std::time::Duration;

use flare_promises::beliefs::{Action, Beliefs, Ending};
use flare_promises::told::{Payload, Told, patched};
use flare_promises::world::Document;
use serde_json::Value;

use crate::together::tenures::Sender;

/// So many of the last requests of a document are shown when something is wrong with it.
const LOG: usize = 24;

/// What one client knows of one document.
pub struct Pair {
    beliefs: Beliefs,
    /// The last that began, and its number.
    pub begun: Option<Begun>,
    newest: u64,
    /// The last that Flare surely knows to be delivered.
    delivered: Option<Begun>,
    open: Vec<Open>,
    /// The ids that clients say they have, and of which they do not know yet whether that was heard.
    coming_back: Vec<String>,
    /// The document as the client has it.
    pub has: Option<(i64, Value)>,
    /// The sequence of that.
    pub sequence: u64,
    /// It took that, and answered as if it had not.
    pub denied: bool,
    /// The revision that the client answered with success, if nothing is uncertain since.
    certain: Option<i64>,
    /// What was delivered last is recorded, as far as anyone can tell: nothing crashed since.
    sure: bool,
    /// How the last one ended that ended.
    pub ended: Option<Ending>,
    /// Everything it was told, repetitions left out.
    pub revisions: Vec<(i64, Action)>,
    pub log: VecDeque<String>,
}

/// What began, and under which circumstances.
#[derive(Clone, Debug)]
pub struct Begun {
    pub told: Told,
    /// Which life of which node began it.
    pub sender: Sender,
    /// How often by then the node had crashed, and the filter changed.
    pub crashes: u64,
    pub filter_changes: u64,
    /// The filter may be either the former or the new one.
    pub refiltering: bool,
    /// How many replays were asked for.
    pub replays: u64,
}

impl Begun {
    /// Whether the filter may have been another for one that began before.
    pub fn under_another_filter(&self, before: &Begun) -> bool {
        self.filter_changes != before.filter_changes || self.refiltering || before.refiltering
    }
}

struct Open {
    number: u64,
    sender: Sender,
    /// The id of its notification.
    id: String,
    /// Of a lease: it does not end before.
    until: Option<Duration>,
    /// The client has said how it ends, and was not answered yet.
    said: Option<Ending>,
    /// It has said so by coming back, of which it is not told whether it came in time.
    came_back: bool,
}

/// How a notification comes.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Request,
    /// Taken by a reservation, on a lease that does not end before.
    Lease(Duration),
}

impl Pair {
    /// Nothing was told yet; what Flare can believe all the same.
    pub fn new(beliefs: Beliefs) -> Pair {
        Pair {
            beliefs,
            begun: None,
            newest: 0,
            delivered: None,
            open: Vec::new(),
            coming_back: Vec::new(),
            has: None,
            sequence: 0,
            denied: false,
            certain: None,
            sure: false,
            ended: None,
            revisions: Vec::new(),
            log: VecDeque::new(),
        }
    }

    /// Flare may be in doubt. What the client answered with success it has all the same, and nothing else happened to it.
    pub fn blur(&mut self) {
        self.beliefs = self.beliefs.or_doubt();
        self.delivered = None;
    }

    /// A lease whose time is over, and of which nothing was said, has ended: nobody knows what the client did with it.
    pub fn end_leases(&mut self, now: Duration) {
        let over = |open: &Open| open.until.is_some_and(|until| now >= until);
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
        (self.has, self.sequence, self.denied) = (state, told.sequence, false);
        true
    }

    /// Something begins. What is wrong with that.
    pub fn begins(&mut self, request: u64, begun: Begun, way: Way) -> Option<String> {
        let wrong = (!self.open.is_empty()).then(|| "a request begins while another one is open".into());
        let until = match way {
            Way::Request => None,
            Way::Lease(until) => Some(until),
        };
        let told = &begun.told;
        self.beliefs = self.beliefs.after_begin(told.action);
        // A client that is on its way back with this id has this one too, when it arrives.
        let came_back = self.coming_back.contains(&told.id);
        let said = came_back.then_some(Ending::Delivered);
        let (id, sender) = (told.id.clone(), begun.sender);
        self.open.push(Open { number: request, sender, id, until, said, came_back });
        if self.revisions.last() != Some(&(told.revision, told.action)) {
            self.revisions.push((told.revision, told.action));
        }
        self.note(format!("#{request} begins: {told}"));
        (self.begun, self.newest) = (Some(begun), request);
        wrong
    }

    /// The number of the last that began.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// What began under this number ends, and Flare knows it.
    pub fn ends(&mut self, request: u64, told: &Told, ending: Ending) {
        let Some(open) = self.open.iter().find(|open| open.number == request) else { return };
        // Where what it said of the lease counted, that was still out; otherwise it may have ended when the client came back.
        if open.came_back && ending == Ending::Failed {
            return self.ends_perhaps(request, told, Ending::Delivered);
        }
        self.open.retain(|open| open.number != request);
        self.note(format!("#{request} ends: {ending:?}"));
        (self.ended, self.sure) = (Some(ending), true);
        self.beliefs = self.beliefs.after_end(told.action, ending);
        match ending {
            Ending::Delivered => {
                self.certain = (told.action != Action::Delete).then_some(told.revision);
                self.delivered = self.begun.clone();
            }
            Ending::Discarded => {}
            Ending::Failed => self.certain = None,
        }
    }

    /// The client says how a lease ends. It ends once that is durable, which Flare knows before the client does.
    pub fn settles(&mut self, request: u64, ending: Ending) {
        for open in self.open.iter_mut().filter(|open| open.number == request) {
            open.said = Some(ending);
        }
    }

    /// The client says that it has a notification, whichever leases it came on: the same, as Flare knows it by its id.
    pub fn has_all_of(&mut self, id: &str) {
        for open in self.open.iter_mut().filter(|open| open.id == id) {
            (open.said, open.came_back) = (Some(Ending::Delivered), true);
        }
        self.coming_back.push(id.to_owned());
    }

    /// The client is back, or gave it up.
    pub fn came_back(&mut self, id: &str) {
        if let Some(place) = self.coming_back.iter().position(|coming| coming == id) {
            self.coming_back.remove(place);
        }
    }

    /// Whether the last that ended is this revision, and was delivered, and Flare surely knows.
    pub fn has_delivered(&self, revision: i64) -> bool {
        self.sure
            && self.ended == Some(Ending::Delivered)
            && self.begun.as_ref().is_some_and(|begun| begun.told.revision == revision)
    }

    /// What the client has said of leases counts, since something else is under way.
    pub fn conclude(&mut self) {
        let said = |open: &Open| Some((open.number, open.said?));
        let ended: Vec<(u64, Ending)> = self.open.iter().filter_map(said).collect();
        let Some(told) = self.begun.as_ref().map(|begun| begun.told.clone()) else { return };
        for (request, ending) in ended {
            self.ends_perhaps(request, &told, ending);
        }
    }

    /// Whether Flare heard how a lease ended is not known: its answer was lost.
    pub fn ends_perhaps(&mut self, request: u64, told: &Told, ending: Ending) {
        // That was concluded when something else began.
        if !self.open.iter().any(|open| open.number == request) {
            return;
        }
        self.open.retain(|open| open.number != request);
        self.note(format!("#{request} ends, perhaps: {ending:?}"));
        self.ended = Some(ending);
        self.beliefs = self.beliefs.after_end_or_loss(told.action, ending);
        (self.certain, self.delivered) = (None, None);
    }

    /// Until when a lease does not end, while it is open.
    pub fn lasts(&self, request: u64) -> Option<Duration> {
        self.open.iter().find(|open| open.number == request)?.until
    }

    /// Flare says that a lease lasts longer. It does, unless it may have ended by something else `since` that was asked.
    pub fn extended(&mut self, request: u64, since: Option<Duration>, until: Duration) {
        for open in self.open.iter_mut().filter(|open| open.number == request && open.until == since) {
            open.until = since.max(Some(until));
        }
    }

    /// A lease that outlives a restart is measured by the wall clock, and that was set; or an operator may have ended it.
    pub fn may_have_ended(&mut self, now: Duration) {
        for until in self.open.iter_mut().filter_map(|open| open.until.as_mut()) {
            *until = now;
        }
    }

    /// Another node has the document by now, or this one anew. Answers the requests that were open by then, and by whom;
    /// leases go on. `doubtful`: what the last one knew may not have been recorded.
    pub fn is_overtaken(&mut self, doubtful: bool) -> Vec<(u64, Sender)> {
        let requests = self.open.iter().filter(|open| open.until.is_none());
        let open = requests.map(|open| (open.number, open.sender)).collect();
        if doubtful {
            self.crashed();
        }
        open
    }

    /// The node is gone without a word: requests that were open are lost, leases are not.
    pub fn crashed(&mut self) {
        self.sure = false;
        if self.open.iter().any(|open| open.until.is_none()) {
            self.ended = Some(Ending::Failed);
            self.certain = None;
        }
        self.open.retain(|open| open.until.is_some());
        self.blur();
        self.note("what was known of it may be lost".into());
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
            // After a crash it may not be known any more that it was delivered; a changed filter has documents enter and
            // leave at the sequence they have; a replay is asked for. What changes, and is delivered, while a replay of it
            // is being prepared is told again, too, and is not marked as a replay where it is not in memory any more.
            let since = delivered.crashes == begun.crashes && begun.replays == 0;
            let transition = begun.under_another_filter(delivered) && told.action != Action::Update;
            if since && told.replay.is_none() && told.sequence <= delivered.told.sequence && !transition {
                wrong.push(format!("it is told again though it was delivered: {told}"));
            }
        }
        if !self.beliefs.allow(told.action) {
            wrong.push(format!(
                "{:?} does not fit what the client can be taken to have ({:?}): {told}",
                told.action, self.beliefs
            ));
        }
        wrong
    }

    /// What is told of the document is what the origin said; a patch starts from what the client surely has.
    pub fn check_payload(&self, document: Option<&Document>, told: &Told) -> Option<String> {
        let said = document?.find(told.revision, false).and_then(|said| said.content.as_ref());
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
