//! Changes of the catalog: entities to create, replace and delete come in, and are done inside the writer's
//! transaction, with the lanes and feeds that belong to them. Everything is checked before anything is written.

use flare_model::feed::{Sweep, SweepKind};
use flare_model::ids::{FeedId, LaneId, MAX_LANES, ResourceNumber, Seq, SubscriptionNumber};
use flare_provider::coding::position::{encode_ahead, encode_sweep};
use flare_provider::{Conflict, Entity, EntityKind, ErrorKind, NewEntity, ProviderError, Start};
use rusqlite::Connection;

use super::{changes, rows};
use crate::desk::Desk;
use crate::documents::check_capture;
use crate::error::Work;
use crate::lanes::Lane;
use crate::leavings::{self, Kind};
use crate::meta;
use crate::place::{LAST_LANE, feed_key};

/// Creates an entity.
pub(crate) fn create(desk: &mut Desk<'_>, new: NewEntity) -> Work<Entity> {
    const OPERATION: &str = "catalog.create";
    let connection = desk.connection;
    let needed = match new.needs() {
        Some((kind, id)) => {
            let found = rows::get(connection, kind, id)?;
            Some(found.ok_or_else(|| ProviderError::conflict(OPERATION, Conflict::Parent))?)
        }
        None => None,
    };
    let followed = needed.filter(|needed| needed.kind.has_lanes());
    if rows::get(connection, new.kind, &new.id)?.is_some() {
        return Err(ProviderError::conflict(OPERATION, Conflict::Taken(new.id)).into());
    }
    if let Some(other) = rows::taken(connection, new.kind, new.parent.as_deref(), &new.keys, &new.id)? {
        return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other)).into());
    }
    if let Some(capture) = &new.capture {
        check_capture(desk, capture)?;
    }
    let lanes = match &followed {
        Some(followed) => followed.lanes,
        None if new.kind.has_lanes() => new.lanes.clamp(1, MAX_LANES),
        None => 0,
    };
    let last_lane = meta::get(connection, "last_lane")?;
    if followed.is_none() && last_lane + i64::from(lanes) > LAST_LANE {
        let full = "as many lanes were made as a database can have";
        return Err(ProviderError::new(ErrorKind::Unsupported, OPERATION, full).into());
    }
    let counter = match new.kind {
        EntityKind::Resource | EntityKind::Consumer => "last_resource",
        EntityKind::Subscription | EntityKind::Producer => "last_subscription",
        EntityKind::Account => "last_account",
        EntityKind::Token => "last_token",
    };
    let entity = Entity {
        kind: new.kind,
        id: new.id,
        number: meta::next(connection, counter)? as u64,
        version: meta::next(connection, "catalog_version")? as u64,
        parent: new.parent,
        keys: new.keys,
        body: new.body,
        lanes,
        history: new.history,
    };
    rows::put(connection, &entity)?;
    if new.capture.is_some() {
        desk.done.routing = Some(entity.version);
    }
    match followed {
        None if entity.kind.has_lanes() => create_lanes(desk, &entity, last_lane)?,
        None => {}
        Some(followed) => {
            create_feeds(desk, &entity, &followed, new.start)?;
            keep_history(desk, &entity)?;
        }
    }
    Ok(entity)
}

/// Lanes keep what is replaced as long as one of those who follow them, like this one, wants that.
fn keep_history(desk: &mut Desk<'_>, follower: &Entity) -> Work<()> {
    let Some((kind, id)) = follower.kind.follows().zip(follower.parent.as_deref()) else { return Ok(()) };
    let Some(followed) = rows::get(desk.connection, kind, id)? else { return Ok(()) };
    let keeps = rows::wants_history(desk.connection, follower.kind, id)?;
    for index in 0..followed.lanes {
        let id = LaneId { resource: ResourceNumber(followed.number), index: index as u8 };
        if let Some(lane) = desk.lanes.get(desk.connection, id)?
            && lane.keeps != keeps
        {
            desk.lanes.set(id, Lane { keeps, ..lane });
        }
    }
    Ok(())
}

fn create_lanes(desk: &Desk<'_>, resource: &Entity, last: i64) -> Work<()> {
    let mut insert = desk.connection.prepare_cached(
        "INSERT INTO lanes (id, resource, place, head, next_ordinal, documents, tombstones, gone)
         VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0)",
    )?;
    for place in 0..resource.lanes {
        insert.execute((last + 1 + i64::from(place), resource.number as i64, place))?;
    }
    meta::set(desk.connection, "last_lane", last + i64::from(resource.lanes))
}

/// The feeds of a new subscription begin at the tail that this transaction sees.
fn create_feeds(desk: &mut Desk<'_>, subscription: &Entity, resource: &Entity, start: Start) -> Work<()> {
    let mut insert = desk.connection.prepare_cached(
        "INSERT INTO feeds (id, lane, epoch, incarnation, cursor, issued, delivered, discarded, failed, sweep, ahead,
         held_delta, since) VALUES (?1, ?2, 0, ?3, ?4, ?4, 0, 0, 0, ?5, ?6, x'', ?7)",
    )?;
    for feed in feeds_of(subscription) {
        let lane = LaneId { resource: ResourceNumber(resource.number), index: feed.lane };
        let (Some(lane), Some(key)) = (desk.lanes.get(desk.connection, lane)?, feed_key(feed)) else {
            let missing = "a resource without one of its lanes";
            return Err(crate::error::corrupt("catalog.create", missing).into());
        };
        let (replay, kind, position, end) = (0, SweepKind::Beginning, Seq(0), Seq(lane.head));
        let sweep = (start == Start::Beginning && lane.head > 0)
            .then(|| encode_sweep(&Sweep { replay, kind, position, end, met: 0 }));
        let ahead = encode_ahead(Seq(lane.head), &Default::default());
        let since = subscription.history.then_some(lane.head as i64);
        insert.execute((key, lane.id, desk.incarnation as i64, lane.head as i64, sweep, ahead, since))?;
    }
    Ok(())
}

/// Replaces body and keys of an entity that is as the caller saw it.
pub(crate) fn replace(desk: &mut Desk<'_>, asked: Entity) -> Work<Option<Entity>> {
    const OPERATION: &str = "catalog.replace";
    let connection = desk.connection;
    let Some(stored) = rows::get(connection, asked.kind, &asked.id)? else { return Ok(None) };
    if stored.version != asked.version {
        return Err(ProviderError::conflict(OPERATION, Conflict::Version).into());
    }
    let taken = rows::taken(connection, stored.kind, stored.parent.as_deref(), &asked.keys, &stored.id)?;
    if let Some(other) = taken {
        return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other)).into());
    }
    let version = meta::next(connection, "catalog_version")? as u64;
    let entity =
        Entity { version, keys: asked.keys, body: asked.body, history: asked.history, ..stored.clone() };
    wiping(connection, || {
        rows::drop_keys(connection, &stored)?;
        rows::put(connection, &entity)
    })?;
    keep_history(desk, &entity)?;
    Ok(Some(entity))
}

/// Deletes an entity. What may be much is only marked, and goes later in slices.
pub(crate) fn delete(desk: &mut Desk<'_>, kind: EntityKind, id: &str) -> Work<bool> {
    let connection = desk.connection;
    for children in kind.kept_by() {
        if rows::has_children(connection, *children, id)? {
            return Err(ProviderError::conflict("catalog.delete", Conflict::Children).into());
        }
    }
    let Some(entity) = rows::get(connection, kind, id)? else { return Ok(false) };
    wiping(connection, || rows::remove(connection, &entity))?;
    let version = meta::next(connection, "catalog_version")? as u64;
    changes::trace(connection, &entity, version)?;
    match kind {
        EntityKind::Resource | EntityKind::Consumer => {
            desk.done.routing = Some(version);
            let mut mark =
                connection.prepare_cached("UPDATE lanes SET gone = 1 WHERE resource = ?1 RETURNING id")?;
            let lanes = mark.query_map([entity.number as i64], |row| row.get(0))?;
            for lane in lanes.collect::<rusqlite::Result<Vec<i64>>>()? {
                leavings::add(desk, Kind::Lane, lane)?;
            }
            desk.lanes.forget(ResourceNumber(entity.number));
            for table in ["readings", "letters"] {
                let forget = format!("DELETE FROM {table} WHERE consumer = ?1");
                connection.prepare_cached(&forget)?.execute([entity.number as i64])?;
            }
        }
        EntityKind::Subscription | EntityKind::Producer => {
            let mut delete = connection.prepare_cached("DELETE FROM feeds WHERE id = ?1")?;
            for key in feeds_of(&entity).filter_map(feed_key) {
                delete.execute([key])?;
                desk.deltas.forget(key);
                leavings::add(desk, Kind::Feed, key)?;
            }
            keep_history(desk, &entity)?;
        }
        // They have no keys.
        EntityKind::Account => {
            let mut tokens =
                connection.prepare_cached("DELETE FROM entities WHERE kind = 'token' AND parent = ?1")?;
            tokens.execute([id])?;
        }
        EntityKind::Token => {}
    }
    Ok(true)
}

/// What is taken out of the file is overwritten there: entities have had credentials in them that nobody had sealed.
fn wiping<T>(connection: &Connection, work: impl FnOnce() -> Work<T>) -> Work<T> {
    let set = |word: &str| connection.query_row(&format!("PRAGMA secure_delete = {word}"), [], |_| Ok(()));
    set("ON")?;
    let done = work();
    set("OFF")?;
    done
}

fn feeds_of(subscription: &Entity) -> impl Iterator<Item = FeedId> + use<> {
    let number = SubscriptionNumber(subscription.number);
    (0..subscription.lanes).map(move |lane| FeedId { subscription: number, lane: lane as u8 })
}
