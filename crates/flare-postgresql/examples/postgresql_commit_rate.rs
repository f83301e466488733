//! How fast the engine is, here and now: the url of a server comes in, a table goes out.
//!
//! ```text
//! cargo run --release -p flare-postgresql --example postgresql_commit_rate -- URL [SECONDS [WRITERS]]
//! ```
//! It works in the schema `flare_commit_rate`, which is dropped first.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flare_model::document::{Intent, Write};
use flare_model::feed::Record;
use flare_model::ids::{FeedId, LaneId, Ordinal, ResourceNumber, Seq, SubscriptionNumber, lane_of};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_postgresql::{Options, Postgresql};
use flare_provider::{EntityKind, FeedWrite, NewEntity, Start, Store};
use tokio::task::JoinSet;

const LANES: u16 = 8;
const SCHEMA: &str = "flare_commit_rate";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the url of a server");
    let seconds: f64 = arguments.next().map_or(3.0, |text| text.parse().expect("a number of seconds"));
    let writers: Vec<usize> = match arguments.next() {
        Some(text) => vec![text.parse().expect("a number of writers")],
        None => vec![1, 16, 64],
    };
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a server");
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")).await.expect("dropped");
    let mut options = Options::new(url);
    options.schema = SCHEMA.to_owned();
    let postgresql = tokio::task::block_in_place(|| Postgresql::open(options)).expect("opened");
    let store = postgresql.store();
    let resource = store.catalog.create(entity(EntityKind::Resource, "users", None)).await.expect("created");
    let resource = ResourceNumber(resource.number);
    let time = Duration::from_secs_f64(seconds);
    println!("{:<34} {:>9} {:>9} {:>9}", "", "per s", "p50 us", "p99 us");
    let next = Arc::new(AtomicU64::new(0));
    for &writers in &writers {
        let (store, next) = (store.clone(), next.clone());
        let work = move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            commit(store.clone(), vec![write(resource, number, 1)])
        };
        measure(&format!("new documents, {writers} writers"), writers, 1, time, work).await;
    }
    for batch in [16, 256] {
        let (store, revisions) = (store.clone(), Arc::new(AtomicU64::new(2)));
        let work = move || {
            let revision = revisions.fetch_add(1, Ordering::Relaxed) as i64;
            commit(store.clone(), (0..batch).map(|number| write(resource, number, revision)).collect())
        };
        measure(&format!("updates, 8 writers of {batch}"), 8, batch, time, work).await;
    }
    let feeds = feeds(&store).await;
    for batch in [16, 256] {
        let (store, feeds, turns) = (store.clone(), feeds.clone(), Arc::new(AtomicU64::new(1)));
        let work = move || {
            let turn = turns.fetch_add(1, Ordering::Relaxed);
            let record = |number: u64| {
                let feed = feeds[((turn * batch + number) % feeds.len() as u64) as usize];
                let record = Record { cursor: Seq(turn), held: vec![Ordinal(turn)], ..Record::default() };
                FeedWrite { feed, epoch: 1, record }
            };
            let (ledger, writes) = (store.ledger.clone(), (0..batch).map(record).collect());
            async move { drop(ledger.write(writes).await.expect("written")) }
        };
        measure(&format!("records, 4 threads of {batch}"), 4, batch, time, work).await;
    }
}

async fn measure<F: Future<Output = ()> + Send>(
    name: &str,
    writers: usize,
    each: u64,
    time: Duration,
    work: impl Fn() -> F + Clone + Send + 'static,
) {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..writers {
        let work = work.clone();
        tasks.spawn(async move {
            let mut taken = Vec::new();
            while began.elapsed() < time {
                let now = Instant::now();
                work().await;
                taken.push(now.elapsed().as_micros() as u64);
            }
            taken
        });
    }
    let mut taken = tasks.join_all().await.concat();
    let elapsed = began.elapsed().as_secs_f64();
    taken.sort_unstable();
    let at = |share: f64| taken[((taken.len() - 1) as f64 * share) as usize];
    let rate = taken.len() as f64 * each as f64 / elapsed;
    println!("{name:<34} {rate:>9.0} {:>9} {:>9}", at(0.5), at(0.99));
}

async fn commit(store: Store, batch: Vec<Write>) {
    let answers = store.documents.commit(batch).await.expect("the log takes it");
    assert!(answers.into_iter().all(|answer| answer.is_ok()));
}

fn write(resource: ResourceNumber, number: u64, revision: i64) -> Write {
    let url = format!("http://api.company.com/users/{number}");
    let index = lane_of(&url, LANES);
    let content = Bytes::from(format!(r#"{{"rev":{revision},"text":"{:0>200}"}}"#, number));
    Write {
        lane: LaneId { resource, index },
        url: url.into(),
        intent: Intent::Put { revision: Revision::Integer(revision), content },
        at: Timestamp::from_millis(1_767_323_045_678),
        routed_by: u64::MAX,
    }
}

async fn feeds(store: &Store) -> Vec<FeedId> {
    let mut feeds = Vec::new();
    for number in 0..125 {
        let new = entity(EntityKind::Subscription, &format!("s{number}"), Some("users"));
        let subscription = SubscriptionNumber(store.catalog.create(new).await.expect("created").number);
        feeds.extend((0..LANES).map(|lane| FeedId { subscription, lane: lane as u8 }));
    }
    store.ledger.open(&feeds, 1).await.expect("opened");
    feeds
}

fn entity(kind: EntityKind, id: &str, parent: Option<&str>) -> NewEntity {
    NewEntity {
        kind,
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        keys: Vec::new(),
        body: "{}".to_owned(),
        lanes: LANES,
        start: Start::Now,
        history: false,
        capture: None,
    }
}
