//! Documents and older revisions: their numbers are within those that their lane has given out, and the lane's counts
//! are true.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::Findings;
use super::facts::{Facts, LaneFacts, lane_of};
use super::ways::{AllMet, Document};
use crate::error::Work;
use crate::place::number;

/// Whether a document's numbers are such as its lane could have given out.
pub(super) fn check_numbers(document: &Document, facts: &Facts, findings: &mut Findings) {
    let about = || format!("document {} in {}", document.url, facts.lane(document.lane));
    let Some(LaneFacts { row: lane, .. }) = facts.lanes.get(&document.lane) else {
        findings.add(about(), "its lane does not exist");
        return;
    };
    if document.seq == 0 || document.seq > lane.head {
        findings.add(about(), format!("its seq {} is beyond the lane's head {}", document.seq, lane.head));
    }
    if document.ordinal >= lane.next_ordinal {
        let what = format!(
            "its ordinal {} is still to be given out, from {} on",
            document.ordinal, lane.next_ordinal
        );
        findings.add(about(), what);
    }
    let Document { born, before, seq, .. } = *document;
    if born == 0 || born > seq || before >= born {
        findings.add(about(), format!("it was born at {born}, after a life until {before}, and is at {seq}"));
    }
}

/// Checks what is known once all documents were met.
pub(super) fn check(
    connection: &Connection,
    facts: &Facts,
    met: &AllMet,
    findings: &mut Findings,
) -> Work<()> {
    let revisions = check_history(connection, facts, met, findings)?;
    for (id, LaneFacts { row, gone, .. }) in &facts.lanes {
        if *gone {
            // Its numbers went with it; only its rows are left, and go.
            continue;
        }
        let (documents, tombstones) = met.get(id).map_or((0, 0), |met| (met.documents, met.tombstones));
        let revisions = revisions.get(id).copied().unwrap_or(0);
        for (what, counted, there) in [
            ("live documents", row.documents, documents),
            ("tombstones", row.tombstones, tombstones),
            ("older revisions", row.revisions, revisions),
        ] {
            if counted != there {
                findings.add(facts.lane(*id), format!("counts {counted} {what}, and has {there}"));
            }
        }
    }
    Ok(())
}

/// Checks older revisions, and answers how many each lane has. Their documents may be gone: a tombstone that nobody needs
/// goes before them.
fn check_history(
    connection: &Connection,
    facts: &Facts,
    met: &AllMet,
    findings: &mut Findings,
) -> Work<BTreeMap<i64, u64>> {
    let mut counted = BTreeMap::new();
    let mut all = connection.prepare("SELECT place, document, until, url FROM history ORDER BY place")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let (place, document, until): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (id, seq, until) = (lane_of(place), number(place), until as u64);
        let url: String = row.get(3)?;
        let about = || format!("revision {seq} of document {url} in {}", facts.lane(id));
        *counted.entry(id).or_default() += 1;
        let Some(LaneFacts { row: lane, .. }) = facts.lanes.get(&id) else {
            findings.add(about(), "its lane does not exist");
            continue;
        };
        if lane_of(document) != id || number(document) >= lane.next_ordinal {
            findings.add(about(), "belongs to a document that never was in this lane");
        }
        if seq >= until || until > lane.head {
            let what = format!("was replaced by the change {until}, and the lane's head is {}", lane.head);
            findings.add(about(), what);
        }
        if met.get(&id).is_some_and(|met| met.seqs.contains(seq)) {
            findings.add(about(), "is an older revision, and the newest one of a document");
        }
    }
    Ok(counted)
}
