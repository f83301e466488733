//! The life of a node, as `crates/flare/src/node.rs` has it, without HTTP: a store comes in, and for one of several the
//! coordinator and the doorbell; a node that lives until it is stopped or crashes goes out.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use flare_core::cluster::{Joining, Member};
use flare_core::door::{Clock, Entropy};
use flare_core::journey::{Dialler, Journey, Plan, Report, Tenancy, Threads};
use flare_core::network::Destinations;
use flare_core::operations::{App, Changes, Identity, Membership, Parts as AppParts};
use flare_core::vault::Vault;
use flare_core::version::Version;
use flare_model::cluster::NodeState;
use flare_model::cluster::keys::{Load, NodeRecord, PROTOCOL};
use flare_provider::Store;
use flare_provider::faulty::Faulty;
use tokio::sync::oneshot;

use crate::house::{House, Place};
use crate::limits::Limits;
use crate::line::Network;
use crate::stage::Stage;
use crate::together::Link;
use crate::together::documents::Swept;
use crate::together::ledger::Noted;
use crate::together::tenures::Sender;

const VERSION: Version = Version { version: "simulated", sha: "", build_time: "" };

/// What a node is made of.
pub struct Parts {
    stage: Arc<Stage>,
    limits: Limits,
    entropy: Entropy,
    clock: Arc<dyn Clock>,
    store: Store,
    sender: Sender,
    /// The way to the others, for one of several.
    link: Option<Link>,
    /// For the ledger, which notes whose feeds are.
    known: Arc<OnceLock<std::sync::Weak<App>>>,
    /// Another process has its name.
    namesake: Rc<Cell<bool>>,
}

impl Parts {
    /// Of the next life at a place.
    pub fn of(house: &House, place: &Place) -> Parts {
        let (stage, sender) = (house.stage.clone(), place.sender());
        let known: Arc<OnceLock<_>> = Arc::default();
        let mut store = house.memory().store();
        if house.together.is_some() {
            let (inner, app) = (store.ledger.clone(), known.clone());
            let documents = store.documents.clone();
            store.documents = Arc::new(Swept { inner: documents, stage: Arc::downgrade(&stage) });
            store.ledger = Arc::new(Noted { inner, sender, app, stage: Arc::downgrade(&stage) });
        }
        let ways = house.together.is_some().then(|| place.ways.clone());
        let plan = house.sky.plan(Arc::downgrade(&stage), sender, ways);
        let link = house.together.as_ref().map(|together| together.link(&stage, place));
        Parts {
            limits: house.limits.clone(),
            entropy: house.entropy.clone(),
            clock: place.machine.of_process(),
            store: Faulty::wrap(store, plan),
            stage,
            sender,
            link,
            known,
            namesake: place.namesake.clone(),
        }
    }
}

/// Lives. Whether it ended because it cannot go on.
pub async fn live(parts: Parts, ready: oneshot::Sender<Arc<App>>) -> bool {
    let Parts { stage, limits, entropy, clock, store, sender, link, known, namesake } = parts;
    let Limits { config, threads, .. } = limits;
    let (report, mut fatal, events) = Report::new();
    let network = Arc::new(Network { stage: Arc::downgrade(&stage), sender });
    let dialler = Dialler::Handed(network);
    let mut plan = Plan::new(&config, threads, store.clone(), clock.clone(), dialler, report);
    plan.entropy = entropy.clone();
    plan.kind = Threads::Tasks;
    let membership = link.map(|link| join(link, &clock, &store));
    plan.tenancy = membership.as_ref().map(|membership| membership.member.tenancy.clone());
    if let (Some(tenures), Some(tenancy)) = (&mut stage.lock().tenures, &plan.tenancy) {
        tenures.begins(sender, tenancy.clone());
    }
    let journey = match Journey::start(plan).await {
        Ok(journey) => journey,
        Err(error) => {
            stage.note(|| format!("the node does not start: {error}"));
            return false;
        }
    };
    let mut about = Identity::of(VERSION, config.http.server.addr, Vec::new(), &config);
    if let Some(membership) = &membership {
        about.node = membership.member.node().clone();
    }
    let (app, inboxes) = App::new(AppParts {
        about,
        membership,
        destinations: Destinations::new(&config.network, true),
        bridges: flare_core::bridges::Bridges::none(),
        vault: Vault::open(&config, &entropy).expect("a store in memory needs no file for its key"),
        changes: Changes::new(config.http.server.max_connections),
        config,
        clock,
        entropy,
        store,
        journey,
        events,
        telemetry: None,
        traffic: Arc::default(),
    });
    let app = Arc::new(app);
    let _first = known.set(Arc::downgrade(&app));
    if let Err(error) = app.load().await {
        stage.note(|| format!("the node does not start: {error}"));
        return false;
    }
    for chore in app.chores(inboxes) {
        tokio::task::spawn_local(chore.run());
    }
    let _ = ready.send(app);
    let Ok(reason) = fatal.wait_for(Option::is_some).await else { return false };
    // Whatever goes wrong here passes, and a store that is unavailable for a while is waited for.
    let reason = reason.as_deref().unwrap_or_default();
    if namesake.get() {
        stage.note(|| format!("the node gives up: {reason}"));
    } else {
        stage.wrong(format!("the node gives up: {reason}"));
    }
    true
}

/// Makes the node one of several.
fn join(link: Link, clock: &Arc<dyn Clock>, store: &Store) -> Membership {
    let Link { settings, cluster, doorbell, poll } = link;
    let (tenancy, lost) = Tenancy::new();
    let record = NodeRecord {
        protocol: PROTOCOL,
        address: format!("http://{}", settings.node),
        state: NodeState::Live,
        weight: 1,
        eligible: true,
        version: VERSION.version.to_owned(),
        sha: String::new(),
        started_at: clock.now(),
        load: Load::default(),
        gives_back: false,
        clock: None,
        trouble: None,
    };
    let (member, driver, orders) = Member::join(Joining {
        settings,
        name: "simulated".to_owned(),
        record,
        aside: cluster.clone(),
        cluster,
        ledger: store.ledger.clone(),
        clock: clock.clone(),
        tenancy: Arc::new(tenancy),
    });
    Membership { member, driver, apart: false, orders, lost, doorbell: Some(doorbell), poll }
}
