//! Following the catalog: a version comes in; what changed since goes out, with the traces of what was deleted.

use flare_provider::{CatalogChanges, Deletion, Entity, EntityKind};
use rusqlite::Connection;

use super::rows;
use crate::desk::Desk;
use crate::error::{Work, corrupt};
use crate::meta;
use crate::snapshot::snapshot;

/// Leaves the trace of an entity that is gone by this version.
pub(crate) fn trace(connection: &Connection, entity: &Entity, version: u64) -> Work<()> {
    let mut trace = connection.prepare_cached(
        "INSERT INTO deletions (version, kind, number, id, deleted_at)
         VALUES (?1, ?2, ?3, ?4, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
    )?;
    trace.execute((version as i64, entity.kind.as_str(), entity.number as i64, &entity.id))?;
    Ok(())
}

/// What changed since a version; `None` where nobody can say.
pub(crate) fn since(connection: &Connection, since: u64, limit: usize) -> Work<Option<CatalogChanges>> {
    snapshot(connection, |connection| {
        let version = meta::get(connection, "catalog_version")? as u64;
        if since < meta::get(connection, "deletions_forgotten")? as u64 || since > version {
            return Ok(None);
        }
        let most = i64::try_from(limit.max(1)).unwrap_or(i64::MAX).saturating_add(1);
        let put = rows::since(connection, since as i64, most)?;
        let mut gone = connection.prepare_cached(
            "SELECT version, kind, number, id FROM deletions WHERE version > ?1 ORDER BY version LIMIT ?2",
        )?;
        let mut rows = gone.query((since as i64, most))?;
        let mut deleted = Vec::new();
        while let Some(row) = rows.next()? {
            let word: String = row.get(1)?;
            let Some(kind) = EntityKind::named(&word) else {
                return Err(corrupt("catalog.changes", format!("there is no kind of entity {word}")).into());
            };
            let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
            deleted.push(Deletion { kind, id: row.get(3)?, number: number(2)?, version: number(0)? });
        }
        Ok(Some(CatalogChanges::page(put, deleted, limit, version)))
    })
}

/// Forgets the traces up to a version, and answers how many went.
pub(crate) fn forget(desk: &mut Desk<'_>, upto: u64) -> Work<u64> {
    let connection = desk.connection;
    let upto = i64::try_from(upto).unwrap_or(i64::MAX).min(meta::get(connection, "catalog_version")?);
    if upto > meta::get(connection, "deletions_forgotten")? {
        meta::set(connection, "deletions_forgotten", upto)?;
    }
    let mut forget = connection.prepare_cached("DELETE FROM deletions WHERE version <= ?1")?;
    Ok(forget.execute([upto])? as u64)
}
