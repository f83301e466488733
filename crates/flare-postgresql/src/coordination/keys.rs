//! Rows of `cluster_keys`. Each change is one statement that raises the number `coordination` first: so changes come one after
//! the other, and versions grow in their order. A key refers to its session, so none is put into one that has ended meanwhile.

use bytes::Bytes;
use flare_provider::{Entry, SessionId, Version};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::Place;
use crate::connect::Session;
use crate::documents::row::number;
use crate::error::Work;

/// What became of a key that was to be created.
pub(super) enum Put {
    Done(Version),
    /// The key is there.
    Taken,
    /// Its session is not there, or its time has passed.
    Fenced,
}

/// Creates a key.
pub(super) async fn put_if_absent(
    session: &Session,
    place: &Place,
    key: &str,
    value: &[u8],
    of: Option<&SessionId>,
) -> Work<Put> {
    let put = session
        .prepare(
            "WITH counter AS (UPDATE numbers SET value = value + 1 WHERE name = 'coordination' RETURNING value),
             alive AS (SELECT $4::text IS NULL OR EXISTS (
                 SELECT 1 FROM sessions WHERE id = $4 AND cluster = $1 AND ends > clock_timestamp()) AS alive),
             put AS (INSERT INTO cluster_keys (cluster, key, value, version, session)
                     SELECT $1, $2, $3, counter.value, $4 FROM counter, alive WHERE alive.alive
                     ON CONFLICT (cluster, key) DO NOTHING RETURNING version),
             told AS (SELECT pg_notify($5, 'k') FROM put)
             SELECT (SELECT version FROM put), (SELECT alive FROM alive), (SELECT count(*) FROM told)",
        )
        .await?;
    let of = of.map(SessionId::as_str);
    let values: [&(dyn ToSql + Sync); 5] = [&&*place.cluster, &key, &value, &of, &&*place.channel];
    let row = match session.client.query_one(&put, &values).await {
        Ok(row) => row,
        Err(error) if error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION) => return Ok(Put::Fenced),
        Err(error) => return Err(error.into()),
    };
    Ok(match (row.try_get::<_, Option<i64>>(0)?, row.try_get(1)?) {
        (Some(version), _) => Put::Done(Version(version as u64)),
        (None, true) => Put::Taken,
        (None, false) => Put::Fenced,
    })
}

/// Replaces the value of a key that has this version.
pub(super) async fn put_if(
    session: &Session,
    place: &Place,
    key: &str,
    version: Version,
    value: &[u8],
) -> Work<Option<Version>> {
    let put = session
        .prepare(
            "WITH counter AS (UPDATE numbers SET value = value + 1 WHERE name = 'coordination' RETURNING value),
             put AS (UPDATE cluster_keys k SET value = $3, version = counter.value FROM counter
                     WHERE k.cluster = $1 AND k.key = $2 AND k.version = $4 AND (k.session IS NULL OR EXISTS (
                         SELECT 1 FROM sessions s WHERE s.id = k.session AND s.ends > clock_timestamp()))
                     RETURNING k.version),
             told AS (SELECT pg_notify($5, 'k') FROM put)
             SELECT (SELECT version FROM put), (SELECT count(*) FROM told)",
        )
        .await?;
    let version = version.0 as i64;
    let values: [&(dyn ToSql + Sync); 5] = [&&*place.cluster, &key, &value, &version, &&*place.channel];
    let row = session.client.query_one(&put, &values).await?;
    Ok(row.try_get::<_, Option<i64>>(0)?.map(|version| Version(version as u64)))
}

/// Deletes a key that has this version.
pub(super) async fn delete_if(session: &Session, place: &Place, key: &str, version: Version) -> Work<bool> {
    let delete = session
        .prepare(
            "WITH counter AS (UPDATE numbers SET value = value + 1 WHERE name = 'coordination' RETURNING value),
             gone AS (DELETE FROM cluster_keys k USING counter
                      WHERE k.cluster = $1 AND k.key = $2 AND k.version = $3 RETURNING k.version),
             told AS (SELECT pg_notify($4, 'k') FROM gone)
             SELECT (SELECT count(*) FROM told)",
        )
        .await?;
    let values: [&(dyn ToSql + Sync); 4] = [&&*place.cluster, &key, &(version.0 as i64), &&*place.channel];
    Ok(session.client.query_one(&delete, &values).await?.try_get::<_, i64>(0)? > 0)
}

/// All keys that begin with a prefix, by name.
pub(super) async fn list(session: &Session, cluster: &str, prefix: &str) -> Work<Vec<Entry>> {
    let list = session
        .prepare(
            "SELECT key, value, version, session FROM cluster_keys
             WHERE cluster = $1 AND key >= $2 AND starts_with(key, $2) ORDER BY key",
        )
        .await?;
    let mut entries = Vec::new();
    for row in session.client.query(&list, &[&cluster, &prefix]).await? {
        entries.push(Entry {
            key: row.try_get(0)?,
            value: Bytes::copy_from_slice(row.try_get(1)?),
            version: Version(number(&row, 2)?),
            session: row.try_get::<_, Option<String>>(3)?.map(SessionId::new),
        });
    }
    Ok(entries)
}

/// The state of the keys below a prefix: how many there are, and the newest version. Whatever is put has a higher one, and
/// whatever goes makes them fewer, so that two states that are told the same are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    quantity: i64,
    newest: i64,
}

/// The state of the keys below a prefix.
pub(super) async fn state(session: &Session, cluster: &str, prefix: &str) -> Work<State> {
    let state = session
        .prepare(
            "SELECT count(*), coalesce(max(version), 0) FROM cluster_keys
             WHERE cluster = $1 AND key >= $2 AND starts_with(key, $2)",
        )
        .await?;
    let row = session.client.query_one(&state, &[&cluster, &prefix]).await?;
    Ok(State { quantity: row.try_get(0)?, newest: row.try_get(1)? })
}
