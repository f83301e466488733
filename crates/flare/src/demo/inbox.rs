//! In: what the origin sent, and what one client was told. Out: what that client has, and what it lacks of what it
//! should have.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

use super::role::Role;
use super::shop::Change;
use super::thing::Thing;

/// What the origin last said of each document that exists. Bound: what the shop keeps.
#[derive(Debug, Default)]
pub struct Truth(HashMap<Thing, Said>);

#[derive(Debug)]
struct Said {
    document: Value,
    at: Duration,
}

/// A notification, as a client reads it.
#[derive(Debug, Clone)]
pub struct Notification {
    /// About which document.
    pub thing: Thing,
    /// `create`, `update` or `delete`.
    pub action: String,
    /// Where it stands in the order of changes; a lower one than before is old news.
    pub sequence: u64,
    /// The document; nothing when it is gone.
    pub document: Option<Value>,
}

/// What a client has, and what happened to it.
#[derive(Debug, Default)]
pub struct Inbox {
    has: HashMap<Thing, (u64, Value)>,
    /// What was deleted last, with its sequence. Bound: [`REMEMBERED`]; when full the oldest goes.
    gone: VecDeque<(Thing, u64)>,
    /// How long the last notifications took from the origin. Bound: [`REMEMBERED`]; when full the oldest goes.
    took: VecDeque<Duration>,
    /// What happened last, in words.
    pub last: String,
    /// Creates, updates and deletes.
    pub actions: [u64; 3],
    /// Requests that it refused, left unanswered or gave back, on purpose.
    pub failures: u64,
    /// Notifications that a filter should have kept away.
    pub unwanted: u64,
}

/// How a client differs from what it should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Gap {
    /// Documents that it should have and has not.
    pub missing: usize,
    /// Documents that it has in another version.
    pub outdated: usize,
    /// Documents that it has and should not.
    pub surplus: usize,
}

const REMEMBERED: usize = 256;

impl Truth {
    /// Takes note of a change that is about to be sent.
    pub fn note(&mut self, change: &Change, at: Duration) {
        match &change.document {
            Some(document) => drop(self.0.insert(change.thing, Said { document: document.clone(), at })),
            None => drop(self.0.remove(&change.thing)),
        }
    }

    /// How many documents exist.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Inbox {
    /// Takes a notification.
    pub fn take(&mut self, role: Role, notification: Notification, truth: &Truth, now: Duration) {
        let Notification { thing, action, sequence, document } = notification;
        let before = self.has.get(&thing).map(|(sequence, _)| *sequence);
        let before =
            before.or_else(|| self.gone.iter().rev().find(|(gone, _)| *gone == thing).map(|(_, s)| *s));
        if before.is_some_and(|before| sequence < before) {
            self.last = format!("ignored old news of {thing}");
            return;
        }
        let index = ["create", "update", "delete"].iter().position(|known| *known == action);
        if let Some(index) = index {
            self.actions[index] += 1;
        }
        self.last = format!("{action} {thing}{}", summary(document.as_ref()));
        match document {
            Some(document) => {
                if !role.wants(thing, &document) {
                    self.unwanted += 1;
                }
                if let Some(said) = truth.0.get(&thing)
                    && said.document == document
                {
                    push(&mut self.took, now.saturating_sub(said.at));
                }
                self.has.insert(thing, (sequence, document));
            }
            None => {
                self.has.remove(&thing);
                push(&mut self.gone, (thing, sequence));
            }
        }
    }

    /// Takes note of a request that it did not take.
    pub fn refuse(&mut self, how: &str, thing: Option<Thing>) {
        self.failures += 1;
        self.last = match thing {
            Some(thing) => format!("{how} {thing}"),
            None => how.to_owned(),
        };
    }

    /// How long notifications take from the origin to here: the median of the last ones.
    pub fn latency(&self) -> Option<Duration> {
        let mut took: Vec<Duration> = self.took.iter().copied().collect();
        took.sort();
        took.get(took.len() / 2).copied()
    }

    /// How many documents it has.
    pub fn len(&self) -> usize {
        self.has.len()
    }

    /// How it differs from what it should have.
    pub fn gap(&self, role: Role, truth: &Truth) -> Gap {
        let mut gap = Gap::default();
        for (thing, said) in truth.0.iter().filter(|(thing, said)| role.wants(**thing, &said.document)) {
            match self.has.get(thing) {
                None => gap.missing += 1,
                Some((_, document)) if *document != said.document => gap.outdated += 1,
                Some(_) => {}
            }
        }
        let should =
            |thing: &Thing| truth.0.get(thing).is_some_and(|said| role.wants(*thing, &said.document));
        gap.surplus = self.has.keys().filter(|thing| !should(thing)).count();
        gap
    }
}

impl Gap {
    /// Whether it has exactly what it should.
    pub fn is_none(self) -> bool {
        self == Gap::default()
    }
}

fn push<T>(queue: &mut VecDeque<T>, entry: T) {
    if queue.len() == REMEMBERED {
        queue.pop_front();
    }
    queue.push_back(entry);
}

/// What is new about a document, in a few words.
fn summary(document: Option<&Value>) -> String {
    let Some(document) = document else { return String::new() };
    match (&document["state"], &document["stock"], &document["quantity"]) {
        (Value::String(state), ..) => format!(": {state}"),
        (_, Value::Number(stock), _) => format!(": {stock} left"),
        (.., Value::Number(quantity)) => format!(": {quantity} in it"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::thing::Kind;
    use super::*;

    const PRODUCT: Thing = Thing { kind: Kind::Product, number: 1 };

    fn told(action: &str, sequence: u64, stock: Option<u64>) -> Notification {
        let document = stock.map(|stock| json!({"stock": stock}));
        Notification { thing: PRODUCT, action: action.into(), sequence, document }
    }

    fn truth(stock: u64) -> Truth {
        let mut truth = Truth::default();
        truth.note(
            &Change { thing: PRODUCT, document: Some(json!({"stock": stock})) },
            Duration::from_millis(100),
        );
        truth
    }

    #[test]
    fn a_client_has_what_it_was_told_last_and_old_news_change_nothing() {
        let (mut inbox, truth) = (Inbox::default(), truth(9));
        let now = Duration::from_millis(107);
        assert_eq!(inbox.gap(Role::Flapping, &truth), Gap { missing: 1, ..Gap::default() });
        inbox.take(Role::Flapping, told("create", 1, Some(8)), &truth, now);
        assert_eq!(inbox.gap(Role::Flapping, &truth), Gap { outdated: 1, ..Gap::default() });
        assert_eq!(inbox.latency(), None, "that is not what the origin said last");
        inbox.take(Role::Flapping, told("update", 3, Some(9)), &truth, now);
        assert!(inbox.gap(Role::Flapping, &truth).is_none());
        assert_eq!(inbox.latency(), Some(Duration::from_millis(7)));
        inbox.take(Role::Flapping, told("update", 2, Some(1)), &truth, now);
        assert!(inbox.gap(Role::Flapping, &truth).is_none());
        inbox.take(Role::Flapping, told("delete", 4, None), &truth, now);
        inbox.take(Role::Flapping, told("update", 3, Some(9)), &truth, now);
        assert_eq!((inbox.len(), inbox.actions), (0, [1, 1, 1]), "also after a delete");
    }

    #[test]
    fn a_filtered_client_should_have_what_its_filter_lets_through_and_nothing_else() {
        let mut inbox = Inbox::default();
        assert!(inbox.gap(Role::Filtered, &truth(9)).is_none());
        assert_eq!(inbox.gap(Role::Filtered, &truth(1)).missing, 1);
        inbox.take(Role::Filtered, told("create", 1, Some(1)), &truth(1), Duration::ZERO);
        assert_eq!(inbox.unwanted, 0);
        assert_eq!(inbox.gap(Role::Filtered, &truth(9)).surplus, 1);
        inbox.take(Role::Filtered, told("update", 2, Some(9)), &truth(9), Duration::ZERO);
        assert_eq!(inbox.unwanted, 1);
        assert_eq!(inbox.gap(Role::Filtered, &Truth::default()).surplus, 1);
    }
}
