//! One operation of the API: a method, a path and a handler, and what the description says of them. The routes and the
//! description are made of the same values, so neither has an operation that the other lacks.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use flare_core::operations::{App, Changes};
use flare_model::access::Need;
use http::Method;

use super::notes::Notes;
use crate::access::guard;
use crate::site::see_through;
use crate::{Site, page};

/// Writes down what an operation takes and answers.
pub type Describe = fn(&mut Notes<'_>);

/// An operation.
pub struct Operation {
    /// Its method.
    pub method: Method,
    /// Its path as the router reads it.
    pub path: &'static str,
    /// What whoever asks for it needs, where there is authentication. There is no operation without.
    pub need: Need,
    /// Whether it is written into the audit log.
    pub audited: bool,
    /// Who answers.
    route: MethodRouter<Arc<App>>,
    reads_query: bool,
    /// It ends when its client leaves, wherever it is by then.
    pub ends_with_its_client: bool,
    /// What is said of it. It is asked when somebody wants the description, not at the start.
    pub describe: Describe,
}

impl Operation {
    fn new<H, T>(method: Method, path: &'static str, need: Need, handler: H, describe: Describe) -> Operation
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("one of the five methods below");
        let (route, only_asks) = (on(filter, handler), method == Method::GET);
        Operation {
            method,
            path,
            need,
            audited: !only_asks,
            route,
            reads_query: false,
            ends_with_its_client: only_asks,
            describe,
        }
    }

    /// Its handler looks at the query string, and refuses the parameters that it does not know.
    pub fn reads_query(mut self) -> Operation {
        self.reads_query = true;
        self
    }

    /// Its handler may be dropped at any await: it changes nothing, or only by a single step that goes on by itself, or
    /// is a wait that nobody needs once the client has left. All others but those of `GET` are seen through to their end.
    pub fn ends_with_its_client(mut self) -> Operation {
        self.ends_with_its_client = true;
        self
    }

    /// It changes nothing, or only documents and what a passive client has of them.
    pub fn not_audited(mut self) -> Operation {
        self.audited = false;
        self
    }

    /// Its place among the routes. A handler that does not look at the query string gets none.
    pub fn add_to(self, site: Site, changes: &Changes) -> Site {
        let mut route = self.route;
        if self.audited {
            route = route.route_layer(middleware::from_fn(guard::note));
        }
        if !self.ends_with_its_client {
            route = route.route_layer(middleware::from_fn_with_state(changes.clone(), see_through));
        }
        if !self.reads_query {
            route = route.route_layer(middleware::from_fn(refuse_query));
        }
        site.route(self.path, route)
    }

    /// Whether it is about producers, of which nearly all is done as with subscriptions.
    pub fn is_of_producers(&self) -> bool {
        self.path.starts_with("/consumers/{cid}/producers")
    }

    /// The path as the description writes it: a parameter that takes the rest of the path is one like any other.
    pub fn template(&self) -> String {
        self.path.replace("{*", "{")
    }
}

async fn refuse_query(request: Request, next: Next) -> Response {
    match page::pairs(request.uri()).first() {
        Some((name, _)) => page::unknown(name, &[]).into_response(),
        None => next.run(request).await,
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident, $method:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name<H, T>(path: &'static str, need: Need, handler: H, describe: Describe) -> Operation
        where
            H: Handler<T, Arc<App>>,
            T: 'static,
        {
            Operation::new($method, path, need, handler, describe)
        }
    )+};
}

methods! {
    /// A `GET`.
    get, Method::GET;
    /// A `POST`.
    post, Method::POST;
    /// A `PUT`.
    put, Method::PUT;
    /// A `PATCH`.
    patch, Method::PATCH;
    /// A `DELETE`.
    delete, Method::DELETE;
}
