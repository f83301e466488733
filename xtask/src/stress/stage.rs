//! What a run knows: the node's API, the receivers, and the subscriptions it has made.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::api::Api;
use super::client::Shared;
use super::wish::{Aspect, Filter, When, Wish};
use super::world::{Resource, Tick};

pub struct Stage {
    pub shared: Arc<Shared>,
    pub api: Api,
    pub hosts: Vec<SocketAddr>,
    pub subscriptions: Mutex<Vec<Subscription>>,
    /// How many lanes the resources of each slot have.
    pub lanes: Vec<u64>,
    /// Deleted documents and old revisions are forgotten within seconds.
    pub forgets: bool,
    /// Even revisions that nobody has got yet are.
    pub forgets_revisions: bool,
    /// Limits are lowered over a restart: what is above them is refused then.
    pub lowers: bool,
    pub operations: AtomicU64,
    /// How many places for overlapping resources were used.
    pub places: AtomicU64,
}

/// A subscription, whose place in the list is the number of its client.
pub struct Subscription {
    pub resource: usize,
    pub wish: Wish,
    /// As the API names it, while it is there.
    pub id: Option<String>,
    /// The path of it in the API.
    pub path: String,
    /// When it began to be created, and when it surely was.
    pub began: Tick,
    pub created: Tick,
    /// An operation is under way that nothing else may meet.
    pub busy: bool,
    /// Aspects that a PATCH under way changes.
    pub changing: Vec<Aspect>,
    /// What `when` and `filter` were before, and until when.
    pub whens: Vec<(When, Tick)>,
    pub filters: Vec<(Filter, Tick)>,
    /// Whether all its documents were gone through after its creation: by a changed filter or a replay.
    pub swept: bool,
    /// Whether that may have happened: nobody knows, or it began again because it was in the way of forgetting.
    pub perhaps_swept: bool,
    /// Documents that were asked for one by one.
    pub asked: BTreeSet<String>,
    /// Dead letters of these, or of all, were dropped.
    pub dropped: BTreeSet<String>,
    pub dropped_all: bool,
    /// Whether it wanted every revision from the beginning, all the time.
    pub always_all: bool,
    /// Somebody takes from it.
    pub pulling: bool,
}

impl Stage {
    pub fn subscriptions(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.subscriptions.lock().expect("nobody panics with the subscriptions in hand")
    }

    /// Resources that are there, and that no operation has for itself.
    pub fn resources(&self) -> Vec<usize> {
        let world = self.shared.world();
        let there = |resource: &Resource| resource.id.is_some() && !resource.busy;
        (0..world.resources.len()).filter(|number| there(&world.resources[*number])).collect()
    }

    /// The path of a subscription that is there.
    pub fn path(&self, number: usize) -> Option<String> {
        let subscriptions = self.subscriptions();
        subscriptions.get(number).filter(|subscription| subscription.id.is_some()).map(|s| s.path.clone())
    }

    /// A promise was not kept.
    pub fn wrong(&self, client: usize, document: &str, what: String) {
        self.shared.clients().wrong(client, document, what);
    }

    pub fn counts(&self) {
        self.operations.fetch_add(1, Ordering::Relaxed);
    }
}
