//! Rows of `entities` and `entity_keys`: what the server has comes in, the contract's entities go out.

use flare_provider::{Entity, EntityKind};
use tokio_postgres::Row;

use crate::connect::Session;
use crate::documents::row::{number, signed};
use crate::error::{Work, corrupt};

/// An entity from the columns `number, id, version, parent, keys, body, lanes, history`.
pub(super) fn read(kind: EntityKind, row: &Row) -> Work<Entity> {
    let id: String = row.try_get(1)?;
    let Ok(keys) = serde_json::from_str(row.try_get(4)?) else {
        return Err(corrupt("catalog.read", format!("the keys of {} {id}", kind.as_str())).into());
    };
    Ok(Entity {
        kind,
        number: number(row, 0)?,
        version: number(row, 2)?,
        parent: row.try_get(3)?,
        keys,
        body: row.try_get(5)?,
        lanes: row.try_get::<_, i32>(6)? as u16,
        history: row.try_get(7)?,
        id,
    })
}

/// One entity.
pub(crate) async fn get(session: &Session, kind: EntityKind, id: &str) -> Work<Option<Entity>> {
    let get = session
        .prepare(
            "SELECT number, id, version, parent, keys, body, lanes, history FROM entities
             WHERE kind = $1 AND id = $2",
        )
        .await?;
    // No id that was given out has it, and the server takes no text that does.
    if id.contains('\0') {
        return Ok(None);
    }
    let row = session.client.query_opt(&get, &[&kind.as_str(), &id]).await?;
    row.map(|row| read(kind, &row)).transpose()
}

/// Entities of a kind beyond a number.
pub(crate) async fn list(session: &Session, kind: EntityKind, after: u64, limit: usize) -> Work<Vec<Entity>> {
    let list = session
        .prepare(
            "SELECT number, id, version, parent, keys, body, lanes, history FROM entities
             WHERE kind = $1 AND number > $2 ORDER BY number LIMIT $3",
        )
        .await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = session.client.query(&list, &[&kind.as_str(), &signed(after), &limit]).await?;
    rows.iter().map(|row| read(kind, row)).collect()
}

/// Those who follow the lanes of a resource or consumer, with a number beyond one, in order, `limit` at most.
pub(crate) async fn subscriptions_of(
    session: &Session,
    resource: u64,
    after: u64,
    limit: usize,
) -> Work<Vec<u64>> {
    let list = session
        .prepare(
            "SELECT number FROM entities WHERE kind IN ('subscription', 'producer') AND number > $2
             AND parent = (SELECT id FROM entities WHERE kind IN ('resource', 'consumer') AND number = $1) ORDER BY number LIMIT $3",
        )
        .await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = session.client.query(&list, &[&signed(resource), &signed(after), &limit]).await?;
    rows.iter().map(|row| number(row, 0)).collect()
}

/// Whether an entity is the parent of some of a kind.
pub(crate) async fn has_children(session: &Session, children: EntityKind, parent: &str) -> Work<bool> {
    let some =
        session.prepare("SELECT EXISTS (SELECT 1 FROM entities WHERE parent = $1 AND kind = $2)").await?;
    Ok(session.client.query_one(&some, &[&parent, &children.as_str()]).await?.try_get(0)?)
}

/// Whether one of a kind, of this parent, wants every revision.
pub(crate) async fn wants_history(session: &Session, kind: EntityKind, parent: &str) -> Work<bool> {
    let wants = session
        .prepare("SELECT EXISTS (SELECT 1 FROM entities WHERE parent = $1 AND kind = $2 AND history)")
        .await?;
    Ok(session.client.query_one(&wants, &[&parent, &kind.as_str()]).await?.try_get(0)?)
}

/// The id of another entity of the same kind and parent that has one of the keys; of several, that of the first key.
pub(crate) async fn taken(
    session: &Session,
    kind: EntityKind,
    parent: Option<&str>,
    keys: &[String],
    id: &str,
) -> Work<Option<String>> {
    let owner = session
        .prepare(
            "SELECT e.id FROM unnest($3::bytea[]) WITH ORDINALITY u (key, place)
             JOIN entity_keys k ON k.kind = $1 AND k.scope = $2 AND k.key = u.key
             JOIN entities e ON e.kind = k.kind AND e.number = k.number
             WHERE e.id <> $4 ORDER BY u.place LIMIT 1",
        )
        .await?;
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let row = session.client.query_opt(&owner, &[&kind.as_str(), &scope(parent), &keys, &id]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Writes an entity that may be there already, with its keys, which nobody else has.
pub(crate) async fn put(session: &Session, entity: &Entity) -> Work<()> {
    let keys = serde_json::to_string(&entity.keys).expect("a list of texts can always be written");
    let (kind, number) = (entity.kind.as_str(), entity.number as i64);
    let put = session
        .prepare(
            "INSERT INTO entities (kind, number, id, version, parent, keys, body, lanes, history)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (kind, number) DO UPDATE SET
             version = excluded.version, keys = excluded.keys, body = excluded.body, history = excluded.history",
        )
        .await?;
    session
        .client
        .execute(
            &put,
            &[
                &kind,
                &number,
                &entity.id,
                &(entity.version as i64),
                &entity.parent,
                &keys,
                &entity.body,
                &i32::from(entity.lanes),
                &entity.history,
            ],
        )
        .await?;
    let put = session
        .prepare(
            "INSERT INTO entity_keys (kind, scope, key, number) SELECT DISTINCT $1, $2, key, $4::bigint
             FROM unnest($3::bytea[]) u (key)",
        )
        .await?;
    let keys: Vec<&[u8]> = entity.keys.iter().map(|key| key.as_bytes()).collect();
    session.client.execute(&put, &[&kind, &scope(entity.parent.as_deref()), &keys, &number]).await?;
    Ok(())
}

/// Gives the keys of an entity up.
pub(crate) async fn drop_keys(session: &Session, entity: &Entity) -> Work<()> {
    let drop =
        session.prepare("DELETE FROM entity_keys WHERE kind = $1 AND scope = $2 AND key = ANY($3)").await?;
    let keys: Vec<&[u8]> = entity.keys.iter().map(|key| key.as_bytes()).collect();
    let scope = scope(entity.parent.as_deref());
    session.client.execute(&drop, &[&entity.kind.as_str(), &scope, &keys]).await?;
    Ok(())
}

/// Removes an entity and its keys.
pub(crate) async fn remove(session: &Session, entity: &Entity) -> Work<()> {
    drop_keys(session, entity).await?;
    let remove = session.prepare("DELETE FROM entities WHERE kind = $1 AND number = $2").await?;
    session.client.execute(&remove, &[&entity.kind.as_str(), &(entity.number as i64)]).await?;
    Ok(())
}

/// Within what keys are unique: '' without a parent, and '/' and its id with one.
fn scope(parent: Option<&str>) -> String {
    parent.map_or_else(String::new, |parent| format!("/{parent}"))
}
