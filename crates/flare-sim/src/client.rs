//! The client of one subscription: what it asked for, what it was told of each document, what it made of that, and what it
//! may be told next.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use flare_model::ids::{ResourceId, SubscriptionId};
use flare_promises::beliefs::{Action, Beliefs};
use flare_promises::dice::Dice;
use flare_promises::mood::Mood;
use flare_promises::told::Told;
use flare_promises::wish::{Aspect, Filter, When, Wish};
use flare_promises::world::{Document, Tick};
use serde_json::Value;

use crate::pair::{Pair, Way};
use crate::truth::Fared;

/// So long an attempt may take from when it was decided to when its request begins: the longest timeout of a
/// subscription. What was decided under a former filter, or before a pause, may come for so long.
const DECIDED: Duration = Duration::from_millis(600);

/// The same for a lease, which is handed out once it is durable: as long as the store may be in trouble.
const DURABLE: Duration = Duration::from_secs(20);

/// What Flare calls a subscription.
#[derive(Clone, Debug)]
pub struct Name {
    pub resource: ResourceId,
    pub id: SubscriptionId,
}

/// The client of one subscription.
pub struct Client {
    pub wish: Wish,
    /// Its resource, by number.
    pub resource: usize,
    /// As Flare names the subscription, while it is there.
    pub name: Option<Name>,
    /// When it began to be created, and when it surely was.
    pub began: Tick,
    pub created: Tick,
    /// An operation is under way that nothing else may meet.
    pub busy: bool,
    /// Aspects that a PATCH under way changes.
    pub changing: Vec<Aspect>,
    /// It is being paused or resumed.
    pub standing: bool,
    /// What `when` and `filter` were before, and until when.
    pub whens: Vec<(When, Tick)>,
    pub former: Vec<(Filter, Tick)>,
    /// Whether all its documents were gone through after its creation, by a changed filter or a replay; or perhaps were.
    pub swept: bool,
    pub perhaps_swept: bool,
    /// Documents that were asked for one by one.
    pub asked: BTreeSet<String>,
    /// How many replays were asked for.
    pub replays: u64,
    /// And how many of them were answered.
    pub answered_replays: u64,
    /// Dead letters that were dropped, of one document or of all, and until when that took.
    pub dropped: Vec<(Option<String>, Tick)>,
    /// Whether it wanted every revision from the beginning, all the time.
    pub always_all: bool,
    /// So many take from it.
    pub pulling: u8,
    /// So many operators are ending its leases.
    pub ending: u8,
    pub mood: Mood,
    pub dice: Dice,
    pub pairs: BTreeMap<String, Pair>,
    /// Filters that may be in effect, with when they were replaced, by the node's own measure.
    filters: Vec<(Filter, Option<Duration>)>,
    /// How often its filter was begun to be changed, and was changed: odd while that is under way.
    pub filter_changes: u64,
    refiltered: Option<Duration>,
    /// Skips notifications whose id it has applied, as the guide allows.
    skips: bool,
    /// Up to this moment something may have been sent that nobody saw.
    pub blurred: Tick,
    /// Something was sent that nobody saw.
    pub unseen: bool,
    /// How often it has answered, at most, that it took something; each answer that Flare may have heard.
    pub taken: u64,
    /// How often it was begun to be changed or resumed, and was: what it failed before may count no more then.
    pub forgiven: u64,
    /// What was said of how it fares, and was durable when the next thing was asked.
    pub fared: Option<Fared>,
    /// Nothing may begin since then: it is paused or deleted.
    pub quiet: Option<(Duration, &'static str)>,
    applied_ids: HashSet<String>,
    /// So much later what was changed may not be known yet where it counts: another node hears of it.
    lag: Duration,
}

impl Client {
    pub fn new(resource: usize, wish: Wish, dice: Dice, skips: bool, began: Tick, lag: Duration) -> Client {
        Client {
            resource,
            name: None,
            began,
            created: began,
            busy: true,
            changing: Vec::new(),
            standing: false,
            whens: Vec::new(),
            former: Vec::new(),
            swept: false,
            perhaps_swept: false,
            asked: BTreeSet::new(),
            replays: 0,
            answered_replays: 0,
            dropped: Vec::new(),
            always_all: wish.all,
            pulling: 0,
            ending: 0,
            mood: Mood::Healthy,
            dice,
            pairs: BTreeMap::new(),
            filters: vec![(wish.filter, None)],
            filter_changes: 0,
            refiltered: None,
            skips,
            blurred: 0,
            unseen: false,
            taken: 0,
            forgiven: 0,
            fared: None,
            quiet: None,
            applied_ids: HashSet::new(),
            lag,
            wish,
        }
    }

    /// The filter is about to be another.
    pub fn refilter(&mut self, filter: Filter) {
        self.filter_changes += 1 + self.filter_changes % 2;
        self.filters.push((filter, None));
    }

    /// From now on, by the node's own measure, this filter counts and no other.
    pub fn refiltered(&mut self, filter: Filter, now: Duration) {
        self.filter_changes += self.filter_changes % 2;
        self.refiltered = Some(now);
        let lag = self.lag;
        self.filters.retain(|(_, replaced)| replaced.is_none_or(|at| now < at + DURABLE + lag));
        for (_, replaced) in &mut self.filters {
            replaced.get_or_insert(now);
        }
        self.filters.push((filter, None));
    }

    /// Whether the filter may be either of two. An attempt ends under the filter that began it.
    pub fn is_refiltering(&self, now: Duration, way: Way) -> bool {
        self.filter_changes % 2 == 1 || self.refiltered.is_some_and(|at| now < at + self.patience(way))
    }

    /// Whether a filter that may be in effect says so of a document, or cannot say.
    fn may_judge(&self, document: &Value, included: bool, now: Duration, way: Way) -> bool {
        let in_effect =
            self.filters.iter().filter(|(_, at)| at.is_none_or(|at| now < at + self.patience(way)));
        in_effect.map(|(filter, _)| filter.includes(document)).any(|says| says == Some(included))
    }

    /// Something of it may have begun, or ended, that nobody saw: a reservation whose answer was lost.
    pub fn blur(&mut self, now: Tick) {
        (self.unseen, self.blurred) = (true, now);
        self.pairs.values_mut().for_each(|pair| pair.blur());
    }

    /// What it knows of a document.
    pub fn pair(&mut self, document: Option<&Document>, url: &str) -> &mut Pair {
        let blurred = self.blurred;
        self.pairs.entry(url.to_owned()).or_insert_with(|| {
            // Of a document that is older than a crash something may have been sent. One that was deleted and came
            // back since is taken for such a one: what is stored tells of the life before it, and not when that began.
            let older = document.is_some_and(|document| {
                let mut said = document.said.iter();
                blurred > 0 && said.any(|said| said.began < blurred || said.content.is_none())
            });
            Pair::new(if older { Beliefs::NOTHING.or_doubt() } else { Beliefs::NOTHING })
        })
    }

    /// Whether something begins that must not any more.
    pub fn check_quiet(&self, now: Duration, way: Way) -> Option<String> {
        let (since, why) = self.quiet?;
        (now > since + self.patience(way)).then(|| format!("it is told though it is {why}"))
    }

    /// What it is told is to be its own by a filter that may be in effect; and what it is told to be gone is gone, or
    /// not its own.
    pub fn check_membership(
        &self,
        document: Option<&Document>,
        told: &Told,
        now: Duration,
        way: Way,
    ) -> Option<String> {
        let Some(document) = document else {
            return Some(format!("the origin never said {}", told.document));
        };
        let content = document.find(told.revision, false).and_then(|said| said.content.as_ref());
        if told.action == Action::Delete {
            let gone = document.find(told.revision, true).is_some();
            let left = content.is_some_and(|content| self.may_judge(content, false, now, way));
            return (!gone && !left).then(|| format!("a delete of what is not gone: {told}"));
        }
        match content {
            None => Some(format!("the origin never said this revision: {told}")),
            Some(content) => {
                (!self.may_judge(content, true, now, way)).then(|| format!("not within the filter: {told}"))
            }
        }
    }

    /// Whether something that it was told of a document, and that failed, may have been dropped since.
    pub fn may_have_dropped(&self, url: &str, since: Tick) -> bool {
        let meant = |document: &Option<String>| document.as_deref().is_none_or(|document| document == url);
        self.dropped.iter().any(|(document, until)| meant(document) && *until > since)
    }

    fn patience(&self, way: Way) -> Duration {
        self.lag
            + match way {
                Way::Request => DECIDED,
                Way::Lease(_) => DURABLE,
            }
    }

    /// It processes a notification. False if that is impossible.
    pub fn apply(&mut self, told: &Told) -> bool {
        if self.skips && self.applied_ids.contains(&told.id) {
            return true;
        }
        let Some(pair) = self.pairs.get_mut(&told.document) else { return false };
        let fits = pair.apply(told);
        self.applied_ids.insert(told.id.clone());
        fits
    }
}
