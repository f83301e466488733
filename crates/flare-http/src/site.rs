//! Routes, and a list of their patterns: what is added to the router is also counted, each under its own name.
//! What changes something is seen through to its end, though its client may leave.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::MethodRouter;
use flare_core::operations::{App, Changes};
use http::Method;

/// Routes that are being put together.
#[derive(Default)]
pub struct Site {
    router: Router<Arc<App>>,
    patterns: Vec<&'static str>,
}

impl Site {
    /// One more path. The same path may come again, with other methods.
    pub fn route(mut self, pattern: &'static str, methods: MethodRouter<Arc<App>>) -> Site {
        if !self.patterns.contains(&pattern) {
            self.patterns.push(pattern);
        }
        Site { router: self.router.route(pattern, methods), patterns: self.patterns }
    }

    /// And all of another one.
    pub fn merge(mut self, other: Site) -> Site {
        self.patterns.extend(other.patterns);
        Site { router: self.router.merge(other.router), patterns: self.patterns }
    }

    /// Something that holds for all routes so far, and adds none.
    pub fn with(self, change: impl FnOnce(Router<Arc<App>>) -> Router<Arc<App>>) -> Site {
        Site { router: change(self.router), patterns: self.patterns }
    }

    /// The router, and the patterns of its routes, each once.
    pub fn into_parts(self) -> (Router<Arc<App>>, Vec<&'static str>) {
        (self.router, self.patterns)
    }
}

/// Stands before what may change something. A request that only asks ends with its client; any other is a task of the
/// node's own from here on.
pub async fn see_through(State(changes): State<Changes>, request: Request, next: Next) -> Response {
    match *request.method() {
        Method::GET | Method::HEAD => next.run(request).await,
        _ => changes.see_through(next.run(request)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::middleware;
    use axum::routing::any;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use std::time::Duration;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    #[tokio::test]
    async fn what_may_change_something_goes_on_when_its_client_has_left_and_what_asks_does_not() {
        for (method, goes_on) in [("GET", false), ("POST", true), ("PATCH", true), ("DELETE", true)] {
            let (tell, mut told) = mpsc::unbounded_channel();
            let (go, gone) = tokio::sync::watch::channel(false);
            let handler = move || {
                let (tell, mut gone) = (tell.clone(), gone.clone());
                async move {
                    let _ = tell.send("begun");
                    let _ = gone.wait_for(|go| *go).await;
                    let _ = tell.send("done");
                }
            };
            let changes = Changes::new(1);
            let layer = middleware::from_fn_with_state(changes.clone(), see_through);
            let routes = TowerToHyperService::new(Router::new().route("/", any(handler).layer(layer)));
            let request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
            let answer = routes.call(request);
            assert!(timeout(Duration::from_millis(10), answer).await.is_err(), "its client leaves");
            assert_eq!(told.recv().await, Some("begun"), "{method}");
            go.send(true).unwrap();
            changes.done().await;
            drop(routes);
            assert_eq!(told.recv().await, goes_on.then_some("done"), "{method}");
        }
    }
}
