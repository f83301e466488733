//! kill -9 in a loop under load: nothing accepted is lost, nothing goes back in time, the store opens every time, and
//! in the end every client has what the origins said.
//!
//! FLARE_CRASH_ROUNDS says how often it is killed, FLARE_CRASH_SEED repeats the choices of a run that failed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{
    Api, Receiver, Reply, Request, Setup, Story, document_url, store_is_durable, until, until_true,
};

const ORIGINS: u64 = 4;
const DOCUMENTS: u64 = 12;

/// How often it is killed, and what the choices depend on.
pub fn rounds_and_seed() -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("FLARE_CRASH_ROUNDS").unwrap_or(8);
    let seed = number("FLARE_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("FLARE_CRASH_SEED={seed}");
    (rounds, seed)
}

/// Where the process is to be asked. Between a kill and the next start there is no such place, and nobody asks: the port
/// may be another's by then.
#[derive(Clone)]
pub struct Door(watch::Receiver<Option<Api>>);

impl Door {
    /// The process that is there, or the next one.
    pub async fn api(&mut self) -> Api {
        let there = self.0.wait_for(Option::is_some).await.expect("the test has the other end");
        there.expect("it was waited for")
    }
}

/// Numbers that look random and depend on the seed alone.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What a client made of what it was told; it processes everything, and sometimes loses its answer after that.
#[derive(Default)]
pub struct Client {
    documents: HashMap<String, Known>,
    /// Every revision it was told, in order, repetitions left out.
    pub told: HashMap<String, Vec<i64>>,
    pub wrong: Vec<String>,
}

struct Known {
    sequence: u64,
    revision: i64,
    id: String,
    action: String,
}

impl Known {
    fn has(&self) -> bool {
        self.action != "delete"
    }
}

impl Client {
    pub fn told(&mut self, request: &Request) {
        let (sequence, revision) = (request.sequence(), request.revision());
        self.hears(request.document(), sequence, revision, request.header("webhook-id"), request.action());
    }

    /// It is told of a document, in whatever way.
    pub fn hears(&mut self, document: &str, sequence: u64, revision: i64, id: &str, action: &str) {
        let (id, action) = (id.to_owned(), action.to_owned());
        let known = self.documents.get(document);
        let wrong = match known {
            Some(known) if sequence < known.sequence => Some("a lower sequence"),
            Some(known) if revision < known.revision => Some("a lower revision"),
            Some(known) if sequence == known.sequence && action == known.action && id != known.id => {
                Some("one notification under two ids")
            }
            // An update becomes a create when a crash left in doubt whether the create before it had arrived.
            Some(known) if sequence == known.sequence && action != known.action && action != "create" => {
                Some("one change, told as something else")
            }
            Some(known) if sequence != known.sequence && id == known.id => {
                Some("one id for two notifications")
            }
            known if action == "update" && !known.is_some_and(Known::has) => {
                Some("an update of what the client does not have")
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            let before = known.map(|known| (known.sequence, known.revision, &known.action));
            self.wrong.push(format!("{wrong}: {document} {sequence} {action} after {before:?}"));
        }
        let told = self.told.entry(document.to_owned()).or_default();
        if told.last() != Some(&revision) {
            told.push(revision);
        }
        self.documents.insert(document.to_owned(), Known { sequence, revision, id, action });
    }

    /// What it has, by document.
    pub fn state(&self) -> HashMap<String, i64> {
        let held = self.documents.iter().filter(|(_, known)| known.has());
        held.map(|(url, known)| (url.clone(), known.revision)).collect()
    }
}

/// `faults`: of a hundred requests, so many are processed and not answered, and half as many are answered 503.
pub async fn client(seed: u64, faults: u64) -> (Receiver, Arc<Mutex<Client>>) {
    let client = Arc::new(Mutex::new(Client::default()));
    let told = client.clone();
    let mut dice = Dice(seed);
    let receiver = Receiver::answering(move |request| {
        told.lock().unwrap().told(request);
        match dice.roll(100) {
            roll if roll < faults => Reply::Reset,
            roll if roll < faults + faults / 2 => Reply::Status(503),
            _ => Reply::Status(200),
        }
    });
    (receiver.await, client)
}

/// Says one thing after the other about its own documents, each until it is accepted. The newest of each it leaves in
/// `accepted`: the revision, and whether it lives.
async fn origin(number: u64, mut door: Door, shared: Arc<Shared>, mut dice: Dice) {
    let mut revision = 0;
    while !shared.stop.load(Ordering::SeqCst) {
        revision += 1;
        let url = document_url(format!("{number}-{}", dice.roll(DOCUMENTS)));
        let lives = dice.roll(5) > 0;
        let path = format!("/documents/{url}");
        shared.pending.lock().unwrap().insert(url.clone(), revision);
        loop {
            let api = door.api().await;
            let text = revision.to_string();
            let answer = if lives {
                api.try_send("PUT", &path, &[], json!({"rev": revision, "of": number}).to_string()).await
            } else {
                api.try_send("DELETE", &path, &[("Flare-Revision", &text)], "").await
            };
            match answer {
                Ok(answer) if answer.status == 202 => break,
                Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
                // Killed: nobody knows whether it was taken, so it is said again.
                Err(_) => {}
            }
        }
        shared.history.lock().unwrap().entry(url.clone()).or_default().push((revision, lives));
        shared.accepted.lock().unwrap().insert(url.clone(), (revision, lives));
        shared.pending.lock().unwrap().remove(&url);
        shared.count.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
pub struct Shared {
    accepted: Mutex<HashMap<String, (i64, bool)>>,
    history: Mutex<HashMap<String, Vec<(i64, bool)>>>,
    pending: Mutex<HashMap<String, i64>>,
    count: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    /// What a client is told that wants every revision: all, but deletes of what it does not have.
    fn every_revision(&self) -> HashMap<String, Vec<i64>> {
        let told = |history: &Vec<(i64, bool)>| {
            let mut lives = false;
            let mut told = Vec::new();
            for (revision, now) in history {
                if lives || *now {
                    told.push(*revision);
                }
                lives = *now;
            }
            told
        };
        let history = self.history.lock().unwrap();
        let all = history.iter().map(|(url, history)| (url.clone(), told(history)));
        all.filter(|(_, told)| !told.is_empty()).collect()
    }
}

/// Origins that say one thing after the other, and the process that is killed under them.
pub struct Load {
    shared: Arc<Shared>,
    origins: JoinSet<()>,
    doorkeeper: watch::Sender<Option<Api>>,
    dice: Dice,
}

impl Load {
    /// So many origins begin.
    pub fn begin(story: &Story, origins: u64, seed: u64) -> Load {
        let doorkeeper = watch::Sender::new(Some(story.api()));
        let mut load = Load { shared: Arc::default(), origins: JoinSet::new(), doorkeeper, dice: Dice(seed) };
        for number in 0..origins {
            let (door, shared) = (load.door(), load.shared.clone());
            load.origins.spawn(origin(number, door, shared, Dice(seed + 10 + number)));
        }
        load
    }

    pub fn door(&self) -> Door {
        Door(self.doorkeeper.subscribe())
    }

    /// Waits for 20 changes more, and fewer than `some` beside them.
    pub async fn goes_on(&mut self, some: u64) {
        let count = || self.shared.count.load(Ordering::SeqCst);
        let wanted = count() + 20 + self.dice.roll(some);
        until_true("the load goes on", || count() >= wanted).await;
    }

    /// kill -9, and another start; what was accepted before is there after it. `clients` are all who are told.
    pub async fn kill(&mut self, story: &mut Story, clients: &[&Receiver]) {
        let before = self.shared.accepted.lock().unwrap().clone();
        self.doorkeeper.send_replace(None);
        story.flare.kill();
        // Nothing of the dead process is still on its way when the next one begins.
        story.receiver.drained().await;
        for client in clients {
            client.drained().await;
        }
        story.flare.restart().await;
        insist_on_what_was_accepted(story.api(), &before, &self.shared).await;
        self.doorkeeper.send_replace(Some(story.api()));
    }

    /// Waits until every origin has said its last; what lives then, and everything that was said.
    pub async fn end(mut self) -> (HashMap<String, i64>, Arc<Shared>) {
        self.shared.stop.store(true, Ordering::SeqCst);
        while let Some(done) = self.origins.join_next().await {
            done.unwrap();
        }
        let accepted = self.shared.accepted.lock().unwrap().clone();
        let living = accepted.into_iter().filter(|(_, (_, lives))| *lives);
        (living.map(|(url, (revision, _))| (url, revision)).collect(), self.shared)
    }
}

/// Everything that was accepted before the kill is there after it.
async fn insist_on_what_was_accepted(api: Api, before: &HashMap<String, (i64, bool)>, shared: &Shared) {
    for (url, (revision, lives)) in before {
        let answer = api.get(&format!("/documents/{url}")).await;
        let now = shared.accepted.lock().unwrap().get(url).copied();
        let busy = shared.pending.lock().unwrap().contains_key(url);
        if busy || now != Some((*revision, *lives)) {
            continue;
        }
        match lives {
            true => assert_eq!(answer.expect(200).json()["revision"], *revision, "{url}"),
            false => drop(answer.expect(404)),
        }
    }
}

#[tokio::test]
async fn killing_it_again_and_again_under_load_loses_nothing() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let (rounds, seed) = rounds_and_seed();
    let mut dice = Dice(seed + 4);
    let (receiver, first) = client(seed + 1, 5).await;
    let (late_receiver, late) = client(seed + 2, 25).await;
    let (every_receiver, every) = client(seed + 3, 15).await;
    // Small blocks, so that kills fall on either side of every mark.
    let setup = Setup::default()
        .with("FLARE_DELIVERY_ISSUE_BLOCK", "16")
        .with("FLARE_DELIVERY_WINDOW", "32")
        .with("FLARE_DELIVERY_THREADS", "3")
        .with("FLARE_DELIVERY_TAIL_BYTES", "64KB")
        // What is through is removed from the history all the time.
        .with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s");
    let mut story = Story::with(setup, receiver).await;
    let delivery = json!({"retry": {"quantity": 1_000_000, "interval": "20ms", "maxInterval": "100ms"}});
    let mut subscriptions = vec![story.subscribe_simply(delivery.clone()).await];
    let mut all = json!({"endpoint": {"url": every_receiver.url("/every")}, "delivery": delivery.clone()});
    all["delivery"]["revision"] = json!("all");
    subscriptions.push(story.subscribe(all).await);
    let mut load = Load::begin(&story, ORIGINS, seed);
    for round in 0..rounds {
        load.goes_on(150).await;
        if round == rounds / 2 {
            let endpoint = json!({"url": late_receiver.url("/late")});
            let body = json!({"endpoint": endpoint, "delivery": delivery, "start": "beginning"});
            subscriptions.push(story.subscribe(body).await);
        }
        // Kills also fall into the time in which its lanes go from thread to thread, or change what they send.
        let (shards, revision) = (1 + dice.roll(4), ["last", "all"][dice.roll(2) as usize]);
        let patch = json!({"shards": shards, "delivery": {"revision": revision}});
        story.api().patch(&subscriptions[0], &patch).await.expect(200);
        load.kill(&mut story, &[&late_receiver, &every_receiver]).await;
    }
    let (expected, shared) = load.end().await;
    for (subscription, client) in subscriptions.iter().zip([first, every.clone(), late]) {
        let status = story.settled(subscription).await;
        assert_eq!(status["feed"]["deadLetters"], 0);
        until("the client has what the origins said", || {
            let client = client.lock().unwrap();
            assert!(client.wrong.is_empty(), "{:#?}", client.wrong);
            std::future::ready((client.state() == expected).then_some(()))
        })
        .await;
        assert_eq!(status["feed"]["held"], expected.len(), "what Flare believes is what the client has");
    }
    let status = story.status(&subscriptions[1]).await;
    assert_eq!(status["skippedRevisions"], 0, "{status}");
    let (mut told, expected) = (every.lock().unwrap().told.clone(), shared.every_revision());
    for (url, history) in shared.history.lock().unwrap().iter() {
        // After a crash it may be told the delete of what it may have.
        let deleted = |revision: &i64| history.contains(&(*revision, false));
        let expected = expected.get(url).cloned().unwrap_or_default();
        let mut told = told.remove(url).unwrap_or_default();
        told.retain(|revision| expected.contains(revision) || !deleted(revision));
        assert_eq!(told, expected, "{url}");
    }
}
