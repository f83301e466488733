//! What was asked over HTTP, of the API and of the web interface.

use super::{Facts, Family, Labelled, LabelledDistribution, MICROSECOND, Samples};
use crate::observe::count::{Asked, ENDS};

/// Families about requests. Only those routes are told of that somebody asked; from then on with every way a request can
/// end, so that the first failure is seen as an increase.
pub fn families(facts: &Facts) -> Vec<Family> {
    let asked = facts.traffic.read();
    let in_flight: u64 = asked.iter().map(|asked| asked.open).sum();
    let requests = asked.iter().flat_map(|asked| {
        let of = |(status, value): (&'static str, u64)| {
            let mut labels = labels(asked);
            labels.push(("status", status));
            Labelled { labels, value: value as f64 }
        };
        ENDS.into_iter().zip(asked.ended).map(of)
    });
    let requests = requests.collect();
    let durations = asked
        .into_iter()
        .map(|asked| LabelledDistribution { labels: labels(&asked), distribution: asked.duration });
    vec![
        Family {
            name: "flare_http_requests_total",
            help: "Requests to the API and the web interface, by route and by how they were answered.",
            samples: Samples::Counter(requests),
        },
        Family {
            name: "flare_http_request_duration_seconds",
            help: "How long requests waited until the answer began.",
            samples: Samples::Histogram(durations.collect(), MICROSECOND),
        },
        Family::gauge(
            "flare_http_requests_in_flight",
            "Requests to the API and the web interface whose answer has not begun, this one among them.",
            in_flight as f64,
        ),
        Family::gauge(
            "flare_http_connections",
            "Connections to the API and the web interface.",
            facts.traffic.connections() as f64,
        ),
        Family::gauge(
            "flare_http_max_connections",
            "How many connections may be open; further ones are told to come back later, or wait to be accepted.",
            facts.max_connections as f64,
        ),
    ]
}

fn labels(asked: &Asked) -> Vec<(&'static str, &'static str)> {
    vec![("method", asked.method), ("route", asked.route)]
}
