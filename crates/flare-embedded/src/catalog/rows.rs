//! Rows of `entities` and `entity_keys`: what SQLite has comes in, the contract's entities go out.

use flare_provider::{Entity, EntityKind};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::{Work, corrupt};

/// An entity from the columns `number, id, version, parent, keys, body, lanes, history`.
fn read(kind: EntityKind, row: &Row) -> Work<Entity> {
    let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
    let id: String = row.get(1)?;
    let keys = row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?;
    let Ok(keys) = serde_json::from_str(keys) else {
        return Err(corrupt("catalog.read", format!("the keys of {} {id}", kind.as_str())).into());
    };
    Ok(Entity {
        kind,
        number: number(0)?,
        version: number(2)?,
        parent: row.get(3)?,
        keys,
        body: row.get(5)?,
        lanes: row.get(6)?,
        history: row.get(7)?,
        id,
    })
}

/// One entity.
pub(crate) fn get(connection: &Connection, kind: EntityKind, id: &str) -> Work<Option<Entity>> {
    let mut get = connection.prepare_cached(
        "SELECT number, id, version, parent, keys, body, lanes, history FROM entities WHERE kind = ?1 AND id = ?2",
    )?;
    let mut rows = get.query((kind.as_str(), id))?;
    rows.next()?.map(|row| read(kind, row)).transpose()
}

/// Entities of a kind beyond a number.
pub(crate) fn list(connection: &Connection, kind: EntityKind, after: u64, limit: usize) -> Work<Vec<Entity>> {
    let mut list = connection.prepare_cached(
        "SELECT number, id, version, parent, keys, body, lanes, history FROM entities
         WHERE kind = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = list.query((kind.as_str(), after, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut entities = Vec::new();
    while let Some(row) = rows.next()? {
        entities.push(read(kind, row)?);
    }
    Ok(entities)
}

/// Entities that changed since a version, in order, `limit` at most.
pub(crate) fn since(connection: &Connection, since: i64, limit: i64) -> Work<Vec<Entity>> {
    let mut list = connection.prepare_cached(
        "SELECT number, id, version, parent, keys, body, lanes, history, kind FROM entities
         WHERE version > ?1 ORDER BY version LIMIT ?2",
    )?;
    let mut rows = list.query((since, limit))?;
    let mut entities = Vec::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(8)?;
        let Some(kind) = EntityKind::named(&word) else {
            return Err(corrupt("catalog.changes", format!("there is no kind of entity {word}")).into());
        };
        entities.push(read(kind, row)?);
    }
    Ok(entities)
}

/// Those who follow the lanes of a resource or consumer, with a number beyond one, in order, `limit` at most.
pub(crate) fn subscriptions_of(
    connection: &Connection,
    resource: u64,
    after: u64,
    limit: usize,
) -> Work<Vec<u64>> {
    let mut list = connection.prepare_cached(
        "SELECT number FROM entities INDEXED BY entities_by_parent WHERE kind IN ('subscription', 'producer') AND number > ?2
         AND parent = (SELECT id FROM entities WHERE kind IN ('resource', 'consumer') AND number = ?1) ORDER BY number LIMIT ?3",
    )?;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let numbers = list.query_map((signed(resource), signed(after), signed(limit as u64)), |row| {
        row.get::<_, i64>(0).map(|number| number as u64)
    })?;
    Ok(numbers.collect::<rusqlite::Result<_>>()?)
}

/// Whether an entity is the parent of some of a kind.
pub(crate) fn has_children(connection: &Connection, children: EntityKind, parent: &str) -> Work<bool> {
    let mut some =
        connection.prepare_cached("SELECT 1 FROM entities WHERE parent = ?1 AND kind = ?2 LIMIT 1")?;
    Ok(some.exists((parent, children.as_str()))?)
}

/// Whether one of a kind, of this parent, wants every revision.
pub(crate) fn wants_history(connection: &Connection, kind: EntityKind, parent: &str) -> Work<bool> {
    let mut wants = connection
        .prepare_cached("SELECT 1 FROM entities WHERE parent = ?1 AND kind = ?2 AND history LIMIT 1")?;
    Ok(wants.exists((parent, kind.as_str()))?)
}

/// The id of another entity of the same kind and parent that has one of the keys.
pub(crate) fn taken(
    connection: &Connection,
    kind: EntityKind,
    parent: Option<&str>,
    keys: &[String],
    id: &str,
) -> Work<Option<String>> {
    let mut owner = connection.prepare_cached(
        "SELECT (SELECT id FROM entities e WHERE e.kind = k.kind AND e.number = k.number)
         FROM entity_keys k WHERE kind = ?1 AND scope = ?2 AND key = ?3",
    )?;
    let scope = scope(parent);
    for key in keys {
        let found =
            owner.query_row((kind.as_str(), &scope, key), |row| row.get::<_, String>(0)).optional()?;
        if let Some(other) = found.filter(|other| other != id) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// Writes an entity that may be there already, with its keys, which nobody else has.
pub(crate) fn put(connection: &Connection, entity: &Entity) -> Work<()> {
    let keys = serde_json::to_string(&entity.keys).expect("a list of texts can always be written");
    let (kind, number) = (entity.kind.as_str(), entity.number as i64);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO entities (kind, number, id, version, parent, keys, body, lanes, history)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute((
            kind,
            number,
            &entity.id,
            entity.version as i64,
            &entity.parent,
            keys,
            &entity.body,
            entity.lanes,
            entity.history,
        ))?;
    let mut put = connection.prepare_cached(
        "INSERT OR REPLACE INTO entity_keys (kind, scope, key, number) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let scope = scope(entity.parent.as_deref());
    for key in &entity.keys {
        put.execute((kind, &scope, key, number))?;
    }
    Ok(())
}

/// Gives the keys of an entity up.
pub(crate) fn drop_keys(connection: &Connection, entity: &Entity) -> Work<()> {
    let mut drop =
        connection.prepare_cached("DELETE FROM entity_keys WHERE kind = ?1 AND scope = ?2 AND key = ?3")?;
    let scope = scope(entity.parent.as_deref());
    for key in &entity.keys {
        drop.execute((entity.kind.as_str(), &scope, key))?;
    }
    Ok(())
}

/// Removes an entity and its keys.
pub(crate) fn remove(connection: &Connection, entity: &Entity) -> Work<()> {
    drop_keys(connection, entity)?;
    let mut remove = connection.prepare_cached("DELETE FROM entities WHERE kind = ?1 AND number = ?2")?;
    remove.execute((entity.kind.as_str(), entity.number as i64))?;
    Ok(())
}

/// Within what keys are unique: no parent is not the same as a parent without a name.
pub(crate) fn scope(parent: Option<&str>) -> String {
    parent.map_or_else(String::new, |parent| format!("/{parent}"))
}
