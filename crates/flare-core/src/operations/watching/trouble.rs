//! Subscriptions in trouble: what delivery threads report comes in, the first few that fail or are disabled go out,
//! without walking over the others, and how many more there are.

use std::collections::{BTreeSet, HashMap};

use flare_model::ids::SubscriptionId;
use flare_model::subscription::Status;
use flare_model::time::Timestamp;
use parking_lot::Mutex;

use crate::journey::Standstill;
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::standstill;
use crate::operations::watching::overview::OverviewView;

/// How many delivery threads are asked about for one list. When there are more: the rest is counted as it was reported.
const ASKED: usize = 64;

/// Who was reported to fail or to be disabled, the first to be reported first.
///
/// Bound: the number of subscriptions. An entry that no longer holds is dropped when it is looked at.
#[derive(Default)]
pub struct Trouble {
    reported: Mutex<Reported>,
}

#[derive(Default)]
struct Reported {
    since: HashMap<SubscriptionId, Timestamp>,
    ordered: BTreeSet<Entry>,
    /// Those of which something has succeeded since: perhaps only a part of them works again.
    doubted: BTreeSet<SubscriptionId>,
}

type Entry = (Timestamp, SubscriptionId);

/// The first subscriptions in trouble.
pub struct Troubled {
    /// Those that fail before those that are disabled, and of each the longest in trouble first.
    pub first: Vec<OverviewView>,
    /// How many are not among them.
    pub more: usize,
}

/// Those that were reported, by what the catalog knows of them.
#[derive(Debug, Default, PartialEq)]
struct Sorted {
    /// They may fail; their delivery threads know.
    failing: Vec<Entry>,
    disabled: Vec<Entry>,
    deleted: Vec<Entry>,
}

impl Trouble {
    /// One fails, or is disabled.
    pub fn report(&self, id: SubscriptionId, since: Timestamp) {
        let mut reported = self.reported.lock();
        if let Some(before) = reported.since.insert(id.clone(), since) {
            reported.ordered.remove(&(before, id.clone()));
        }
        reported.doubted.remove(&id);
        reported.ordered.insert((since, id));
    }

    /// One that failed may be well again.
    pub fn doubt(&self, id: SubscriptionId) {
        let mut reported = self.reported.lock();
        if reported.since.contains_key(&id) {
            reported.doubted.insert(id);
        }
    }

    fn forget(&self, entry: &Entry) {
        let mut reported = self.reported.lock();
        // Unless it was reported anew meanwhile.
        if reported.ordered.remove(entry) {
            reported.since.remove(&entry.1);
            reported.doubted.remove(&entry.1);
        }
    }

    /// Those that were reported. The ones that stand still because somebody wants it so are in no trouble for as long,
    /// however many they are.
    fn sorted(&self, standstill: impl Fn(&SubscriptionId) -> Option<Standstill>) -> Sorted {
        let mut sorted = Sorted::default();
        for entry in &self.reported.lock().ordered {
            match standstill(&entry.1) {
                None => sorted.deleted.push(entry.clone()),
                Some(Standstill::Paused) => {}
                Some(Standstill::Disabled) => sorted.disabled.push(entry.clone()),
                Some(Standstill::None) => sorted.failing.push(entry.clone()),
            }
        }
        sorted
    }

    /// Some of those that are doubted, no longer so.
    fn take_doubted(&self) -> Vec<Entry> {
        let reported = &mut *self.reported.lock();
        let some: Vec<SubscriptionId> = reported.doubted.iter().take(ASKED).cloned().collect();
        let entry = |id: SubscriptionId| {
            reported.doubted.remove(&id);
            Some((*reported.since.get(&id)?, id))
        };
        some.into_iter().filter_map(entry).collect()
    }
}

impl App {
    /// The subscriptions that have failed, or been disabled, for longest.
    pub async fn troubled(&self, limit: usize) -> Done<Troubled> {
        for entry in self.trouble.take_doubted() {
            self.in_trouble(&entry).await?;
        }
        let known = |id: &SubscriptionId| {
            self.registry.subscription_by_id(id).map(|subscription| standstill(&subscription.stored))
        };
        let Sorted { failing, disabled, deleted } = self.trouble.sorted(known);
        deleted.iter().for_each(|entry| self.trouble.forget(entry));
        let mut total = failing.len() + disabled.len();
        let mut first = Vec::new();
        for entry in failing.iter().take(ASKED).chain(&disabled) {
            if first.len() == limit {
                break;
            }
            match self.in_trouble(entry).await? {
                Some(view) => first.push(view),
                None => total -= 1,
            }
        }
        Ok(Troubled { more: total - first.len(), first })
    }

    /// How one that was reported stands, if it is in trouble still.
    async fn in_trouble(&self, entry: &Entry) -> Done<Option<OverviewView>> {
        let Some(subscription) = self.registry.subscription_by_id(&entry.1) else {
            self.trouble.forget(entry);
            return Ok(None);
        };
        let status = match self.status_view(&subscription).await {
            Ok(status) => status,
            // Deleted meanwhile.
            Err(Failure::NotFound(_)) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        match status.status {
            Status::Failing | Status::Disabled => {
                let resource = subscription.compiled.resource.id().clone();
                Ok(Some(OverviewView { id: entry.1.clone(), resource, status }))
            }
            // Whoever goes on is reported again if it still fails.
            Status::Active | Status::Preparing => {
                self.trouble.forget(entry);
                Ok(None)
            }
            Status::Paused => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once_and_the_first_comes_first() {
        let trouble = Trouble::default();
        let (one, two) = (SubscriptionId::new("sub_1"), SubscriptionId::new("sub_2"));
        for (id, millis) in [(&one, 30), (&two, 20), (&one, 10)] {
            trouble.report(id.clone(), Timestamp::from_millis(millis));
        }
        let ids = |trouble: &Trouble| {
            let failing = trouble.sorted(|_| Some(Standstill::None)).failing;
            failing.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&trouble), [one.clone(), two.clone()]);
        trouble.forget(&(Timestamp::from_millis(30), one.clone()));
        assert_eq!(ids(&trouble), [one.clone(), two.clone()], "what was reported anew stays");
        trouble.forget(&(Timestamp::from_millis(10), one));
        assert_eq!(ids(&trouble), [two]);
    }

    #[test]
    fn those_that_are_paused_crowd_out_nobody() {
        let trouble = Trouble::default();
        let entry =
            |number: i64| (Timestamp::from_millis(number), SubscriptionId::new(format!("sub_{number}")));
        for number in 0..1000 {
            let (since, id) = entry(number);
            trouble.report(id, since);
        }
        let sorted = trouble.sorted(|id| match id.as_str() {
            "sub_7" | "sub_999" => Some(Standstill::Disabled),
            "sub_998" => Some(Standstill::None),
            "sub_3" => None,
            _ => Some(Standstill::Paused),
        });
        let [failing, disabled] = [vec![entry(998)], vec![entry(7), entry(999)]];
        assert_eq!(sorted, Sorted { failing, disabled, deleted: vec![entry(3)] });
    }

    #[test]
    fn who_is_doubted_is_looked_at_once_and_only_if_it_was_reported() {
        let trouble = Trouble::default();
        let (one, two) = (SubscriptionId::new("sub_1"), SubscriptionId::new("sub_2"));
        trouble.report(one.clone(), Timestamp::from_millis(1));
        trouble.doubt(one.clone());
        trouble.doubt(two);
        assert_eq!(trouble.take_doubted(), [(Timestamp::from_millis(1), one.clone())]);
        assert_eq!(trouble.take_doubted(), []);
        trouble.doubt(one.clone());
        trouble.report(one, Timestamp::from_millis(2));
        assert_eq!(trouble.take_doubted(), [], "it fails again");
    }
}
