//! Tests: what subscriptions cost by being there, and what a delivery asks of the allocator, counted.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::measure;
use flare_model::feed::Saved;
use flare_model::ids::Seq;
use flare_provider::Start;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::bridges::Bridges;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::testing::fixture::Thread;
use crate::journey::testing::world::{Small, World, until};
use crate::observe::fixture;

/// As many as a resource has by default.
const LANES: u8 = 8;

/// With ten thousand subscriptions every byte of these is 78 KB.
const LANE_BYTES: usize = 160;

/// What a subscription may take on its thread: its lanes and itself, and its part of the lists it is in.
const SUBSCRIBER_BYTES: u64 = 2_304;

/// What a plain subscription may take once it is compiled, beside what is stored of it.
const COMPILED_BYTES: u64 = 1_408;

#[test]
fn a_lane_at_rest_is_small() {
    assert!(size_of::<FeedLane>() <= LANE_BYTES, "{} bytes", size_of::<FeedLane>());
    assert_eq!(size_of::<Option<FeedLane>>(), size_of::<FeedLane>());
}

#[tokio::test]
async fn a_subscription_at_rest_takes_little_on_its_thread() {
    const SUBSCRIPTIONS: u64 = 512;
    LocalSet::new()
        .run_until(async {
            let thread = Thread::new();
            // What is there once for all is there.
            thread.open_lanes(fixture::compiled(1), LANES, Saved::default());
            come_to_rest(&thread);
            let others: Vec<_> = (2..2 + SUBSCRIPTIONS).map(fixture::compiled).collect();
            let taken = measure(|| {
                for compiled in others {
                    thread.open_lanes(compiled, LANES, Saved::default());
                }
                come_to_rest(&thread);
            });
            let each = u64::try_from(taken.bytes_current).expect("they are there") / SUBSCRIPTIONS;
            assert!(each <= SUBSCRIBER_BYTES, "{each} bytes each");
        })
        .await;
}

/// Everything is looked at, and what there is to record is taken to be recorded.
fn come_to_rest(thread: &Thread) {
    let mut worker = thread.worker.borrow_mut();
    let hosts: Vec<usize> = worker.hosts.iter().map(|(host, _)| host).collect();
    for host in hosts {
        assert!(worker.next_job(host).is_none(), "there is nothing to send");
    }
    drop(worker.unrecorded.take(true));
    let mut lanes = worker.subscribers.iter().flat_map(|(_, subscriber)| subscriber.lanes.iter());
    assert!(lanes.all(|lane| lane.parked.is_some() && lane.feed.position() == Seq(0)));
}

#[test]
fn a_compiled_subscription_is_small() {
    let resource = fixture::resource();
    let mut made = Vec::with_capacity(2);
    // What is there once for all is made.
    made.push(fixture::compiled_of(resource.clone(), 1));
    let taken = measure(|| made.push(fixture::compiled_of(resource, 2)));
    let bytes = u64::try_from(taken.bytes_current).expect("it is there");
    assert!(bytes <= COMPILED_BYTES, "{bytes} bytes");
}

/// A client that takes everything, on threads of its own: what it asks for is not counted.
struct Sink {
    address: String,
    taken: Arc<AtomicU64>,
}

impl Sink {
    fn start() -> Sink {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let taken: Arc<AtomicU64> = Arc::default();
        let counting = taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counting = counting.clone();
                std::thread::spawn(move || serve(stream, &counting));
            }
        });
        Sink { address, taken }
    }
}

fn serve(mut stream: TcpStream, taken: &AtomicU64) {
    let (mut buffer, mut room) = (Vec::new(), [0; 4096]);
    while let Ok(read) = stream.read(&mut room)
        && read > 0
    {
        buffer.extend_from_slice(&room[..read]);
        while let Some(head) = buffer.windows(4).position(|end| end == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]);
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let end = head + 4 + length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if buffer.len() < end {
                break;
            }
            buffer.drain(..end);
            taken.fetch_add(1, Ordering::Relaxed);
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
                return;
            }
        }
    }
}

/// Clients of one host, each of whom is told of every change.
struct Scene {
    runtime: Runtime,
    local: LocalSet,
    world: std::rc::Rc<World>,
    sink: Sink,
    clients: u64,
}

impl Scene {
    fn begin(clients: u64) -> Scene {
        const SMALL: Small = Small { limit: 4_096, lanes: LANES as u16, bytes: 8 << 20 };
        const CONNECTIONS: u32 = 16;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (runtime, local, sink) = (runtime.expect("a runtime"), LocalSet::new(), Sink::start());
        let world = local.block_on(&runtime, World::begin(SMALL, CONNECTIONS, Bridges::default()));
        let scene = Scene { runtime, local, world, sink, clients };
        scene.local.block_on(&scene.runtime, async {
            for client in 0..clients {
                let url = format!("http://{}/{client}/{{id}}", scene.sink.address);
                let more = json!({"endpoint": {"url": url}, "delivery": {"concurrency": 4}});
                scene.world.subscribe_as(&format!("sub_{client}"), more, Start::Now).await;
            }
        });
        scene
    }

    /// So many changes, one after the other, each of which every client is told.
    fn change(&self, changes: impl Iterator<Item = (u64, i64)>) -> u64 {
        let mut told = self.sink.taken.load(Ordering::Relaxed);
        let before = told;
        for (document, revision) in changes {
            told += self.clients;
            self.local.block_on(&self.runtime, async {
                self.world.say(document, Some(revision)).await;
                until("all are told", || (self.sink.taken.load(Ordering::Relaxed) == told).then_some(()))
                    .await;
            });
        }
        told - before
    }
}

/// How many times a delivery asks for memory, in hundredths, when so many clients are told of each change of documents that
/// they have.
fn asked_for_each_delivery(clients: u64) -> u64 {
    const DOCUMENTS: u64 = 16;
    let scene = Scene::begin(clients);
    let round = |revision: i64| scene.change((0..DOCUMENTS).map(|document| (document, revision)));
    // Connections are opened, documents known, rooms as large as they have to be.
    for revision in 1..=4 {
        round(revision);
    }
    let mut deliveries: u64 = 0;
    let asked = measure(|| deliveries = (5..=10).map(round).sum::<u64>());
    asked.count_total * 100 / deliveries
}

#[test]
fn a_delivery_to_one_of_many_clients_asks_for_little_memory() {
    let asked = asked_for_each_delivery(100);
    assert!(asked <= MANY, "{asked} hundredths");
}

#[test]
fn a_delivery_to_a_client_alone_asks_for_little_memory() {
    let asked = asked_for_each_delivery(1);
    assert!(asked <= ALONE, "{asked} hundredths");
}

/// A hundred clients are told of each change: what a change takes counts a hundredth.
const MANY: u64 = 100;

/// One is: the change itself and its record count whole.
const ALONE: u64 = 5_000;
