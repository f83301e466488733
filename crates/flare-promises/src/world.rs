//! What is true at the origin: everything that it said about its documents, in order, and what Flare answered.
//!
//! About one document one thing is said at a time, and again until it is answered: so of everything it is known whether
//! it was accepted, however often the node was killed in between.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::dice::Dice;

/// The order in which things begin and end, over the whole run.
pub type Tick = u64;

#[derive(Default)]
pub struct World {
    tick: Tick,
    /// Also those that were deleted; one that is created anew is another.
    pub resources: Vec<Resource>,
}

pub struct Resource {
    /// What urls of its documents begin with.
    pub prefix: String,
    pub lanes: u64,
    /// As the API names it, while it is there.
    pub id: Option<String>,
    /// It is being deleted.
    pub busy: bool,
    pub documents: BTreeMap<String, Document>,
}

#[derive(Default)]
pub struct Document {
    /// Something is being said about it.
    pub busy: bool,
    pub said: Vec<Said>,
}

/// One thing that the origin said.
#[derive(Clone, Debug)]
pub struct Said {
    pub revision: i64,
    /// Nothing: it is deleted.
    pub content: Option<Value>,
    pub began: Tick,
    /// When it was answered that it is a change; nothing as long as nobody knows.
    pub accepted: Option<Tick>,
}

impl World {
    /// The next moment.
    pub fn now(&mut self) -> Tick {
        self.tick += 1;
        self.tick
    }

    pub fn document(&mut self, resource: usize, url: &str) -> &mut Document {
        self.resources[resource].documents.entry(url.to_owned()).or_default()
    }

    /// The origin says something: it may be heard of before it is answered.
    pub fn says(&mut self, resource: usize, url: &str, revision: i64, content: Option<Value>) {
        let began = self.now();
        let said = Said { revision, content, began, accepted: None };
        let document = self.document(resource, url);
        document.busy = true;
        document.said.push(said);
    }

    /// The last thing said was answered: it is a change, or it is none.
    pub fn hears(&mut self, resource: usize, url: &str, changed: bool) {
        let now = self.now();
        let document = self.document(resource, url);
        document.busy = false;
        match document.said.last_mut() {
            Some(said) if changed => said.accepted = Some(now),
            _ => drop(document.said.pop()),
        }
    }
}

impl Document {
    /// The newest accepted state.
    pub fn newest(&self) -> Option<&Said> {
        self.said.iter().rev().find(|said| said.accepted.is_some())
    }

    /// Whether it is there.
    pub fn lives(&self) -> bool {
        self.newest().is_some_and(|said| said.content.is_some())
    }

    /// The highest revision that was ever said.
    pub fn highest(&self) -> i64 {
        self.said.iter().map(|said| said.revision).max().unwrap_or(0)
    }

    /// What was said under a revision: the document, or its deletion.
    pub fn find(&self, revision: i64, deleted: bool) -> Option<&Said> {
        self.said.iter().rev().find(|said| said.revision == revision && said.content.is_none() == deleted)
    }
}

/// A document as origins make them up. Filters look at `n`, `flag` (which some lack) and `tell`; `list`, `nested` and
/// `pad` give patches something to do.
pub fn content(revision: i64, dice: &mut Dice) -> Value {
    let list: Vec<u64> = (0..dice.below(4)).map(|_| dice.below(3)).collect();
    let pad = "p".repeat(*dice.pick(&[0, 10, 200, 200, 3_000]) as usize);
    let mut document = json!({"rev": revision, "n": dice.below(10), "tell": dice.percent(70), "list": list,
        "nested": {"a": dice.below(2), "b": {"c": dice.below(2)}}, "pad": pad});
    if dice.percent(80) {
        document["flag"] = json!(dice.percent(60));
    }
    if dice.percent(10) {
        document["nested"]["a"] = Value::Null;
    }
    document
}
