//! What Flare says of a client, held against what that client has really recorded, at any moment of a schedule: status, drift
//! and explain are asked at once, and whatever did not move meanwhile has to be as they say.
//!
//! `newest`, `older` and `nothing` are certain: a client that has something else makes them wrong. Only what a client took
//! and then denied (it answers 500, and has it all the same) is its own fault.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use flare_core::operations::{App, Done, DriftQuery, DriftView, StatusView};
use flare_model::explain::Verdict;
use flare_model::feed::ClientHas;
use flare_model::subscription::Status;
use flare_model::url::DocumentUrl;
use flare_promises::dice::Dice;

use crate::client::{Client, Name};
use crate::house::House;
use crate::operate::letters::{self, Errand};
use crate::operate::subscriptions;
use crate::stage::Inside;

/// Documents that are explained, each time.
const EXPLAINED: usize = 6;
/// More than a schedule has.
const ALL: usize = 10_000;

/// What is so of one document.
#[derive(Clone, Debug, PartialEq)]
struct Truth {
    /// The newest revision, and whether it is live.
    newest: (i64, bool),
    /// The revision that the client has, and the sequence of what it took last: what it has may become what it was.
    has: Option<i64>,
    sequence: u64,
    /// The client took the last one, and denied it.
    denied: bool,
}

/// What was said of how a client fares. Once it is durable, less is said of it never again, whatever crashes: the counts do
/// not fall, and while they stay, so do the last success, the last failure, and that it fails.
#[derive(Clone, Debug)]
pub struct Fared {
    delivered: u64,
    discarded: u64,
    failed: u64,
    /// The last success and the last failure.
    last: String,
    /// It was failing; and how often it had been changed or resumed by then.
    failing: Option<u64>,
}

impl Fared {
    fn of(status: &StatusView, forgiven: u64) -> Fared {
        Fared {
            delivered: status.delivered,
            discarded: status.discarded,
            failed: status.failed,
            last: serde_json::to_string(&(&status.last_success_at, &status.last_failure)).unwrap_or_default(),
            failing: (status.status == Status::Failing).then_some(forgiven),
        }
    }

    /// What cannot follow it.
    fn contradicts(&self, later: &Fared, status: Status, forgiven: u64) -> bool {
        let [before, after] = [self, later].map(|fared| [fared.delivered, fared.discarded, fared.failed]);
        let falls = before.iter().zip(after).any(|(before, after)| *before > after);
        let well = matches!(status, Status::Active | Status::Preparing);
        let forgotten = self.last != later.last || self.failing == Some(forgiven) && well;
        falls || before == after && forgotten
    }
}

/// What Flare says.
struct Said {
    before: StatusView,
    all: Vec<DriftView>,
    lagging: Vec<DriftView>,
    total: (u64, bool),
    verdicts: Vec<(String, Verdict)>,
    after: StatusView,
}

/// Drops the dead letters of a client now and then, and asks about one.
pub async fn probe(house: &Rc<House>, dice: &mut Dice) {
    let (number, name, urls, before, replays, forgiven) = {
        let inside = house.stage.lock();
        let there = subscriptions::existing(&inside);
        if there.is_empty() || !house.is_up() {
            return;
        }
        let number = *dice.pick(&there);
        let Some(name) = inside.clients[number].name.clone() else { return };
        let truths = truths(&inside, number);
        let mut urls: Vec<String> = truths.keys().cloned().collect();
        while urls.len() > EXPLAINED {
            urls.swap_remove(dice.below(urls.len() as u64) as usize);
        }
        let forgiven = inside.clients[number].forgiven;
        (number, name, urls, truths, replays(&inside, number), forgiven)
    };
    if dice.percent(20) {
        letters::run(house.clone(), number, Errand::Drop(None)).await;
        return;
    }
    let asked = house.ask(|app, _| ask(app, name, urls)).await;
    let mut inside = house.stage.lock();
    let Some(Ok(said)) = asked else { return };
    if let Some(what) = fares(&mut inside.clients[number], &said.before, forgiven) {
        inside.wrong(Some(number), "", what);
    }
    let after = truths(&inside, number);
    let still = before.into_iter().filter(|(url, truth)| after.get(url) == Some(truth)).collect();
    // A replay that comes between two questions, and finds nothing to send, leaves no other trace.
    let replayed = replays.0 > replays.1 || self::replays(&inside, number) != replays;
    for (url, what) in said.wrong(&still, !replayed) {
        inside.wrong(Some(number), &url, what);
    }
    inside.probed += 1;
}

/// Whether what is said of how a client fares is what it did, and what was durable.
fn fares(client: &mut Client, said: &StatusView, forgiven: u64) -> Option<String> {
    let fared = Fared::of(said, forgiven);
    let before = client.fared.replace(fared.clone());
    if said.delivered > client.taken {
        return Some(format!("{} are said to be delivered, and {} were taken", said.delivered, client.taken));
    }
    if said.status == Status::Failing && said.delivered + said.discarded == 0 && said.failed == 0 {
        return Some("it is said to fail, and nothing of it has failed".to_owned());
    }
    let before = before.filter(|before| before.contradicts(&fared, said.status, client.forgiven))?;
    Some(format!(
        "it was durable that it fares so: {before:?}; and then is said: {fared:?}, {:?}",
        said.status
    ))
}

/// How many replays of a client were asked for, and how many of them were answered.
fn replays(inside: &Inside, number: usize) -> (u64, u64) {
    let client = &inside.clients[number];
    (client.replays, client.answered_replays)
}

/// What is so of all documents about which nothing is being said.
fn truths(inside: &Inside, number: usize) -> BTreeMap<String, Truth> {
    let client = &inside.clients[number];
    let documents =
        inside.world.resources[client.resource].documents.iter().filter(|(_, document)| !document.busy);
    let truth = documents.filter_map(|(url, document)| {
        let newest = document.newest()?;
        let pair = client.pairs.get(url);
        let has = pair.and_then(|pair| pair.has.as_ref()).map(|(revision, _)| *revision);
        let (sequence, denied) = pair.map_or((0, false), |pair| (pair.sequence, pair.denied));
        let newest = (newest.revision, newest.content.is_some());
        Some((url.clone(), Truth { newest, has, sequence, denied }))
    });
    truth.collect()
}

async fn ask(app: Arc<App>, name: Name, urls: Vec<String>) -> Done<Said> {
    let Name { resource, id } = name;
    let query = |lagging| DriftQuery { lagging, limit: ALL, offset: 0, after: None };
    let before = app.status(&resource, &id).await?;
    // Whoever lists dead letters sees them as they are: all that was known is durable then.
    app.dead_letters(&resource, &id, 0, 0).await?;
    let all = app.drift(&resource, &id, query(false)).await?.documents;
    let page = app.drift(&resource, &id, query(true)).await?;
    let mut verdicts = Vec::new();
    for url in urls {
        let parsed = DocumentUrl::parse(&url).expect("urls of documents are right");
        verdicts.push((
            url,
            app.explain(&flare_model::access::Caller::anybody(), parsed.as_str(), &id).await?.verdict,
        ));
    }
    let after = app.status(&resource, &id).await?;
    let total = (page.total, page.total_is_bound);
    Ok(Said { before, all, lagging: page.documents, total, verdicts, after })
}

impl Said {
    /// What is not as it says, by document.
    fn wrong(&self, truths: &BTreeMap<String, Truth>, quiet: bool) -> Vec<(String, String)> {
        let mut wrong = Vec::new();
        for entry in self.all.iter().chain(&self.lagging) {
            let said = format!("drift says {:?}, owed {}: {}", entry.client_has, entry.owed, entry.why);
            if let Some(truth) = truths.get(&entry.document)
                && entry.revision.to_string() == truth.newest.0.to_string()
                && !truth.allows(entry.client_has)
            {
                wrong.push((entry.document.clone(), format!("{said}; and so it is: {truth:?}")));
            }
        }
        // What moved between two questions may be told either way.
        let at_rest = quiet && shown(&self.before) == shown(&self.after);
        if at_rest {
            wrong.extend(self.disagrees().into_iter().map(|what| (String::new(), what)));
            wrong.extend(self.verdicts.iter().filter_map(|(url, verdict)| self.contradicts(url, *verdict)));
        }
        wrong
    }

    /// Whether the numbers are those of the lists.
    fn disagrees(&self) -> Option<String> {
        let feed = &self.before.feed;
        let owed = self.all.iter().filter(|entry| entry.owed).count() as u64;
        let listed = self.lagging.iter().filter(|entry| entry.owed).count() as u64;
        let exact = !feed.lagging_is_bound && !self.total.1;
        let agrees = owed == listed
            && if exact {
                feed.lagging == owed && self.total.0 == self.lagging.len() as u64
            } else {
                feed.lagging >= owed
            };
        (!agrees).then(|| {
            format!(
                "lagging is {} (bound: {}), drift has {owed} that are owed, {listed} of them lagging, {} lagging in all, and \
                 says {:?}",
                feed.lagging,
                feed.lagging_is_bound,
                self.lagging.len(),
                self.total
            )
        })
    }

    /// Whether explain and drift say two things.
    fn contradicts(&self, url: &str, verdict: Verdict) -> Option<(String, String)> {
        let entry = self.all.iter().find(|entry| entry.document == url)?;
        let newest = entry.client_has == ClientHas::Newest;
        let agrees = match verdict {
            Verdict::InFlight | Verdict::Waiting | Verdict::Paused | Verdict::Disabled => entry.owed,
            Verdict::Delivered => !entry.owed && newest,
            // Of what it has, by a changed filter it did not take the delete.
            Verdict::Discarded | Verdict::Dropped => {
                !entry.owed && (!newest || entry.why.contains("the delete"))
            }
            Verdict::HeldBack => !entry.owed && !newest,
            Verdict::InDoubt => !entry.owed && entry.client_has == ClientHas::Unknown,
            Verdict::GaveUp | Verdict::Filtered => !entry.owed,
            Verdict::NotHeld => !entry.owed && (newest || entry.client_has == ClientHas::Nothing),
            // Its tombstone may have been removed since the list was made: nobody needs it.
            Verdict::Unknown => entry.deleted && !entry.owed,
            Verdict::NoMatch => false,
        };
        let what = || {
            format!(
                "explain says {verdict:?}, and drift {:?}, owed {}: {}",
                entry.client_has, entry.owed, entry.why
            )
        };
        (!agrees).then(|| (url.to_owned(), what()))
    }
}

/// All that moves with what is done.
fn shown(status: &StatusView) -> String {
    serde_json::to_string(status).unwrap_or_default()
}

impl Truth {
    fn allows(&self, said: ClientHas) -> bool {
        let (newest, lives) = self.newest;
        match said {
            ClientHas::Unknown => true,
            ClientHas::Newest if lives => self.has == Some(newest),
            ClientHas::Newest | ClientHas::Nothing => self.has.is_none() || self.denied,
            ClientHas::Older if lives => self.has.is_some_and(|has| has < newest) || self.denied,
            ClientHas::Older => self.has.is_some() || self.denied,
        }
    }
}
