//! Which subscriptions of a delivery thread stand out, because they fail, are being prepared, are to
//! be disabled, or gave something up. The rest is not mentioned, so the answer is as long as there is trouble.
//!
//! It walks over all of them, in small steps, between which the thread does what else there is to do.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use flare_model::feed::SweepKind;
use flare_model::health::Fares;
use flare_model::ids::SubscriptionNumber;
use tokio::sync::oneshot;

use crate::journey::merge::Merge as _;
use crate::journey::subscriber::decision::Decision;
use crate::journey::worker::Worker;

/// Subscriptions looked at before others have their turn: some ten microseconds.
const STEP: usize = 64;

/// Why a subscription stands out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notable {
    /// Whether its client fails.
    pub fares: Fares,
    /// The beginning is not through yet.
    pub preparing: bool,
    /// Documents given up.
    pub dead_letters: u64,
    /// It is to be disabled.
    pub decision: Option<Decision>,
}

/// Those that stand out.
pub type NotableOnes = HashMap<SubscriptionNumber, Notable>;

/// Looks at all subscriptions and tells those that stand out.
pub async fn take(worker: Rc<RefCell<Worker>>, reply: oneshot::Sender<NotableOnes>) {
    let mut notable_ones = NotableOnes::new();
    let mut next = 0;
    // What comes and goes meanwhile may be missed: whoever asks again sees it.
    while next < worker.borrow().subscribers.indices() {
        worker.borrow().notable_of(next..next + STEP, &mut notable_ones);
        next += STEP;
        tokio::task::yield_now().await;
    }
    let _ = reply.send(notable_ones);
}

/// Several threads may serve one subscription, each some of its lanes.
pub fn add(notable_ones: &mut NotableOnes, other: NotableOnes) {
    for (number, notable) in other {
        let sum = notable_ones.entry(number).or_default();
        sum.fares = sum.fares.and(notable.fares);
        sum.preparing |= notable.preparing;
        sum.dead_letters += notable.dead_letters;
        sum.decision = sum.decision.take().merge(notable.decision);
    }
}

impl Worker {
    /// Adds those of the subscriptions at these places that stand out.
    fn notable_of(&self, keys: std::ops::Range<usize>, notable_ones: &mut NotableOnes) {
        for (_, subscriber) in self.subscribers.part(keys) {
            let feeds = || subscriber.lanes.iter().map(|lane| &lane.feed);
            let beginning =
                |sweep: Option<_>| sweep.is_some_and(|kind: SweepKind| kind == SweepKind::Beginning);
            // When one was last well that does not fail is nothing to stand out by.
            let fails = match &subscriber.borrowed {
                Some(borrowed) => borrowed.common.fails(),
                None => subscriber.fortune.failing_since.is_some(),
            };
            let notable = Notable {
                fares: if fails { subscriber.fares_in_all() } else { Fares::default() },
                preparing: feeds().any(|feed| beginning(feed.sweeping().map(|sweep| sweep.kind))),
                dead_letters: feeds().map(|feed| feed.dead().len()).sum(),
                decision: subscriber.decision.as_deref().cloned(),
            };
            if notable != Notable::default() {
                notable_ones.insert(subscriber.compiled.number, notable);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flare_model::time::Timestamp;

    use super::*;

    #[test]
    fn what_several_threads_say_of_one_is_added_up() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let one = |failing_since, preparing, dead_letters| {
            let fares = Fares { failing_since, failed_at: failing_since, well_at: None };
            let fares = if failing_since.is_some() { fares } else { Fares::default() };
            let notable = Notable { fares, preparing, dead_letters, decision: None };
            NotableOnes::from([(SubscriptionNumber(1), notable)])
        };
        let mut sum = one(at(9), false, 2);
        add(&mut sum, one(at(5), true, 3));
        add(&mut sum, one(None, false, 0));
        let fares = Fares { failing_since: at(5), failed_at: at(9), well_at: None };
        let notable = Notable { fares, preparing: true, dead_letters: 5, decision: None };
        assert_eq!(sum, NotableOnes::from([(SubscriptionNumber(1), notable)]));
    }
}
