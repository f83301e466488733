//! Rows of `sessions`: who has one, and until when by the clock of the server. No other clock is asked.

use std::time::Duration;

use flare_provider::SessionId;

use super::Place;
use crate::connect::Session;
use crate::error::Work;

/// Begins one.
pub(super) async fn grant(session: &Session, place: &Place, owner: &str, ttl: i64) -> Work<SessionId> {
    let grant = session
        .prepare(
            "INSERT INTO sessions (id, cluster, owner, ttl, ends)
             VALUES ('ses_' || replace(gen_random_uuid()::text, '-', ''), $1, $2, $3::bigint,
             clock_timestamp() + $3::bigint * interval '1 millisecond') RETURNING id",
        )
        .await?;
    let row = session.client.query_one(&grant, &[&&*place.cluster, &owner, &ttl]).await?;
    Ok(SessionId::new(row.try_get::<_, String>(0)?))
}

/// Renews one of this owner whose time has not passed, for its whole time to live.
pub(super) async fn renew(
    session: &Session,
    place: &Place,
    id: &SessionId,
    owner: &str,
) -> Work<Option<Duration>> {
    let renew = session
        .prepare(
            "UPDATE sessions SET ends = clock_timestamp() + ttl * interval '1 millisecond'
             WHERE id = $1 AND cluster = $2 AND owner = $3 AND ends > clock_timestamp() RETURNING ttl",
        )
        .await?;
    let renewed = session.client.query_opt(&renew, &[&id.as_str(), &&*place.cluster, &owner]).await?;
    let ttl = renewed.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    Ok(ttl.map(|millis| Duration::from_millis(millis as u64)))
}

/// How many milliseconds one lasts yet.
pub(super) async fn left(session: &Session, place: &Place, id: &SessionId) -> Work<Option<Duration>> {
    let left = session
        .prepare(
            "SELECT ceil(extract(epoch FROM ends - clock_timestamp()) * 1000)::bigint FROM sessions
             WHERE id = $1 AND cluster = $2 AND ends > clock_timestamp()",
        )
        .await?;
    let left = session.client.query_opt(&left, &[&id.as_str(), &&*place.cluster]).await?;
    let left = left.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    Ok(left.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or_default())))
}

/// Ends one, with its keys; false when it is another owner's.
pub(super) async fn end(session: &Session, place: &Place, id: &SessionId, owner: &str) -> Work<bool> {
    let end = session
        .prepare(
            "WITH counter AS (UPDATE numbers SET value = value + 1 WHERE name = 'coordination' RETURNING value),
             gone AS (DELETE FROM sessions USING counter WHERE id = $1 AND cluster = $2 AND owner = $3 RETURNING id),
             told AS (SELECT pg_notify($4, 'k') FROM gone)
             SELECT (SELECT count(*) FROM told)",
        )
        .await?;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&id.as_str(), &&*place.cluster, &owner, &&*place.channel];
    let gone: i64 = session.client.query_one(&end, &values).await?.try_get(0)?;
    if gone > 0 {
        return Ok(true);
    }
    let there = session.prepare("SELECT 1 FROM sessions WHERE id = $1 AND cluster = $2").await?;
    Ok(session.client.query_opt(&there, &[&id.as_str(), &&*place.cluster]).await?.is_none())
}

/// Whether the time of some has passed.
pub(super) async fn some_are_over(session: &Session, cluster: &str) -> Work<bool> {
    let over = session
        .prepare("SELECT EXISTS (SELECT 1 FROM sessions WHERE cluster = $1 AND ends <= clock_timestamp())")
        .await?;
    Ok(session.client.query_one(&over, &[&cluster]).await?.try_get(0)?)
}

/// Those whose time has passed go, with their keys; answers how many.
pub(super) async fn expire(session: &Session, place: &Place) -> Work<u64> {
    let expire = session
        .prepare(
            "WITH counter AS (UPDATE numbers SET value = value + 1 WHERE name = 'coordination' RETURNING value),
             gone AS (DELETE FROM sessions USING counter WHERE cluster = $1 AND ends <= clock_timestamp()
                      RETURNING id),
             told AS (SELECT pg_notify($2, 'k') WHERE EXISTS (SELECT 1 FROM gone))
             SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM told)",
        )
        .await?;
    let row = session.client.query_one(&expire, &[&&*place.cluster, &&*place.channel]).await?;
    Ok(row.try_get::<_, i64>(0)? as u64)
}
