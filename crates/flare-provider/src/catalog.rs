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
    /// Whom resources and tokens belong to. What has no parent belongs to the one account that is stored nowhere.
    Account,
    /// What somebody shows to be let in; it goes with its account.
    Token,
    /// What reads messages from a source: a resource without HTTP, with lanes and documents like one.
    Consumer,
    /// To a consumer what a subscription is to a resource, with feeds like one.
    Producer,
}

impl EntityKind {
    /// All of them.
    pub const ALL: [EntityKind; 6] = [
        EntityKind::Resource,
        EntityKind::Subscription,
        EntityKind::Account,
        EntityKind::Token,
        EntityKind::Consumer,
        EntityKind::Producer,
    ];

    /// The word for it, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            EntityKind::Resource => "resource",
            EntityKind::Subscription => "subscription",
            EntityKind::Account => "account",
            EntityKind::Token => "token",
            EntityKind::Consumer => "consumer",
            EntityKind::Producer => "producer",
        }
    }

    /// Whether lanes are created and deleted with it, and documents go with it.
    pub fn has_lanes(self) -> bool {
        matches!(self, EntityKind::Resource | EntityKind::Consumer)
    }

    /// Whether feeds are created and deleted with it.
    pub fn has_feeds(self) -> bool {
        self.follows().is_some()
    }

    /// For one with feeds: of which kind its parent is, whose lanes they follow.
    pub fn follows(self) -> Option<EntityKind> {
        match self {
            EntityKind::Subscription => Some(EntityKind::Resource),
            EntityKind::Producer => Some(EntityKind::Consumer),
            EntityKind::Resource | EntityKind::Consumer | EntityKind::Account | EntityKind::Token => None,
        }
    }

    /// The kind that it gets its numbers with: lanes go by the number of what has them, and feeds likewise, whatever the kind.
    pub fn counted_as(self) -> EntityKind {
        match self {
            EntityKind::Consumer => EntityKind::Resource,
            EntityKind::Producer => EntityKind::Subscription,
            own => own,
        }
    }

    /// What keeps an entity of this kind from being deleted: those of which kinds it is the parent of.
    pub fn kept_by(self) -> &'static [EntityKind] {
        match self {
            EntityKind::Resource => &[EntityKind::Subscription],
            EntityKind::Consumer => &[EntityKind::Producer],
            EntityKind::Account => &[EntityKind::Resource, EntityKind::Consumer],
            EntityKind::Subscription | EntityKind::Producer | EntityKind::Token => &[],
        }
    }

    /// The kind that this is the word for.
    pub fn named(word: &str) -> Option<EntityKind> {
        EntityKind::ALL.into_iter().find(|kind| kind.as_str() == word)
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
    /// The resource of a subscription, the consumer of a producer; the account of all others, where they have one.
    pub parent: Option<String>,
    /// Texts that no other entity of the same kind and parent may have.
    pub keys: Vec<String>,
    /// The rest, which the engine does not look into.
    pub body: String,
    /// For what has lanes: how many, from 1 to [`flare_model::ids::MAX_LANES`]. For what has feeds: ignored, it has its parent's.
    pub lanes: u16,
    /// For what has feeds: where its cursors begin.
    pub start: Start,
    /// For what has feeds: it wants every revision. From this commit on the lanes of its parent keep what is
    /// replaced, and its feeds see all of that.
    pub history: bool,
    /// For a resource: what it takes from others, where it does.
    pub capture: Option<Capture>,
}

impl NewEntity {
    /// What has to be there for it to be created: kind and id.
    pub fn needs(&self) -> Option<(EntityKind, &str)> {
        if let Some(followed) = self.kind.follows() {
            return Some((followed, self.parent.as_deref().unwrap_or_default()));
        }
        let account = self.parent.as_deref().filter(|_| self.kind != EntityKind::Account);
        account.map(|account| (EntityKind::Account, account))
    }
}

/// An entity as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Its kind.
    pub kind: EntityKind,
    /// Its id.
    pub id: String,
    /// Its number: given by the catalog, growing within [the kind](EntityKind::counted_as), never reused.
    pub number: u64,
    /// Grows with every change of any entity of the catalog.
    pub version: u64,
    /// The resource of a subscription, the consumer of a producer; the account of all others, where they have one.
    pub parent: Option<String>,
    /// Its unique texts.
    pub keys: Vec<String>,
    /// The rest.
    pub body: String,
    /// How many lanes it or its parent has; 0 for accounts and tokens.
    pub lanes: u16,
    /// Whether it wants every revision.
    pub history: bool,
}

/// The trace of an entity that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its kind.
    pub kind: EntityKind,
    /// Its id.
    pub id: String,
    /// Its number.
    pub number: u64,
    /// The version of the catalog by which it was gone.
    pub version: u64,
}

/// One change of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// This entity was created or replaced; it is as it is now, whatever it was in between.
    Put(Entity),
    /// This one was deleted.
    Deleted(Deletion),
}

impl CatalogChange {
    /// The version of the catalog that it made.
    pub fn version(&self) -> u64 {
        match self {
            CatalogChange::Put(entity) => entity.version,
            CatalogChange::Deleted(deletion) => deletion.version,
        }
    }

    /// What kind of entity it is about.
    pub fn kind(&self) -> EntityKind {
        match self {
            CatalogChange::Put(entity) => entity.kind,
            CatalogChange::Deleted(deletion) => deletion.kind,
        }
    }
}

/// What became of the catalog since a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CatalogChanges {
    /// In order of version.
    pub changes: Vec<CatalogChange>,
    /// Whoever applies them has seen everything up to this version. When nothing is left it is the version of the catalog
    /// in the snapshot that was read; until then that of the last change here.
    pub upto: u64,
    /// Whether there is more beyond that.
    pub more: bool,
}

impl CatalogChanges {
    /// A page of `limit` changes, for engines: entities and deletions since a version come in, each in any order and, where they are
    /// more than the limit, the first ones with at least one more; `version` is that of the catalog.
    pub fn page(put: Vec<Entity>, deleted: Vec<Deletion>, limit: usize, version: u64) -> CatalogChanges {
        let put = put.into_iter().map(CatalogChange::Put);
        let mut changes: Vec<CatalogChange> =
            put.chain(deleted.into_iter().map(CatalogChange::Deleted)).collect();
        changes.sort_unstable_by_key(CatalogChange::version);
        let limit = limit.max(1);
        let more = changes.len() > limit;
        changes.truncate(limit);
        let last = changes.last().filter(|_| more).map(CatalogChange::version);
        CatalogChanges { upto: last.unwrap_or(version), changes, more }
    }
}

/// The entities. Every change is durable when the call returns, and whole or not at all. Versions are given out in the order
/// of commits: whoever sees one sees all below it, whichever processes made them.
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
    /// [`Conflict::Children`](crate::Conflict::Children) for a resource that has subscriptions, for a consumer that has producers,
    /// and for an account that has resources or consumers; the tokens of an account go with it, in the same commit. From the commit that deletes a resource on no document
    /// is written that was routed by an older catalog: its urls may be another's now. The commit leaves a dated trace for
    /// [`Catalog::changes`].
    async fn delete(&self, kind: EntityKind, id: &str) -> Result<bool>;

    /// One entity.
    async fn get(&self, kind: EntityKind, id: &str) -> Result<Option<Entity>>;

    /// All entities of a kind with a number above `after`, by number, `limit` at most.
    async fn list(&self, kind: EntityKind, after: u64, limit: usize) -> Result<Vec<Entity>>;

    /// The version of the newest change; a reader that has seen it has seen everything.
    async fn version(&self) -> Result<u64>;

    /// What changed since a version, deletions included, in order of version, `limit` at most (and one in any case), from one
    /// snapshot: a change that is not in it and not announced by `more` has a higher version than its `upto`. An entity that
    /// changed several times, or was deleted after it changed, comes once, where it changed last; one that was created and deleted in between comes as deleted.
    ///
    /// `None`: traces of deletions that came after `since` were forgotten, or the catalog has not come to that version (it was
    /// restored): nobody can say, and the caller lists everything anew.
    async fn changes(&self, since: u64, limit: usize) -> Result<Option<CatalogChanges>>;

    /// Forgets the traces of deletions up to this version, durably, and answers how many went. Whoever asks for changes since an
    /// older version has to list anew from then on, also if there were none.
    async fn forget_deletions(&self, upto: u64) -> Result<u64>;
}
