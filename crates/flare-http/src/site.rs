//! Routes, and a list of their patterns: what is added to the router is also counted, each under its own name.

use std::sync::Arc;

use axum::Router;
use axum::routing::MethodRouter;
use flare_core::operations::App;

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
