//! For tests: several nodes on one PostgreSQL, coordinated by it or by a real etcd.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::way::Way;
use crate::support::postgresql::{fresh_schema, server};
use crate::support::{Api, Flare, Receiver, Setup, document_url, left_out, minimal_resource, until};

/// How long a node is taken for alive here.
pub const LEASE: Duration = Duration::from_secs(3);

/// Any key, the same for all.
pub const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Where nodes find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Postgresql,
    Etcd,
}

/// Some nodes, and a client that is told.
pub struct Nodes {
    pub flares: BTreeMap<&'static str, Flare>,
    pub receiver: Receiver,
    pub resource: String,
    /// Between each node and the store, where nodes find each other elsewhere.
    pub ways: BTreeMap<&'static str, Way>,
    store: String,
    setup: Setup,
    _etcd: Option<Etcd>,
}

/// How each of several nodes is started, apart from its name; nothing where there is no server for them.
pub fn over_postgresql(setup: Setup) -> Option<Setup> {
    let Some(server) = server() else {
        left_out("several nodes: there is no PostgreSQL (package postgresql)");
        return None;
    };
    let setup = setup
        .with("FLARE_PROVIDER_STORE", "postgresql")
        .with("FLARE_PROVIDER_POSTGRESQL_URL", &server.url)
        .with("FLARE_PROVIDER_POSTGRESQL_SCHEMA", &fresh_schema())
        .with("FLARE_PROVIDER_POSTGRESQL_CONNECTIONS", "8")
        .with("FLARE_AUTH_SECRET_KEY", KEY)
        .with("FLARE_CLUSTER_LEASE", "3s")
        .with("FLARE_CLUSTER_REBALANCE_DELAY", "500ms");
    Some(setup)
}

impl Nodes {
    /// Starts some; nothing where there is no server for them.
    pub async fn start(names: &[&'static str], by: By) -> Option<Nodes> {
        Nodes::start_as(Setup::default(), names, by).await
    }

    /// The same, with authentication; [`Nodes::api`] asks as the operator.
    pub async fn start_guarded(names: &[&'static str]) -> Option<Nodes> {
        let setup = Setup::default()
            .guarded()
            .with("FLARE_CLUSTER_TOKEN", "shared-by-the-nodes-of-one-test-0123456789");
        Nodes::start_as(setup, names, By::Postgresql).await
    }

    async fn start_as(setup: Setup, names: &[&'static str], by: By) -> Option<Nodes> {
        let mut setup = over_postgresql(setup)?;
        let mut etcd = None;
        if by == By::Etcd {
            let Some(started) = Etcd::start().await else {
                left_out("several nodes by etcd: there is no etcd (package etcd-server)");
                return None;
            };
            setup = setup
                .with("FLARE_PROVIDER_CLUSTER", "etcd")
                .with("FLARE_PROVIDER_DOORBELL", "etcd")
                .with("FLARE_PROVIDER_ETCD_ENDPOINTS", &started.url);
            etcd = Some(started);
        }
        let mut nodes = Nodes {
            flares: BTreeMap::new(),
            receiver: Receiver::start().await,
            resource: String::new(),
            ways: BTreeMap::new(),
            store: server().expect("it is there, see above").url.clone(),
            setup,
            _etcd: etcd,
        };
        for name in names {
            nodes.add(name).await;
        }
        let created = nodes.api(names[0]).post("/resources", &minimal_resource()).await.expect(201);
        nodes.resource = created.json()["id"].as_str().expect("an id").to_owned();
        for name in names {
            nodes.green(name).await;
        }
        Some(nodes)
    }

    /// One more.
    pub async fn add(&mut self, name: &'static str) {
        let mut setup = self.setup.clone().with("FLARE_CLUSTER_NODE", name);
        if self._etcd.is_some() {
            let (scheme, rest) = self.store.split_once('@').expect("a url with a user");
            let (server, database) = rest.split_once('/').expect("a url with a database");
            let way = Way::to(server.to_owned()).await;
            setup = setup.with("FLARE_PROVIDER_POSTGRESQL_URL", &format!("{scheme}@{}/{database}", way.addr));
            self.ways.insert(name, way);
        }
        let flare = setup.start().await;
        self.flares.insert(name, flare);
    }

    /// How its nodes are started.
    pub fn setup(&self) -> Setup {
        self.setup.clone()
    }

    pub fn api(&self, name: &str) -> Api {
        self.flares[name].operator()
    }

    /// Waits until a node sees that everything runs.
    pub async fn green(&self, name: &str) -> Value {
        let answer = self.api(name).get("/cluster/health?wait=green&timeout=20s").await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    /// Creates a subscription by asking a node for it.
    pub async fn subscribe(&self, name: &str, path: &str, more: Value) -> String {
        let mut body =
            json!({"endpoint": {"url": self.receiver.url(&format!("/{path}/{{id}}")), "method": "put"}});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        let created = self.api(name).post(&self.subscriptions(), &body).await.expect(201);
        created.json()["id"].as_str().expect("an id").to_owned()
    }

    pub fn subscriptions(&self) -> String {
        format!("/resources/{}/subscriptions", self.resource)
    }

    pub async fn put(&self, name: &str, id: usize, revision: i64) {
        let path = format!("/documents/{}", document_url(id));
        self.api(name).send("PUT", &path, &[], json!({"rev": revision}).to_string()).await.expect(202);
    }

    /// Who has each unit, as a node sees it.
    pub async fn owners(&self, name: &str) -> BTreeMap<String, String> {
        let list = self.api(name).get("/cluster/assignments?limit=100").await.expect(200).json();
        let all = list["assignments"].as_array().expect("a list").iter();
        let running = all.filter(|unit| unit["state"] == "running");
        running.map(|unit| (text(&unit["unit"]), text(&unit["owner"]))).collect()
    }

    /// Waits until every unit runs, none of them on these nodes.
    pub async fn without(&self, name: &str, gone: &[&str], units: usize) {
        until("the units run elsewhere", || async {
            let owners = self.owners(name).await;
            (owners.len() == units && owners.values().all(|owner| !gone.contains(&owner.as_str())))
                .then_some(())
        })
        .await;
    }

    /// Waits until each client of these has each of these documents at a revision, and insists that none was told an older one after
    /// a newer one.
    pub async fn told(&self, clients: &[&str], documents: std::ops::Range<usize>, revision: i64) {
        until("everyone has everything", || async {
            let last = self.last();
            let all =
                clients.iter().flat_map(|client| documents.clone().map(move |id| (client.to_string(), id)));
            all.into_iter().all(|key| last.get(&key) == Some(&revision)).then_some(())
        })
        .await;
    }

    /// What each client was told last of each document.
    fn last(&self) -> BTreeMap<(String, usize), i64> {
        let mut last: BTreeMap<(String, usize), i64> = BTreeMap::new();
        for request in self.receiver.requests() {
            let mut parts = request.path.trim_start_matches('/').split('/');
            let client = parts.next().expect("a client").to_owned();
            let id: usize = parts.next().and_then(|id| id.parse().ok()).expect("a document");
            let before = last.insert((client.clone(), id), request.revision());
            assert!(before.is_none_or(|before| before <= request.revision()), "{client} {id} goes back");
        }
        last
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A member of etcd by itself. Dropping it ends it.
pub struct Etcd {
    pub url: String,
    child: Child,
    directory: PathBuf,
}

impl Etcd {
    async fn start() -> Option<Etcd> {
        let port = || TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok().map(|address| address.port());
        let (clients, peers) = (port()?, port()?);
        let directory = std::env::temp_dir().join(format!("flare-etcd-{}-{clients}", std::process::id()));
        let (url, peer) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
        let child = Command::new("etcd")
            .args(["--name", "t", "--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("t={peer}"), "--data-dir"])
            .arg(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let etcd = Etcd { url, child, directory };
        let address = etcd.url.trim_start_matches("http://").parse().expect("an address");
        until("etcd is healthy", || async {
            let answer = Api::new(address).try_send("GET", "/health", &[], "").await;
            answer.is_ok_and(|answer| answer.status == 200).then_some(())
        })
        .await;
        Some(etcd)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
