//! Scanning: a part of a lane comes in as numbers, a page of it goes out, in the order of its changes.
//!
//! Two sorted lists are merged: the entries of `by_seq`, and those that are still in memory or only in the
//! journal. An entry counts if the document's row still has its seq; the others are stale.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use flare_model::ids::Seq;
use flare_provider::{Page, ScanLane};
use rusqlite::{CachedStatement, Connection};

use super::row::{document_columns, is_of, read_document, seq_of};
use crate::error::Work;
use crate::lanes;
use crate::place::{LAST, number, place};
use crate::recent::Recent;
use crate::snapshot::snapshot;

/// Bound: a page looks at so many entries beyond the rows it was asked for. When full: it ends early, and says
/// how far it came.
const STALE: usize = 4096;

/// A page of a lane.
pub(crate) fn scan(connection: &Connection, recent: &Recent, scan: ScanLane) -> Work<Page> {
    // A lane keeps its id for ever, so it may be read before the snapshot.
    let Some(lane) = lanes::find(connection, scan.lane)? else { return Ok(Page::default()) };
    let first = Bound::Excluded(place(lane.id, scan.after.0));
    let last = place(lane.id, scan.upto.0);
    let mut entries = BTreeMap::new();
    let mut end = last;
    let mark = {
        let shelf = recent.shelf();
        let most = scan.rows.saturating_add(1).min(STALE);
        for generation in shelf.generations() {
            if scan.after.0 >= LAST || scan.after >= scan.upto {
                break;
            }
            let mut taken = 0;
            for (place, document) in generation.by_seq.range((first, Bound::Included(last))).take(most) {
                entries.insert(*place, *document);
                taken += 1;
                if taken == most {
                    // There may be more of this generation: nothing beyond here is known to be whole.
                    end = end.min(*place);
                }
            }
        }
        shelf.mark()
    };
    snapshot(connection, |connection| {
        let Some(lane) = lanes::find(connection, scan.lane)? else { return Ok(Page::default()) };
        let head = Seq(lane.head);
        let page = Page { documents: Vec::new(), upto: scan.upto.min(head), head };
        if scan.after >= page.upto {
            return Ok(page);
        }
        let late = Recent::late(connection, mark)?;
        entries.extend(late.by_seq.range((first, Bound::Included(end))));
        entries.split_off(&(end + 1));
        let most = scan.rows.saturating_add(STALE);
        let gathering = Gathering { scan, lane: lane.id, page, entries, end, bytes: 0, left: most };
        gathering.run(connection)
    })
}

struct Gathering {
    scan: ScanLane,
    lane: i64,
    page: Page,
    /// Place and document of what is not in the table yet.
    entries: BTreeMap<i64, i64>,
    /// Up to here the entries are whole.
    end: i64,
    /// Of the contents so far.
    bytes: usize,
    /// How many entries may still be looked at.
    left: usize,
}

impl Gathering {
    fn run(mut self, connection: &Connection) -> Work<Page> {
        let mut by_id = connection.prepare_cached(concat!(
            "SELECT ",
            document_columns!(),
            " FROM documents d WHERE d.id = ?1"
        ))?;
        let mut by_seq = connection.prepare_cached(concat!(
            "SELECT ",
            document_columns!(),
            ", s.place FROM by_seq s CROSS JOIN documents d ON d.id = s.document
             WHERE s.place > ?1 AND s.place <= ?2 ORDER BY s.place"
        ))?;
        let mut rows = by_seq.query([place(self.lane, self.scan.after.0), self.end])?;
        while let Some(row) = rows.next()? {
            let place: i64 = row.get(13)?;
            if self.remembered(&mut by_id, place)?.is_break() {
                return Ok(self.page);
            }
            self.entries.remove(&place);
            if self.take(row, place)?.is_break() {
                return Ok(self.page);
            }
        }
        if self.remembered(&mut by_id, i64::MAX)?.is_break() {
            return Ok(self.page);
        }
        self.page.upto = self.page.upto.min(Seq(number(self.end)));
        Ok(self.page)
    }

    /// Takes what is only in memory and comes before a place.
    fn remembered(&mut self, by_id: &mut CachedStatement<'_>, before: i64) -> Work<ControlFlow<()>> {
        while let Some(entry) = self.entries.first_entry()
            && *entry.key() < before
        {
            let (place, document) = entry.remove_entry();
            let mut rows = by_id.query([document])?;
            if let Some(row) = rows.next()?
                && self.take(row, place)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes a row, unless the page is full or the entry that led here is stale.
    fn take(&mut self, row: &rusqlite::Row, place: i64) -> Work<ControlFlow<()>> {
        let full = self.page.documents.len() >= self.scan.rows
            || self.bytes >= self.scan.bytes && !self.page.documents.is_empty();
        let stale = !is_of(row, self.lane)? || seq_of(row)? != number(place);
        if self.left == 0 {
            self.page.upto = Seq(number(place) - 1);
            return Ok(ControlFlow::Break(()));
        }
        self.left -= 1;
        if stale {
            return Ok(ControlFlow::Continue(()));
        }
        if full {
            let last = self.page.documents.last();
            self.page.upto = last.map_or(self.scan.after, |last| last.row.seq);
            return Ok(ControlFlow::Break(()));
        }
        let document = read_document(row, self.scan.lane)?;
        self.bytes += document.content.len();
        self.page.documents.push(document);
        Ok(ControlFlow::Continue(()))
    }
}
