//! How clients are served: what was done, and how everything stands.

use super::{Family, Labelled, Samples};
use crate::observe::Outcome;
use crate::observe::count::{ENDINGS, LEASES, NOTICES, POSTS, Totals};
use crate::observe::gauges::Gauges;

/// What was done for clients.
pub fn families(totals: Totals) -> Vec<Family> {
    let attempts = Outcome::NAMES.into_iter().zip(&totals.attempts).flat_map(|((outcome, _), row)| {
        let labels = move |status| vec![("outcome", outcome), ("status", status)];
        ENDINGS
            .into_iter()
            .zip(row)
            .map(move |(status, value)| Labelled { labels: labels(status), value: *value as f64 })
    });
    vec![
        Family {
            name: "flare_attempts_total",
            help: "Requests to clients that ended, by what that means and by the answer's status.",
            samples: Samples::Counter(attempts.collect()),
        },
        Family::seconds(
            "flare_attempt_duration_seconds",
            "How long requests to clients took.",
            totals.attempt,
        ),
        Family::counter(
            "flare_attempt_body_bytes_total",
            "Bytes of the bodies of requests to clients.",
            totals.sent,
        ),
        Family::seconds(
            "flare_delivery_latency_seconds",
            "From when a change was accepted until the client had it; what is sent on request is not counted.",
            totals.latency,
        ),
        Family::counter(
            "flare_retries_total",
            "Attempts that failed and are to be repeated.",
            totals.retries,
        ),
        Family::counter(
            "flare_given_up_total",
            "Notifications that were given up and became dead letters.",
            totals.given_up,
        ),
        Family::counter(
            "flare_breaker_opened_total",
            "How often a host was left alone because it did not answer.",
            totals.breakers,
        ),
        Family::counter(
            "flare_leases_granted_total",
            "Notifications that were handed out to clients that pull.",
            totals.leased,
        ),
        Family::counters(
            "flare_leases_ended_total",
            "Notifications handed out to clients that pull, by how that ended.",
            "outcome",
            LEASES.into_iter().zip(totals.leases),
        ),
        Family::counter("flare_records_total", "Feeds whose state was written to the store.", totals.records),
        Family::seconds(
            "flare_record_duration_seconds",
            "How long writing the state of feeds took, each time.",
            totals.record,
        ),
        Family::counter("flare_replays_started_total", "Replays that were asked for.", totals.replays),
        Family::counters(
            "flare_subscription_notices_total",
            "How often the operator was told of a subscription that fails, works again, or was disabled.",
            "event",
            NOTICES.into_iter().zip(totals.notices),
        ),
        Family::counters(
            "flare_notice_posts_total",
            "Posts of such notices to notify.url, by what became of them.",
            "outcome",
            POSTS.into_iter().zip(totals.posts),
        ),
    ]
}

/// How everything stands.
pub fn standing(gauges: &Gauges) -> Vec<Family> {
    let number = |name, help, value: u64| Family::gauge(name, help, value as f64);
    vec![
        number(
            "flare_backlog_notifications",
            "Notifications that clients still lack at most, all subscriptions together.",
            gauges.backlog,
        ),
        number(
            "flare_largest_backlog_notifications",
            "The backlog of the subscription that has the largest.",
            gauges.largest_backlog,
        ),
        number("flare_waiting_notifications", "Notifications that wait for a retry.", gauges.waiting),
        number("flare_leased_notifications", "Notifications that are out on a lease.", gauges.leased),
        number("flare_dead_letters", "Notifications that were given up and are kept.", gauges.dead_letters),
        number("flare_inflight_attempts", "Requests to clients that are open.", gauges.in_flight),
        Family::gauges(
            "flare_subscriptions",
            "Subscriptions, by status.",
            "status",
            gauges.subscriptions.each(),
        ),
        number("flare_lagging_subscriptions", "Subscriptions whose client lacks something.", gauges.lagging),
        number("flare_client_connections", "Connections to clients, opening ones too.", gauges.connections),
        number(
            "flare_hosts",
            "Hosts that clients have or had, as each delivery thread counts them.",
            gauges.hosts,
        ),
        number(
            "flare_open_breakers",
            "Hosts that are left alone because they do not answer, as each delivery thread sees it.",
            gauges.open_breakers,
        ),
        number(
            "flare_slow_requests",
            "Requests to clients that have been open for a while, or whose clients are slow to answer.",
            gauges.slow_requests,
        ),
        number(
            "flare_waiting_for_connection_subscriptions",
            "Subscriptions that wait for a connection to their host, as each delivery thread counts them.",
            gauges.waiting_for_connection,
        ),
    ]
}
