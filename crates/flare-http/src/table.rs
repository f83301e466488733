//! Every operation of the API, once: the routes are made of this table, and so is the description.

use super::openapi::{self, Operation, delete, get, patch, post, put};
use super::{about, debug, documents, filters, insight, resources, subscriptions};

/// A path below a subscription.
macro_rules! of {
    ($rest:literal) => {
        concat!("/resources/{rid}/subscriptions/{id}", $rest)
    };
}

const SUBSCRIPTIONS: &str = "/resources/{rid}/subscriptions";
const SUBSCRIPTION: &str = of!("");
const DOCUMENT: &str = "/documents/{*url}";

/// All operations.
pub fn operations() -> Vec<Operation> {
    use subscriptions::passive::leases;
    use subscriptions::{all, attempts, dead_letters, replay};
    vec![
        get("/", about::version::handle, about::version::describe),
        get("/status", about::status::handle, about::status::describe),
        get("/healthz", about::health::alive, about::health::describe_alive),
        get("/readyz", about::health::ready, about::health::describe_ready),
        get("/openapi.json", openapi::handle, openapi::describe),
        get("/explain", insight::explain::handle, insight::explain::describe).reads_query(),
        get("/metrics", about::metrics::handle, about::metrics::describe),
        get("/metrics/history", insight::history::handle, insight::history::describe).reads_query(),
        get("/tail", insight::tail::handle, insight::tail::describe).reads_query(),
        get("/debug/pprof/profile", debug::profile::handle, debug::profile::describe).reads_query(),
        get("/debug/pprof/heap", debug::heap::handle, debug::heap::describe).reads_query(),
        post("/retry/simulate", insight::simulate::handle, insight::simulate::describe)
            .ends_with_its_client(),
        post("/filters/test", filters::test::handle, filters::test::describe).ends_with_its_client(),
        get("/resources", resources::list::handle, resources::list::describe).reads_query(),
        post("/resources", resources::create::handle, resources::create::describe),
        get("/resources/{rid}", resources::show::handle, resources::show::describe),
        delete("/resources/{rid}", resources::delete::handle, resources::delete::describe),
        get(SUBSCRIPTIONS, subscriptions::list::handle, subscriptions::list::describe).reads_query(),
        post(SUBSCRIPTIONS, subscriptions::create::handle, subscriptions::create::describe),
        get(SUBSCRIPTION, subscriptions::show::handle, subscriptions::show::describe),
        patch(SUBSCRIPTION, subscriptions::patch::handle, subscriptions::patch::describe),
        delete(SUBSCRIPTION, subscriptions::delete::handle, subscriptions::delete::describe),
        post(of!("/pause"), subscriptions::pause::handle, subscriptions::pause::describe),
        post(of!("/resume"), subscriptions::resume::handle, subscriptions::resume::describe),
        post(of!("/secret/rotate"), subscriptions::rotate::handle, subscriptions::rotate::describe),
        get(of!("/status"), subscriptions::status::handle, subscriptions::status::describe),
        post(
            of!("/deliver"),
            subscriptions::passive::deliver::handle,
            subscriptions::passive::deliver::describe,
        )
        .reads_query()
        .ends_with_its_client(),
        post(
            of!("/reserve"),
            subscriptions::passive::reserve::handle,
            subscriptions::passive::reserve::describe,
        )
        .reads_query()
        .ends_with_its_client(),
        post(
            of!("/settle"),
            subscriptions::passive::settle::handle,
            subscriptions::passive::settle::describe,
        ),
        get(of!("/leases"), leases::list, leases::describe_list).reads_query(),
        delete(of!("/leases"), leases::end, leases::describe_end).reads_query(),
        get(of!("/stream"), subscriptions::passive::stream::handle, subscriptions::passive::stream::describe)
            .reads_query(),
        post(of!("/test"), subscriptions::test::handle, subscriptions::test::describe).ends_with_its_client(),
        get(of!("/attempts"), attempts::list, attempts::describe_list).reads_query(),
        get(of!("/attempts/{attempt}"), attempts::show, attempts::describe_show),
        get(of!("/documents"), subscriptions::documents::handle, subscriptions::documents::describe)
            .reads_query(),
        post(of!("/replay"), replay::handle, replay::describe),
        get(of!("/replays"), replay::list, replay::describe_list).reads_query(),
        get(of!("/replays/{replay}"), replay::progress, replay::describe_progress),
        get(of!("/dead-letters"), dead_letters::list, dead_letters::describe_list).reads_query(),
        delete(of!("/dead-letters"), dead_letters::discard, dead_letters::describe_discard).reads_query(),
        get("/subscriptions", all::list, all::describe_list).reads_query(),
        get("/subscriptions/{id}", all::show, all::describe_show),
        post("/documents", documents::bulk::handle, documents::bulk::describe).ends_with_its_client(),
        get(DOCUMENT, documents::get::handle, documents::get::describe).reads_query(),
        put(DOCUMENT, documents::put::handle, documents::put::describe).reads_query().ends_with_its_client(),
        delete(DOCUMENT, documents::delete::handle, documents::delete::describe)
            .reads_query()
            .ends_with_its_client(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    #[test]
    fn what_changes_something_is_seen_through_to_its_end_unless_it_may_be_dropped_anywhere() {
        let dropped = operations().into_iter().filter(|operation| operation.ends_with_its_client);
        let dropped: Vec<(Method, &str)> =
            dropped.map(|operation| (operation.method, operation.path)).collect();
        let changing: Vec<&(Method, &str)> =
            dropped.iter().filter(|(method, _)| method != Method::GET).collect();
        let expected = [
            // They change nothing.
            (Method::POST, "/retry/simulate"),
            (Method::POST, "/filters/test"),
            // Long waits for clients, of which nothing has to be told to anybody else.
            (Method::POST, of!("/deliver")),
            (Method::POST, of!("/reserve")),
            (Method::POST, of!("/test")),
            // One commit, which goes on once it is queued; memory hears of it from the engine.
            (Method::POST, "/documents"),
            (Method::PUT, DOCUMENT),
            (Method::DELETE, DOCUMENT),
        ];
        assert_eq!(changing, expected.iter().collect::<Vec<_>>());
        let gets = operations().into_iter().filter(|operation| operation.method == Method::GET).count();
        assert_eq!(dropped.len() - changing.len(), gets, "whatever only asks ends with its client");
    }
}
