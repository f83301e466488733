//! Operations of a whole node whose store loses answers or says no: afterwards memory and store agree, or the next
//! request makes them.

use super::*;
use flare_core::config::{Sources, load};
use flare_core::operations::{Done, Failure};
use flare_core::registry::Subscription;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_provider::faulty::{self, Fault, Faulty};
use flare_provider::{EntityKind, ErrorKind};
use serde_json::json;

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
        let (report, _, _) = Report::new();
        let destinations = Destinations::new(&config.network, true);
        let plan = plan(&config, 2, store.clone(), clock.clone(), &destinations, report).unwrap();
        let journey = Journey::start(plan).await.unwrap();
        let vault = Vault::open(&config).unwrap();
        let (notices, rearrangements) = (Notices::new().0, Rearrangements::new().0);
        let app = App::new(
            version::THIS,
            config,
            clock,
            store,
            journey,
            destinations,
            notices,
            rearrangements,
            vault,
            None,
        );
        let app = Arc::new(app);
        let resource = app.create_resource(endpoint("http://origin.test/users/{id}")).await.unwrap();
        Scene { resource: resource.id().clone(), app, faults }
    }

    async fn subscribe(&self) -> Done<Arc<Subscription>> {
        let draft = serde_json::from_value(json!({"endpoint": {"url": "http://127.0.0.1:9/told"}})).unwrap();
        Ok(self.app.create_subscription(&self.resource, draft).await?.0)
    }

    async fn patch(&self, id: &SubscriptionId, patch: serde_json::Value) -> Done<Arc<Subscription>> {
        self.app.patch_subscription(&self.resource, id, patch).await
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
    unavailable(scene.app.pause(&scene.resource, &id).await);
    conflict(scene.app.pause(&scene.resource, &id).await);
    let view = scene.app.view(&*scene.app.subscription(&scene.resource, &id).unwrap()).await.unwrap();
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
    assert_eq!(scene.listed().await, [id.clone()]);
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
    let paused = scene.app.pause(&scene.resource, &id).await;
    assert!(matches!(paused, Err(Failure::NotFound(_))), "whoever finds that it is gone says so");
    assert!(scene.listed().await.is_empty());
}

#[tokio::test]
async fn a_resource_whose_creation_was_not_answered_is_found_by_whoever_wants_its_endpoint() {
    let scene = Scene::begin().await;
    scene.faults.once("catalog.create", LOST);
    unavailable(scene.app.create_resource(endpoint("http://origin.test/things/{id}")).await);
    conflict(scene.app.create_resource(endpoint("http://origin.test/things/{id}")).await);
    assert_eq!(scene.app.registry.resources(0, 100).total, 2);
}
