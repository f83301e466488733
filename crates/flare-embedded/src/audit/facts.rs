//! Facts: the small tables come in whole; what belongs to what, and the names that people know, go out.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Row};

use crate::error::Work;
use crate::lanes::{Lane, lane_columns};
use crate::meta;
use crate::place::{self, number};

/// What the rest is compared with.
pub(super) struct Facts {
    pub incarnation: i64,
    /// By number.
    pub resources: BTreeMap<i64, Entity>,
    /// Their numbers, by id.
    numbers: BTreeMap<String, i64>,
    /// By number.
    pub subscriptions: BTreeMap<i64, Entity>,
    /// By the id under which its documents are kept.
    pub lanes: BTreeMap<i64, LaneFacts>,
    /// Lanes that the background still removes.
    pub leaving_lanes: BTreeSet<i64>,
    /// Feeds that the background still removes.
    pub leaving_feeds: BTreeSet<i64>,
}

/// A resource or a subscription.
pub(super) struct Entity {
    pub kind: String,
    pub id: String,
    pub parent: Option<String>,
    /// As JSON.
    pub keys: String,
    pub lanes: u16,
    /// It was behind for so long that documents it needs may be gone, and will begin again: what is recorded of it is
    /// not believed any more.
    pub starts_over: bool,
}

/// A lane, with whose it is.
pub(super) struct LaneFacts {
    pub resource: i64,
    pub index: i64,
    pub gone: bool,
    pub row: Lane,
}

impl Facts {
    pub fn read(connection: &Connection) -> Work<Facts> {
        let resources = entities(connection, ["resource", "consumer"])?;
        Ok(Facts {
            // That it is there is asked with the other numbers.
            incarnation: meta::find(connection, "incarnation")?.unwrap_or_default(),
            numbers: resources.iter().map(|(number, resource)| (resource.id.clone(), *number)).collect(),
            resources,
            subscriptions: entities(connection, ["subscription", "producer"])?,
            lanes: lanes(connection)?,
            leaving_lanes: leaving(connection, "lane")?,
            leaving_feeds: leaving(connection, "feed")?,
        })
    }

    /// What a lane is called.
    pub fn lane(&self, id: i64) -> String {
        let Some(lane) = self.lanes.get(&id) else { return format!("lane with the number {id}") };
        match self.resources.get(&lane.resource) {
            Some(resource) => format!("lane {} of {} {}", lane.index, resource.kind, resource.id),
            None => format!("lane {} of the deleted resource with the number {}", lane.index, lane.resource),
        }
    }

    /// What a feed is called.
    pub fn feed(&self, key: i64) -> String {
        let (lane, subscription) = (lane_of(key), number(key) as i64);
        match self.subscriptions.get(&subscription) {
            Some(entity) => format!("feed of lane {lane} of {} {}", entity.kind, entity.id),
            None => format!("feed of lane {lane} of an unknown subscription with the number {subscription}"),
        }
    }

    /// The resource of a subscription, by number.
    pub fn resource_of(&self, subscription: &Entity) -> Option<i64> {
        self.numbers.get(subscription.parent.as_deref()?).copied()
    }
}

/// The lane's part of a place or of a feed's key.
pub(super) fn lane_of(key: i64) -> i64 {
    key >> place::BITS
}

/// Entities of two kinds that are counted together.
fn entities(connection: &Connection, kinds: [&str; 2]) -> Work<BTreeMap<i64, Entity>> {
    let mut all = connection.prepare(
        "SELECT number, id, parent, keys, lanes, body, kind FROM entities WHERE kind IN (?1, ?2) ORDER BY number",
    )?;
    let entities = all.query_map(kinds, |row| {
        let starts_over = starts_over(row.get_ref(5)?.as_str()?);
        let entity = Entity {
            kind: row.get(6)?,
            id: row.get(1)?,
            parent: row.get(2)?,
            keys: row.get(3)?,
            lanes: row.get(4)?,
            starts_over,
        };
        Ok((row.get(0)?, entity))
    })?;
    Ok(entities.collect::<rusqlite::Result<_>>()?)
}

/// The one thing that is looked for in a body, which is otherwise the business of those above the engine.
fn starts_over(body: &str) -> bool {
    let body: Option<serde_json::Value> = serde_json::from_str(body).ok();
    body.is_some_and(|body| body.pointer("/disabled/startOver") == Some(&serde_json::Value::Bool(true)))
}

fn lanes(connection: &Connection) -> Work<BTreeMap<i64, LaneFacts>> {
    let mut all =
        connection.prepare(concat!("SELECT ", lane_columns!(), ", resource, place, gone FROM lanes"))?;
    let read = |row: &Row| {
        let lane = Lane::read(row)?;
        Ok((lane.id, LaneFacts { resource: row.get(7)?, index: row.get(8)?, gone: row.get(9)?, row: lane }))
    };
    Ok(all.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
}

fn leaving(connection: &Connection, kind: &str) -> Work<BTreeSet<i64>> {
    let mut all = connection.prepare("SELECT key FROM leavings WHERE kind = ?1")?;
    Ok(all.query_map([kind], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}
