//! Catalog: the entities that users create. Small, read whole at start and then followed by version.

use async_trait::async_trait;
use flare_model::ids::{LaneId, Seq};
use flare_model::pattern::Pattern;
use flare_model::url::DocumentUrl;

use crate::error::Result;

/// What kinds of entities there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntityKind {
    /// A tracked resource; its lanes are created and deleted with it, and its documents go with it.
    Resource,
    /// A subscription; its feeds are created and deleted with it.
    Subscription,
}

impl EntityKind {
    /// The word for it, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            EntityKind::Resource => "resource",
            EntityKind::Subscription => "subscription",
        }
    }
}

/// Where the cursors of a new subscription begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the tail of each lane, as this very commit sees it: no change falls between.
    Now,
    /// The same, and a sweep over all that is there, up to that tail; none where the lane is empty.
    Beginning,
}

/// Bound: so many changes that the creator of a resource has not seen are looked at inside the commit. When full: the
/// commit is refused, and the creator looks at what came meanwhile.
pub const MOST_UNSEEN: u64 = 4096;

/// What a new resource would take from others: urls that were theirs. No live document may be under one of them, or it
/// could never be reached again. The creator looks through what there is, and the commit through what came since.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// The endpoint of the new resource.
    pub pattern: Pattern,
    /// All lanes of the resources that it takes urls from, and how far each was looked through: nothing that was some
    /// document's newest change up to there is of a live document that fits.
    pub seen: Vec<(LaneId, Seq)>,
}

impl Capture {
    /// Whether it takes a document.
    pub fn takes(&self, url: &str) -> bool {
        DocumentUrl::parse(url).is_ok_and(|url| self.pattern.matches(&url))
    }
}

/// An entity to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntity {
    /// Its kind.
    pub kind: EntityKind,
    /// Its id, as users see it; unique within the kind. The caller never gives one twice: the engine compares
    /// it with the entities that are there.
    pub id: String,
    /// The resource of a subscription.
    pub parent: Option<String>,
    /// Texts that no other entity of the same kind and parent may have.
    pub keys: Vec<String>,
    /// The rest, which the engine does not look into.
    pub body: String,
    /// For a resource: how many lanes, from 1 to [`flare_model::ids::MAX_LANES`]. For a subscription: ignored, it has its resource's.
    pub lanes: u16,
    /// For a subscription: where its cursors begin.
    pub start: Start,
    /// For a subscription: it wants every revision. From this commit on the lanes of its resource keep what is
    /// replaced, and its feeds see all of that.
    pub history: bool,
    /// For a resource: what it takes from others, where it does.
    pub capture: Option<Capture>,
}

/// An entity as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Its kind.
    pub kind: EntityKind,
    /// Its id.
    pub id: String,
    /// Its number: given by the catalog, growing within the kind, never reused.
    pub number: u64,
    /// Grows with every change of any entity of the catalog.
    pub version: u64,
    /// The resource of a subscription.
    pub parent: Option<String>,
    /// Its unique texts.
    pub keys: Vec<String>,
    /// The rest.
    pub body: String,
    /// How many lanes its resource has.
    pub lanes: u16,
    /// Whether it wants every revision.
    pub history: bool,
}

/// The entities. Every change is durable when the call returns, and whole or not at all.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// Creates an entity, with its lanes or feeds, in one commit. [`Conflict::Taken`](crate::Conflict::Taken) when the id or one
    /// of the keys is taken; [`Conflict::Parent`](crate::Conflict::Parent) when the parent does not exist, also when it is being deleted at this
    /// moment.
    ///
    /// With a [`Capture`]: [`Conflict::Captured`](crate::Conflict::Captured) when the commit sees a live document that the new resource would take,
    /// of those beyond what was seen; [`Conflict::Unseen`](crate::Conflict::Unseen) when these are more than [`MOST_UNSEEN`].
    /// Tombstones stay where they are and take nothing: they go with their time. From this commit on no document is
    /// written that was routed by an older catalog: see [`Documents::commit`](crate::Documents::commit).
    async fn create(&self, new: NewEntity) -> Result<Entity>;

    /// Replaces body, keys and `history`, and nothing else, if the stored version is `entity.version`; answers the new
    /// version of it.
    /// `None` when the entity does not exist, [`Conflict::Version`](crate::Conflict::Version) when the version is another, [`Conflict::Taken`](crate::Conflict::Taken) when
    /// a key is.
    async fn replace(&self, entity: Entity) -> Result<Option<Entity>>;

    /// Deletes an entity with its lanes and documents, or its feeds. False when there was none.
    /// [`Conflict::Children`](crate::Conflict::Children) for a resource that has subscriptions. From the commit that deletes a resource on no document
    /// is written that was routed by an older catalog: its urls may be another's now.
    async fn delete(&self, kind: EntityKind, id: &str) -> Result<bool>;

    /// One entity.
    async fn get(&self, kind: EntityKind, id: &str) -> Result<Option<Entity>>;

    /// All entities of a kind with a number above `after`, by number, `limit` at most.
    async fn list(&self, kind: EntityKind, after: u64, limit: usize) -> Result<Vec<Entity>>;

    /// The version of the newest change; a reader that has seen it has seen everything.
    async fn version(&self) -> Result<u64>;
}
