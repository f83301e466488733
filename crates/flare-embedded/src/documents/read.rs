//! Reading documents one by one: a url or ordinals come in, the rows that a snapshot has go out.

use flare_model::document::Document;
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq};
use flare_provider::LaneState;
use rusqlite::{Connection, OptionalExtension};

use super::row::{document_columns, has_url, is_of, read_document};
use crate::error::Work;
use crate::lanes;
use crate::place::{LAST, place, url_key};
use crate::recent::Recent;
use crate::snapshot::snapshot;

const BY_ID: &str = concat!("SELECT ", document_columns!(), " FROM documents d WHERE d.id = ?1");

/// One document by its url.
pub(crate) fn get(connection: &Connection, recent: &Recent, id: LaneId, url: &str) -> Work<Option<Document>> {
    let hash = url_key(url);
    let (mark, mut candidates) = {
        let shelf = recent.shelf();
        (shelf.mark(), shelf.generations().flat_map(|g| g.with_hash(hash)).collect::<Vec<i64>>())
    };
    snapshot(connection, |connection| {
        let Some(lane) = lanes::find(connection, id)? else { return Ok(None) };
        candidates.extend(Recent::late(connection, mark)?.with_hash(hash));
        // Not a join: see the statements of a commit.
        let mut by_url = connection.prepare_cached("SELECT document FROM by_url WHERE hash = ?1")?;
        for document in by_url.query_map([hash], |row| row.get(0))? {
            candidates.push(document?);
        }
        let mut by_id = connection.prepare_cached(BY_ID)?;
        for candidate in candidates {
            let mut rows = by_id.query([candidate])?;
            if let Some(row) = rows.next()?
                && is_of(row, lane.id)?
                && has_url(row, url)?
            {
                return Ok(Some(read_document(row, id)?));
            }
        }
        Ok(None)
    })
}

/// Documents by their ordinals, and the head of the lane.
pub(crate) fn fetch(
    connection: &Connection,
    recent: &Recent,
    id: LaneId,
    ordinals: &[Ordinal],
) -> Work<(Vec<Option<Document>>, Seq)> {
    let nothing = || (vec![None; ordinals.len()], Seq(0));
    // A lane keeps its id for ever, so it may be read before the snapshot.
    let Some(lane) = lanes::find(connection, id)? else { return Ok(nothing()) };
    let (mark, remembered) = {
        let shelf = recent.shelf();
        let look = |ordinal: &Ordinal| {
            shelf.generations().find_map(|g| g.by_ordinal.get(&place(lane.id, ordinal.0)).copied())
        };
        (shelf.mark(), ordinals.iter().map(look).collect::<Vec<_>>())
    };
    snapshot(connection, |connection| {
        let Some(lane) = lanes::find(connection, id)? else { return Ok(nothing()) };
        let late = Recent::late(connection, mark)?;
        let mut by_id = connection.prepare_cached(BY_ID)?;
        let mut by_ordinal = connection.prepare_cached("SELECT document FROM by_ordinal WHERE place = ?1")?;
        let mut found = Vec::with_capacity(ordinals.len());
        for (ordinal, remembered) in ordinals.iter().zip(remembered) {
            if ordinal.0 > LAST {
                found.push(None);
                continue;
            }
            let place = place(lane.id, ordinal.0);
            let document = match remembered.or_else(|| late.by_ordinal.get(&place).copied()) {
                Some(document) => Some(document),
                None => by_ordinal.query_row([place], |row| row.get(0)).optional()?,
            };
            let Some(document) = document else {
                found.push(None);
                continue;
            };
            let read = by_id.query_row([document], |row| {
                Ok(if is_of(row, lane.id)? { Some(read_document(row, id)?) } else { None })
            });
            found.push(read.optional()?.flatten().filter(|read| read.row.ordinal == *ordinal));
        }
        Ok((found, Seq(lane.head)))
    })
}

/// The lanes that are not gone: all, or those of one resource.
pub(crate) fn lane_states(connection: &Connection, resource: Option<ResourceNumber>) -> Work<Vec<LaneState>> {
    let mut all = connection.prepare_cached(
        "SELECT resource, place, head, documents, tombstones, revisions FROM lanes
         WHERE gone = 0 AND resource BETWEEN ?1 AND ?2 ORDER BY resource, place",
    )?;
    let signed = |number: ResourceNumber| i64::try_from(number.0).unwrap_or(i64::MAX);
    let bounds = resource.map_or((0, i64::MAX), |resource| (signed(resource), signed(resource)));
    let states = all.query_map(bounds, |row| {
        let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
        Ok(LaneState {
            lane: LaneId { resource: ResourceNumber(number(0)?), index: row.get(1)? },
            head: Seq(number(2)?),
            documents: number(3)?,
            tombstones: number(4)?,
            revisions: number(5)?,
        })
    })?;
    Ok(states.collect::<rusqlite::Result<_>>()?)
}
