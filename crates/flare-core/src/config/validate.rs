//! In: a configuration whose values each fit. Out: what does not fit together, with the remedy.

use super::choice::{AuthMode, Store};
use super::cidr::Cidr;
use super::schema::{Config, HistoryConfig};
use super::setting::Setting;

/// A broken rule: the key to correct, and what to say.
pub type Broken = (&'static str, String);

/// Ranges whose addresses only carry another one; [`crate::network`] looks at what they carry.
const CARRIERS: [Cidr; 2] =
    [Cidr::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), Cidr::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16)];

/// Checks the rules that concern more than one key.
pub fn check(config: &Config) -> Vec<Broken> {
    let alone = [
        without_telemetry(config),
        reachable_by_anyone(config),
        without_database(config),
        too_many_committers(config),
        half_a_certificate(config),
    ];
    let among_others = super::cluster::among_others::check(config);
    let pairs = [history_in_order(config), delivery_in_order(config), others_in_order(config)].concat();
    let mut broken: Vec<Broken> = alone.into_iter().flatten().collect();
    broken.extend(among_others);
    broken.extend(carriers_allowed(config));
    broken.extend(too_many_points(config));
    broken.extend(pairs.into_iter().flatten());
    broken
}

/// A collector is named that this build cannot send to.
fn without_telemetry(config: &Config) -> Option<Broken> {
    let named = config.telemetry.endpoint.get().is_some();
    let message =
        "this build cannot send telemetry: build Flare with the cargo feature `otlp`, or set \"none\"";
    (named && !cfg!(feature = "otlp")).then(|| ("telemetry.endpoint", message.to_owned()))
}

/// PostgreSQL keeps everything, and nobody has said where it is.
fn without_database(config: &Config) -> Option<Broken> {
    let asked =
        config.provider.store == Store::Postgresql && config.provider.postgresql.url.reveal().is_none();
    let message = "provider.store is \"postgresql\": give the url of the server, best as \
                   FLARE_PROVIDER_POSTGRESQL_URL";
    asked.then(|| ("provider.postgresql.url", message.to_owned()))
}

/// One connection more records what clients have, and two at least read.
fn too_many_committers(config: &Config) -> Option<Broken> {
    let postgresql = &config.provider.postgresql;
    (postgresql.committers + 3 > postgresql.connections).then(|| {
        let message = format!(
            "{} leaves less than 3 of provider.postgresql.connections = {} for everything else: lower the one or raise \
             the other",
            postgresql.committers, postgresql.connections
        );
        ("provider.postgresql.committers", message)
    })
}

/// Others can reach the API, and nobody has said that this is meant.
fn reachable_by_anyone(config: &Config) -> Option<Broken> {
    let server = &config.http.server;
    let guarded = config.auth.mode == AuthMode::Token;
    (!server.is_loopback() && !guarded && !server.insecure).then(|| {
        let message = format!(
            "{} can be reached from other machines and there is no authentication: set auth.mode = \"token\" and \
             auth.operator-token (best as FLARE_AUTH_OPERATOR_TOKEN), listen on a loopback address such as \
             \"127.0.0.1:8080\", or set http.server.insecure = true to accept that anyone who can connect may do \
             anything",
            server.addr
        );
        ("http.server.addr", message)
    })
}

/// A certificate is of no use without its key, a key without its certificate, and who vouches for clients without either.
fn half_a_certificate(config: &Config) -> Option<Broken> {
    let tls = &config.http.server.tls;
    let [certificate, key, client_ca] =
        [&tls.certificate, &tls.key, &tls.client_ca].map(|file| file.path().is_some());
    match (certificate, key) {
        (true, false) => {
            Some(("http.server.tls.key", "http.server.tls.certificate needs its key: name its file".into()))
        }
        (false, true) => Some((
            "http.server.tls.certificate",
            "http.server.tls.key needs its certificate: name its file".into(),
        )),
        (false, false) if client_ca => {
            let message = "only TLS has certificates of clients: give http.server.tls.certificate and key";
            Some(("http.server.tls.client-ca", message.into()))
        }
        _ => None,
    }
}

/// Ranges are allowed that mean nothing by themselves.
fn carriers_allowed(config: &Config) -> impl Iterator<Item = Broken> {
    let allowed = config.network.allow.iter();
    allowed.filter(|range| CARRIERS.iter().any(|carrier| carrier.covers(range))).map(|range| {
        ("network.allow", format!("{range} only carries IPv4 addresses: allow the IPv4 range itself"))
    })
}

/// Sizes of the history that have more points than there may be.
fn too_many_points(config: &Config) -> impl Iterator<Item = Broken> {
    let keys = ["history.fine", "history.medium", "history.coarse"];
    keys.into_iter().zip(config.history.sizes()).filter_map(|(key, (step, span))| {
        let (points, most) = (span.as_nanos().div_ceil(step.as_nanos()), HistoryConfig::MOST_POINTS);
        (points > most).then(|| {
            let (step, span) = (step.to_toml(), span.to_toml());
            let message = format!(
                "{span} with a point every {key}-step = {step} makes {points} points, and there may be {most}: shorten \
                 the one or lengthen the other"
            );
            (key, message)
        })
    })
}

fn history_in_order(config: &Config) -> Vec<Option<Broken>> {
    let history = &config.history;
    let fine_step = ("history.fine-step", &history.fine_step);
    let medium_step = ("history.medium-step", &history.medium_step);
    let coarse_step = ("history.coarse-step", &history.coarse_step);
    let fine = ("history.fine", &history.fine);
    let medium = ("history.medium", &history.medium);
    let coarse = ("history.coarse", &history.coarse);
    vec![
        at_most(fine_step, medium_step),
        at_most(medium_step, coarse_step),
        at_most(fine, medium),
        at_most(medium, coarse),
        // Without a single point there is nothing to plot.
        at_most(fine_step, fine),
        at_most(medium_step, medium),
        at_most(coarse_step, coarse),
    ]
}

fn delivery_in_order(config: &Config) -> Vec<Option<Broken>> {
    let delivery = &config.delivery;
    vec![
        at_most(
            ("delivery.breaker.pause", &delivery.breaker.pause),
            ("delivery.breaker.longest-pause", &delivery.breaker.longest_pause),
        ),
        at_most(
            ("delivery.default-timeout", &delivery.default_timeout),
            ("delivery.maximum-timeout", &delivery.maximum_timeout),
        ),
        at_most(
            ("delivery.default-concurrency", &delivery.default_concurrency),
            ("delivery.maximum-concurrency", &delivery.maximum_concurrency),
        ),
        at_most(
            ("delivery.passive.default-quantity", &delivery.passive.default_quantity),
            ("delivery.passive.maximum-quantity", &delivery.passive.maximum_quantity),
        ),
        at_most(
            ("delivery.passive.default-lease", &delivery.passive.default_lease),
            ("delivery.passive.maximum-lease", &delivery.passive.maximum_lease),
        ),
    ]
}

fn others_in_order(config: &Config) -> Vec<Option<Broken>> {
    let (server, client) = (&config.http.server, &config.http.client);
    let (pagination, embedded) = (&config.domain.pagination, &config.provider.embedded);
    let postgresql = &config.provider.postgresql;
    vec![
        // A document larger than the queue could never be accepted, only told to come back later.
        at_most(
            ("http.server.body-limit", &server.body_limit),
            ("provider.embedded.queue-bytes", &embedded.queue_bytes),
        ),
        at_most(
            ("provider.embedded.commit-bytes", &embedded.commit_bytes),
            ("provider.embedded.queue-bytes", &embedded.queue_bytes),
        ),
        at_most(
            ("http.server.body-limit", &server.body_limit),
            ("provider.postgresql.queue-bytes", &postgresql.queue_bytes),
        ),
        at_most(
            ("provider.postgresql.commit-bytes", &postgresql.commit_bytes),
            ("provider.postgresql.queue-bytes", &postgresql.queue_bytes),
        ),
        at_most(
            ("http.client.connections-per-host", &client.connections_per_host),
            ("http.client.connections", &client.connections),
        ),
        at_most(
            ("http.client.excerpt-limit", &client.excerpt_limit),
            ("http.client.response-limit", &client.response_limit),
        ),
        at_most(
            ("domain.pagination.default-limit", &pagination.default_limit),
            ("domain.pagination.maximum-limit", &pagination.maximum_limit),
        ),
        at_most(
            ("auth.secret-overlap", &config.auth.secret_overlap),
            ("auth.maximum-secret-overlap", &config.auth.maximum_secret_overlap),
        ),
    ]
}

/// The first must not be more than the second.
fn at_most<T: Setting>(low: (&'static str, &T), high: (&'static str, &T)) -> Option<Broken> {
    (low.1 > high.1).then(|| {
        let (low_value, high_value) = (low.1.to_toml(), high.1.to_toml());
        (
            low.0,
            format!("{low_value} is more than {} = {high_value}: lower the one or raise the other", high.0),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::size::ByteSize;

    fn broken_by(change: impl FnOnce(&mut Config)) -> Vec<Broken> {
        let mut config = Config::default();
        change(&mut config);
        check(&config)
    }

    #[test]
    fn the_defaults_break_no_rule() {
        assert_eq!(broken_by(|_| {}), vec![]);
    }

    #[test]
    fn an_address_beyond_loopback_needs_the_word_insecure() {
        let broken = broken_by(|config| config.http.server.addr = "0.0.0.0:8080".parse().unwrap());
        assert_eq!(broken.len(), 1);
        assert_eq!(broken[0].0, "http.server.addr");
        for words in ["http.server.insecure = true", "auth.mode = \"token\"", "auth.operator-token"] {
            assert!(broken[0].1.contains(words), "{}", broken[0].1);
        }
        let broken = broken_by(|config| {
            config.http.server.addr = "0.0.0.0:8080".parse().unwrap();
            config.auth.mode = AuthMode::Token;
        });
        assert_eq!(broken, vec![]);
        let broken = broken_by(|config| {
            config.http.server.addr = "0.0.0.0:8080".parse().unwrap();
            config.http.server.insecure = true;
        });
        assert_eq!(broken, vec![]);
    }

    #[test]
    fn a_range_that_only_carries_ipv4_cannot_be_allowed() {
        for (range, problems) in
            [("64:ff9b::/96", 1), ("2002:a00::/24", 1), ("fd00::/8", 0), ("10.0.0.0/8", 0)]
        {
            let broken = broken_by(|config| config.network.allow = vec![range.parse().unwrap()]);
            assert_eq!(broken.len(), problems, "{range}");
        }
    }

    #[test]
    fn a_history_of_more_points_than_there_may_be_is_refused() {
        let broken = broken_by(|config| config.history.fine_step = Duration::from_millis(100));
        assert_eq!(broken, vec![]);
        let broken = broken_by(|config| {
            config.history.fine_step = Duration::from_millis(100);
            config.history.fine = Duration::from_secs(1001);
        });
        assert_eq!(broken.len(), 1, "{broken:?}");
        let (key, message) = &broken[0];
        assert_eq!(*key, "history.fine");
        for words in ["history.fine-step", "100ms", "10010 points", "10000"] {
            assert!(message.contains(words), "{words}: {message}");
        }
    }

    #[test]
    fn every_pair_of_keys_keeps_its_order_and_names_keys_that_exist() {
        let broken = broken_by(|config| {
            config.http.client.connections = 1;
            config.http.client.response_limit = ByteSize::bytes(1);
            config.domain.pagination.maximum_limit = 1;
            config.delivery.maximum_timeout = Duration::from_millis(10);
            config.delivery.maximum_concurrency = 1;
            config.delivery.passive.maximum_quantity = 1;
            config.delivery.passive.maximum_lease = Duration::from_millis(10);
            config.provider.embedded.queue_bytes = ByteSize::kb(64);
            config.history.medium_step = Duration::from_secs(3);
            config.history.coarse_step = Duration::from_secs(2);
            config.history.medium = Duration::from_secs(60);
            config.history.coarse = Duration::from_secs(30);
        });
        assert_eq!(broken.len(), 12, "{broken:?}");
        let keys = crate::config::load::keys();
        for (key, message) in broken {
            assert!(keys.iter().any(|known| known == key), "{key}");
            let other = message.split_whitespace().find(|word| word.contains('.')).unwrap();
            assert!(keys.iter().any(|known| known == other), "{other}");
        }
    }
}
