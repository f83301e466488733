//! Every operation of the API, once: the routes are made of this table, and so is the description.

use super::openapi::{self, Operation, delete, get, patch, post, put};
use super::{
    about, access, cluster, consumers, debug, documents, filters, insight, producers, resources,
    subscriptions,
};
use flare_model::access::{Need, Scope};

/// A path below a subscription.
macro_rules! of {
    ($rest:literal) => {
        concat!("/resources/{rid}/subscriptions/{id}", $rest)
    };
}

/// A path below a producer.
macro_rules! of_producer {
    ($rest:literal) => {
        concat!("/consumers/{cid}/producers/{id}", $rest)
    };
}

const SUBSCRIPTIONS: &str = "/resources/{rid}/subscriptions";
const SUBSCRIPTION: &str = of!("");
const CONSUMER: &str = "/consumers/{cid}";
const CONSUMER_LETTERS: &str = "/consumers/{cid}/dead-letters";
const CONSUMER_REPLAYS: &str = "/consumers/{cid}/replays";
const PRODUCERS: &str = "/consumers/{cid}/producers";
const PRODUCER: &str = of_producer!("");
const DRAIN: &str = "/cluster/nodes/{node}/drain";
const DOCUMENT: &str = "/documents/{*url}";

/// What operations need. Whoever reads may ask for whatever only asks, and so may whoever may change what it is about.
const OPEN: Need = Need::Nothing;
const READ: Need = Need::Scope(&[Scope::Read]);
const NODE: Need = Need::Node(&[Scope::Read]);
const SAY: Need = Need::Scope(&[Scope::Origin]);
const LOOK: Need = Need::Scope(&[Scope::Read, Scope::Origin]);
const SUBSCRIBE: Need = Need::Scope(&[Scope::Subscribe]);
const FOLLOW: Need = Need::Scope(&[Scope::Read, Scope::Subscribe]);
const ADMIN: Need = Need::Scope(&[Scope::Admin]);
const KNOW: Need = Need::Scope(&[Scope::Read, Scope::Admin]);
const OPERATOR: Need = Need::Operator;

/// All operations.
pub fn operations() -> Vec<Operation> {
    let parts = [
        of_the_node(),
        of_the_catalog(),
        below_subscriptions(),
        of_consumers(),
        of_producers(),
        below_producers(),
        of_documents(),
        of_access(),
    ];
    parts.into_iter().flatten().collect()
}

/// What the node says of itself, and questions that change nothing.
fn of_the_node() -> Vec<Operation> {
    vec![
        get("/", READ, about::version::handle, about::version::describe),
        get("/status", READ, about::status::handle, about::status::describe),
        get("/healthz", OPEN, about::health::alive, about::health::describe_alive),
        get("/readyz", OPEN, about::health::ready, about::health::describe_ready),
        get("/openapi.json", READ, openapi::handle, openapi::describe),
        get("/cluster/health", NODE, cluster::health::handle, cluster::health::describe).reads_query(),
        get("/cluster/nodes", OPERATOR, cluster::nodes::list, cluster::nodes::describe_list).reads_query(),
        get("/cluster/nodes/{node}", OPERATOR, cluster::nodes::show, cluster::nodes::describe_show),
        post(DRAIN, OPERATOR, cluster::drain::begin, cluster::drain::describe_begin),
        delete(DRAIN, OPERATOR, cluster::drain::end, cluster::drain::describe_end),
        get("/cluster/assignments", OPERATOR, cluster::assignments::handle, cluster::assignments::describe)
            .reads_query(),
        get("/cluster/assignments/explain", OPERATOR, cluster::explain::handle, cluster::explain::describe)
            .reads_query(),
        post("/cluster/reroute", OPERATOR, cluster::reroute::handle, cluster::reroute::describe),
        get("/cluster/stats", OPERATOR, cluster::stats::handle, cluster::stats::describe),
        get("/explain", READ, insight::explain::handle, insight::explain::describe).reads_query(),
        get("/metrics", NODE, about::metrics::handle, about::metrics::describe),
        get("/metrics/history", NODE, insight::history::handle, insight::history::describe).reads_query(),
        get("/tail", READ, insight::tail::handle, insight::tail::describe).reads_query(),
        get("/debug/pprof/profile", OPERATOR, debug::profile::handle, debug::profile::describe).reads_query(),
        get("/debug/pprof/heap", OPERATOR, debug::heap::handle, debug::heap::describe).reads_query(),
        post("/retry/simulate", SUBSCRIBE, insight::simulate::handle, insight::simulate::describe)
            .not_audited()
            .ends_with_its_client(),
        post("/filters/test", SUBSCRIBE, filters::test::handle, filters::test::describe)
            .not_audited()
            .ends_with_its_client(),
    ]
}

/// Resources and subscriptions.
fn of_the_catalog() -> Vec<Operation> {
    vec![
        get("/resources", KNOW, resources::list::handle, resources::list::describe).reads_query(),
        post("/resources", ADMIN, resources::create::handle, resources::create::describe),
        get("/resources/{rid}", KNOW, resources::show::handle, resources::show::describe),
        delete("/resources/{rid}", ADMIN, resources::delete::handle, resources::delete::describe),
        get(SUBSCRIPTIONS, FOLLOW, subscriptions::list::handle, subscriptions::list::describe).reads_query(),
        post(SUBSCRIPTIONS, SUBSCRIBE, subscriptions::create::handle, subscriptions::create::describe),
        get(SUBSCRIPTION, FOLLOW, subscriptions::show::handle, subscriptions::show::describe),
        patch(SUBSCRIPTION, SUBSCRIBE, subscriptions::patch::handle, subscriptions::patch::describe),
        delete(SUBSCRIPTION, SUBSCRIBE, subscriptions::delete::handle, subscriptions::delete::describe),
    ]
}

/// What is below a subscription.
fn below_subscriptions() -> Vec<Operation> {
    use subscriptions::passive::leases;
    use subscriptions::{attempts, dead_letters, replay};
    vec![
        post(of!("/pause"), SUBSCRIBE, subscriptions::pause::handle, subscriptions::pause::describe),
        post(of!("/resume"), SUBSCRIBE, subscriptions::resume::handle, subscriptions::resume::describe),
        post(
            of!("/secret/rotate"),
            SUBSCRIBE,
            subscriptions::rotate::handle,
            subscriptions::rotate::describe,
        ),
        get(of!("/status"), FOLLOW, subscriptions::status::handle, subscriptions::status::describe),
        post(
            of!("/deliver"),
            SUBSCRIBE,
            subscriptions::passive::deliver::handle,
            subscriptions::passive::deliver::describe,
        )
        .reads_query()
        .ends_with_its_client(),
        post(
            of!("/reserve"),
            SUBSCRIBE,
            subscriptions::passive::reserve::handle,
            subscriptions::passive::reserve::describe,
        )
        .not_audited()
        .reads_query()
        .ends_with_its_client(),
        post(
            of!("/settle"),
            SUBSCRIBE,
            subscriptions::passive::settle::handle,
            subscriptions::passive::settle::describe,
        )
        .not_audited(),
        get(of!("/leases"), FOLLOW, leases::list, leases::describe_list).reads_query(),
        delete(of!("/leases"), SUBSCRIBE, leases::end, leases::describe_end).reads_query(),
        get(
            of!("/stream"),
            FOLLOW,
            subscriptions::passive::stream::handle,
            subscriptions::passive::stream::describe,
        )
        .reads_query(),
        post(of!("/test"), SUBSCRIBE, subscriptions::test::handle, subscriptions::test::describe)
            .ends_with_its_client(),
        get(of!("/attempts"), FOLLOW, attempts::list, attempts::describe_list).reads_query(),
        get(of!("/attempts/{attempt}"), FOLLOW, attempts::show, attempts::describe_show),
        get(of!("/documents"), FOLLOW, subscriptions::documents::handle, subscriptions::documents::describe)
            .reads_query(),
        post(of!("/replay"), SUBSCRIBE, replay::handle, replay::describe),
        get(of!("/replays"), FOLLOW, replay::list, replay::describe_list).reads_query(),
        get(of!("/replays/{replay}"), FOLLOW, replay::progress, replay::describe_progress),
        get(of!("/dead-letters"), FOLLOW, dead_letters::list, dead_letters::describe_list).reads_query(),
        delete(of!("/dead-letters"), SUBSCRIBE, dead_letters::discard, dead_letters::describe_discard)
            .reads_query(),
    ]
}

/// Consumers, and what is below them.
fn of_consumers() -> Vec<Operation> {
    use consumers::{dead_letters, pause, replay};
    vec![
        get("/consumers", KNOW, consumers::list::handle, consumers::list::describe).reads_query(),
        post("/consumers", ADMIN, consumers::create::handle, consumers::create::describe),
        get(CONSUMER, KNOW, consumers::show::handle, consumers::show::describe),
        put(CONSUMER, ADMIN, consumers::replace::handle, consumers::replace::describe),
        delete(CONSUMER, ADMIN, consumers::delete::handle, consumers::delete::describe),
        post("/consumers/{cid}/pause", ADMIN, pause::pause, pause::describe_pause),
        post("/consumers/{cid}/resume", ADMIN, pause::resume, pause::describe_resume),
        get("/consumers/{cid}/status", KNOW, consumers::status::handle, consumers::status::describe),
        get(CONSUMER_LETTERS, KNOW, dead_letters::list, dead_letters::describe_list).reads_query(),
        delete(CONSUMER_LETTERS, ADMIN, dead_letters::discard, dead_letters::describe_discard).reads_query(),
        post("/consumers/{cid}/replay", ADMIN, replay::handle, replay::describe),
        get(CONSUMER_REPLAYS, KNOW, replay::list, replay::describe_list).reads_query(),
        get("/consumers/{cid}/replays/{replay}", KNOW, replay::progress, replay::describe_progress),
    ]
}

/// Producers. What is not of their own is done with them as with subscriptions.
fn of_producers() -> Vec<Operation> {
    vec![
        get(PRODUCERS, KNOW, producers::list::handle, producers::list::describe).reads_query(),
        post(PRODUCERS, ADMIN, producers::create::handle, producers::create::describe),
        get(PRODUCER, KNOW, subscriptions::show::handle, subscriptions::show::describe),
        put(PRODUCER, ADMIN, producers::replace::handle, producers::replace::describe),
        patch(PRODUCER, ADMIN, producers::patch::handle, producers::patch::describe),
        delete(PRODUCER, ADMIN, subscriptions::delete::handle, subscriptions::delete::describe),
    ]
}

/// What is below a producer: the operations of subscriptions.
fn below_producers() -> Vec<Operation> {
    use subscriptions::passive::{deliver, leases, reserve, settle, stream};
    use subscriptions::{attempts, dead_letters, pause, replay, resume, rotate, status, test};
    vec![
        post(of_producer!("/pause"), ADMIN, pause::handle, pause::describe),
        post(of_producer!("/resume"), ADMIN, resume::handle, resume::describe),
        post(of_producer!("/secret/rotate"), ADMIN, rotate::handle, rotate::describe),
        get(of_producer!("/status"), KNOW, status::handle, status::describe),
        post(of_producer!("/deliver"), ADMIN, deliver::handle, deliver::describe)
            .reads_query()
            .ends_with_its_client(),
        post(of_producer!("/reserve"), ADMIN, reserve::handle, reserve::describe)
            .not_audited()
            .reads_query()
            .ends_with_its_client(),
        post(of_producer!("/settle"), ADMIN, settle::handle, settle::describe).not_audited(),
        get(of_producer!("/leases"), KNOW, leases::list, leases::describe_list).reads_query(),
        delete(of_producer!("/leases"), ADMIN, leases::end, leases::describe_end).reads_query(),
        get(of_producer!("/stream"), KNOW, stream::handle, stream::describe).reads_query(),
        post(of_producer!("/test"), ADMIN, test::handle, test::describe).ends_with_its_client(),
        get(of_producer!("/attempts"), KNOW, attempts::list, attempts::describe_list).reads_query(),
        get(of_producer!("/attempts/{attempt}"), KNOW, attempts::show, attempts::describe_show),
        get(
            of_producer!("/documents"),
            KNOW,
            subscriptions::documents::handle,
            subscriptions::documents::describe,
        )
        .reads_query(),
        post(of_producer!("/replay"), ADMIN, replay::handle, replay::describe),
        get(of_producer!("/replays"), KNOW, replay::list, replay::describe_list).reads_query(),
        get(of_producer!("/replays/{replay}"), KNOW, replay::progress, replay::describe_progress),
        get(of_producer!("/dead-letters"), KNOW, dead_letters::list, dead_letters::describe_list)
            .reads_query(),
        delete(of_producer!("/dead-letters"), ADMIN, dead_letters::discard, dead_letters::describe_discard)
            .reads_query(),
    ]
}

/// What is asked whatever the resource, and documents.
fn of_documents() -> Vec<Operation> {
    use subscriptions::all;
    vec![
        get("/subscriptions", FOLLOW, all::list, all::describe_list).reads_query(),
        get("/subscriptions/{id}", FOLLOW, all::show, all::describe_show),
        post("/documents", SAY, documents::bulk::handle, documents::bulk::describe)
            .not_audited()
            .ends_with_its_client(),
        get(DOCUMENT, LOOK, documents::get::handle, documents::get::describe).reads_query(),
        put(DOCUMENT, SAY, documents::put::handle, documents::put::describe)
            .not_audited()
            .reads_query()
            .ends_with_its_client(),
        delete(DOCUMENT, SAY, documents::delete::handle, documents::delete::describe)
            .not_audited()
            .reads_query()
            .ends_with_its_client(),
    ]
}

/// Tokens, accounts, and what was done.
fn of_access() -> Vec<Operation> {
    use access::{accounts, audit, tokens};
    vec![
        get("/tokens", KNOW, tokens::list, tokens::describe_list).reads_query(),
        post("/tokens", ADMIN, tokens::create, tokens::describe_create),
        get("/tokens/{token}", KNOW, tokens::show, tokens::describe_show),
        delete("/tokens/{token}", ADMIN, tokens::revoke, tokens::describe_revoke),
        get("/accounts", OPERATOR, accounts::list, accounts::describe_list).reads_query(),
        post("/accounts", OPERATOR, accounts::create, accounts::describe_create),
        get("/accounts/{account}", OPERATOR, accounts::show, accounts::describe_show),
        patch("/accounts/{account}", OPERATOR, accounts::patch, accounts::describe_patch),
        delete("/accounts/{account}", OPERATOR, accounts::delete, accounts::describe_delete),
        get("/audit", KNOW, audit::list, audit::describe).reads_query(),
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
            (Method::POST, of_producer!("/deliver")),
            (Method::POST, of_producer!("/reserve")),
            (Method::POST, of_producer!("/test")),
            // One commit, which goes on once it is queued; memory hears of it from the engine.
            (Method::POST, "/documents"),
            (Method::PUT, DOCUMENT),
            (Method::DELETE, DOCUMENT),
        ];
        assert_eq!(changing, expected.iter().collect::<Vec<_>>());
        let gets = operations().into_iter().filter(|operation| operation.method == Method::GET).count();
        assert_eq!(dropped.len() - changing.len(), gets, "whatever only asks ends with its client");
    }

    #[test]
    fn whatever_changes_something_but_documents_is_audited() {
        let unseen = operations().into_iter().filter(|one| one.method != Method::GET && !one.audited);
        let unseen: Vec<(Method, &str)> = unseen.map(|one| (one.method, one.path)).collect();
        let expected = [
            // They change nothing.
            (Method::POST, "/retry/simulate"),
            (Method::POST, "/filters/test"),
            // What passive clients do with notifications is delivery: attempts and leases show it.
            (Method::POST, of!("/reserve")),
            (Method::POST, of!("/settle")),
            (Method::POST, of_producer!("/reserve")),
            (Method::POST, of_producer!("/settle")),
            (Method::POST, "/documents"),
            (Method::PUT, DOCUMENT),
            (Method::DELETE, DOCUMENT),
        ];
        assert_eq!(unseen, expected);
        assert!(operations().iter().all(|one| one.method != Method::GET || !one.audited));
    }

    #[test]
    fn only_health_is_open_and_whoever_reads_changes_nothing() {
        let open: Vec<&str> =
            operations().iter().filter(|one| one.need == Need::Nothing).map(|one| one.path).collect();
        assert_eq!(open, ["/healthz", "/readyz"]);
        for one in operations() {
            let (Need::Scope(scopes) | Need::Node(scopes)) = one.need else { continue };
            assert_eq!(
                scopes.contains(&Scope::Read),
                one.method == Method::GET,
                "{} {}",
                one.method,
                one.path
            );
        }
    }
}
