//! The cluster under test: servers, nodes, clients and the origin, made for one run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flare_promises::dice::Dice;
use serde_json::json;

use super::clients::{Clients, Manners};
use super::event::Coordinator;
use super::network::Network;
use super::node::Node;
use super::origin::{Audience, Origin, prefix};
use super::servers::{Etcd, Store};

/// How long a node is taken for alive here.
pub const LEASE: Duration = Duration::from_secs(3);

/// Any key and token, the same for all.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const TOKEN: &str = "shared-by-all-nodes-of-one-run-and-nobody-else";

/// So many subscriptions have one resource.
const TOGETHER: usize = 10;

/// How long it may take until a cluster that nothing is done to is green.
const SETTLES: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(25);

/// Keeps every write of a feed whose epoch is below the one before.
const WATCH: &str = "
    CREATE SCHEMA watch;
    CREATE TABLE watch.fallen (feed bigint, before bigint, after bigint);
    CREATE FUNCTION watch.look() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.epoch < OLD.epoch THEN INSERT INTO watch.fallen VALUES (OLD.id, OLD.epoch, NEW.epoch); END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER watch BEFORE UPDATE ON flare.feeds FOR EACH ROW EXECUTE FUNCTION watch.look();";

/// How the cluster is to be.
pub struct Wanted {
    pub nodes: usize,
    pub subscriptions: usize,
    pub coordinator: Coordinator,
    pub binary: PathBuf,
    pub log: String,
    /// More settings of the nodes.
    pub more: Vec<(&'static str, String)>,
}

pub struct Stage {
    pub network: Network,
    pub store: Store,
    _etcd: Option<Etcd>,
    pub nodes: Vec<Node>,
    pub clients: Clients,
    pub resources: usize,
    pub subscriptions: usize,
    /// Of each resource, as the API names it.
    pub ids: Vec<String>,
    binary: PathBuf,
    folder: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Stage {
    /// Starts everything, and waits until it is green.
    pub async fn set(
        network: &Network,
        folder: &Path,
        wanted: &Wanted,
        dice: &Dice,
    ) -> anyhow::Result<Stage> {
        let store = Store::start(network, folder)?;
        let etcd = match wanted.coordinator {
            Coordinator::Etcd => Some(Etcd::start(network, folder)?),
            Coordinator::Postgresql => None,
        };
        if let Some(etcd) = &etcd {
            etcd.until_ready().await?;
        }
        let manners = Manners { fails: 1, dawdles: Duration::from_millis(30) };
        let mut stage = Stage {
            network: network.clone(),
            clients: Clients::start(dice.fork(1), manners).await?,
            variables: variables(wanted, &store, etcd.as_ref()),
            store,
            _etcd: etcd,
            nodes: Vec::new(),
            resources: wanted.subscriptions.div_ceil(TOGETHER),
            subscriptions: 0,
            ids: Vec::new(),
            binary: wanted.binary.clone(),
            folder: folder.to_owned(),
        };
        for _ in 0..wanted.nodes {
            stage.add_node().await?;
        }
        stage.store.ask(WATCH).context("watching the epochs of feeds")?;
        stage.populate(wanted.subscriptions).await?;
        stage.until_green().await?;
        Ok(stage)
    }

    /// One node more.
    pub async fn add_node(&mut self) -> anyhow::Result<()> {
        let number = self.nodes.len();
        let mut node = Node::new(&self.network, number, &self.binary, &self.folder, &self.variables);
        node.start().await?;
        self.nodes.push(node);
        Ok(())
    }

    /// Resources and subscriptions, asked of one node after the other.
    async fn populate(&mut self, subscriptions: usize) -> anyhow::Result<()> {
        for resource in 0..self.resources {
            let body =
                json!({"endpoint": format!("{}/{{id}}", prefix(resource)), "change": {"field": "rev"}});
            let node = &self.nodes[resource % self.nodes.len()];
            let created = node.send("POST", "/resources", &body.to_string()).await?;
            let id = created.json["id"].as_str().with_context(|| format!("no resource: {}", created.json))?;
            self.ids.push(id.to_owned());
        }
        for client in 0..subscriptions {
            let id = &self.ids[self.resource_of(client)];
            let retry = json!({"interval": "200ms", "maxInterval": "1s"});
            let body = json!({"endpoint": {"url": self.clients.url(client)}, "delivery": {"retry": retry}});
            let node = &self.nodes[client % self.nodes.len()];
            let path = format!("/resources/{id}/subscriptions");
            let created = node.send("POST", &path, &body.to_string()).await?;
            if created.status != 201 {
                bail!("creating a subscription: {} {}", created.status, created.json);
            }
        }
        self.subscriptions = subscriptions;
        Ok(())
    }

    /// The resource of a client.
    pub fn resource_of(&self, client: usize) -> usize {
        client / TOGETHER
    }

    /// The origin begins to speak.
    pub fn origin(&self, rate: u32, dice: &Dice) -> Origin {
        let nodes = self.nodes.iter().map(Node::address).collect();
        Origin::start(&Audience { resources: self.resources, nodes, rate }, dice)
    }

    /// Units that there are at least: one for each subscription, and who keeps house.
    pub fn units(&self) -> u64 {
        self.subscriptions as u64 + 1
    }

    /// Waits until every node that runs says that everything is well and that all of them are there.
    pub async fn until_green(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        let running = self.nodes.iter().filter(|node| node.runs()).count() as u64;
        for node in self.nodes.iter().filter(|node| node.runs()) {
            loop {
                let health = node.get("/cluster/health").await;
                if let Ok(health) = &health
                    && health.json["status"] == "green"
                    && health.json["nodes"]["live"] == running
                    && health.json["units"]["running"] == health.json["units"]["total"]
                    && health.json["units"]["total"].as_u64() >= Some(self.units())
                {
                    break;
                }
                if began.elapsed() > SETTLES {
                    let said =
                        health.map_or_else(|error| format!("{error:#}"), |health| health.json.to_string());
                    bail!("not green within {SETTLES:?}, says {}: {said}", node.name);
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Waits until all units run, none of them on this node, as another sees it; answers how long that took.
    pub async fn until_elsewhere(&self, gone: usize, most: Duration) -> Option<Duration> {
        let began = Instant::now();
        let name = &self.nodes[gone].name;
        let observer = self.nodes.iter().enumerate().find(|(number, node)| *number != gone && node.runs());
        let (_, observer) = observer?;
        while began.elapsed() < most {
            let here = observer.total(&format!("/cluster/assignments?node={name}&limit=0")).await;
            let running = observer.total("/cluster/assignments?state=running&limit=0").await;
            let all = observer.total("/cluster/assignments?limit=0").await;
            if here.is_ok_and(|here| here == 0)
                && all
                    .as_ref()
                    .is_ok_and(|all| *all >= self.units() && running.is_ok_and(|running| running == *all))
            {
                return Some(began.elapsed());
            }
            tokio::time::sleep(LOOK).await;
        }
        None
    }

    /// Waits until every node has units: one that came back gets some when it has been steady for three leases.
    pub async fn until_shared(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        for node in &self.nodes {
            let path = format!("/cluster/assignments?node={}&state=running&limit=0", node.name);
            while !node.total(&path).await.is_ok_and(|units| units > 0) {
                if began.elapsed() > SETTLES {
                    bail!("{} has no units after {SETTLES:?}", node.name);
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        self.until_green().await
    }

    /// The node that leads, as any of them sees it.
    pub async fn leader(&self) -> Option<usize> {
        for node in self.nodes.iter().filter(|node| node.runs()) {
            if let Ok(health) = node.get("/cluster/health").await {
                let leader = health.json["leader"].as_str()?;
                return self.nodes.iter().position(|node| node.name == leader);
            }
        }
        None
    }
}

fn variables(wanted: &Wanted, store: &Store, etcd: Option<&Etcd>) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("FLARE_PROVIDER_STORE", "postgresql".to_owned()),
        ("FLARE_PROVIDER_POSTGRESQL_URL", store.url()),
        ("FLARE_PROVIDER_POSTGRESQL_CONNECTIONS", "8".to_owned()),
        ("FLARE_AUTH_SECRET_KEY", KEY.to_owned()),
        ("FLARE_HTTP_SERVER_INSECURE", "true".to_owned()),
        ("FLARE_NETWORK_ALLOW", "10.90.0.0/16".to_owned()),
        ("FLARE_CLUSTER_TOKEN", TOKEN.to_owned()),
        ("FLARE_CLUSTER_LEASE", format!("{}s", LEASE.as_secs())),
        ("FLARE_LOG_FORMAT", "json".to_owned()),
        ("FLARE_LOG_LEVEL", wanted.log.clone()),
    ];
    if let Some(etcd) = etcd {
        variables.push(("FLARE_PROVIDER_CLUSTER", "etcd".to_owned()));
        variables.push(("FLARE_PROVIDER_DOORBELL", "etcd".to_owned()));
        variables.push(("FLARE_PROVIDER_ETCD_ENDPOINTS", etcd.endpoints.join(",")));
    }
    variables.extend(wanted.more.iter().cloned());
    variables
}
