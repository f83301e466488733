//! What was asked over HTTP: a request comes in with the place of its route, and is counted by its method, by how it was
//! answered and how long that took.
//!
//! A request costs four additions to memory that was set aside when the first of its kind came: no lock, no look-up by
//! name. The clock is asked by whoever counts.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, StatusCode};

use super::histogram::{ANSWERS, Distribution};
use super::{Count, Histogram, micros};

/// Methods, in the order of [`Route::methods`]; whatever else a request says is the last.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other"];

/// How requests end, in the order of [`Requests::ended`]: by the status of the answer, or because whoever asked went away
/// before there was one.
pub const ENDS: [&str; 5] = ["2xx", "3xx", "4xx", "5xx", "aborted"];

const ABORTED: usize = ENDS.len() - 1;

/// All requests, by route. Bound: one block for each route and method that was ever used.
#[derive(Debug, Default)]
pub struct Traffic {
    routes: Vec<Route>,
    opened: Count,
    closed: Count,
}

/// What was asked of one route.
#[derive(Debug)]
struct Route {
    pattern: &'static str,
    methods: [OnceLock<Arc<Requests>>; METHODS.len()],
}

/// Requests of one route and method. Written by all threads of the API; aligned so that those of another route are in
/// another cache line.
#[derive(Debug)]
#[repr(align(128))]
pub struct Requests {
    begun: Count,
    ended: [Count; ENDS.len()],
    /// Until the answer began, in microseconds.
    duration: Histogram,
}

impl Requests {
    fn new() -> Requests {
        Requests { begun: Count::default(), ended: Default::default(), duration: Histogram::new(&ANSWERS) }
    }
}

/// What was counted of a route and method.
#[derive(Debug)]
pub struct Asked {
    /// As the router reads it.
    pub route: &'static str,
    /// One of [`METHODS`].
    pub method: &'static str,
    /// In the order of [`ENDS`].
    pub ended: [u64; ENDS.len()],
    /// How long those took that were answered, until the answer began.
    pub duration: Distribution,
    /// Those without an answer yet.
    pub open: u64,
}

impl Traffic {
    /// For these routes; a request tells its own by the place in this list.
    pub fn new(patterns: &[&'static str]) -> Traffic {
        let route = |pattern: &&'static str| Route { pattern, methods: Default::default() };
        Traffic { routes: patterns.iter().map(route).collect(), ..Traffic::default() }
    }

    /// A request has come.
    pub fn begin(&self, route: usize, method: &Method, now: Duration) -> Underway {
        let requests = self.routes[route].methods[column(method)].get_or_init(|| Arc::new(Requests::new()));
        requests.begun.add_among_many(1);
        Underway { requests: requests.clone(), began: now, answered: false }
    }

    /// A connection was accepted; it has ended when what this gives is dropped.
    pub fn connected(self: &Arc<Traffic>) -> Connected {
        self.opened.add_among_many(1);
        Connected(self.clone())
    }

    /// Connections that are open.
    pub fn connections(&self) -> u64 {
        // In this order, so that one that comes and goes meanwhile does not count as less than none.
        let closed = self.closed.get();
        self.opened.get().saturating_sub(closed)
    }

    /// What was asked, by route and method; those that nobody ever asked are left out.
    pub fn read(&self) -> Vec<Asked> {
        let routes = self.routes.iter().flat_map(|Route { pattern, methods }| {
            let used = METHODS.into_iter().zip(methods).filter_map(|(name, used)| Some((name, used.get()?)));
            used.map(|(method, requests)| {
                let ended = super::numbers(&requests.ended);
                let open = requests.begun.get().saturating_sub(ended.iter().sum());
                Asked { route: pattern, method, ended, duration: requests.duration.read(), open }
            })
        });
        routes.collect()
    }
}

/// A connection that is open.
#[derive(Debug)]
#[must_use]
pub struct Connected(Arc<Traffic>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.closed.add_among_many(1);
    }
}

/// A request that is being answered. Dropped without an answer it was aborted.
#[derive(Debug)]
#[must_use]
pub struct Underway {
    requests: Arc<Requests>,
    began: Duration,
    answered: bool,
}

impl Underway {
    /// The answer begins.
    pub fn answered(mut self, status: StatusCode, now: Duration) {
        self.answered = true;
        self.requests.duration.record_among_many(micros(now.saturating_sub(self.began)));
        self.requests.ended[usize::from(status.as_u16() / 100).clamp(2, 5) - 2].add_among_many(1);
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        if !self.answered {
            self.requests.ended[ABORTED].add_among_many(1);
        }
    }
}

fn column(method: &Method) -> usize {
    match *method {
        Method::GET => 0,
        Method::HEAD => 1,
        Method::POST => 2,
        Method::PUT => 3,
        Method::PATCH => 4,
        Method::DELETE => 5,
        _ => METHODS.len() - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn every_method_has_its_own_column() {
        for (index, name) in METHODS.into_iter().enumerate() {
            assert_eq!(column(&Method::from_bytes(name.as_bytes()).unwrap()), index, "{name}");
        }
        assert_eq!(column(&Method::OPTIONS), column(&Method::TRACE));
    }

    #[test]
    fn a_request_is_open_until_it_is_answered_or_given_up() {
        let traffic = Traffic::new(&["/a", "/b"]);
        assert!(traffic.read().is_empty(), "nobody asked");
        let one = traffic.begin(1, &Method::GET, at(0));
        let other = traffic.begin(1, &Method::GET, at(5));
        traffic.begin(0, &Method::PUT, at(0)).answered(StatusCode::ACCEPTED, at(3));
        assert_eq!(traffic.read()[1].open, 2);
        one.answered(StatusCode::NOT_FOUND, at(20));
        drop(other);
        let read = traffic.read();
        let told: Vec<_> =
            read.iter().map(|asked| (asked.method, asked.route, asked.ended, asked.open)).collect();
        assert_eq!(told, [("PUT", "/a", [1, 0, 0, 0, 0], 0), ("GET", "/b", [0, 0, 1, 0, 1], 0)]);
        let durations: Vec<_> =
            read.iter().map(|asked| (asked.duration.count(), asked.duration.sum)).collect();
        assert_eq!(durations, [(1, 3000), (1, 20_000)], "one that was given up took no time to answer");
    }

    #[test]
    fn connections_are_those_that_have_not_ended() {
        let traffic = Arc::new(Traffic::default());
        let (one, other) = (traffic.connected(), traffic.connected());
        assert_eq!(traffic.connections(), 2);
        drop(one);
        assert_eq!(traffic.connections(), 1);
        drop(other);
        assert_eq!(traffic.connections(), 0);
    }
}
