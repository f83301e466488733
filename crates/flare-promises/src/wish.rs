//! What a subscription asks for: drawn, said as JSON, changed by a PATCH; and what its expressions mean, said again in
//! the plainest way.

use serde_json::{Value, json};

use crate::dice::Dice;

#[derive(Clone, Debug)]
pub struct Wish {
    /// Which of the receivers it points to, and a number that each change of the url raises.
    pub host: usize,
    pub place: u64,
    /// The url has no wildcard: then 410 disables.
    pub fixed: bool,
    pub filter: Filter,
    pub when: When,
    pub all: bool,
    pub passive: bool,
    pub beginning: bool,
    pub envelope: bool,
    pub patch: Option<&'static str>,
    pub shards: u64,
    pub concurrency: u64,
    pub timeout: u64,
    /// How often something is tried; 0 for as often as it takes.
    pub quantity: u64,
    pub rate: Option<(u64, &'static str)>,
}

/// Which documents the client is to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    Everything,
    Above(u64),
    Flagged,
}

impl Filter {
    fn draw(dice: &mut Dice) -> Filter {
        match dice.below(5) {
            0 | 1 => Filter::Everything,
            2 | 3 => Filter::Above(dice.between(1, 7)),
            _ => Filter::Flagged,
        }
    }

    fn text(self) -> Value {
        match self {
            Filter::Everything => Value::Null,
            Filter::Above(least) => json!(format!("document.n > {least}")),
            Filter::Flagged => json!("document.flag"),
        }
    }

    /// Whether it lets a document in; nothing where the expression has no result.
    pub fn includes(self, document: &Value) -> Option<bool> {
        match self {
            Filter::Everything => Some(true),
            Filter::Above(least) => document["n"].as_u64().map(|n| n > least),
            Filter::Flagged => document["flag"].as_bool(),
        }
    }
}

/// Of which changes the client is to be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    Always,
    /// If the document says so.
    Tell,
    /// If `n` differs from what the client has.
    Differs,
}

impl When {
    fn text(self) -> Value {
        match self {
            When::Always => Value::Null,
            When::Tell => json!("action == 'delete' || document.tell"),
            When::Differs => json!("action != 'update' || document.n != state.n"),
        }
    }
}

/// What a PATCH may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aspect {
    Filter,
    When,
    Revision,
    Shards,
    Mode,
    Url,
    Patch,
    Rate,
    Retry,
    Concurrency,
}

impl Aspect {
    pub const ALL: [Aspect; 10] = [
        Aspect::Filter,
        Aspect::When,
        Aspect::Revision,
        Aspect::Shards,
        Aspect::Mode,
        Aspect::Url,
        Aspect::Patch,
        Aspect::Rate,
        Aspect::Retry,
        Aspect::Concurrency,
    ];
}

impl Wish {
    pub fn draw(dice: &mut Dice, hosts: usize, lanes: u64) -> Wish {
        let concurrency = *dice.pick(&[1, 1, 2, 4, 10]);
        Wish {
            host: dice.below(hosts as u64) as usize,
            place: 0,
            fixed: dice.percent(50),
            filter: if dice.percent(50) { Filter::Everything } else { Filter::draw(dice) },
            when: *dice.pick(&[When::Always, When::Always, When::Always, When::Tell, When::Differs]),
            all: dice.percent(30),
            passive: dice.percent(25),
            beginning: dice.percent(50),
            envelope: dice.percent(60),
            patch: *dice.pick(&[None, None, Some("merge"), Some("json")]),
            shards: dice.between(1, lanes.min(concurrency).min(4)),
            concurrency,
            timeout: *dice.pick(&[250, 300, 500]),
            quantity: *dice.pick(&[1, 2, 4, 0, 0]),
            rate: None,
        }
    }

    /// Changes one aspect, and says so as a merge patch.
    pub fn change(&mut self, aspect: Aspect, dice: &mut Dice, hosts: usize, lanes: u64) {
        match aspect {
            Aspect::Filter => self.filter = Filter::draw(dice),
            Aspect::When => self.when = *dice.pick(&[When::Always, When::Tell, When::Differs]),
            Aspect::Revision => self.all = !self.all,
            Aspect::Shards => self.shards = dice.between(1, lanes.min(self.concurrency).min(4)),
            Aspect::Mode => self.passive = !self.passive,
            Aspect::Url => {
                self.place += 1;
                self.host = dice.below(hosts as u64) as usize;
                self.fixed = dice.percent(50);
            }
            Aspect::Patch => self.patch = *dice.pick(&[None, Some("merge"), Some("json")]),
            Aspect::Rate => self.rate = *dice.pick(&[None, Some((5, "5ms")), Some((200, "100ms"))]),
            Aspect::Retry => self.quantity = *dice.pick(&[1, 2, 4, 0, 0]),
            Aspect::Concurrency => self.concurrency = dice.between(self.shards, 8),
        }
    }

    /// The merge patch that says an aspect.
    pub fn said(&self, aspect: Aspect, whole: &Value) -> Value {
        match aspect {
            Aspect::Filter => json!({"filter": self.filter.text()}),
            Aspect::When => json!({"when": self.when.text()}),
            Aspect::Shards => json!({"shards": self.shards}),
            Aspect::Mode => json!({"mode": whole["mode"]}),
            Aspect::Url => json!({"endpoint": whole["endpoint"]}),
            Aspect::Patch => json!({"content": {"patch": whole["content"]["patch"]}}),
            Aspect::Rate => json!({"delivery": {"rateLimit": whole["delivery"]["rateLimit"]}}),
            Aspect::Retry => json!({"delivery": {"retry": whole["delivery"]["retry"]}}),
            Aspect::Revision => json!({"delivery": {"revision": whole["delivery"]["revision"]}}),
            Aspect::Concurrency => json!({"delivery": {"concurrency": self.concurrency}}),
        }
    }

    /// The body that creates it, for a client with this number whose receiver is at `host`.
    pub fn body(&self, host: &str, client: usize) -> Value {
        let rest = if self.fixed { "" } else { "/{id}" };
        let quantity = if self.quantity == 0 { 1_000_000 } else { self.quantity };
        let mut body = json!({
            "endpoint": {"url": format!("http://{host}/c/{client}/{}{rest}", self.place)},
            "delivery": {
                "timeout": format!("{}ms", self.timeout), "concurrency": self.concurrency, "discard": [422],
                "retry": {"quantity": quantity, "interval": "5ms", "maxInterval": "20ms"},
                "revision": if self.all { "all" } else { "last" },
                "rateLimit": null,
            },
            "content": {"envelope": self.envelope, "patch": self.patch.map_or(json!(false), Value::from)},
            "mode": if self.passive { "passive" } else { "active" },
            "start": if self.beginning { "beginning" } else { "now" },
            "shards": self.shards,
        });
        if let Some((quantity, interval)) = self.rate {
            body["delivery"]["rateLimit"] = json!({"quantity": quantity, "interval": interval});
        }
        if self.filter != Filter::Everything {
            body["filter"] = self.filter.text();
        }
        if self.when != When::Always {
            body["when"] = self.when.text();
        }
        body
    }
}

impl Wish {
    /// Takes over one aspect of another wish.
    pub fn take(&mut self, aspect: Aspect, from: &Wish) {
        match aspect {
            Aspect::Filter => self.filter = from.filter,
            Aspect::When => self.when = from.when,
            Aspect::Revision => self.all = from.all,
            Aspect::Shards => self.shards = from.shards,
            Aspect::Mode => self.passive = from.passive,
            Aspect::Url => (self.host, self.place, self.fixed) = (from.host, from.place, from.fixed),
            Aspect::Patch => self.patch = from.patch,
            Aspect::Rate => self.rate = from.rate,
            Aspect::Retry => self.quantity = from.quantity,
            Aspect::Concurrency => self.concurrency = from.concurrency,
        }
    }
}
