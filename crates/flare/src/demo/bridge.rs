//! In: what happens to the shop's orders. Out: a list of them at an address, which Flare polls; and the consumer and the producers
//! that lead from there to two clients. No broker: the list stands for the queue.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::shop::{Change, Shop};
use super::thing::Kind;
use super::world::World;

/// How often Flare asks for the list: as often as it may.
const INTERVAL: &str = "1s";

/// Somebody who falls behind by more than this does not catch up in one burst.
const MOST_BEHIND: Duration = Duration::from_secs(1);

/// The orders that there are.
pub struct List {
    world: Arc<World>,
    orders: Mutex<Orders>,
}

/// Bound: what the shop keeps.
#[derive(Default)]
struct Orders {
    listed: BTreeMap<u32, Value>,
    version: u64,
}

/// The consumer that polls the list at this address, as the API wants it.
pub fn consumer(url: &str) -> Value {
    json!({
        "source": {"type": "http.poll", "url": url, "interval": INTERVAL, "items": "orders", "deletes": true},
        "payload": {"id": "id", "revision": {"field": "version"}},
    })
}

impl List {
    /// An empty one.
    pub fn new(world: Arc<World>) -> Arc<List> {
        Arc::new(List { world, orders: Mutex::default() })
    }

    /// Changes orders as it happens in the shop, until `stop`.
    pub async fn fill(self: Arc<List>, mut shop: Shop, rate: u32, stop: CancellationToken) {
        let step = Duration::from_secs(1) / rate;
        let mut due = self.world.elapsed();
        while !stop.is_cancelled() {
            while !self.put(shop.next_change()) {}
            due = (due + step).max(self.world.elapsed().saturating_sub(MOST_BEHIND));
            let pause = due.saturating_sub(self.world.elapsed());
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
        }
    }

    /// Nothing but orders is listed, each with its name. Answers whether it was one.
    fn put(&self, change: Change) -> bool {
        if change.thing.kind != Kind::Order {
            return false;
        }
        let mut document = change.document;
        if let Some(document) = &mut document {
            document["id"] = change.thing.url().into();
        }
        let change = Change { thing: change.thing, document };
        let mut orders = self.orders.lock();
        // Before anybody can read it.
        self.world.say(&change);
        orders.version += 1;
        match change.document {
            Some(document) => drop(orders.listed.insert(change.thing.number, document)),
            None => drop(orders.listed.remove(&change.thing.number)),
        }
        self.world.origin.changes.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Answers whoever asks for the list, for as long as it is polled. Bound: as many connections as Flare opens to one host.
    pub async fn serve(self: Arc<List>, listener: TcpListener) -> io::Result<Infallible> {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            while connections.try_join_next().is_some() {}
            let list = self.clone();
            let service = service_fn(move |request| {
                let answer = list.answer(&request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            connections.spawn(async move { drop(connection.await) });
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let asked = request.headers().get("if-none-match").and_then(|etag| etag.to_str().ok());
        let orders = self.orders.lock();
        let etag = format!("\"{}\"", orders.version);
        self.world.polls.asked.fetch_add(1, Ordering::Relaxed);
        let (status, body) = match asked == Some(etag.as_str()) {
            true => {
                self.world.polls.unchanged.fetch_add(1, Ordering::Relaxed);
                (StatusCode::NOT_MODIFIED, Bytes::new())
            }
            false => {
                let listed: Vec<&Value> = orders.listed.values().collect();
                (StatusCode::OK, json!({ "orders": listed }).to_string().into())
            }
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        if let Ok(etag) = etag.parse() {
            response.headers_mut().insert("etag", etag);
        }
        response
    }
}
