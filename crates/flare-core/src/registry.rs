//! The catalog in memory: every resource and subscription, compiled. Reads take a short lock and no I/O.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use flare_model::ids::{ResourceId, ResourceNumber, SubscriptionId, SubscriptionNumber};
use flare_model::pattern::Pattern;
use flare_model::resource::Resource;
use flare_model::router::Router;
use flare_model::subscription::Stored;
use flare_model::url::DocumentUrl;
use parking_lot::RwLock;

use crate::notification::compiled::Compiled;

/// A subscription as the node knows it.
pub struct Subscription {
    /// As stored.
    pub stored: Stored,
    /// The version that was stored.
    pub version: u64,
    /// Compiled.
    pub compiled: Arc<Compiled>,
}

impl Subscription {
    /// Its id.
    pub fn id(&self) -> &SubscriptionId {
        &self.compiled.id
    }

    /// Its number.
    pub fn number(&self) -> SubscriptionNumber {
        self.compiled.number
    }
}

/// All entities.
#[derive(Default)]
pub struct Registry {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The version of the store's catalog that the router has caught up with.
    version: u64,
    router: Router<Arc<Resource>>,
    resources: HashMap<ResourceId, Arc<Resource>>,
    ordered: BTreeMap<ResourceNumber, Arc<Resource>>,
    subscriptions: HashMap<SubscriptionId, Arc<Subscription>>,
    by_resource: HashMap<ResourceId, BTreeMap<SubscriptionNumber, Arc<Subscription>>>,
}

/// A part of a list.
pub struct Slice<T> {
    /// How many there are in all.
    pub total: usize,
    /// The part.
    pub entries: Vec<T>,
}

impl Registry {
    /// The resource of a document.
    pub fn find(&self, url: &DocumentUrl) -> Option<Arc<Resource>> {
        self.inner.read().router.find(url).cloned()
    }

    /// The resource of a document, and the version of the catalog that says so.
    pub fn route(&self, url: &DocumentUrl) -> Option<(Arc<Resource>, u64)> {
        let inner = self.inner.read();
        inner.router.find(url).map(|resource| (resource.clone(), inner.version))
    }

    /// The version of the store's catalog up to which every resource that came or went is known here.
    pub fn version(&self) -> u64 {
        self.inner.read().version
    }

    /// Every resource that came or went up to this version is known.
    pub fn caught_up(&self, version: u64) {
        let mut inner = self.inner.write();
        inner.version = inner.version.max(version);
    }

    /// The resources whose endpoint a url fits, the one it belongs to among them.
    pub fn fitting(&self, url: &DocumentUrl) -> Vec<Arc<Resource>> {
        self.inner.read().router.fitting(url).cloned().collect()
    }

    /// One resource.
    pub fn resource(&self, id: &ResourceId) -> Option<Arc<Resource>> {
        self.inner.read().resources.get(id).cloned()
    }

    /// The resource with the same shape, if there is one.
    pub fn same_shape(&self, pattern: &Pattern) -> Option<Arc<Resource>> {
        self.inner.read().router.get(pattern).cloned()
    }

    /// Resources some of whose documents would belong to a new one.
    pub fn captured_by(&self, pattern: &Pattern) -> Vec<Arc<Resource>> {
        self.inner.read().router.captured_by(pattern).cloned().collect()
    }

    /// Resources in order of creation.
    pub fn resources(&self, offset: usize, limit: usize) -> Slice<Arc<Resource>> {
        let inner = self.inner.read();
        let entries = inner.ordered.values().skip(offset).take(limit).cloned().collect();
        Slice { total: inner.ordered.len(), entries }
    }

    /// A resource was created.
    pub fn add_resource(&self, resource: Arc<Resource>) {
        let mut inner = self.inner.write();
        // The catalog's own unique key has settled any conflict before.
        let _ = inner.router.insert(&resource.pattern, resource.clone());
        inner.ordered.insert(resource.number, resource.clone());
        inner.resources.insert(resource.id().clone(), resource);
    }

    /// A resource was deleted.
    pub fn remove_resource(&self, id: &ResourceId) {
        let mut inner = self.inner.write();
        if let Some(resource) = inner.resources.remove(id) {
            inner.router.remove(&resource.pattern);
            inner.ordered.remove(&resource.number);
            inner.by_resource.remove(id);
        }
    }

    /// One subscription of a resource.
    pub fn subscription(&self, resource: &ResourceId, id: &SubscriptionId) -> Option<Arc<Subscription>> {
        let found = self.inner.read().subscriptions.get(id).cloned();
        found.filter(|subscription| subscription.compiled.resource.id() == resource)
    }

    /// One subscription, whatever its resource.
    pub fn subscription_by_id(&self, id: &SubscriptionId) -> Option<Arc<Subscription>> {
        self.inner.read().subscriptions.get(id).cloned()
    }

    /// Subscriptions of a resource in order of creation.
    pub fn subscriptions(
        &self,
        resource: &ResourceId,
        offset: usize,
        limit: usize,
    ) -> Slice<Arc<Subscription>> {
        let inner = self.inner.read();
        let Some(all) = inner.by_resource.get(resource) else {
            return Slice { total: 0, entries: Vec::new() };
        };
        Slice { total: all.len(), entries: all.values().skip(offset).take(limit).cloned().collect() }
    }

    /// Subscriptions of all resources, by resource and in order of creation.
    pub fn all_subscriptions(&self, offset: usize, limit: usize) -> Slice<Arc<Subscription>> {
        let inner = self.inner.read();
        let resources = inner.ordered.values();
        let all =
            resources.filter_map(|resource| inner.by_resource.get(resource.id())).flat_map(BTreeMap::values);
        Slice { total: inner.subscriptions.len(), entries: all.skip(offset).take(limit).cloned().collect() }
    }

    /// A subscription was created or changed.
    pub fn put_subscription(&self, subscription: Arc<Subscription>) {
        let mut inner = self.inner.write();
        let resource = subscription.compiled.resource.id().clone();
        let siblings = inner.by_resource.entry(resource).or_default();
        siblings.insert(subscription.number(), subscription.clone());
        inner.subscriptions.insert(subscription.id().clone(), subscription);
    }

    /// A subscription was deleted.
    pub fn remove_subscription(&self, id: &SubscriptionId) {
        let mut inner = self.inner.write();
        if let Some(gone) = inner.subscriptions.remove(id)
            && let Some(siblings) = inner.by_resource.get_mut(gone.compiled.resource.id())
        {
            siblings.remove(&gone.number());
        }
    }

    /// How many resources and subscriptions there are.
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.inner.read();
        (inner.resources.len(), inner.subscriptions.len())
    }
}
