//! This node among others, as configured: the coordinator and the doorbell are opened, and the node joins when its chores begin.

use std::sync::Arc;

use anyhow::Context;
use flare_core::cluster::{Joining, Member};
use flare_core::config::{Bell, Config, Coordination, Problems};
use flare_core::door::Clock;
use flare_core::journey::Tenancy;
use flare_core::operations::{Identity, Membership};
use flare_core::tls;
use flare_core::vault::Vault;
use flare_etcd::{Etcd, EtcdConfig, Login};
use flare_model::cluster::NodeState;
use flare_model::cluster::keys::{Load, NodeRecord, PROTOCOL};
use flare_model::cluster::life::Settings;
use flare_provider::{Cluster, Conflict, Doorbell, Entry};

use super::engine::Engine;

/// The key that says by which key secrets are sealed.
const CANARY: &str = "canary";

/// What coordinates nodes, and what rings for them.
type Coordinator = (Arc<dyn Cluster>, Option<Arc<dyn Doorbell>>);

/// What a node that is one of several is made of.
pub struct Joined {
    /// What its delivery threads look at.
    pub tenancy: Arc<Tenancy>,
    /// The rest of it.
    pub membership: Membership,
}

/// Makes a node one of several, if it is configured to be.
pub async fn join(
    config: &Config,
    engine: &Engine,
    clock: &Arc<dyn Clock>,
    about: &Identity,
    vault: &Vault,
) -> anyhow::Result<Option<Joined>> {
    let name = config.cluster.name.as_str();
    let Some((aside, doorbell)) = among_others(config, engine)? else { return Ok(None) };
    // Connections are driven where they were opened. What lives in the cluster shares none with anybody: a renewal waits for nobody else.
    let own = match config.coordination() {
        Coordination::Etcd => etcd(config)?.map(|etcd| etcd as Arc<dyn Cluster>),
        Coordination::Alone | Coordination::Postgresql => None,
    };
    let cluster = own.unwrap_or_else(|| aside.clone());
    check_key(&*aside, name, vault).await?;
    let (tenancy, lost) = Tenancy::new();
    let tenancy = Arc::new(tenancy);
    let (member, driver, orders) = Member::join(Joining {
        settings: settings(config, about),
        name: name.to_owned(),
        record: record(config, about, &**clock),
        cluster,
        aside,
        ledger: engine.store().ledger,
        clock: clock.clone(),
        tenancy: tenancy.clone(),
    });
    tracing::info!(cluster = name, node = %about.node, address = about.advertised, "joining");
    let poll = config.provider.postgresql.poll_interval;
    let membership = Membership { member, driver, apart: true, orders, lost, doorbell, poll };
    Ok(Some(Joined { tenancy, membership }))
}

/// What coordinates nodes, and what rings for them; nothing for a node that is alone.
fn among_others(config: &Config, engine: &Engine) -> anyhow::Result<Option<Coordinator>> {
    if config.coordination() == Coordination::Alone {
        return Ok(None);
    }
    let etcd = etcd(config)?;
    let asked = config.coordination() == Coordination::Postgresql || config.bell() == Bell::Postgresql;
    let postgresql = asked.then(|| engine.coordination(config.cluster.name.as_str())).flatten();
    let cluster: Option<Arc<dyn Cluster>> = match config.coordination() {
        Coordination::Alone => None,
        Coordination::Etcd => etcd.clone().map(|etcd| etcd as Arc<dyn Cluster>),
        Coordination::Postgresql => postgresql.clone().map(|store| store as Arc<dyn Cluster>),
    };
    let cluster = cluster.context("there is nothing that could coordinate (provider.cluster)")?;
    let doorbell: Option<Arc<dyn Doorbell>> = match config.bell() {
        Bell::Poll => None,
        Bell::Etcd => etcd.map(|etcd| etcd as Arc<dyn Doorbell>),
        Bell::Postgresql => postgresql.map(|store| store as Arc<dyn Doorbell>),
    };
    Ok(Some((cluster, doorbell)))
}

fn settings(config: &Config, about: &Identity) -> Settings {
    let cluster = &config.cluster;
    Settings {
        node: about.node.clone(),
        lease: cluster.lease,
        renew: cluster.renews_every(),
        margin: cluster.margin_before_end(),
        drain_timeout: cluster.drain_timeout,
        rebalance_delay: cluster.settles_after(),
        moves: cluster.moves,
    }
}

fn record(config: &Config, about: &Identity, clock: &dyn Clock) -> NodeRecord {
    NodeRecord {
        protocol: PROTOCOL,
        address: about.advertised.clone(),
        state: NodeState::Live,
        weight: config.cluster.weight,
        eligible: config.cluster.leader,
        version: about.version.version.to_owned(),
        sha: about.version.sha.to_owned(),
        started_at: clock.now(),
        load: Load::default(),
        gives_back: false,
        clock: None,
        trouble: None,
    }
}

/// etcd, where it is asked for anything.
fn etcd(config: &Config) -> anyhow::Result<Option<Arc<Etcd>>> {
    if config.coordination() != Coordination::Etcd && config.bell() != Bell::Etcd {
        return Ok(None);
    }
    let etcd = &config.provider.etcd;
    let login = etcd.user.reveal().map(|user| Login {
        user: user.to_owned(),
        password: etcd.password.reveal().unwrap_or_default().to_owned(),
    });
    let secure = etcd.endpoints.iter().any(|endpoint| endpoint.as_str().starts_with("https://"));
    let tls = match secure {
        true => Some(tls::client_trusting(&etcd.ca, "provider.etcd.ca")?),
        false => None,
    };
    let options = EtcdConfig {
        endpoints: etcd.endpoints.iter().map(|endpoint| endpoint.as_str().to_owned()).collect(),
        prefix: etcd.prefix.as_str().to_owned(),
        login,
        tls,
        timeout: etcd.timeout,
    };
    Ok(Some(Arc::new(Etcd::new(options).context("reading provider.etcd")?)))
}

/// What was sealed is sealed by another key now: nodes that have it may join from here on, and those with the former may not.
pub async fn replace_key(
    config: &Config,
    engine: &Engine,
    former: &Vault,
    present: &Vault,
) -> anyhow::Result<()> {
    let Some((cluster, _)) = among_others(config, engine)? else { return Ok(()) };
    let key = format!("{}/{CANARY}", config.cluster.name.as_str());
    let found = cluster.list(&key).await.context("asking the coordinator by which key secrets are sealed")?;
    let is_former = |entry: &Entry| entry.key == key && entry.value == former.fingerprint().as_bytes();
    let Some(entry) = found.into_iter().find(is_former) else { return Ok(()) };
    let fingerprint = present.fingerprint().as_bytes().to_vec().into();
    let put = cluster.put_if(&key, entry.version, fingerprint).await;
    put.map(drop).context("telling the coordinator by which key secrets are sealed")
}

/// All nodes have to open what one of them sealed: the first leaves the fingerprint of its key, the others compare theirs.
async fn check_key(cluster: &dyn Cluster, name: &str, vault: &Vault) -> anyhow::Result<()> {
    let key = format!("{name}/{CANARY}");
    let own = vault.fingerprint();
    let put = cluster.put_if_absent(&key, own.as_bytes().to_vec().into(), None).await;
    match put {
        Ok(_) => return Ok(()),
        Err(error) if matches!(error.kind, flare_provider::ErrorKind::Conflict(Conflict::Taken(_))) => {}
        Err(error) => return Err(error).context("asking the coordinator by which key secrets are sealed"),
    }
    let found = cluster.list(&key).await.context("asking the coordinator by which key secrets are sealed")?;
    let other = found.iter().find(|entry| entry.key == key && entry.value != own.as_bytes());
    match other {
        None => Ok(()),
        Some(entry) => {
            let message = format!(
                "the other nodes seal secrets with key {} and this one has key {own}: give all of them the same, best as \
                 FLARE_AUTH_SECRET_KEY",
                String::from_utf8_lossy(&entry.value)
            );
            Err(anyhow::Error::new(Problems::of("auth.secret-key", message)))
        }
    }
}
