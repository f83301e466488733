//! The last attempts of one delivery thread's subscriptions.
//!
//! Bound: so many for each subscription, and so many bytes for all. When full: the oldest of the same subscription
//! goes; where it has no other, the oldest of the next subscription in turn.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;

use super::Limits;
use super::attempt::{Entry, Outcome};

/// The last attempts.
pub struct Trail {
    limits: Limits,
    rings: HashMap<SubscriptionNumber, Ring>,
    /// In which order subscriptions lose their oldest when there is no room. Bound: each once.
    turn: VecDeque<SubscriptionNumber>,
    next: u64,
    bytes: usize,
}

#[derive(Default)]
struct Ring {
    entries: VecDeque<Arc<Entry>>,
    successes: u32,
}

impl Trail {
    /// An empty one.
    pub fn new(limits: Limits) -> Trail {
        Trail { limits, rings: HashMap::new(), turn: VecDeque::new(), next: 0, bytes: 0 }
    }

    /// The number of the next attempt, and whether it is to be kept whole: all that did not succeed, and of those that
    /// did, one in so many.
    pub fn next(&mut self, subscription: SubscriptionNumber, outcome: Outcome) -> (u64, bool) {
        self.next += 1;
        if outcome != Outcome::Delivered {
            return (self.next, true);
        }
        let turn = &mut self.turn;
        let ring = self.rings.entry(subscription).or_insert_with(|| {
            turn.push_back(subscription);
            Ring::default()
        });
        let whole = ring.successes == 0 && self.limits.sample > 0;
        ring.successes = (ring.successes + 1).checked_rem(self.limits.sample).unwrap_or(0);
        (self.next, whole)
    }

    /// Keeps an entry.
    pub fn push(&mut self, entry: Arc<Entry>) {
        let subscription = entry.compiled.number;
        self.bytes += entry.bytes();
        let turn = &mut self.turn;
        let ring = self.rings.entry(subscription).or_insert_with(|| {
            turn.push_back(subscription);
            Ring::default()
        });
        ring.entries.push_back(entry);
        while ring.entries.len() > self.limits.quantity
            || self.bytes > self.limits.bytes && ring.entries.len() > 1
        {
            let gone = ring.entries.pop_front().map_or(0, |gone| gone.bytes());
            self.bytes -= gone;
        }
        while self.bytes > self.limits.bytes && self.drop_in_turn() {}
    }

    /// Drops the oldest entry of the subscription whose turn it is. False when there is nothing to drop.
    fn drop_in_turn(&mut self) -> bool {
        while let Some(subscription) = self.turn.pop_front() {
            let Some(ring) = self.rings.get_mut(&subscription) else { continue };
            let Some(gone) = ring.entries.pop_front() else {
                // It comes back with its next attempt.
                self.rings.remove(&subscription);
                continue;
            };
            self.bytes -= gone.bytes();
            self.turn.push_back(subscription);
            return true;
        }
        false
    }

    /// The entries of a subscription, the oldest first.
    pub fn of(&self, subscription: SubscriptionNumber) -> impl Iterator<Item = &Arc<Entry>> {
        self.rings.get(&subscription).into_iter().flat_map(|ring| &ring.entries)
    }

    /// A subscription is gone.
    pub fn forget(&mut self, subscription: SubscriptionNumber) {
        if let Some(ring) = self.rings.remove(&subscription) {
            self.bytes -= ring.entries.iter().map(|entry| entry.bytes()).sum::<usize>();
            self.turn.retain(|other| *other != subscription);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flare_model::feed::{Action, Attempt};
    use flare_model::ids::{Ordinal, ResourceId, ResourceNumber, Seq, SubscriptionId};
    use flare_model::resource::{Resource, ResourceView};
    use flare_model::revision::Revision;
    use flare_model::subscription::{Draft, check};
    use flare_model::time::Timestamp;

    use super::*;
    use crate::journey::Compiled;
    use crate::observe::attempt::{Exchange, Id, Phases};

    fn compiled(number: u64) -> Arc<Compiled> {
        let view = ResourceView {
            id: ResourceId::new("res"),
            endpoint: "http://h/{id}".into(),
            change: serde_json::from_str(r#"{"field":"rev"}"#).unwrap(),
            lanes: 1,
            created_at: Timestamp::from_millis(0),
        };
        let resource = Arc::new(Resource::compile(view, ResourceNumber(1)).unwrap());
        let mut draft: Draft = serde_json::from_str(r#"{"endpoint":{"url":"http://c/"}}"#).unwrap();
        let limits = flare_model::subscription::Limits {
            default_timeout: Duration::from_secs(1),
            maximum_timeout: Duration::from_secs(1),
            default_concurrency: 1,
            maximum_concurrency: 1,
        };
        let spec = check(&mut draft, &resource, &limits).unwrap();
        let id = SubscriptionId::new(format!("sub_{number}"));
        let agent = http::HeaderValue::from_static("test");
        Arc::new(Compiled::new(id, SubscriptionNumber(number), resource, spec, 1, &agent))
    }

    fn entry(compiled: &Arc<Compiled>, number: u64, bytes: usize) -> Arc<Entry> {
        let exchange = Exchange {
            headers: Vec::new(),
            body: vec![0; bytes],
            body_bytes: bytes,
            answer_headers: Vec::new(),
            answer: Vec::new(),
            error: None,
        };
        Arc::new(Entry {
            id: Id { epoch: 1, thread: 0, number },
            began: Timestamp::from_millis(0),
            phases: Phases::begin(Duration::ZERO),
            attempt: Attempt {
                ordinal: Ordinal(0),
                seq: Seq(1),
                action: Action::Create,
                replay: 0,
                attempts: 0,
                first_attempt_at: None,
            },
            compiled: compiled.clone(),
            url: "http://h/1".into(),
            revision: Revision::Integer(1),
            updated_at: Timestamp::from_millis(0),
            outcome: Outcome::Failed,
            status: None,
            exchange: Some(Box::new(exchange)),
        })
    }

    fn trail(quantity: usize, bytes: usize) -> Trail {
        let age = Duration::from_secs(1);
        Trail::new(Limits { quantity, age, bytes, sample: 3, excerpt: 0, watchers: 0 })
    }

    fn kept(trail: &Trail, number: u64) -> Vec<u64> {
        trail.of(SubscriptionNumber(number)).map(|entry| entry.id.number).collect()
    }

    #[test]
    fn each_subscription_keeps_its_last_ones() {
        let (one, other) = (compiled(1), compiled(2));
        let mut trail = trail(3, 1 << 20);
        trail.push(entry(&other, 100, 0));
        (0..10).for_each(|number| trail.push(entry(&one, number, 0)));
        assert_eq!(
            (kept(&trail, 1), kept(&trail, 2)),
            (vec![7, 8, 9], vec![100]),
            "a busy one takes from itself"
        );
        trail.forget(SubscriptionNumber(1));
        assert_eq!((kept(&trail, 1), kept(&trail, 2)), (vec![], vec![100]));
    }

    #[test]
    fn all_of_them_stay_within_the_bytes() {
        let many: Vec<_> = (0..20).map(compiled).collect();
        let mut trail = trail(100, 10_000);
        for number in 0..200 {
            trail.push(entry(&many[number as usize % 20], number, 700));
            assert!(trail.bytes <= 10_000, "{}", trail.bytes);
        }
        let counted: usize = (0..20).flat_map(|n| trail.of(SubscriptionNumber(n))).map(|e| e.bytes()).sum();
        assert_eq!(trail.bytes, counted, "what is counted is what is there");
        assert_eq!(kept(&trail, 19), [199], "the newest is kept");
        trail.push(entry(&many[0], 1000, 50_000));
        assert_eq!(trail.bytes, 0, "one that is larger than all there is room for is not kept");
    }

    #[test]
    fn of_those_that_succeed_the_first_and_one_in_so_many_are_whole() {
        let mut trail = trail(10, 10_000);
        let whole = |trail: &mut Trail, outcome| trail.next(SubscriptionNumber(1), outcome).1;
        let seen: Vec<bool> = (0..7).map(|_| whole(&mut trail, Outcome::Delivered)).collect();
        assert_eq!(seen, [true, false, false, true, false, false, true]);
        assert!(whole(&mut trail, Outcome::Failed) && whole(&mut trail, Outcome::Discarded));
        trail.limits.sample = 0;
        assert!(!trail.next(SubscriptionNumber(2), Outcome::Delivered).1);
    }
}
