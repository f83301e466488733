//! Operations of a whole node whose store loses answers or says no: afterwards memory and store agree, or the next
//! request makes them.

use super::*;
use flare_core::config::{Sources, load};
use flare_core::journey::accept::Word;
use flare_core::operations::{Done, Failure, StatusView, SubscriptionQuery};
use flare_core::registry::Subscription;
use flare_model::access::{Account, Caller};
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::subscription::{PauseDraft, PausedBy, Status};
use flare_model::url::DocumentUrl;
use flare_provider::faulty::{self, Fault, Faulty};
use flare_provider::memory::Memory;
use flare_provider::{EntityKind, ErrorKind};
use serde_json::json;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

const LOST: Fault = Fault::After(ErrorKind::Unavailable);
const REFUSED: Fault = Fault::Before(ErrorKind::Unavailable);

/// A node without a server, and a resource.
struct Scene {
    app: Arc<App>,
    /// What goes wrong.
    faults: faulty::Plan,
    resource: ResourceId,
}

impl Scene {
    async fn begin() -> Scene {
        let environment = vec![("FLARE_PROVIDER_STORE".into(), "memory".into())];
        let sources = Sources { directory: "/nonexistent".into(), environment, ..Sources::default() };
        let config = load(&sources).unwrap().config;
        let faults = faulty::Plan::quiet();
        let store = Faulty::wrap(Memory::new().store(), faults.clone());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::of_process());
        let (report, _, events) = Report::new();
        let destinations = Destinations::new(&config.network, true);
        let plan = plan(&config, 2, store.clone(), clock.clone(), &destinations, report).unwrap();
        let (app, _) = App::new(Parts {
            about: Identity::of(version::THIS, config.http.server.addr, Vec::new(), &config),
            membership: None,
            journey: Journey::start(plan).await.unwrap(),
            vault: Vault::open(&config, &Entropy::of_machine()).unwrap(),
            entropy: Entropy::of_machine(),
            changes: Changes::new(config.http.server.max_connections),
            config,
            clock,
            store,
            events,
            destinations,
            bridges: flare_core::bridges::Bridges::none(),
            telemetry: None,
            traffic: Arc::default(),
        });
        let app = Arc::new(app);
        let resource = app
            .create_resource(&Account::default(), endpoint("http://origin.test/users/{id}"))
            .await
            .unwrap();
        Scene { resource: resource.id().clone(), app, faults }
    }

    async fn subscribe(&self) -> Done<Arc<Subscription>> {
        self.subscribe_at("http://127.0.0.1:9/told").await
    }

    async fn subscribe_at(&self, url: &str) -> Done<Arc<Subscription>> {
        let draft = serde_json::from_value(json!({"endpoint": {"url": url}})).unwrap();
        Ok(self.app.create_subscription(&self.resource, draft).await?.0)
    }

    async fn pause(&self, id: &SubscriptionId) -> Done<Arc<Subscription>> {
        self.app.pause(&self.resource, id, PausedBy::Api, PauseDraft::default()).await
    }

    async fn put(&self, revision: u32) {
        let url = DocumentUrl::parse("http://origin.test/users/1").unwrap();
        let content = json!({"rev": revision}).to_string();
        let draft = self.app.draft(&Caller::anybody(), url, Word::Put(content.into())).unwrap();
        self.app.commit(vec![draft]).await.unwrap();
    }

    /// Waits until a subscription stands so.
    async fn until_status(&self, id: &SubscriptionId, wanted: &str) -> StatusView {
        let status = async {
            loop {
                let status = self.app.status(&self.resource, id).await.unwrap();
                if status.status.as_str() == wanted {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), status).await.expect(wanted)
    }

    fn is_stored_as_disabled(&self, id: &SubscriptionId) -> bool {
        self.app.subscription(&self.resource, id).unwrap().stored.disabled.is_some()
    }

    async fn patch(&self, id: &SubscriptionId, patch: serde_json::Value) -> Done<Arc<Subscription>> {
        let patch = serde_json::value::to_raw_value(&patch).unwrap();
        self.app.patch_subscription(&self.resource, id, &patch).await
    }

    /// The ids that a list shows, which are those that are stored and those that single requests find.
    async fn listed(&self) -> Vec<SubscriptionId> {
        let known = self.app.registry.subscriptions(&self.resource, 0, 100).entries;
        let views = self.app.views(&known).await.unwrap();
        let listed: Vec<SubscriptionId> = views.into_iter().map(|view| view.id).collect();
        let stored = self.app.store.catalog.list(EntityKind::Subscription, 0, 100).await.unwrap();
        let stored: Vec<SubscriptionId> = stored.iter().map(|e| SubscriptionId::new(e.id.as_str())).collect();
        assert_eq!(listed, stored);
        for id in &listed {
            self.app.status(&self.resource, id).await.unwrap();
        }
        listed
    }
}

/// A client that answers everything with one status, and its url.
async fn client(status: Arc<AtomicU16>) -> (JoinSet<()>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/told", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let status = status.clone();
            connections.spawn(async move {
                let mut request = [0; 4096];
                // One read has all of so small a request.
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let status = status.load(Ordering::SeqCst);
                    let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    (serving, url)
}

fn endpoint(endpoint: &str) -> flare_model::resource::ResourceDraft {
    serde_json::from_value(json!({"endpoint": endpoint, "change": {"field": "rev"}})).unwrap()
}

#[track_caller]
fn unavailable<T>(done: Done<T>) {
    assert!(matches!(done, Err(Failure::Store(error)) if error.kind == ErrorKind::Unavailable));
}

#[track_caller]
fn conflict<T>(done: Done<T>) -> String {
    match done {
        Err(Failure::Conflict(detail)) => detail,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was done"),
    }
}

#[tokio::test]
async fn a_change_whose_answer_was_lost_is_found_by_the_next() {
    let scene = Scene::begin().await;
    let id = scene.subscribe().await.unwrap().id().clone();
    scene.faults.once("catalog.replace", LOST);
    unavailable(scene.patch(&id, json!({"delivery": {"timeout": "7s"}})).await);
    conflict(scene.patch(&id, json!({"delivery": {"concurrency": 3}})).await);
    let patched = scene.patch(&id, json!({"delivery": {"concurrency": 3}})).await.unwrap();
    assert_eq!(patched.compiled.spec.timeout, Duration::from_secs(7));
    scene.faults.once("catalog.replace", LOST);
    unavailable(scene.pause(&id).await);
    conflict(scene.pause(&id).await);
    let view = scene.app.view(&scene.app.subscription(&scene.resource, &id).unwrap()).await.unwrap();
    assert_eq!(view.status.as_str(), "paused");
    scene.app.resume(&scene.resource, &id).await.unwrap();
}

#[tokio::test]
async fn a_subscription_whose_creation_was_not_answered_is_found_by_whoever_wants_its_url() {
    let scene = Scene::begin().await;
    scene.faults.once("catalog.create", LOST);
    unavailable(scene.subscribe().await);
    let words = conflict(scene.subscribe().await);
    let listed = scene.listed().await;
    assert!(words.contains(listed[0].as_str()), "{words}");
}

#[tokio::test]
async fn a_subscription_that_cannot_be_opened_is_not_created() {
    let scene = Scene::begin().await;
    scene.faults.once("ledger.open", REFUSED);
    unavailable(scene.subscribe().await);
    assert!(scene.listed().await.is_empty());
    scene.faults.once("ledger.open", REFUSED);
    scene.faults.once("catalog.delete", REFUSED);
    unavailable(scene.subscribe().await);
    let words = conflict(scene.app.delete_resource(&scene.resource).await);
    assert!(words.contains("(1)"), "{words}");
    assert_eq!(scene.listed().await.len(), 1);
}

#[tokio::test]
async fn a_delete_that_was_refused_leaves_a_subscription_that_is_served() {
    let scene = Scene::begin().await;
    let id = scene.subscribe().await.unwrap().id().clone();
    scene.faults.once("catalog.delete", REFUSED);
    unavailable(scene.app.delete_subscription(&scene.resource, &id).await);
    assert_eq!(scene.listed().await, std::slice::from_ref(&id));
    scene.app.delete_subscription(&scene.resource, &id).await.unwrap();
    assert!(scene.listed().await.is_empty());
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_is_done() {
    let scene = Scene::begin().await;
    for _ in 0..2 {
        let id = scene.subscribe().await.unwrap().id().clone();
        scene.faults.once("catalog.delete", LOST);
        unavailable(scene.app.delete_subscription(&scene.resource, &id).await);
        let again = scene.app.delete_subscription(&scene.resource, &id).await;
        assert!(matches!(again, Err(Failure::NotFound(_))));
        assert!(scene.listed().await.is_empty());
    }
    let id = scene.subscribe().await.unwrap().id().clone();
    scene.faults.once("catalog.delete", LOST);
    unavailable(scene.app.delete_subscription(&scene.resource, &id).await);
    let paused = scene.pause(&id).await;
    assert!(matches!(paused, Err(Failure::NotFound(_))), "whoever finds that it is gone says so");
    assert!(scene.listed().await.is_empty());
}

#[tokio::test]
async fn a_resource_whose_creation_was_not_answered_is_found_by_whoever_wants_its_endpoint() {
    let scene = Scene::begin().await;
    scene.faults.once("catalog.create", LOST);
    unavailable(
        scene.app.create_resource(&Account::default(), endpoint("http://origin.test/things/{id}")).await,
    );
    conflict(
        scene.app.create_resource(&Account::default(), endpoint("http://origin.test/things/{id}")).await,
    );
    assert_eq!(scene.app.registry.resources(0, 100).total, 2);
}

#[tokio::test]
async fn what_a_thread_decided_is_so_at_once_and_kept_until_it_can_be_stored() {
    let scene = Scene::begin().await;
    let answer = Arc::new(AtomicU16::new(410));
    let (_client, url) = client(answer.clone()).await;
    let id = scene.subscribe_at(&url).await.unwrap().id().clone();
    let mut chores = JoinSet::new();
    chores.spawn(scene.app.clone().carry_out_decisions());
    scene.faults.always("catalog.replace", REFUSED);
    scene.put(1).await;
    let status = scene.until_status(&id, "disabled").await;
    assert!(status.reason.unwrap().contains("410"));
    assert!(!scene.is_stored_as_disabled(&id), "nothing can be stored");
    let of_all = SubscriptionQuery { status: Some(Status::Disabled), limit: 10, ..Default::default() };
    assert_eq!(
        scene.app.find_subscriptions(&Caller::anybody(), &of_all).await.unwrap().total,
        1,
        "lists say the same"
    );
    // An operator who lets it go on is stronger than what was decided before.
    answer.store(200, Ordering::SeqCst);
    scene.app.resume(&scene.resource, &id).await.unwrap();
    scene.put(2).await;
    while scene.until_status(&id, "active").await.delivered == 0 {
        tokio::task::yield_now().await;
    }
    answer.store(410, Ordering::SeqCst);
    scene.put(3).await;
    scene.until_status(&id, "disabled").await;
    scene.faults.heal();
    let stored = async {
        while !scene.is_stored_as_disabled(&id) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), stored)
        .await
        .expect("it is told again until it is durable");
}

#[tokio::test]
async fn a_subscription_that_is_stored_otherwise_is_disabled_all_the_same_and_holds_up_no_other() {
    let scene = Scene::begin().await;
    let (_client, url) = client(Arc::new(AtomicU16::new(410))).await;
    let stale = scene.subscribe_at(&url).await.unwrap().id().clone();
    let other = scene.subscribe_at(&format!("{url}/other")).await.unwrap().id().clone();
    scene.faults.once("catalog.replace", LOST);
    unavailable(scene.patch(&stale, json!({"delivery": {"timeout": "7s"}})).await);
    let mut chores = JoinSet::new();
    chores.spawn(scene.app.clone().carry_out_decisions());
    scene.put(1).await;
    let stored = async {
        while !scene.is_stored_as_disabled(&stale) || !scene.is_stored_as_disabled(&other) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), stored).await.expect("both are disabled");
}

#[tokio::test]
async fn nobody_waits_while_documents_are_looked_through_that_a_new_resource_may_capture() {
    let scene = Scene::begin().await;
    scene
        .app
        .create_resource(&Account::default(), endpoint("http://origin.test/{kind}/{group}/{x}"))
        .await
        .unwrap();
    scene.faults.once("documents.scan", Fault::Delayed(Duration::from_secs(5)));
    let own = Account::default();
    let capturing = scene.app.create_resource(&own, endpoint("http://origin.test/users/me/{x}"));
    tokio::select! {
        biased;
        _ = capturing => panic!("it looks through the documents first"),
        subscribed = scene.subscribe() => drop(subscribed.unwrap()),
    }
    assert_eq!(scene.faults.met("documents.scan"), 1);
}

#[tokio::test]
async fn a_document_finds_a_resource_whose_creation_was_not_answered() {
    let scene = Scene::begin().await;
    scene
        .app
        .create_resource(&Account::default(), endpoint("http://origin.test/{kind}/{group}/{x}"))
        .await
        .unwrap();
    let url = || DocumentUrl::parse("http://origin.test/users/me/1").unwrap();
    let draft = scene.app.draft(&Caller::anybody(), url(), Word::Put(r#"{"rev":1}"#.into())).unwrap();
    scene.faults.once("catalog.create", LOST);
    unavailable(
        scene.app.create_resource(&Account::default(), endpoint("http://origin.test/users/me/{x}")).await,
    );
    scene.app.commit(vec![draft]).await.unwrap().remove(0).unwrap();
    let owner = scene.app.registry.find(&Account::default(), &url()).unwrap();
    assert_eq!(owner.view.endpoint, "http://origin.test/users/me/{x}");
    let lane = owner.lane_of(url().as_str());
    assert!(scene.app.store.documents.get(lane, url().as_str()).await.unwrap().is_some());
}
