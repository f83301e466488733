//! Subscriptions in trouble: what delivery threads report, and what each census finds, comes in; the first few that fail, are
//! disabled, gave documents up or have expressions without a result go out, without walking over the others, and how many
//! more there are.

use std::collections::{BTreeSet, HashMap};

use flare_model::access::Account;
use flare_model::ids::SubscriptionId;
use flare_model::subscription::Status;
use flare_model::time::Timestamp;
use parking_lot::Mutex;

use crate::journey::{Ail, Found, RECENT_ERROR, Standstill};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::catalog::subscriptions::StatusView;
use crate::operations::standstill;
use crate::operations::watching::overview::OverviewView;
use crate::registry::Subscription;

/// How many delivery threads are asked about for one list. When there are more: the rest is counted as it was reported.
const ASKED: usize = 64;

/// Who was reported to be in trouble, the first to be reported first.
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
    /// Those that a census has found to have something else than failures or a decision against them.
    other: HashMap<SubscriptionId, Ail>,
    /// Those of which something has succeeded since: perhaps only a part of them works again.
    doubted: BTreeSet<SubscriptionId>,
}

type Entry = (Timestamp, SubscriptionId);

/// The first subscriptions in trouble.
pub struct Troubled {
    /// Those that fail, those that are disabled, those with dead letters, those with expressions that had no result; and of
    /// each the longest in trouble first.
    pub first: Vec<TroubledView>,
    /// How many are not among them.
    pub more: usize,
}

/// One of them.
pub struct TroubledView {
    /// How it stands.
    pub view: OverviewView,
    /// What is wrong with it.
    pub why: String,
}

/// Those that were reported, by what the catalog knows of them.
#[derive(Debug, Default, PartialEq)]
struct Sorted {
    /// They may fail; their delivery threads know.
    failing: Vec<Entry>,
    disabled: Vec<Entry>,
    /// With dead letters, and then with expressions that had no result.
    other: Vec<Entry>,
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
        reported.other.remove(&id);
        reported.ordered.insert((since, id));
    }

    /// A census has found these in trouble. Whoever is known already keeps its place.
    pub fn found(&self, troubled: Vec<Found>) {
        let reported = &mut *self.reported.lock();
        for Found { id, ail, since } in troubled {
            match ail {
                Ail::Fails => _ = reported.other.remove(&id),
                Ail::DeadLetters | Ail::FilterErrors => _ = reported.other.insert(id.clone(), ail),
            }
            if !reported.since.contains_key(&id) {
                reported.since.insert(id.clone(), since);
                reported.ordered.insert((since, id));
            }
        }
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
            reported.other.remove(&entry.1);
        }
    }

    /// Those that were reported. The ones that stand still because somebody wants it so are in no trouble for as long,
    /// however many they are.
    fn sorted(&self, standstill: impl Fn(&SubscriptionId) -> Option<Standstill>) -> Sorted {
        let mut sorted = Sorted::default();
        let reported = self.reported.lock();
        for entry in &reported.ordered {
            match standstill(&entry.1) {
                None => sorted.deleted.push(entry.clone()),
                Some(Standstill::Paused) => {}
                Some(Standstill::Disabled) => sorted.disabled.push(entry.clone()),
                Some(Standstill::None) if reported.other.contains_key(&entry.1) => {
                    sorted.other.push(entry.clone());
                }
                Some(Standstill::None) => sorted.failing.push(entry.clone()),
            }
        }
        sorted.other.sort_by_key(|entry| reported.other.get(&entry.1).copied());
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
    /// The subscriptions of an account that have been in trouble for longest.
    pub async fn troubled(&self, account: &Account, limit: usize) -> Done<Troubled> {
        for entry in self.trouble.take_doubted() {
            self.in_trouble(&entry).await?;
        }
        let known = |id: &SubscriptionId| {
            self.registry.subscription_by_id(id).map(|subscription| standstill(&subscription.stored))
        };
        let Sorted { mut failing, mut disabled, mut other, deleted } = self.trouble.sorted(known);
        let theirs = |entry: &Entry| {
            let known = self.registry.subscription_by_id(&entry.1);
            known.is_some_and(|known| known.compiled.resource.account == *account)
        };
        for list in [&mut failing, &mut disabled, &mut other] {
            list.retain(theirs);
        }
        deleted.iter().for_each(|entry| self.trouble.forget(entry));
        let mut total = failing.len() + disabled.len() + other.len();
        let mut first = Vec::new();
        for entry in failing.iter().take(ASKED).chain(&disabled).chain(other.iter().take(ASKED)) {
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
    async fn in_trouble(&self, entry: &Entry) -> Done<Option<TroubledView>> {
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
        let why = match status.status {
            Status::Failing | Status::Disabled => Some(status.reason.clone().unwrap_or_default()),
            Status::Active | Status::Preparing => self.ails(&subscription, &status),
            Status::Paused => return Ok(None),
        };
        // Whoever goes on is reported again if it still fails.
        let Some(why) = why else {
            self.trouble.forget(entry);
            return Ok(None);
        };
        let resource = subscription.compiled.resource.id().clone();
        Ok(Some(TroubledView { view: OverviewView { id: entry.1.clone(), resource, status }, why }))
    }

    /// What is wrong with one that is at work, if anything is. An expression without a result is something to look at for a
    /// while, until somebody changes the subscription.
    fn ails(&self, subscription: &Subscription, status: &StatusView) -> Option<String> {
        let letters = status.feed.dead_letters;
        if letters > 0 {
            return Some(format!("{letters} dead letter{}", if letters == 1 { "" } else { "s" }));
        }
        let filter = status.filter.as_ref()?;
        let last = filter.last_error.as_ref()?;
        let recent = self.clock.now().since(last.at) < RECENT_ERROR;
        (recent && last.at > subscription.stored.updated_at)
            .then(|| format!("an expression had no result ({} in all): {}", filter.errors, last.error))
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
        assert_eq!(sorted, Sorted { failing, disabled, deleted: vec![entry(3)], ..Sorted::default() });
    }

    #[test]
    fn what_a_census_finds_is_listed_by_what_it_is() {
        let trouble = Trouble::default();
        let at = Timestamp::from_millis;
        let id = |name: &str| SubscriptionId::new(name);
        trouble.report(id("reported"), at(5));
        let found = |millis, names: &[(&str, Ail)]| {
            let each = names.iter().map(|(name, ail)| Found { id: id(name), ail: *ail, since: at(millis) });
            trouble.found(each.collect());
        };
        let ails = [("errs", Ail::FilterErrors), ("letters", Ail::DeadLetters), ("fails", Ail::Fails)];
        found(10, &ails);
        found(20, &ails);
        found(20, &[("reported", Ail::Fails)]);
        let entry = |millis, name| (at(millis), id(name));
        let sorted = trouble.sorted(|_| Some(Standstill::None));
        assert_eq!(sorted.failing, [entry(5, "reported"), entry(10, "fails")]);
        assert_eq!(sorted.other, [entry(10, "letters"), entry(10, "errs")]);
        found(30, &[("letters", Ail::Fails)]);
        let sorted = trouble.sorted(|_| Some(Standstill::None));
        assert_eq!(sorted.failing.len(), 3, "it fails by now");
        trouble.forget(&entry(10, "errs"));
        assert!(trouble.sorted(|_| Some(Standstill::None)).other.is_empty());
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
