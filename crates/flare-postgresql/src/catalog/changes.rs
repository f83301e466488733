//! Following the catalog: a version comes in; what changed since goes out, with the traces of what was deleted. One statement, and
//! so one snapshot.

use flare_provider::{CatalogChanges, Deletion, Entity, EntityKind};

use super::rows;
use crate::connect::Session;
use crate::documents::row::{number, signed};
use crate::error::{Work, corrupt};

const OPERATION: &str = "catalog.changes";

const SINCE: &str =
    "SELECT c.number, c.id, c.version, c.parent, c.keys, c.body, c.lanes, c.history, c.kind, c.gone,
    n.catalog, n.forgotten
    FROM (SELECT (SELECT value FROM numbers WHERE name = 'catalog') AS catalog,
                 (SELECT value FROM numbers WHERE name = 'forgotten') AS forgotten) n
    LEFT JOIN LATERAL (
        (SELECT number, id, version, parent, keys, body, lanes, history, kind, false AS gone FROM entities
         WHERE version > $1 ORDER BY version LIMIT $2)
        UNION ALL
        (SELECT number, id, version, NULL, NULL, NULL, NULL, NULL, kind, true FROM deletions
         WHERE version > $1 ORDER BY version LIMIT $2)
    ) c ON true";

/// Leaves the trace of an entity that is gone by this version.
pub(crate) async fn trace(session: &Session, entity: &Entity, version: u64) -> Work<()> {
    let trace =
        session.prepare("INSERT INTO deletions (version, kind, number, id) VALUES ($1, $2, $3, $4)").await?;
    let (version, number) = (version as i64, entity.number as i64);
    session.client.execute(&trace, &[&version, &entity.kind.as_str(), &number, &entity.id]).await?;
    Ok(())
}

/// What changed since a version; `None` where nobody can say.
pub(crate) async fn since(session: &Session, since: u64, limit: usize) -> Work<Option<CatalogChanges>> {
    let list = session.prepare(SINCE).await?;
    let most = i64::try_from(limit.max(1)).unwrap_or(i64::MAX).saturating_add(1);
    let rows = session.client.query(&list, &[&signed(since), &most]).await?;
    let Some(first) = rows.first() else { return Err(corrupt(OPERATION, "numbers are missing").into()) };
    let (version, forgotten) = (number(first, 10)?, number(first, 11)?);
    if since < forgotten || since > version {
        return Ok(None);
    }
    let (mut put, mut deleted) = (Vec::new(), Vec::new());
    for row in &rows {
        let Some(word) = row.try_get::<_, Option<&str>>(8)? else { continue };
        let Some(kind) = EntityKind::named(word) else {
            return Err(corrupt(OPERATION, format!("there is no kind of entity {word}")).into());
        };
        if row.try_get(9)? {
            let (number, version) = (number(row, 0)?, number(row, 2)?);
            deleted.push(Deletion { kind, id: row.try_get(1)?, number, version });
        } else {
            put.push(rows::read(kind, row)?);
        }
    }
    Ok(Some(CatalogChanges::page(put, deleted, limit, version)))
}

/// Forgets the traces up to a version, within a transaction, and answers how many went.
pub(crate) async fn forget(session: &Session, upto: u64) -> Work<u64> {
    let mark = session
        .prepare(
            "UPDATE numbers SET value = greatest(value, least($1, (SELECT value FROM numbers WHERE name = 'catalog')))
             WHERE name = 'forgotten'",
        )
        .await?;
    session.client.execute(&mark, &[&signed(upto)]).await?;
    let forget = session
        .prepare(
            "DELETE FROM deletions WHERE version <= (SELECT value FROM numbers WHERE name = 'forgotten')",
        )
        .await?;
    Ok(session.client.execute(&forget, &[]).await?)
}
