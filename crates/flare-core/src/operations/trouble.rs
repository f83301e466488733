//! Subscriptions in trouble: what delivery threads report comes in, the first few that fail or are disabled go out,
//! without walking over the others.

use std::collections::{BTreeSet, HashMap};

use flare_model::ids::SubscriptionId;
use flare_model::subscription::Status;
use flare_model::time::Timestamp;
use parking_lot::Mutex;

use super::overview::OverviewView;
use super::{App, Done, Failure};

/// Candidates looked at for one list. When there are more: the list is cut, and who wants all asks for the status of
/// every subscription.
const LOOKED_AT: usize = 64;

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
    ordered: BTreeSet<(Timestamp, SubscriptionId)>,
}

impl Trouble {
    /// One fails, or is disabled.
    pub fn report(&self, id: SubscriptionId, since: Timestamp) {
        let mut reported = self.reported.lock();
        if let Some(before) = reported.since.insert(id.clone(), since) {
            reported.ordered.remove(&(before, id.clone()));
        }
        reported.ordered.insert((since, id));
    }

    fn first(&self, quantity: usize) -> Vec<(Timestamp, SubscriptionId)> {
        self.reported.lock().ordered.iter().take(quantity).cloned().collect()
    }

    fn forget(&self, entry: &(Timestamp, SubscriptionId)) {
        let mut reported = self.reported.lock();
        // Unless it was reported anew meanwhile.
        if reported.ordered.remove(entry) {
            reported.since.remove(&entry.1);
        }
    }
}

impl App {
    /// The subscriptions that have failed, or been disabled, for longest.
    pub async fn troubled(&self, limit: usize) -> Done<Vec<OverviewView>> {
        let mut found = Vec::new();
        for entry in self.trouble.first(LOOKED_AT) {
            if found.len() == limit {
                break;
            }
            let Some(subscription) = self.registry.subscription_by_id(&entry.1) else {
                self.trouble.forget(&entry);
                continue;
            };
            let status = match self.status_view(&subscription).await {
                Ok(status) => status,
                // Deleted meanwhile.
                Err(Failure::NotFound(_)) => continue,
                Err(failure) => return Err(failure),
            };
            match status.status {
                Status::Failing | Status::Disabled => {
                    let resource = subscription.compiled.resource.id().clone();
                    found.push(OverviewView { id: entry.1, resource, status });
                }
                // Whoever goes on is reported again if it still fails.
                Status::Active | Status::Preparing => self.trouble.forget(&entry),
                Status::Paused => {}
            }
        }
        Ok(found)
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
        let ids = |trouble: &Trouble| trouble.first(9).into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        assert_eq!(ids(&trouble), [one.clone(), two.clone()]);
        trouble.forget(&(Timestamp::from_millis(30), one.clone()));
        assert_eq!(ids(&trouble), [one.clone(), two.clone()], "what was reported anew stays");
        trouble.forget(&(Timestamp::from_millis(10), one));
        assert_eq!(ids(&trouble), [two]);
    }
}
