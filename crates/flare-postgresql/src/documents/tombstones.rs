//! Removing tombstones: which may go is looked up; then they go in a transaction that holds their lane, each compared again
//! with what is there by then.

use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use super::lanes::{self, Hold};
use super::row::{key, number, signed};
use crate::connect::Session;
use crate::error::Work;

/// Bound: so many tombstones are looked for, and removed, at a time. When full: the next slice follows.
pub(crate) const SLICE: usize = 1000;

/// Which tombstones to look for.
#[derive(Clone)]
pub(crate) struct Search {
    pub lane: LaneId,
    /// Only beyond this seq.
    pub after: Seq,
    pub upto: Seq,
    pub accepted_before: Timestamp,
    pub limit: usize,
}

/// Up to `limit` tombstones in the order of their seqs, and how far the search came: `None` when to the end.
pub(crate) async fn find(
    session: &Session,
    search: &Search,
    keep: &RoaringTreemap,
) -> Work<(Vec<(Ordinal, Seq)>, Option<Seq>)> {
    // Those to keep count too, so that the search ends even if all are kept.
    const LOOKED_AT: usize = SLICE * 8;
    let find = session
        .prepare(
            "SELECT ordinal, seq FROM documents WHERE deleted AND lane = $1 AND seq > $2 AND seq <= $3
             AND updated_at < $4 AND EXISTS (SELECT 1 FROM lanes WHERE id = $1) ORDER BY seq LIMIT $5",
        )
        .await?;
    let (after, upto) = (signed(search.after.0), signed(search.upto.0));
    let accepted = search.accepted_before.millis();
    let rows = session
        .client
        .query(&find, &[&key(search.lane), &after, &upto, &accepted, &(LOOKED_AT as i64)])
        .await?;
    let (mut found, mut last) = (Vec::new(), search.after);
    for row in &rows {
        if found.len() >= search.limit {
            return Ok((found, Some(last)));
        }
        let ordinal = number(row, 0)?;
        last = Seq(number(row, 1)?);
        if !keep.contains(ordinal) {
            found.push((Ordinal(ordinal), last));
        }
    }
    Ok((found, (rows.len() == LOOKED_AT).then_some(last)))
}

/// Removes those that are still what they were, within a transaction, and answers how many.
pub(crate) async fn remove(session: &Session, lane: LaneId, found: &[(Ordinal, Seq)]) -> Work<u64> {
    let mut locked = lanes::lock(session, &[key(lane)], Hold::Change).await?;
    let Some(row) = locked.get_mut(&key(lane)) else { return Ok(0) };
    let delete = session
        .prepare(
            "DELETE FROM documents d USING unnest($2::bigint[], $3::bigint[]) u (ordinal, seq)
             WHERE d.lane = $1 AND d.ordinal = u.ordinal AND d.seq = u.seq AND d.deleted",
        )
        .await?;
    let ordinals: Vec<i64> = found.iter().map(|(ordinal, _)| ordinal.0 as i64).collect();
    let seqs: Vec<i64> = found.iter().map(|(_, seq)| seq.0 as i64).collect();
    let removed = session.client.execute(&delete, &[&key(lane), &ordinals, &seqs]).await?;
    row.tombstones -= removed;
    lanes::write(session, &locked).await?;
    Ok(removed)
}
