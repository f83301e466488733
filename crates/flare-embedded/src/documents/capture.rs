//! Capturing: what a new resource would take from others comes in; a live document that it must not take goes out, as a
//! refusal of the commit that creates it. Only what the creator has not seen is looked at, and that is little.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use flare_provider::{Capture, Conflict, MOST_UNSEEN, ProviderError};

use crate::desk::Desk;
use crate::error::Work;
use crate::place::place;
use crate::recent::Change;

const OPERATION: &str = "catalog.create";

/// Looks at what came since, this transaction included.
pub(crate) fn check(desk: &mut Desk<'_>, capture: &Capture) -> Work<()> {
    let mut unseen: Vec<RangeInclusive<i64>> = Vec::with_capacity(capture.seen.len());
    let mut quantity = 0;
    for (id, seen) in &capture.seen {
        let Some(lane) = desk.lanes.get(desk.connection, *id)? else { continue };
        if lane.head > seen.0 {
            quantity += lane.head - seen.0;
            unseen.push(place(lane.id, seen.0 + 1)..=place(lane.id, lane.head));
        }
    }
    if quantity > MOST_UNSEEN {
        return Err(ProviderError::conflict(OPERATION, Conflict::Unseen).into());
    }
    let mut read =
        desk.connection.prepare_cached("SELECT lane, seq, deleted, url FROM documents WHERE id = ?1")?;
    for places in unseen {
        for document in changed(desk, &places)? {
            let mut rows = read.query([document])?;
            let Some(row) = rows.next()? else { continue };
            let there = place(row.get(0)?, row.get::<_, i64>(1)? as u64);
            let url = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
            if places.contains(&there) && row.get::<_, i64>(2)? == 0 && capture.takes(url) {
                return Err(ProviderError::conflict(OPERATION, Conflict::Captured(url.to_string())).into());
            }
        }
    }
    Ok(())
}

/// The documents that changed at these places: by this transaction, by recent ones, and by those that are folded.
fn changed(desk: &Desk<'_>, places: &RangeInclusive<i64>) -> Work<BTreeSet<i64>> {
    let own = desk.done.changes.iter().filter_map(|change| match *change {
        Change::Born { document, lane, seq, .. } | Change::Moved { document, lane, seq, .. } => {
            places.contains(&place(lane, seq)).then_some(document)
        }
        Change::Removed { .. } => None,
    });
    let mut found: BTreeSet<i64> = own.collect();
    for generation in desk.recent.shelf().generations() {
        found.extend(generation.by_seq.range(places.clone()).map(|(_, document)| *document));
    }
    let mut folded =
        desk.connection.prepare_cached("SELECT document FROM by_seq WHERE place BETWEEN ?1 AND ?2")?;
    for document in folded.query_map((places.start(), places.end()), |row| row.get(0))? {
        found.insert(document?);
    }
    Ok(found)
}
