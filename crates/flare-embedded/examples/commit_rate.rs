//! How fast the engine is, here and now: a folder comes in, a table goes out.
//!
//! ```text
//! cargo run --release -p flare-embedded --example commit_rate -- FOLDER [DOCUMENTS [SECONDS [WRITERS]]]
//! ```
//! The folder is emptied first. DOCUMENTS (a million, unless told) is how full the store is made for the second half;
//! 0 leaves that out. `cpu` is the processor time of an operation over all threads, `writer` that of the writer's
//! thread: unlike the rate they hardly change when other programs take the processor.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flare_embedded::{Embedded, Options};
use flare_model::document::{Intent, Write};
use flare_model::feed::{Ahead, Record};
use flare_model::ids::{FeedId, LaneId, Ordinal, ResourceNumber, Seq, SubscriptionNumber, lane_of};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::{EntityKind, FeedWrite, NewEntity, ScanLane, Start, Store};
use tokio::task::JoinSet;

const LANES: u16 = 8;
const SUBSCRIPTIONS: u64 = 1_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder to work in"));
    let documents: u64 =
        arguments.next().map_or(1_000_000, |text| text.parse().expect("a number of documents"));
    let seconds: f64 = arguments.next().map_or(3.0, |text| text.parse().expect("a number of seconds"));
    let writers: Vec<usize> = match arguments.next() {
        Some(text) => vec![text.parse().expect("a number of writers")],
        None => vec![1, 16, 64],
    };
    let _absent = std::fs::remove_dir_all(&folder);
    let embedded = Embedded::open(Options::new(&folder)).expect("a folder that can be written");
    let store = embedded.store();
    let resource = store.catalog.create(entity(EntityKind::Resource, "users", None)).await.expect("created");
    let bench = Bench {
        store: store.clone(),
        resource: ResourceNumber(resource.number),
        time: Duration::from_secs_f64(seconds),
        next: Arc::default(),
    };
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}",
        "", "per s", "p50 us", "p99 us", "max us", "cpu", "writer"
    );
    for &writers in &writers {
        bench.new_documents("empty", writers, urls).await;
    }
    bench.updates("of 2,000", 64, 2_000, urls).await;
    bench.records("of 1,000 subscriptions", &feeds(&store).await).await;
    if documents > 0 {
        bench.fill(documents).await;
        for writers in [16, 64] {
            bench.new_documents("full", writers, urls).await;
        }
        bench.new_documents("full, random urls", 64, random_urls).await;
        bench.updates("of all", 16, documents, urls).await;
        bench.updates("of all", 64, documents, urls).await;
        bench.reads(documents).await;
        bench.while_reading(16).await;
    }
    println!("{}", memory());
    let before = Instant::now();
    tokio::task::block_in_place(|| embedded.close());
    let closed = before.elapsed();
    let before = Instant::now();
    let embedded = Embedded::open(Options::new(&folder)).expect("the same folder");
    println!("closed in {closed:?}, opened in {:?}", before.elapsed());
    take_over(&embedded.store()).await;
}

struct Bench {
    store: Store,
    resource: ResourceNumber,
    time: Duration,
    /// The number of the newest document.
    next: Arc<AtomicU64>,
}

impl Bench {
    async fn new_documents(&self, name: &str, writers: usize, url: fn(u64) -> String) {
        let next = self.next.clone();
        let pick = move |_| (next.fetch_add(1, Ordering::Relaxed) + 1, 1);
        self.commits(&format!("new, {name}, {writers} writers"), writers, url, pick).await;
    }

    async fn updates(&self, name: &str, writers: usize, among: u64, url: fn(u64) -> String) {
        let revision = AtomicU64::new(self.next.load(Ordering::Relaxed) + 2);
        let pick = move |chance| (chance % among + 1, revision.fetch_add(1, Ordering::Relaxed) as i64);
        self.commits(&format!("update, {name}, {writers} writers"), writers, url, pick).await;
    }

    async fn commits(
        &self,
        name: &str,
        writers: usize,
        url: fn(u64) -> String,
        pick: impl Fn(u64) -> (u64, i64) + Send + Sync + 'static,
    ) {
        let pick = Arc::new(pick);
        let meter = Meter::start();
        let mut tasks = JoinSet::new();
        for writer in 0..writers {
            let (documents, pick, resource) = (self.store.documents.clone(), pick.clone(), self.resource);
            let until = meter.begin + self.time;
            tasks.spawn(async move {
                let mut chance = Chance(writer as u64 * 7_919 + 88_172_645_463_325_252);
                let mut times = Vec::new();
                while Instant::now() < until {
                    let (number, revision) = pick(chance.next());
                    let write = put(resource, &url(number), revision);
                    let before = Instant::now();
                    documents.commit(vec![write]).await.expect("taken").pop().expect("one").expect("a lane");
                    times.push(before.elapsed());
                }
                times
            });
        }
        let times: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
        meter.tell(name, times.len(), times);
    }

    async fn fill(&self, documents: u64) {
        let meter = Meter::start();
        let first = self.next.load(Ordering::Relaxed);
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let (log, next, resource) = (self.store.documents.clone(), self.next.clone(), self.resource);
            tasks.spawn(async move {
                loop {
                    let first = next.fetch_add(250, Ordering::Relaxed);
                    if first >= documents {
                        next.fetch_sub(250, Ordering::Relaxed);
                        return;
                    }
                    let batch =
                        (first + 1..=first + 250).map(|number| put(resource, &urls(number), 1)).collect();
                    log.commit(batch).await.expect("taken");
                }
            });
        }
        tasks.join_all().await;
        let filled = self.next.load(Ordering::Relaxed) - first;
        meter.tell(&format!("filled to {documents}"), filled as usize, Vec::new());
    }

    /// New documents while feeds that are far behind read all the time, which keeps the log from starting over.
    async fn while_reading(&self, writers: usize) {
        let mut readers = JoinSet::new();
        for index in 0..4 {
            let (documents, lane) = (self.store.documents.clone(), LaneId { resource: self.resource, index });
            readers.spawn(async move {
                let mut after = Seq(0);
                loop {
                    let scan = ScanLane { lane, after, upto: Seq(u64::MAX), rows: 500, bytes: 1 << 20 };
                    let page = documents.scan(scan).await.expect("read");
                    after = if page.upto >= page.head { Seq(0) } else { page.upto };
                }
            });
        }
        self.new_documents("beside 4 scans", writers, urls).await;
        readers.shutdown().await;
    }

    /// Each owner writes the records of the feeds of a few subscriptions, as deliveries would.
    async fn records(&self, name: &str, feeds: &[FeedId]) {
        let epoch = self.store.ledger.next_epoch().await.expect("an epoch");
        self.store.ledger.open(feeds, epoch).await.expect("nobody else has them");
        for batch in [1, 50] {
            let meter = Meter::start();
            let mut tasks = JoinSet::new();
            for owner in 0..16 {
                let ledger = self.store.ledger.clone();
                let mine: Vec<FeedId> = feeds.iter().copied().skip(owner).step_by(16).collect();
                let until = meter.begin + self.time;
                tasks.spawn(async move {
                    let mut times = Vec::new();
                    for turn in 1_u64.. {
                        for feeds in mine.chunks(batch) {
                            if Instant::now() >= until {
                                return times;
                            }
                            let write =
                                |feed: &FeedId| FeedWrite { feed: *feed, epoch, record: record(turn) };
                            let before = Instant::now();
                            ledger.write(feeds.iter().map(write).collect()).await.expect("taken");
                            times.push(before.elapsed());
                        }
                    }
                    times
                });
            }
            let times: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
            meter.tell(&format!("records {name}, {batch} a call"), times.len() * batch, times);
        }
    }

    async fn reads(&self, documents: u64) {
        let meter = Meter::start();
        let mut times = Vec::new();
        let mut chance = Chance(5);
        while meter.begin.elapsed() < self.time / 2 {
            let url = urls(chance.next() % documents + 1);
            let lane = LaneId { resource: self.resource, index: lane_of(&url, LANES) };
            let before = Instant::now();
            assert!(self.store.documents.get(lane, &url).await.expect("read").is_some());
            times.push(before.elapsed());
        }
        meter.tell("get, one by one", times.len(), times);
        let meter = Meter::start();
        let (mut times, mut met) = (Vec::new(), 0);
        for index in 0..LANES as u8 {
            let lane = LaneId { resource: self.resource, index };
            let mut after = Seq(0);
            while meter.begin.elapsed() < self.time {
                let before = Instant::now();
                let scan = ScanLane { lane, after, upto: Seq(u64::MAX), rows: 500, bytes: 1 << 20 };
                let page = self.store.documents.scan(scan).await.expect("read");
                times.push(before.elapsed());
                met += page.documents.len();
                after = page.upto;
                if page.upto >= page.head {
                    break;
                }
            }
        }
        meter.tell("scan, 500 a page", met, times);
    }
}

/// A thousand subscriptions, and their feeds.
async fn feeds(store: &Store) -> Vec<FeedId> {
    let mut feeds = Vec::new();
    for number in 0..SUBSCRIPTIONS {
        let new = entity(EntityKind::Subscription, &format!("s{number}"), Some("users"));
        let subscription = store.catalog.create(new).await.expect("created");
        let subscription = SubscriptionNumber(subscription.number);
        feeds.extend((0..LANES as u8).map(|lane| FeedId { subscription, lane }));
    }
    feeds
}

/// How long a new process takes to own 80,000 feeds.
async fn take_over(store: &Store) {
    for number in SUBSCRIPTIONS..10_000 {
        let new = entity(EntityKind::Subscription, &format!("s{number}"), Some("users"));
        store.catalog.create(new).await.expect("created");
    }
    let mut feeds = Vec::new();
    for subscription in store.catalog.list(EntityKind::Subscription, 0, usize::MAX).await.expect("read") {
        let subscription = SubscriptionNumber(subscription.number);
        feeds.extend((0..LANES as u8).map(|lane| FeedId { subscription, lane }));
    }
    let epoch = store.ledger.next_epoch().await.expect("an epoch");
    let before = Instant::now();
    let opened = store.ledger.open(&feeds, epoch).await.expect("nobody else has them");
    println!("{} feeds opened in {:?}", opened.len(), before.elapsed());
}

fn entity(kind: EntityKind, id: &str, parent: Option<&str>) -> NewEntity {
    NewEntity {
        kind,
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        keys: vec![id.to_owned()],
        body: "{}".to_owned(),
        lanes: LANES,
        start: Start::Now,
        history: false,
        capture: None,
    }
}

fn urls(number: u64) -> String {
    format!("http://api.company.com/users/{number}")
}

fn random_urls(number: u64) -> String {
    let mut chance = Chance(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    format!("http://api.company.com/users/{:016x}{:016x}", chance.next(), chance.next())
}

fn put(resource: ResourceNumber, url: &str, revision: i64) -> Write {
    let lane = LaneId { resource, index: lane_of(url, LANES) };
    let content = Bytes::from(vec![b'x'; 600]);
    let intent = Intent::Put { revision: Revision::Integer(revision), content };
    Write {
        lane,
        url: Arc::from(url),
        intent,
        at: Timestamp::from_millis(1_767_323_045_678),
        routed_by: u64::MAX,
    }
}

fn record(turn: u64) -> Record {
    let ahead = Ahead { horizon: Seq(turn), ..Ahead::default() };
    Record {
        cursor: Seq(turn),
        issued: Seq(turn + 1000),
        ahead,
        held: vec![Ordinal(turn)],
        ..Record::default()
    }
}

/// The most memory the process has had, where the system tells.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned()
}

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }
}

/// What an operation takes.
struct Meter {
    begin: Instant,
    cpu: (f64, f64),
}

impl Meter {
    fn start() -> Meter {
        Meter { begin: Instant::now(), cpu: cpu() }
    }

    fn tell(&self, name: &str, operations: usize, mut times: Vec<Duration>) {
        let (elapsed, now) = (self.begin.elapsed(), cpu());
        times.sort();
        let at = |share: f64| {
            let place = (times.len().saturating_sub(1) as f64 * share) as usize;
            times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        let each = operations.max(1) as f64;
        println!(
            "{name:<34} {:>9.0} {:>9.0} {:>9.0} {:>9.0} {:>7.1} {:>7.1}",
            operations as f64 / elapsed.as_secs_f64(),
            at(0.5),
            at(0.99),
            at(1.0),
            (now.0 - self.cpu.0) / each,
            (now.1 - self.cpu.1) / each,
        );
    }
}

/// Microseconds of processor time of all threads, and of the writer's, where the system tells.
fn cpu() -> (f64, f64) {
    let (mut all, mut writer) = (0.0, 0.0);
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let time: f64 = read("schedstat").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        all += time / 1e3;
        if read("comm").trim() == "flare-writer" {
            writer += time / 1e3;
        }
    }
    (all, writer)
}
