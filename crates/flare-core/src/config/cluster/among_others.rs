//! In: a configuration whose values each fit. Out: whether the node is one of several, by which engines, and what does not
//! fit together about that, with the remedy.

use std::time::Duration;

use crate::config::choice::{Coordinator, DoorbellEngine, Store};
use crate::config::schema::{ClusterConfig, Config};
use crate::config::setting::Setting;
use crate::config::validate::Broken;

/// Who coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordination {
    /// Nobody: the node is by itself.
    Alone,
    /// The database that keeps everything.
    Postgresql,
    /// etcd.
    Etcd,
}

/// How other nodes are heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bell {
    /// They are not.
    Poll,
    /// By NOTIFY.
    Postgresql,
    /// By a key of etcd.
    Etcd,
}

impl Config {
    /// Who coordinates this node with others.
    pub fn coordination(&self) -> Coordination {
        match (self.provider.cluster, self.provider.store) {
            (Coordinator::Auto | Coordinator::Postgresql, Store::Postgresql) => Coordination::Postgresql,
            (Coordinator::Etcd, _) => Coordination::Etcd,
            _ => Coordination::Alone,
        }
    }

    /// How this node hears of what others wrote.
    pub fn bell(&self) -> Bell {
        match (self.provider.doorbell, self.provider.store) {
            (DoorbellEngine::Postgresql, _) | (DoorbellEngine::Auto, Store::Postgresql) => Bell::Postgresql,
            (DoorbellEngine::Etcd, _) => Bell::Etcd,
            _ => Bell::Poll,
        }
    }
}

impl ClusterConfig {
    /// How often the lease is renewed.
    pub fn renews_every(&self) -> Duration {
        self.renew.or(self.lease / 3)
    }

    /// So long before the end of the lease units stop.
    pub fn margin_before_end(&self) -> Duration {
        self.margin.or(self.lease / 5)
    }

    /// So long the members have to stay the same until units move for balance.
    pub fn settles_after(&self) -> Duration {
        self.rebalance_delay.or(self.lease)
    }
}

/// What does not fit together.
pub fn check(config: &Config) -> Vec<Broken> {
    let rules = [
        coordinator_not_built_in(config),
        doorbell_not_built_in(config),
        store_of_one_node(config),
        not_the_store(config),
        lease_in_order(config),
    ];
    let mut broken: Vec<Broken> = rules.into_iter().flatten().collect();
    if config.coordination() != Coordination::Alone {
        broken.extend(
            [unreachable_by_others(config), without_token(config), key_of_its_own(config)]
                .into_iter()
                .flatten(),
        );
    }
    broken
}

fn coordinator_not_built_in(config: &Config) -> Option<Broken> {
    let asked = config.provider.cluster;
    matches!(asked, Coordinator::Nats | Coordinator::Mongodb | Coordinator::Cassandra).then(|| {
        let message =
            format!("{} is not built in: choose \"postgresql\", \"etcd\" or \"none\"", asked.to_toml());
        ("provider.cluster", message)
    })
}

fn doorbell_not_built_in(config: &Config) -> Option<Broken> {
    let asked = config.provider.doorbell;
    matches!(asked, DoorbellEngine::Nats | DoorbellEngine::Rabbitmq).then(|| {
        let message =
            format!("{} is not built in: choose \"postgresql\", \"etcd\" or \"poll\"", asked.to_toml());
        ("provider.doorbell", message)
    })
}

/// Several nodes need one store.
fn store_of_one_node(config: &Config) -> Option<Broken> {
    let store = config.provider.store;
    let several = matches!(config.provider.cluster, Coordinator::Postgresql | Coordinator::Etcd);
    (several && store != Store::Postgresql).then(|| {
        let message = format!(
            "provider.store = {} is for one node alone: choose \"postgresql\" as the store, or \"none\" here",
            store.to_toml()
        );
        ("provider.cluster", message)
    })
}

/// PostgreSQL rings only where it is the store.
fn not_the_store(config: &Config) -> Option<Broken> {
    let rings = config.provider.doorbell == DoorbellEngine::Postgresql;
    (rings && config.provider.store != Store::Postgresql).then(|| {
        let message =
            "\"postgresql\" rings only where provider.store is \"postgresql\": choose \"poll\" or \"auto\"";
        ("provider.doorbell", message.to_owned())
    })
}

/// A lease that is renewed too seldom, or whose margin is too long, is never held.
fn lease_in_order(config: &Config) -> Option<Broken> {
    let cluster = &config.cluster;
    let (renews, margin) = (cluster.renews_every(), cluster.margin_before_end());
    (renews.is_zero() || margin.is_zero() || renews + margin >= cluster.lease).then(|| {
        let message = format!(
            "cluster.renew = {} and cluster.margin = {} leave nothing of cluster.lease = {}: together they have to be \
             shorter, and neither may be nothing",
            renews.to_toml(),
            margin.to_toml(),
            cluster.lease.to_toml()
        );
        ("cluster.lease", message)
    })
}

fn unreachable_by_others(config: &Config) -> Option<Broken> {
    let unspecified = config.http.server.addr.ip().is_unspecified();
    (unspecified && config.cluster.advertise.get().is_none()).then(|| {
        let message = format!(
            "http.server.addr = {} stands for all addresses: say by which one the other nodes reach this one, as \
             \"http://10.0.0.1:8080\"",
            config.http.server.addr
        );
        ("cluster.advertise", message)
    })
}

fn without_token(config: &Config) -> Option<Broken> {
    let open = !config.http.server.is_loopback() && config.cluster.token.reveal().is_none();
    open.then(|| {
        let message = "nodes that can be reached from other machines need a token that all of them share, best as \
                       FLARE_CLUSTER_TOKEN";
        ("cluster.token", message.to_owned())
    })
}

/// All nodes have to open what one of them sealed. A node that is in a cluster only because its store can may be the only one, and
/// finds out when it joins whether the others have its key.
fn key_of_its_own(config: &Config) -> Option<Broken> {
    let named = config.provider.cluster != Coordinator::Auto;
    (named && config.auth.secret_key.reveal().is_none()).then(|| {
        let message = "all nodes of a cluster need the same key: give it, best as FLARE_AUTH_SECRET_KEY (\"openssl rand -base64 32\")";
        ("auth.secret-key", message.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_by(change: impl FnOnce(&mut Config)) -> Vec<&'static str> {
        let mut config = Config::default();
        change(&mut config);
        check(&config).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_node_by_itself_is_asked_nothing() {
        assert_eq!(broken_by(|_| {}), [] as [&str; 0]);
        assert_eq!(Config::default().coordination(), Coordination::Alone);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let cluster = |choice| broken_by(|config| config.provider.cluster = choice);
        assert_eq!(cluster(Coordinator::Nats), ["provider.cluster"]);
        assert_eq!(cluster(Coordinator::Cassandra), ["provider.cluster"]);
        assert_eq!(
            broken_by(|config| config.provider.doorbell = DoorbellEngine::Rabbitmq),
            ["provider.doorbell"]
        );
        let etcd = cluster(Coordinator::Etcd);
        assert!(etcd.contains(&"provider.cluster"), "an embedded store is one node's: {etcd:?}");
        assert!(cluster(Coordinator::Postgresql).contains(&"provider.cluster"));
    }

    #[test]
    fn a_member_needs_a_key_that_others_have_and_an_address() {
        let broken = broken_by(|config| {
            config.provider.store = Store::Postgresql;
            config.provider.cluster = Coordinator::Etcd;
            config.http.server.addr = "0.0.0.0:8080".parse().expect("an address");
        });
        assert_eq!(broken, ["cluster.advertise", "cluster.token", "auth.secret-key"]);
        let broken = broken_by(|config| config.provider.store = Store::Postgresql);
        assert_eq!(broken, [] as [&str; 0], "one that is alone for all it knows");
    }

    #[test]
    fn a_lease_has_to_be_held() {
        let broken = broken_by(|config| {
            config.cluster.renew = Setting::from_text("9s").expect("a duration");
        });
        assert_eq!(broken, ["cluster.lease"]);
    }
}
