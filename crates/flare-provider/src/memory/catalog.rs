//! The catalog in memory: new entities and changes come in; entities, and the lanes and feeds that belong to
//! them, come out of the same lock.

use std::collections::BTreeMap;

use async_trait::async_trait;
use flare_model::ids::{LaneId, MAX_LANES, ResourceNumber, SubscriptionNumber};

use super::{Durable, Engine};
use crate::catalog::{Catalog, CatalogChanges, Deletion, Entity, EntityKind, NewEntity};
use crate::error::{Conflict, ProviderError, Result};

/// The entities and the numbers given out so far, which outlive the entities they were given to.
#[derive(Clone, Default)]
pub(super) struct Entities {
    version: u64,
    /// The version that last gave urls to another resource.
    pub routing: u64,
    last_number: BTreeMap<EntityKind, u64>,
    by_number: BTreeMap<(EntityKind, u64), Entity>,
    by_id: BTreeMap<(EntityKind, String), u64>,
    /// Who has a key, among the entities of one kind and parent.
    by_key: BTreeMap<(EntityKind, Option<String>, String), u64>,
    /// The traces of what was deleted, by version. Bound: what was deleted since they were last forgotten.
    deletions: BTreeMap<u64, Deletion>,
    /// Traces up to this version are forgotten.
    forgotten: u64,
}

impl Entities {
    fn get(&self, kind: EntityKind, id: &str) -> Option<&Entity> {
        let number = self.by_id.get(&(kind, id.to_owned()))?;
        self.by_number.get(&(kind, *number))
    }

    /// Whether there is one of a kind with this number.
    pub(super) fn has(&self, kind: EntityKind, number: u64) -> bool {
        self.by_number.contains_key(&(kind, number))
    }

    /// The id of an entity other than `id` that has one of the keys.
    fn taken(&self, kind: EntityKind, parent: &Option<String>, keys: &[String], id: &str) -> Option<&str> {
        keys.iter()
            .filter_map(|key| self.by_key.get(&(kind, parent.clone(), key.clone())))
            .filter_map(|number| self.by_number.get(&(kind, *number)))
            .map(|entity| entity.id.as_str())
            .find(|other| *other != id)
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn insert(&mut self, entity: Entity) {
        for key in &entity.keys {
            self.by_key.insert((entity.kind, entity.parent.clone(), key.clone()), entity.number);
        }
        self.by_id.insert((entity.kind, entity.id.clone()), entity.number);
        self.by_number.insert((entity.kind, entity.number), entity);
    }

    fn remove(&mut self, kind: EntityKind, id: &str) -> Option<Entity> {
        let number = self.by_id.remove(&(kind, id.to_owned()))?;
        let entity = self.by_number.remove(&(kind, number))?;
        for key in &entity.keys {
            self.by_key.remove(&(kind, entity.parent.clone(), key.clone()));
        }
        Some(entity)
    }

    fn children<'a>(&'a self, kind: EntityKind, parent: &'a str) -> impl Iterator<Item = &'a Entity> {
        let all = self.by_number.range((kind, 0)..=(kind, u64::MAX)).map(|(_, entity)| entity);
        all.filter(move |entity| entity.parent.as_deref() == Some(parent))
    }

    fn has_children(&self, kind: EntityKind, parent: &str) -> bool {
        self.children(kind, parent).next().is_some()
    }

    fn ids_of(&self, kind: EntityKind, parent: &str) -> Vec<String> {
        self.children(kind, parent).map(|entity| entity.id.clone()).collect()
    }

    fn changes(&self, since: u64, limit: usize) -> Option<CatalogChanges> {
        if since < self.forgotten || since > self.version {
            return None;
        }
        let put = self.by_number.values().filter(|entity| entity.version > since).cloned();
        let deleted = self.deletions.range(since + 1..).map(|(_, gone)| gone.clone());
        Some(CatalogChanges::page(put.collect(), deleted.collect(), limit, self.version))
    }

    fn forget_deletions(&mut self, upto: u64) -> u64 {
        let upto = upto.min(self.version);
        self.forgotten = self.forgotten.max(upto);
        let left = self.deletions.split_off(&(upto + 1));
        std::mem::replace(&mut self.deletions, left).len() as u64
    }

    fn wants_history(&self, kind: EntityKind, parent: &str) -> bool {
        self.children(kind, parent).any(|entity| entity.history)
    }
}

impl Durable {
    fn create(&mut self, new: NewEntity) -> Result<Entity> {
        const OPERATION: &str = "catalog.create";
        let needed = new.needs().map(|(kind, id)| {
            let found = self.entities.get(kind, id).cloned();
            found.ok_or_else(|| ProviderError::conflict(OPERATION, Conflict::Parent))
        });
        let followed = needed.transpose()?.filter(|needed| needed.kind.has_lanes());
        if let Some(other) = self.entities.get(new.kind, &new.id) {
            return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other.id.clone())));
        }
        if let Some(other) = self.entities.taken(new.kind, &new.parent, &new.keys, &new.id) {
            return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other.to_owned())));
        }
        if let Some(capture) = &new.capture {
            self.log.check(capture)?;
        }
        let last = self.entities.last_number.entry(new.kind.counted_as()).or_default();
        *last += 1;
        let entity = Entity {
            kind: new.kind,
            id: new.id.clone(),
            number: *last,
            version: self.entities.next_version(),
            parent: new.parent.clone(),
            keys: new.keys.clone(),
            body: new.body.clone(),
            history: new.history,
            lanes: match &followed {
                Some(followed) => followed.lanes,
                None if new.kind.has_lanes() => new.lanes.clamp(1, MAX_LANES),
                None => 0,
            },
        };
        if new.capture.is_some() {
            self.entities.routing = entity.version;
        }
        match followed {
            None if entity.kind.has_lanes() => {
                lanes_of(&entity).for_each(|lane| self.log.create(lane));
            }
            None => {}
            Some(followed) => {
                for lane in lanes_of(&followed) {
                    let tail = self.log.head(lane);
                    let subscription = SubscriptionNumber(entity.number);
                    self.feeds.create(subscription, lane, tail, &new, self.log.incarnation);
                }
            }
        }
        self.entities.insert(entity.clone());
        self.keep_history(&entity);
        Ok(entity)
    }

    /// Lanes keep what is replaced as long as one of those who follow them, like this one, wants that.
    fn keep_history(&mut self, follower: &Entity) {
        let followed = follower.kind.follows().zip(follower.parent.as_deref());
        let Some(followed) = followed.and_then(|(kind, id)| self.entities.get(kind, id)).cloned() else {
            return;
        };
        let keeps = self.entities.wants_history(follower.kind, &followed.id);
        for lane in lanes_of(&followed) {
            if let Some(lane) = self.log.lanes.get_mut(&lane) {
                lane.keeps = keeps;
            }
        }
    }

    fn replace(&mut self, asked: Entity) -> Result<Option<Entity>> {
        const OPERATION: &str = "catalog.replace";
        let Some(stored) = self.entities.get(asked.kind, &asked.id) else { return Ok(None) };
        if stored.version != asked.version {
            return Err(ProviderError::conflict(OPERATION, Conflict::Version));
        }
        if let Some(other) = self.entities.taken(stored.kind, &stored.parent, &asked.keys, &stored.id) {
            return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other.to_owned())));
        }
        let Some(stored) = self.entities.remove(asked.kind, &asked.id) else { return Ok(None) };
        let version = self.entities.next_version();
        let entity = Entity { version, keys: asked.keys, body: asked.body, history: asked.history, ..stored };
        self.entities.insert(entity.clone());
        self.keep_history(&entity);
        Ok(Some(entity))
    }

    fn delete(&mut self, kind: EntityKind, id: &str) -> Result<bool> {
        if kind.kept_by().iter().any(|children| self.entities.has_children(*children, id)) {
            return Err(ProviderError::conflict("catalog.delete", Conflict::Children));
        }
        let Some(entity) = self.entities.remove(kind, id) else { return Ok(false) };
        let version = self.entities.next_version();
        let deletion = Deletion { kind, id: entity.id.clone(), number: entity.number, version };
        self.entities.deletions.insert(version, deletion);
        match kind {
            EntityKind::Resource | EntityKind::Consumer => {
                self.entities.routing = version;
                lanes_of(&entity).for_each(|lane| self.log.delete(lane));
                self.readings.forget(ResourceNumber(entity.number));
            }
            EntityKind::Subscription | EntityKind::Producer => {
                self.feeds.delete(SubscriptionNumber(entity.number));
                self.keep_history(&entity);
            }
            EntityKind::Account => {
                for token in self.entities.ids_of(EntityKind::Token, id) {
                    self.entities.remove(EntityKind::Token, &token);
                }
            }
            EntityKind::Token => {}
        }
        Ok(true)
    }
}

fn lanes_of(resource: &Entity) -> impl Iterator<Item = LaneId> + use<> {
    let (number, last) = (ResourceNumber(resource.number), (resource.lanes - 1) as u8);
    (0..=last).map(move |index| LaneId { resource: number, index })
}

#[async_trait]
impl Catalog for Engine {
    async fn create(&self, new: NewEntity) -> Result<Entity> {
        self.durable("catalog.create")?.create(new)
    }

    async fn replace(&self, entity: Entity) -> Result<Option<Entity>> {
        self.durable("catalog.replace")?.replace(entity)
    }

    async fn delete(&self, kind: EntityKind, id: &str) -> Result<bool> {
        self.durable("catalog.delete")?.delete(kind, id)
    }

    async fn get(&self, kind: EntityKind, id: &str) -> Result<Option<Entity>> {
        Ok(self.durable("catalog.get")?.entities.get(kind, id).cloned())
    }

    async fn list(&self, kind: EntityKind, after: u64, limit: usize) -> Result<Vec<Entity>> {
        let durable = self.durable("catalog.list")?;
        let of_kind = durable.entities.by_number.range((kind, after)..=(kind, u64::MAX));
        let beyond = of_kind.filter(|((_, number), _)| *number > after);
        Ok(beyond.take(limit).map(|(_, entity)| entity.clone()).collect())
    }

    async fn version(&self) -> Result<u64> {
        Ok(self.durable("catalog.version")?.entities.version)
    }

    async fn changes(&self, since: u64, limit: usize) -> Result<Option<CatalogChanges>> {
        Ok(self.durable("catalog.changes")?.entities.changes(since, limit))
    }

    async fn forget_deletions(&self, upto: u64) -> Result<u64> {
        Ok(self.durable("catalog.forget_deletions")?.entities.forget_deletions(upto))
    }
}
