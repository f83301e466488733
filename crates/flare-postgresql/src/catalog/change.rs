//! Changes of the catalog: entities to create, replace and delete come in, and are done inside one transaction, with the
//! lanes and feeds that belong to them. It locks the lanes that it needs, in order, then the catalog's number, and only
//! then believes what it reads: changes of the catalog come one after the other, and in the order of their versions.

use flare_model::feed::{Sweep, SweepKind};
use flare_model::ids::{FeedId, LaneId, MAX_LANES, ResourceNumber, Seq, SubscriptionNumber};
use flare_provider::coding::position::{encode_ahead, encode_sweep};
use flare_provider::{Capture, Conflict, Entity, EntityKind, MOST_UNSEEN, NewEntity, ProviderError, Start};
use std::collections::BTreeMap;

use super::{changes, rows};
use crate::connect::Session;
use crate::documents::lanes::{self, Hold, Lane};
use crate::documents::row::key;
use crate::error::{Work, corrupt};
use crate::numbers;

/// Creates an entity.
pub(crate) async fn create(session: &Session, new: NewEntity) -> Work<Entity> {
    const OPERATION: &str = "catalog.create";
    let followed = find_needed(session, &new).await?;
    let locked = match (&followed, &new.capture) {
        (Some(followed), _) => {
            let hold = if new.history { Hold::Change } else { Hold::Share };
            lanes::lock(session, &lane_keys(followed), hold).await?
        }
        (None, Some(capture)) => {
            let seen: Vec<i64> = capture.seen.iter().map(|(lane, _)| key(*lane)).collect();
            lanes::lock(session, &seen, Hold::Change).await?
        }
        (None, None) => BTreeMap::new(),
    };
    numbers::lock(session, "catalog").await?;
    // It may be gone by now.
    let followed = find_needed(session, &new).await?;
    if rows::get(session, new.kind, &new.id).await?.is_some() {
        return Err(ProviderError::conflict(OPERATION, Conflict::Taken(new.id)).into());
    }
    if let Some(other) = rows::taken(session, new.kind, new.parent.as_deref(), &new.keys, &new.id).await? {
        return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other)).into());
    }
    if let Some(capture) = &new.capture {
        check_capture(session, capture, &locked).await?;
    }
    let lanes = match &followed {
        Some(followed) => followed.lanes,
        None if new.kind.has_lanes() => new.lanes.clamp(1, MAX_LANES),
        None => 0,
    };
    let entity = Entity {
        kind: new.kind,
        id: new.id,
        number: numbers::next(session, new.kind.counted_as().as_str()).await?,
        version: numbers::next(session, "catalog").await?,
        parent: new.parent,
        keys: new.keys,
        body: new.body,
        lanes,
        history: new.history,
    };
    rows::put(session, &entity).await?;
    if new.capture.is_some() {
        numbers::set(session, "routing", entity.version).await?;
    }
    match followed {
        None if entity.kind.has_lanes() => create_lanes(session, &entity).await?,
        None => {}
        Some(followed) => {
            create_feeds(session, &entity, &followed, &locked, new.start).await?;
            if entity.history {
                set_keeps(session, &followed, true).await?;
            }
        }
    }
    Ok(entity)
}

/// What a new entity needs is there; that whose lanes it will follow, where it will.
async fn find_needed(session: &Session, new: &NewEntity) -> Work<Option<Entity>> {
    let Some((kind, id)) = new.needs() else { return Ok(None) };
    let found = rows::get(session, kind, id).await?;
    let found = found.ok_or_else(|| ProviderError::conflict("catalog.create", Conflict::Parent))?;
    Ok(Some(found).filter(|found| found.kind.has_lanes()))
}

/// Whether a new resource may take what it would: no live document, of those its creator has not seen.
async fn check_capture(session: &Session, capture: &Capture, locked: &BTreeMap<i64, Lane>) -> Work<()> {
    const OPERATION: &str = "catalog.create";
    let there = |(lane, seen): &(LaneId, Seq)| {
        let lane = locked.get(&key(*lane)).filter(|lane| lane.head > seen.0)?;
        Some((*lane, seen.0))
    };
    let seen: Vec<(Lane, u64)> = capture.seen.iter().filter_map(there).collect();
    let unseen: u64 = seen.iter().map(|(lane, seen)| lane.head - seen).sum();
    if unseen > MOST_UNSEEN {
        return Err(ProviderError::conflict(OPERATION, Conflict::Unseen).into());
    }
    let beyond = session
        .prepare("SELECT url FROM documents WHERE lane = $1 AND seq > $2 AND NOT deleted ORDER BY seq")
        .await?;
    for (lane, seen) in seen {
        for row in session.client.query(&beyond, &[&lane.id, &(seen as i64)]).await? {
            let url: &str = row.try_get(0)?;
            if capture.takes(url) {
                return Err(ProviderError::conflict(OPERATION, Conflict::Captured(url.to_owned())).into());
            }
        }
    }
    Ok(())
}

async fn create_lanes(session: &Session, resource: &Entity) -> Work<()> {
    let insert = session.prepare("INSERT INTO lanes (id) SELECT unnest($1::bigint[])").await?;
    session.client.execute(&insert, &[&lane_keys(resource)]).await?;
    Ok(())
}

/// The feeds of a new subscription begin at the tail that this transaction holds.
async fn create_feeds(
    session: &Session,
    subscription: &Entity,
    resource: &Entity,
    locked: &BTreeMap<i64, Lane>,
    start: Start,
) -> Work<()> {
    let (mut heads, mut sweeps, mut aheads, mut sinces) = (vec![], vec![], vec![], vec![]);
    let lane_keys = lane_keys(resource);
    for id in &lane_keys {
        let Some(lane) = locked.get(id) else {
            return Err(corrupt("catalog.create", "a resource without one of its lanes").into());
        };
        let (replay, kind, position, end) = (0, SweepKind::Beginning, Seq(0), Seq(lane.head));
        let sweep = (start == Start::Beginning && lane.head > 0)
            .then(|| encode_sweep(&Sweep { replay, kind, position, end, met: 0 }));
        sweeps.push(sweep);
        aheads.push(encode_ahead(Seq(lane.head), &Default::default()));
        sinces.push(subscription.history.then_some(lane.head as i64));
        heads.push(lane.head as i64);
    }
    let insert = session
        .prepare(
            "INSERT INTO feeds (id, lane, incarnation, cursor, issued, sweep, ahead, since)
             SELECT u.id, u.lane, (SELECT value FROM numbers WHERE name = 'incarnation'), u.head, u.head, u.sweep, u.ahead, u.since
             FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[])
             u (id, lane, head, sweep, ahead, since)",
        )
        .await?;
    let ids = feed_keys(subscription);
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&ids, &lane_keys, &heads, &sweeps, &aheads, &sinces];
    session.client.execute(&insert, &values).await?;
    Ok(())
}

/// Replaces body and keys of an entity that is as the caller saw it.
pub(crate) async fn replace(session: &Session, asked: Entity) -> Work<Option<Entity>> {
    const OPERATION: &str = "catalog.replace";
    let Some(before) = rows::get(session, asked.kind, &asked.id).await? else { return Ok(None) };
    let followed = match asked.history != before.history {
        true => hold_followed(session, &before).await?,
        false => None,
    };
    numbers::lock(session, "catalog").await?;
    let Some(stored) = rows::get(session, asked.kind, &asked.id).await? else { return Ok(None) };
    // Its lanes are held only where it looked as if they had to be.
    let is_held = followed.is_some() || asked.history == stored.history || !stored.kind.has_feeds();
    if stored.version != asked.version || !is_held {
        return Err(ProviderError::conflict(OPERATION, Conflict::Version).into());
    }
    let taken = rows::taken(session, stored.kind, stored.parent.as_deref(), &asked.keys, &stored.id).await?;
    if let Some(other) = taken {
        return Err(ProviderError::conflict(OPERATION, Conflict::Taken(other)).into());
    }
    rows::drop_keys(session, &stored).await?;
    let version = numbers::next(session, "catalog").await?;
    let entity = Entity { version, keys: asked.keys, body: asked.body, history: asked.history, ..stored };
    rows::put(session, &entity).await?;
    if let Some(followed) = followed {
        let keeps = rows::wants_history(session, entity.kind, &followed.id).await?;
        set_keeps(session, &followed, keeps).await?;
    }
    Ok(Some(entity))
}

/// Deletes an entity. What may be much is only noted, and goes later in slices.
pub(crate) async fn delete(session: &Session, kind: EntityKind, id: &str) -> Work<bool> {
    let Some(before) = rows::get(session, kind, id).await? else { return Ok(false) };
    let followed = match kind {
        EntityKind::Resource | EntityKind::Consumer => {
            let lock =
                session.prepare("SELECT id FROM lanes WHERE id = ANY($1) ORDER BY id FOR UPDATE").await?;
            session.client.query(&lock, &[&lane_keys(&before)]).await?;
            None
        }
        EntityKind::Subscription | EntityKind::Producer => hold_followed(session, &before).await?,
        EntityKind::Account | EntityKind::Token => None,
    };
    numbers::lock(session, "catalog").await?;
    let Some(entity) = rows::get(session, kind, id).await? else { return Ok(false) };
    for children in kind.kept_by() {
        if rows::has_children(session, *children, id).await? {
            return Err(ProviderError::conflict("catalog.delete", Conflict::Children).into());
        }
    }
    rows::remove(session, &entity).await?;
    let version = numbers::next(session, "catalog").await?;
    changes::trace(session, &entity, version).await?;
    let (keys, table, leaves) = match kind {
        EntityKind::Resource | EntityKind::Consumer => {
            numbers::set(session, "routing", version).await?;
            for forget in
                ["DELETE FROM readings WHERE consumer = $1", "DELETE FROM letters WHERE consumer = $1"]
            {
                let forget = session.prepare(forget).await?;
                session.client.execute(&forget, &[&(entity.number as i64)]).await?;
            }
            (lane_keys(&entity), "DELETE FROM lanes WHERE id = ANY($1)", "lane")
        }
        EntityKind::Subscription | EntityKind::Producer => {
            (feed_keys(&entity), "DELETE FROM feeds WHERE id = ANY($1)", "feed")
        }
        EntityKind::Account => {
            // They have no keys.
            let tokens = session.prepare("DELETE FROM entities WHERE kind = 'token' AND parent = $1").await?;
            session.client.execute(&tokens, &[&id]).await?;
            return Ok(true);
        }
        EntityKind::Token => return Ok(true),
    };
    let delete = session.prepare(table).await?;
    session.client.execute(&delete, &[&keys]).await?;
    let leave = session.prepare("INSERT INTO leavings (kind, key) SELECT $1, unnest($2::bigint[])").await?;
    session.client.execute(&leave, &[&leaves, &keys]).await?;
    if let Some(followed) = followed {
        let keeps = rows::wants_history(session, entity.kind, &followed.id).await?;
        set_keeps(session, &followed, keeps).await?;
    }
    Ok(true)
}

/// Holds the lanes that somebody follows, so that what they keep can be changed.
async fn hold_followed(session: &Session, follower: &Entity) -> Work<Option<Entity>> {
    let Some((kind, id)) = follower.kind.follows().zip(follower.parent.as_deref()) else { return Ok(None) };
    let Some(followed) = rows::get(session, kind, id).await? else { return Ok(None) };
    lanes::lock(session, &lane_keys(&followed), Hold::Change).await?;
    Ok(Some(followed))
}

/// Lanes keep what is replaced as long as one of those who follow them wants that.
async fn set_keeps(session: &Session, resource: &Entity, keeps: bool) -> Work<()> {
    let set = session.prepare("UPDATE lanes SET keeps = $2 WHERE id = ANY($1) AND keeps <> $2").await?;
    session.client.execute(&set, &[&lane_keys(resource), &keeps]).await?;
    Ok(())
}

fn lane_keys(resource: &Entity) -> Vec<i64> {
    let lane = |index| LaneId { resource: ResourceNumber(resource.number), index: index as u8 };
    (0..resource.lanes).map(|index| key(lane(index))).collect()
}

fn feed_keys(subscription: &Entity) -> Vec<i64> {
    let number = SubscriptionNumber(subscription.number);
    (0..subscription.lanes)
        .map(|lane| FeedId { subscription: number, lane: lane as u8 }.packed() as i64)
        .collect()
}
