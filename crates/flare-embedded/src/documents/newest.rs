//! Which changes of a lane are the newest of their documents: a lane comes in, two sets of numbers go out. No document is
//! read for it.

use flare_model::ids::LaneId;
use flare_provider::Newest;
use roaring::RoaringTreemap;
use rusqlite::Connection;

use crate::error::Work;
use crate::lanes;
use crate::place::{LAST, number, place};
use crate::recent::{Generation, Recent};
use crate::snapshot::snapshot;

/// What is in memory, or in the journal, and not in the table.
#[derive(Default)]
struct Unfolded {
    there: RoaringTreemap,
    gone: RoaringTreemap,
}

impl Unfolded {
    fn add(&mut self, generation: &Generation, lane: i64) {
        let all = place(lane, 0)..=place(lane, LAST);
        self.there.extend(generation.by_seq.range(all.clone()).map(|(place, _)| number(*place)));
        self.gone.extend(generation.stale.range(all.clone()).map(|place| number(*place)));
        let removed = generation.removed.iter().filter(|removed| all.contains(&removed.seq));
        self.gone.extend(removed.map(|removed| number(removed.seq)));
    }
}

/// The sets. No number is given out twice, so what is gone from one place is gone from all.
pub(crate) fn newest(connection: &Connection, recent: &Recent, lane: LaneId) -> Work<Newest> {
    // A lane keeps its id for ever, so it may be read before the snapshot.
    let Some(lane) = lanes::find(connection, lane)? else { return Ok(Newest::default()) };
    let mut unfolded = Unfolded::default();
    let mark = {
        let shelf = recent.shelf();
        shelf.generations().for_each(|generation| unfolded.add(generation, lane.id));
        shelf.mark()
    };
    snapshot(connection, |connection| {
        unfolded.add(&Recent::late(connection, mark)?, lane.id);
        let mut newest = Newest::default();
        let mut folded =
            connection.prepare_cached("SELECT place FROM by_seq WHERE place BETWEEN ?1 AND ?2")?;
        let mut rows = folded.query((place(lane.id, 0), place(lane.id, LAST)))?;
        while let Some(row) = rows.next()? {
            newest.seqs.insert(number(row.get(0)?));
        }
        newest.seqs |= unfolded.there;
        newest.seqs -= unfolded.gone;
        let mut deleted = connection
            .prepare_cached("SELECT seq FROM documents INDEXED BY tombstones WHERE lane = ?1 AND deleted")?;
        let mut rows = deleted.query([lane.id])?;
        while let Some(row) = rows.next()? {
            newest.tombstones.insert(row.get::<_, i64>(0)? as u64);
        }
        Ok(newest)
    })
}
