//! How other nodes hear that there is something to look at: lanes that this node wrote and changes of the catalog are
//! gathered for a moment, and rung for once. And how this node hears of itself that units may be others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_provider::{Catalog, CatalogChanges, Doorbell, Entity, EntityKind, NewEntity, Result, Ring};
use tokio::sync::Notify;

use crate::operations::App;

/// It is rung so often at most: each ring is a transaction of the database, or a revision of the coordinator.
const GATHER: Duration = Duration::from_millis(10);

/// Ringing, and being rung for.
pub(in crate::operations) struct Ringing {
    pub doorbell: Option<Arc<dyn Doorbell>>,
    /// How often everything is looked at even though nothing was heard.
    pub poll: Duration,
    /// The catalog is known up to this version.
    pub followed: AtomicU64,
    /// So many looks at the catalog have begun, and the last of them that ended well was this one.
    begun: AtomicU64,
    ended: AtomicU64,
    /// This node changed the catalog.
    changed: AtomicBool,
    rings: Notify,
    units: Notify,
}

impl Ringing {
    pub fn new(doorbell: Option<Arc<dyn Doorbell>>, poll: Duration) -> Ringing {
        Ringing {
            doorbell,
            poll,
            followed: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            rings: Notify::new(),
            units: Notify::new(),
        }
    }

    /// How many looks at the catalog have begun so far.
    pub fn follows_begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// Whether one that began later than that has ended well.
    pub fn followed_since(&self, begun: u64) -> bool {
        self.ended.load(Ordering::Acquire) > begun
    }

    /// How many looks have ended well, or more: it grows with each.
    pub fn follows_ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// A look begins; whoever looks holds the catalog.
    pub fn begin_follow(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// That look has seen all there was when it began.
    pub fn end_follow(&self, look: u64) {
        self.ended.fetch_max(look, Ordering::AcqRel);
    }

    /// Units may be others.
    pub fn units_changed(&self) {
        self.units.notify_one();
    }

    /// Waits until units may be others.
    pub async fn wait_for_units(&self) {
        self.units.notified().await;
    }

    fn catalog_changed(&self) {
        self.changed.store(true, Ordering::Release);
        self.rings.notify_one();
    }
}

impl App {
    /// Rings for what this node wrote, until it stops. A ring that fails is not repeated: the next says as much.
    pub(in crate::operations) async fn ring_for_others(self: Arc<App>) {
        let (Some(member), Some(ringing)) = (&self.member, &self.ringing) else {
            return std::future::pending().await;
        };
        let Some(doorbell) = &ringing.doorbell else { return std::future::pending().await };
        loop {
            tokio::select! {
                biased;
                () = member.tenancy.wait_for_moves() => {}
                () = ringing.rings.notified() => {}
            }
            tokio::time::sleep(GATHER).await;
            let moved = member.tenancy.take_moved();
            let mut rings: Vec<Ring> =
                moved.into_iter().map(|(lane, head)| Ring::Lane { lane, head }).collect();
            if ringing.changed.swap(false, Ordering::AcqRel)
                && let Ok(version) = self.store.catalog.version().await
            {
                rings.push(Ring::Catalog { version });
            }
            if !rings.is_empty()
                && let Err(error) = doorbell.ring(&rings).await
            {
                tracing::debug!(error = %error, "the others were not rung for; they look from time to time");
            }
        }
    }
}

/// A catalog of which others hear when this node changes it.
pub(in crate::operations) struct Announced {
    catalog: Arc<dyn Catalog>,
    ringing: Arc<Ringing>,
}

impl Announced {
    pub fn new(catalog: Arc<dyn Catalog>, ringing: Arc<Ringing>) -> Announced {
        Announced { catalog, ringing }
    }
}

#[async_trait]
impl Catalog for Announced {
    async fn create(&self, new: NewEntity) -> Result<Entity> {
        self.catalog.create(new).await.inspect(|_| self.ringing.catalog_changed())
    }

    async fn replace(&self, entity: Entity) -> Result<Option<Entity>> {
        self.catalog.replace(entity).await.inspect(|_| self.ringing.catalog_changed())
    }

    async fn delete(&self, kind: EntityKind, id: &str) -> Result<bool> {
        self.catalog.delete(kind, id).await.inspect(|_| self.ringing.catalog_changed())
    }

    async fn get(&self, kind: EntityKind, id: &str) -> Result<Option<Entity>> {
        self.catalog.get(kind, id).await
    }

    async fn list(&self, kind: EntityKind, after: u64, limit: usize) -> Result<Vec<Entity>> {
        self.catalog.list(kind, after, limit).await
    }

    async fn version(&self) -> Result<u64> {
        self.catalog.version().await
    }

    async fn changes(&self, since: u64, limit: usize) -> Result<Option<CatalogChanges>> {
        self.catalog.changes(since, limit).await
    }

    async fn forget_deletions(&self, upto: u64) -> Result<u64> {
        self.catalog.forget_deletions(upto).await
    }
}
