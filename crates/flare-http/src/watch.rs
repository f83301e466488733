//! Counts requests. In: the head of a request, before anything else has looked at it. Out: the place where it is counted,
//! whatever becomes of it then: a page that is refused, a method that is none, a path that leads nowhere.
//!
//! The router does not tell those outside of it which route it took, and to ask from inside would miss what is refused
//! before. So the path is matched once more, by the same kind of tree: no lock, no hash, nothing allocated.

use std::sync::Arc;

use flare_core::config::HostName;
use flare_core::door::Clock;
use flare_core::observe::count::{Traffic, Underway};
use http::Request;

/// What is counted under when no route has the path.
const ELSEWHERE: &str = "other";

/// Stands before the router.
pub struct Watch {
    /// From paths to places in [`Traffic`]. The last place is that of paths that are not here.
    places: matchit::Router<usize>,
    elsewhere: usize,
    /// What is counted.
    pub traffic: Arc<Traffic>,
    /// What tells how long an answer took.
    pub clock: Arc<dyn Clock>,
    /// Whether whoever asks has to show a token: then it matters where they are, and not by which name they ask.
    pub authenticates: bool,
    /// By which other nodes ask for this one, where that is a name.
    pub own_name: Option<HostName>,
}

impl Watch {
    /// Over routes with these patterns.
    pub fn new(mut patterns: Vec<&'static str>, clock: Arc<dyn Clock>) -> Watch {
        let mut places = matchit::Router::new();
        for (place, pattern) in patterns.iter().enumerate() {
            places.insert(*pattern, place).expect("the router took the same patterns");
        }
        let elsewhere = patterns.len();
        patterns.push(ELSEWHERE);
        Watch {
            places,
            elsewhere,
            traffic: Arc::new(Traffic::new(&patterns)),
            clock,
            authenticates: false,
            own_name: None,
        }
    }

    /// The same, where there is authentication.
    pub fn authenticating(self, authenticates: bool) -> Watch {
        Watch { authenticates, ..self }
    }

    /// The same, for a node that others ask for by a name.
    pub fn known_as(self, own_name: Option<HostName>) -> Watch {
        Watch { own_name, ..self }
    }

    /// A request has come.
    pub fn begin<B>(&self, request: &Request<B>) -> Underway {
        let place = self.places.at(request.uri().path()).map_or(self.elsewhere, |matched| *matched.value);
        self.traffic.begin(place, request.method(), self.clock.monotonic())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Site, site};
    use flare_core::door::ManualClock;
    use flare_core::operations::Changes;
    use http::StatusCode;

    #[test]
    fn a_request_is_counted_under_the_pattern_of_its_route() {
        let page = || axum::routing::get(|| async {});
        let pages = Site::default().route("/ui/subscriptions/new", page());
        let pages = pages.route("/ui/subscriptions/{id}", page()).route("/ui/{*path}", page());
        let (_, patterns) = site(pages, &Changes::new(1)).into_parts();
        let watch = Watch::new(patterns, Arc::new(ManualClock::default()));
        for (method, path, route) in [
            ("GET", "/", "/"),
            ("PUT", "/documents/http://api.test/users/1", "/documents/{*url}"),
            ("POST", "/documents", "/documents"),
            ("PUT", "/documents/http://api.test/users/1?x=1", "/documents/{*url}"),
            ("GET", "/resources/r1/subscriptions/s1/status", "/resources/{rid}/subscriptions/{id}/status"),
            ("GET", "/ui/subscriptions/new", "/ui/subscriptions/new"),
            ("GET", "/ui/subscriptions/s1", "/ui/subscriptions/{id}"),
            ("GET", "/ui/nothing/here", "/ui/{*path}"),
            ("GET", "/debug/pprof/heap", "/debug/pprof/heap"),
            ("GET", "/nothing", "other"),
            ("GET", "/metrics/", "other"),
        ] {
            let before: u64 = count(&watch, method, route);
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            watch.begin(&request).answered(StatusCode::OK, watch.clock.monotonic());
            assert_eq!(count(&watch, method, route), before + 1, "{method} {path}");
        }
    }

    fn count(watch: &Watch, method: &str, route: &str) -> u64 {
        let all = watch.traffic.read().into_iter();
        all.filter(|asked| asked.method == method && asked.route == route).map(|asked| asked.ended[0]).sum()
    }
}
