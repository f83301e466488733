//! The accounts of all clients: each request that they get is held against the promises, with all that came before. What a
//! client cannot know (whether an answer was recorded before its node died) is excused by what was done to the nodes at that time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flare_promises::beliefs::{Action, Beliefs, Ending};
use flare_promises::told::Told;

use crate::stress::Connection;

/// What was answered so shortly before something was done to a node may not be recorded.
const RECORDED: Duration = Duration::from_secs(3);

/// So many findings are kept; of the rest only the number.
const SHOWN: usize = 40;

/// Something that was done to nodes, from when to when; it goes on until it is over.
#[derive(Clone, Debug)]
struct Disturbed {
    from: Instant,
    until: Option<Instant>,
}

/// A node that was suspended, and may let slip a late request for each slot that was open.
#[derive(Clone, Debug, Default)]
pub struct Suspended {
    /// Requests with a sequence below one that began before.
    pub late: u64,
    /// By client and document: one at most.
    pairs: HashMap<(usize, String), u64>,
}

/// All accounts.
#[derive(Default)]
pub struct Accounts {
    pairs: HashMap<(usize, String), Pair>,
    /// Ids of notifications, and what each is the id of.
    ids: HashMap<String, (usize, String, u64)>,
    disturbed: Vec<Disturbed>,
    /// How often that was. Whoever takes a feed over cannot rule out that what was not recorded was sent: the second promise allows a
    /// delete of that, to a client that never had it.
    doubts: u64,
    /// Nodes that were suspended in this round, by where they are.
    pub suspended: HashMap<String, Suspended>,
    pub requests: u64,
    /// Requests that were answered with success before, and came again.
    pub repeated: u64,
    /// How late changes were told that say when they were put.
    pub latencies: Vec<Duration>,
    pub wrong: Vec<String>,
    pub wrongs: u64,
}

#[derive(Default)]
struct Pair {
    /// What the client has: the revision, unless it is gone.
    has: Option<i64>,
    applied: u64,
    sequence: u64,
    revision: i64,
    beliefs: Option<Beliefs>,
    /// How often nodes had been disturbed when that was believed.
    doubts: u64,
    last: Option<Last>,
    open: Vec<(u64, String, Arc<Connection>)>,
    story: Vec<String>,
}

struct Last {
    told: Told,
    from: String,
    /// When it was answered, and how.
    ended: Option<(Instant, Ending)>,
}

impl Accounts {
    /// Something is being done to nodes, which excuses that what was answered is told again.
    pub fn disturb(&mut self) {
        self.doubts += 1;
        self.disturbed.push(Disturbed { from: Instant::now(), until: None });
    }

    /// That is over.
    pub fn calm(&mut self) {
        let now = Instant::now();
        for disturbed in &mut self.disturbed {
            disturbed.until.get_or_insert(now);
        }
    }

    /// Something is wrong.
    pub fn wrong(&mut self, what: String) {
        self.wrongs += 1;
        if self.wrong.len() < SHOWN {
            self.wrong.push(what);
        }
    }

    /// What a client has.
    pub fn state(&self, client: usize) -> BTreeMap<String, i64> {
        let of = self.pairs.iter().filter(|((whose, _), _)| *whose == client);
        of.filter_map(|((_, url), pair)| Some((url.clone(), pair.has?))).collect()
    }

    /// Whether an answer that was given then may be lost.
    fn may_be_lost(&self, answered: Instant) -> bool {
        self.disturbed.iter().any(|disturbed| {
            let over = disturbed.until.is_some_and(|until| until + RECORDED < answered);
            disturbed.from <= answered + RECORDED && !over
        })
    }

    /// A request has come, from a node. Answers its number.
    pub fn begins(&mut self, client: usize, told: &Told, from: &str, connection: &Arc<Connection>) -> u64 {
        self.requests += 1;
        let number = self.requests;
        let key = (client, told.document.clone());
        let mut pair = self.pairs.remove(&key).unwrap_or_default();
        let mut wrong = Vec::new();
        wrong.extend(self.check_id(client, told));
        let late = told.sequence < pair.sequence;
        let is_suspended = |from: &str| self.suspended.contains_key(from);
        if late && !is_suspended(from) {
            wrong.push(format!("sequence {} after {}", told.sequence, pair.sequence));
        }
        if !late && told.revision < pair.revision {
            wrong.push(format!("revision {} after {}", told.revision, pair.revision));
        }
        let beside = pair.open.iter().find(|(_, _, other)| other.stays_open());
        if let Some((_, other, _)) = beside
            && !is_suspended(from)
            && !is_suspended(other)
        {
            wrong.push(format!("while another of {other} is open"));
        }
        if late {
            wrong.extend(self.comes_late(&key, from));
        } else {
            wrong.extend(self.check_turn(&mut pair, told));
            (pair.sequence, pair.revision) = (told.sequence, told.revision);
            pair.last = Some(Last { told: told.clone(), from: from.to_owned(), ended: None });
        }
        pair.story.push(format!("#{number} of {from}: {told}"));
        if pair.story.len() > 12 {
            pair.story.remove(0);
        }
        for what in wrong {
            let story = pair.story.join("\n      ");
            self.wrong(format!("client {client}, {}: {what}\n      {story}", told.document));
        }
        pair.open.push((number, from.to_owned(), connection.clone()));
        self.pairs.insert(key, pair);
        number
    }

    /// One late request at most for each document of a client.
    fn comes_late(&mut self, key: &(usize, String), from: &str) -> Option<String> {
        let suspended = self.suspended.get_mut(from)?;
        suspended.late += 1;
        let times = suspended.pairs.entry(key.clone()).or_default();
        *times += 1;
        (*times > 1).then(|| format!("{times} late requests of a node that was suspended"))
    }

    /// One id for one notification.
    fn check_id(&mut self, client: usize, told: &Told) -> Option<String> {
        let this = (client, told.document.clone(), told.sequence);
        let known = self.ids.entry(told.id.clone()).or_insert_with(|| this.clone());
        (*known != this).then(|| format!("id {} is that of sequence {} of {} too", told.id, known.2, known.1))
    }

    /// Whether it may come after what came before.
    fn check_turn(&mut self, pair: &mut Pair, told: &Told) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut beliefs = pair.beliefs.unwrap_or(Beliefs::NOTHING);
        if let Some(last) = &pair.last {
            let action = last.told.action;
            beliefs = match last.ended {
                None => beliefs.after_end_or_loss(action, Ending::Delivered),
                Some((at, ending)) if self.may_be_lost(at) => {
                    beliefs.after_end_or_loss(action, ending).or_doubt()
                }
                Some((_, ending)) => beliefs.after_end(action, ending),
            };
            let same = last.told.repeats(told);
            if same && last.told.id != told.id {
                wrong.push(format!("one notification under two ids, {} before", last.told.id));
            }
            if same && let Some((at, Ending::Delivered)) = last.ended {
                self.repeated += 1;
                if !self.may_be_lost(at) {
                    let before = at.elapsed().as_secs_f64();
                    wrong.push(format!("again {before:.2} s after {} was told of success", last.from));
                }
            }
        }
        if pair.doubts < self.doubts {
            pair.doubts = self.doubts;
            beliefs = beliefs.or_doubt();
        }
        if !beliefs.allow(told.action) {
            wrong.push(format!("{:?} does not follow from what was told before", told.action));
        }
        pair.beliefs = Some(beliefs.after_begin(told.action));
        wrong
    }

    /// A request is answered. A client ignores what has a lower sequence than what it has.
    pub fn ends(&mut self, client: usize, number: u64, told: &Told, ending: Ending) {
        let Some(pair) = self.pairs.get_mut(&(client, told.document.clone())) else { return };
        pair.open.retain(|(open, ..)| *open != number);
        if ending == Ending::Delivered && told.sequence >= pair.applied {
            pair.applied = told.sequence;
            pair.has = (told.action != Action::Delete).then_some(told.revision);
        }
        if let Some(last) = &mut pair.last
            && last.told.sequence == told.sequence
        {
            last.ended = Some((Instant::now(), ending));
        }
        pair.story.push(format!("#{number} ends: {ending:?}"));
    }
}
