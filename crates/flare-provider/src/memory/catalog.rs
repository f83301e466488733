//! The catalog in memory: new entities and changes come in; entities, and the lanes and feeds that belong to
//! them, come out of the same lock.

use std::collections::BTreeMap;

use async_trait::async_trait;
use flare_model::ids::{LaneId, MAX_LANES, ResourceNumber, SubscriptionNumber};

use super::{Durable, Engine};
use crate::catalog::{Catalog, Entity, EntityKind, NewEntity};
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
}

impl Entities {
    fn get(&self, kind: EntityKind, id: &str) -> Option<&Entity> {
        let number = self.by_id.get(&(kind, id.to_owned()))?;
        self.by_number.get(&(kind, *number))
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

    fn children<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a Entity> {
        let subscriptions = (EntityKind::Subscription, 0)..=(EntityKind::Subscription, u64::MAX);
        let all = self.by_number.range(subscriptions).map(|(_, entity)| entity);
        all.filter(move |entity| entity.parent.as_deref() == Some(resource))
    }

    fn has_children(&self, resource: &str) -> bool {
        self.children(resource).next().is_some()
    }

    fn wants_history(&self, resource: &str) -> bool {
        self.children(resource).any(|entity| entity.history)
    }
}

impl Durable {
    fn create(&mut self, new: NewEntity) -> Result<Entity> {
        const OPERATION: &str = "catalog.create";
        let resource = match new.kind {
            EntityKind::Resource => None,
            EntityKind::Subscription => {
                let parent = new.parent.as_deref().unwrap_or_default();
                let resource = self.entities.get(EntityKind::Resource, parent);
                Some(resource.cloned().ok_or_else(|| ProviderError::conflict(OPERATION, Conflict::Parent))?)
            }
        };
        if let Some(other) = self.entities.get(new.kind, &new.id) {
            return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other.id.clone())));
        }
        if let Some(other) = self.entities.taken(new.kind, &new.parent, &new.keys, &new.id) {
            return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other.to_owned())));
        }
        if let Some(capture) = &new.capture {
            self.log.check(capture)?;
        }
        let last = self.entities.last_number.entry(new.kind).or_default();
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
            lanes: resource.as_ref().map_or(new.lanes.clamp(1, MAX_LANES), |resource| resource.lanes),
        };
        if new.capture.is_some() {
            self.entities.routing = entity.version;
        }
        match resource {
            None => lanes_of(&entity).for_each(|lane| self.log.create(lane)),
            Some(resource) => {
                for lane in lanes_of(&resource) {
                    let tail = self.log.head(lane);
                    let subscription = SubscriptionNumber(entity.number);
                    self.feeds.create(subscription, lane, tail, &new, self.log.incarnation);
                }
            }
        }
        self.entities.insert(entity.clone());
        self.keep_history(entity.parent.as_deref());
        Ok(entity)
    }

    /// The lanes of a resource keep what is replaced as long as one of its subscriptions wants that.
    fn keep_history(&mut self, resource: Option<&str>) {
        let Some(resource) = resource.and_then(|id| self.entities.get(EntityKind::Resource, id)).cloned()
        else {
            return;
        };
        let keeps = self.entities.wants_history(&resource.id);
        for lane in lanes_of(&resource) {
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
        self.keep_history(entity.parent.as_deref());
        Ok(Some(entity))
    }

    fn delete(&mut self, kind: EntityKind, id: &str) -> Result<bool> {
        if kind == EntityKind::Resource && self.entities.has_children(id) {
            return Err(ProviderError::conflict("catalog.delete", Conflict::Children));
        }
        let Some(entity) = self.entities.remove(kind, id) else { return Ok(false) };
        let version = self.entities.next_version();
        match kind {
            EntityKind::Resource => {
                self.entities.routing = version;
                lanes_of(&entity).for_each(|lane| self.log.delete(lane));
            }
            EntityKind::Subscription => {
                self.feeds.delete(SubscriptionNumber(entity.number));
                self.keep_history(entity.parent.as_deref());
            }
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
}
