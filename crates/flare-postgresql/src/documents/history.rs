//! Older revisions: one by one for a document, listed, and removed. A commit keeps them (columns.rs).

use flare_model::document::Document;
use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::time::Timestamp;
use flare_provider::OlderRevision;

use super::lanes::{self, Hold};
use super::row::{document_columns, key, number, read_optional, signed};
use crate::connect::Session;
use crate::error::Work;

/// The first revision of each document at or beyond a seq, of those replaced beyond `since` and the newest.
pub(crate) async fn next(
    session: &Session,
    lane: LaneId,
    since: Seq,
    wanted: &[(Ordinal, Seq)],
) -> Work<(Vec<Option<Document>>, Seq)> {
    let find = session
        .prepare(concat!(
            "SELECT ",
            document_columns!(),
            ", l.head, w.place FROM lanes l
              CROSS JOIN unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY w (ordinal, seq, place)
              LEFT JOIN LATERAL (SELECT * FROM (
                  (SELECT d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos,
                   d.revision_text, d.url, d.updated_at, d.content FROM history d WHERE d.lane = l.id
                   AND d.ordinal = w.ordinal AND d.seq >= w.seq AND d.until > $4 ORDER BY d.seq LIMIT 1)
                  UNION ALL
                  (SELECT d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos,
                   d.revision_text, d.url, d.updated_at, d.content FROM documents d WHERE d.lane = l.id
                   AND d.ordinal = w.ordinal AND d.seq >= w.seq)
              ) d ORDER BY d.seq LIMIT 1) d ON true WHERE l.id = $1"
        ))
        .await?;
    let ordinals: Vec<i64> = wanted.iter().map(|(ordinal, _)| ordinal.0 as i64).collect();
    let seqs: Vec<i64> = wanted.iter().map(|(_, seq)| signed(seq.0)).collect();
    let rows = session.client.query(&find, &[&key(lane), &ordinals, &seqs, &signed(since.0)]).await?;
    let (mut found, mut head) = (vec![None; wanted.len()], Seq(0));
    for row in rows {
        head = Seq(number(&row, 12)?);
        let place = number(&row, 13)? as usize;
        if let Some(slot) = found.get_mut(place - 1) {
            *slot = read_optional(&row, lane)?;
        }
    }
    Ok((found, head))
}

/// What is kept, by ordinal and seq.
pub(crate) async fn list(
    session: &Session,
    lane: LaneId,
    after: Option<(Ordinal, Seq)>,
    limit: usize,
) -> Work<Vec<OlderRevision>> {
    let list = session
        .prepare(
            "SELECT ordinal, seq, until, replaced_at FROM history WHERE lane = $1 AND (ordinal, seq) > ($2, $3)
             AND EXISTS (SELECT 1 FROM lanes WHERE id = $1) ORDER BY ordinal, seq LIMIT $4",
        )
        .await?;
    let (ordinal, seq) = after.map_or((-1, -1), |(ordinal, seq)| (signed(ordinal.0), signed(seq.0)));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut kept = Vec::new();
    for row in session.client.query(&list, &[&key(lane), &ordinal, &seq, &limit]).await? {
        kept.push(OlderRevision {
            ordinal: Ordinal(number(&row, 0)?),
            seq: Seq(number(&row, 1)?),
            until: Seq(number(&row, 2)?),
            replaced_at: Timestamp::from_millis(row.try_get(3)?),
        });
    }
    Ok(kept)
}

/// Removes revisions within a transaction, and answers how many were there.
pub(crate) async fn remove(session: &Session, lane: LaneId, revisions: &[(Ordinal, Seq)]) -> Work<u64> {
    let mut locked = lanes::lock(session, &[key(lane)], Hold::Change).await?;
    let Some(row) = locked.get_mut(&key(lane)) else { return Ok(0) };
    let delete = session
        .prepare(
            "DELETE FROM history h USING unnest($2::bigint[], $3::bigint[]) u (ordinal, seq)
             WHERE h.lane = $1 AND h.ordinal = u.ordinal AND h.seq = u.seq",
        )
        .await?;
    let ordinals: Vec<i64> = revisions.iter().map(|(ordinal, _)| ordinal.0 as i64).collect();
    let seqs: Vec<i64> = revisions.iter().map(|(_, seq)| seq.0 as i64).collect();
    let removed = session.client.execute(&delete, &[&key(lane), &ordinals, &seqs]).await?;
    row.revisions -= removed;
    lanes::write(session, &locked).await?;
    Ok(removed)
}
