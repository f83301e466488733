//! The behaviours that every coordinator and every doorbell has to show, over schemas of their own in a real server; and what
//! only one over a server meets: restarts, and a pooler that keeps notifications from being heard.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use common::proxy::Proxy;
use flare_model::ids::{LaneId, ResourceNumber, Seq};
use flare_postgresql::{Options, Postgresql, Tls};
use flare_provider::conformance::cluster::fixture::{PATIENCE, stopwatch, within};
use flare_provider::conformance::cluster::{ClusterFactory, Gathering, Participant};
use flare_provider::{Cluster, Doorbell, Heard, Listener, Ring, Session};

flare_provider::cluster_conformance!(postgresql, super::Schemas, flavor = "multi_thread", worker_threads = 2);

struct Schemas;

/// A schema, which each participant opens for itself. They stay open until the end.
struct Schema {
    options: Options,
    open: Mutex<Vec<Postgresql>>,
}

#[async_trait]
impl ClusterFactory for Schemas {
    async fn fresh(&self) -> Option<Box<dyn Gathering>> {
        let options = options(&common::server()?.url);
        Some(Box::new(Schema { options, open: Mutex::default() }))
    }
}

#[async_trait]
impl Gathering for Schema {
    async fn join(&self) -> Participant {
        let postgresql = open(&self.options);
        let coordination = Arc::new(postgresql.coordination("flare"));
        self.open.lock().expect("nobody panicked").push(postgresql);
        Participant { cluster: coordination.clone(), doorbell: coordination }
    }

    fn shortest_ttl(&self) -> Duration {
        Duration::from_secs(1)
    }
}

fn options(url: &str) -> Options {
    let mut options = Options::new(url);
    (options.schema, options.connections, options.coordinates) = (common::fresh_schema(), 8, true);
    options.poll_interval = Duration::from_millis(200);
    options
}

fn open(options: &Options) -> Postgresql {
    tokio::task::block_in_place(|| Postgresql::open(options.clone())).expect("the server is there")
}

fn ring(head: u64) -> Ring {
    Ring::Lane { lane: LaneId { resource: ResourceNumber(1), index: 0 }, head: Seq(head) }
}

/// Rings until it is heard, whatever is lost in between.
async fn until_heard(doorbell: &dyn Doorbell, listener: &mut Box<dyn Listener>, ring: Ring) {
    let heard = async {
        loop {
            let _lost = doorbell.ring(&[ring]).await;
            let next = tokio::time::timeout(Duration::from_millis(100), listener.next()).await;
            if matches!(next, Ok(Ok(Heard::Rings(rings))) if rings.contains(&ring)) {
                return;
            }
        }
    };
    within(heard, "a ring is heard").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keys_watches_and_rings_outlive_a_restart_of_the_server() {
    let Some(server) = common::own_server() else { return };
    let own = server.own.as_ref().expect("it is our own");
    let options = options(&server.url);
    let (one, other) = (open(&options), open(&options));
    let (mine, theirs) = (one.coordination("flare"), other.coordination("flare"));
    let clock = stopwatch();
    let mut session = Session::begin(&mine, &clock, "a", PATIENCE).await.expect("begun");
    let version = mine.put_if_absent("k/1", "v".into(), Some(session.id())).await.expect("put");
    let mut watch = theirs.watch("k/").await.expect("watched");
    let mut listener = theirs.listen().await.expect("it can be listened");
    until_heard(&mine, &mut listener, ring(1)).await;
    for round in 0..2 {
        tokio::task::block_in_place(|| own.stop());
        let refused = mine.renew(session.id(), "a").await.expect_err("the server is away");
        assert!(refused.is_passing(), "{refused}");
        let refused = mine.put_if_absent("k/2", "v".into(), None).await.expect_err("the server is away");
        assert!(refused.is_passing(), "{refused}");
        tokio::task::block_in_place(|| own.start());
        let renewed = async {
            while session.renew(&mine, &clock).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within(renewed, "the session is renewed").await;
        let listed = async {
            loop {
                if let Ok(entries) = theirs.list("k/1").await {
                    return entries;
                }
            }
        };
        let entries = within(listed, "it is listed").await;
        assert_eq!((entries.len(), entries[0].version), (1, version), "round {round}");
        assert_eq!(entries[0].session.as_ref(), Some(session.id()));
        until_heard(&mine, &mut listener, ring(10 + round)).await;
    }
    mine.put_if_absent("k/9", "v".into(), None).await.expect("put");
    let seen = async {
        loop {
            if watch.next().await.is_ok() && theirs.list("k/9").await.is_ok_and(|keys| keys.len() == 1) {
                return;
            }
        }
    };
    within(seen, "the watch says so").await;
}

/// What a pooler does that gives each transaction another connection: nothing comes on its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_notifications_are_not_heard_it_is_looked_from_time_to_time() {
    let Some(server) = common::server() else { return };
    let there = common::address(&server.url);
    let proxy = Proxy::before(there.clone()).await;
    proxy.hide_notifications();
    let mut options = options(&server.url.replace(&there, &proxy.addr().to_string()));
    options.tls = Tls::Disable;
    let postgresql = open(&options);
    let coordination = postgresql.coordination("flare");
    let mut listener = coordination.listen().await.expect("it is known that nothing is heard");
    assert_eq!(within(listener.next(), "it is told to look").await.expect("it goes on"), Heard::Missed);
    coordination.ring(&[ring(1)]).await.expect("it is rung");
    for _ in 0..3 {
        assert_eq!(within(listener.next(), "and again").await.expect("it goes on"), Heard::Missed);
    }
    let other = open(&options);
    let mut watch = coordination.watch("k/").await.expect("watched");
    let put = other.coordination("flare").put_if_absent("k/1", "v".into(), None).await;
    put.expect("put");
    within(watch.next(), "a watch sees it all the same").await.expect("it can be followed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_of_another_name_are_others() {
    let Some(server) = common::server() else { return };
    let postgresql = open(&options(&server.url));
    let (one, other) = (postgresql.coordination("one"), postgresql.coordination("other"));
    let session = one.grant("a", PATIENCE).await.expect("granted").session;
    one.put_if_absent("k", "v".into(), Some(&session)).await.expect("put");
    assert_eq!(other.list("").await.expect("read"), []);
    assert!(other.renew(&session, "a").await.is_err());
    other.put_if_absent("k", "v".into(), None).await.expect("it is another one");
    assert_eq!(one.list("").await.expect("read").len(), 1);
}
