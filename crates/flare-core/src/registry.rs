//! The catalog in memory: every resource and subscription, compiled. Reads take a short lock and no I/O.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use flare_model::access::{Account, Caller};
use flare_model::consumer::StoredConsumer;
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

/// A consumer as the node knows it.
pub struct Consumer {
    /// As stored, with its credentials.
    pub stored: StoredConsumer,
    /// The version that was stored.
    pub version: u64,
    /// What it is to those who are told of its documents.
    pub resource: Arc<Resource>,
}

impl Consumer {
    /// Whether its credentials are lost with the key that sealed them: nothing is asked of its source until they are given again.
    pub fn is_closed(&self) -> bool {
        self.stored.sealed.is_some()
    }

    /// Its id.
    pub fn id(&self) -> &ResourceId {
        self.resource.id()
    }

    /// As it was checked.
    pub fn settings(&self) -> &Arc<flare_model::consumer::Consumer> {
        self.resource.consumer().expect("a consumer is compiled as one")
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
    /// Of the account that is there from the beginning.
    router: Router<Arc<Resource>>,
    /// Of all other accounts that have resources.
    routers: HashMap<Account, Router<Arc<Resource>>>,
    /// Resources and consumers: whatever has lanes.
    resources: HashMap<ResourceId, Arc<Resource>>,
    /// The same in order of creation.
    ordered: BTreeMap<ResourceNumber, Arc<Resource>>,
    consumers: BTreeMap<ResourceNumber, Arc<Consumer>>,
    subscriptions: HashMap<SubscriptionId, Arc<Subscription>>,
    numbers: HashMap<SubscriptionNumber, SubscriptionId>,
    by_resource: HashMap<ResourceId, BTreeMap<SubscriptionNumber, Arc<Subscription>>>,
}

/// A part of a list.
pub struct Slice<T> {
    /// How many there are in all.
    pub total: usize,
    /// The part.
    pub entries: Vec<T>,
}

impl Inner {
    /// The routes of an account; none where it has no resources.
    fn routes(&self, account: &Account) -> Option<&Router<Arc<Resource>>> {
        if account.is_default() { Some(&self.router) } else { self.routers.get(account) }
    }

    fn routes_mut(&mut self, account: &Account) -> &mut Router<Arc<Resource>> {
        match account.is_default() {
            true => &mut self.router,
            false => self.routers.entry(account.clone()).or_default(),
        }
    }
}

impl Registry {
    /// The resource of a document: the same url in two accounts is two documents.
    pub fn find(&self, account: &Account, url: &DocumentUrl) -> Option<Arc<Resource>> {
        self.inner.read().routes(account)?.find(url).cloned()
    }

    /// The resource of a document, and the version of the catalog that says so.
    pub fn route(&self, account: &Account, url: &DocumentUrl) -> Option<(Arc<Resource>, u64)> {
        let inner = self.inner.read();
        inner.routes(account)?.find(url).map(|resource| (resource.clone(), inner.version))
    }

    /// The resource of a document that is there for a caller, with its documents.
    pub fn find_for(&self, caller: &Caller, url: &DocumentUrl) -> Option<Arc<Resource>> {
        self.find(&caller.account, url).filter(|resource| caller.sees_whole(resource))
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
    pub fn fitting(&self, account: &Account, url: &DocumentUrl) -> Vec<Arc<Resource>> {
        let inner = self.inner.read();
        inner.routes(account).map_or_else(Vec::new, |routes| routes.fitting(url).cloned().collect())
    }

    /// One resource; a consumer is none.
    pub fn resource(&self, id: &ResourceId) -> Option<Arc<Resource>> {
        self.tracked(id).filter(|found| found.consumer().is_none())
    }

    /// One resource or consumer: whatever has documents.
    pub fn tracked(&self, id: &ResourceId) -> Option<Arc<Resource>> {
        self.inner.read().resources.get(id).cloned()
    }

    /// One consumer.
    pub fn consumer(&self, id: &ResourceId) -> Option<Arc<Consumer>> {
        let inner = self.inner.read();
        inner.consumers.get(&inner.resources.get(id)?.number).cloned()
    }

    /// Consumers of all accounts in order of creation.
    pub fn consumers(&self) -> Vec<Arc<Consumer>> {
        self.inner.read().consumers.values().cloned().collect()
    }

    /// Consumers that are there for a caller, in order of creation.
    pub fn consumers_for(&self, caller: &Caller, offset: usize, limit: usize) -> Slice<Arc<Consumer>> {
        let inner = self.inner.read();
        slice(inner.consumers.values().filter(|consumer| caller.sees(&consumer.resource)), offset, limit)
    }

    /// The resource of the account with the same shape, if there is one.
    pub fn same_shape(&self, account: &Account, pattern: &Pattern) -> Option<Arc<Resource>> {
        self.inner.read().routes(account)?.get(pattern).cloned()
    }

    /// Resources of the account some of whose documents would belong to a new one.
    pub fn captured_by(&self, account: &Account, pattern: &Pattern) -> Vec<Arc<Resource>> {
        let inner = self.inner.read();
        inner.routes(account).map_or_else(Vec::new, |routes| routes.captured_by(pattern).cloned().collect())
    }

    /// Resources of all accounts in order of creation, without consumers.
    pub fn resources(&self, offset: usize, limit: usize) -> Slice<Arc<Resource>> {
        let inner = self.inner.read();
        slice(inner.ordered.values().filter(|one| one.consumer().is_none()), offset, limit)
    }

    /// Resources and consumers of all accounts, in order of creation: whatever has lanes.
    pub fn all_tracked(&self) -> Vec<Arc<Resource>> {
        self.inner.read().ordered.values().cloned().collect()
    }

    /// Resources that are there for a caller, in order of creation.
    pub fn resources_for(&self, caller: &Caller, offset: usize, limit: usize) -> Slice<Arc<Resource>> {
        let inner = self.inner.read();
        let seen = |one: &&Arc<Resource>| one.consumer().is_none() && caller.sees(one);
        slice(inner.ordered.values().filter(seen), offset, limit)
    }

    /// Subscriptions of a resource that are there for a caller, in order of creation.
    pub fn subscriptions_for(
        &self,
        caller: &Caller,
        resource: &Resource,
        offset: usize,
        limit: usize,
    ) -> Slice<Arc<Subscription>> {
        if caller.sees_whole(resource) {
            return self.subscriptions(resource.id(), offset, limit);
        }
        let inner = self.inner.read();
        let all = inner.by_resource.get(resource.id()).into_iter().flat_map(BTreeMap::values);
        slice(all.filter(|one| caller.sees_subscription(resource, one.id())), offset, limit)
    }

    /// Subscriptions, without producers, that are there for a caller, by resource and in order of creation.
    pub fn all_subscriptions_for(
        &self,
        caller: &Caller,
        offset: usize,
        limit: usize,
    ) -> Slice<Arc<Subscription>> {
        let inner = self.inner.read();
        let seen = |one: &&Arc<Resource>| one.consumer().is_none() && caller.sees(one);
        let seen = inner.ordered.values().filter(seen);
        let all = seen.flat_map(|resource| {
            let of = inner.by_resource.get(resource.id()).into_iter().flat_map(BTreeMap::values);
            of.filter(|one| caller.sees_subscription(resource, one.id()))
        });
        slice(all, offset, limit)
    }

    /// A subscription that is there for a caller, whatever its resource.
    pub fn subscription_for(&self, caller: &Caller, id: &SubscriptionId) -> Option<Arc<Subscription>> {
        let found = self.subscription_by_id(id);
        found.filter(|found| caller.sees_subscription(&found.compiled.resource, id))
    }

    /// How many resources and subscriptions are there for a caller.
    pub fn counts_for(&self, caller: &Caller) -> (usize, usize) {
        (self.resources_for(caller, 0, 0).total, self.all_subscriptions_for(caller, 0, 0).total)
    }

    /// How many resources and subscriptions an account has: consumers and producers are counted as what they are to the store.
    pub fn counts_of(&self, account: &Account) -> (usize, usize) {
        let inner = self.inner.read();
        let own = || inner.ordered.values().filter(|one| one.account == *account);
        let subscriptions = own().filter_map(|resource| inner.by_resource.get(resource.id()));
        (own().count(), subscriptions.map(BTreeMap::len).sum())
    }

    /// A consumer was created or changed.
    pub fn put_consumer(&self, consumer: Arc<Consumer>) {
        let mut inner = self.inner.write();
        let resource = consumer.resource.clone();
        inner.consumers.insert(resource.number, consumer);
        inner.ordered.insert(resource.number, resource.clone());
        inner.resources.insert(resource.id().clone(), resource);
    }

    /// A resource was created.
    pub fn add_resource(&self, resource: Arc<Resource>) {
        let mut inner = self.inner.write();
        if let Some(pattern) = resource.pattern() {
            // The catalog's own unique key has settled any conflict before.
            let _ = inner.routes_mut(&resource.account).insert(pattern, resource.clone());
        }
        inner.ordered.insert(resource.number, resource.clone());
        inner.resources.insert(resource.id().clone(), resource);
    }

    /// A resource or consumer was deleted.
    pub fn remove_resource(&self, id: &ResourceId) {
        let mut inner = self.inner.write();
        if let Some(resource) = inner.resources.remove(id) {
            if let Some(pattern) = resource.pattern() {
                let routes = inner.routes_mut(&resource.account);
                routes.remove(pattern);
                if routes.is_empty() {
                    inner.routers.remove(&resource.account);
                }
            }
            inner.consumers.remove(&resource.number);
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

    /// One subscription, by its number.
    pub fn subscription_by_number(&self, number: SubscriptionNumber) -> Option<Arc<Subscription>> {
        let inner = self.inner.read();
        inner.subscriptions.get(inner.numbers.get(&number)?).cloned()
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
        inner.numbers.insert(subscription.number(), subscription.id().clone());
        inner.subscriptions.insert(subscription.id().clone(), subscription);
    }

    /// A subscription was deleted.
    pub fn remove_subscription(&self, id: &SubscriptionId) {
        let mut inner = self.inner.write();
        if let Some(gone) = inner.subscriptions.remove(id)
            && let Some(siblings) = inner.by_resource.get_mut(gone.compiled.resource.id())
        {
            siblings.remove(&gone.number());
            inner.numbers.remove(&gone.number());
        }
    }

    /// How many resources and subscriptions there are, consumers and producers not among them.
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.inner.read();
        let subscriptions = inner.subscriptions.values();
        let ours = subscriptions.filter(|one| one.compiled.resource.consumer().is_none()).count();
        (inner.resources.len() - inner.consumers.len(), ours)
    }
}

/// A part of what is there, and how many there are.
fn slice<'a, T: Clone + 'a>(all: impl Iterator<Item = &'a T>, offset: usize, limit: usize) -> Slice<T> {
    let (mut total, mut entries) = (0, Vec::new());
    for entry in all {
        if total >= offset && entries.len() < limit {
            entries.push(entry.clone());
        }
        total += 1;
    }
    Slice { total, entries }
}
