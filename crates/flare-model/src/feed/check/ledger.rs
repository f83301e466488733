//! The ledger of the checks: what an engine does with a record, in its shortest form.

use super::super::{Record, Saved, State};

/// Makes a record durable.
pub fn write(saved: &mut Saved, record: &Record) {
    saved.cursor = record.cursor;
    saved.issued = record.issued;
    saved.judging = record.judging;
    saved.unjudged = record.unjudged.clone();
    saved.judged = record.judged.clone();
    saved.ahead = record.ahead.clone();
    for ordinal in &record.held {
        saved.held.insert(ordinal.0);
    }
    for ordinal in &record.dropped {
        saved.held.remove(ordinal.0);
    }
    let gone = record.cleared.iter().copied().chain(record.standings.iter().map(|standing| standing.ordinal));
    for ordinal in gone {
        saved.standings.retain(|standing| standing.ordinal != ordinal);
        saved.dead.remove(ordinal.0);
        saved.dead_in_doubt.remove(ordinal.0);
    }
    for standing in &record.standings {
        match standing.state {
            State::GaveUp => {
                saved.dead.insert(standing.ordinal.0);
                if standing.doubt {
                    saved.dead_in_doubt.insert(standing.ordinal.0);
                }
            }
            State::Waiting { .. } | State::Leased { .. } | State::Doubtful | State::Passed => {
                saved.standings.push(standing.clone())
            }
        }
    }
    saved.standings.sort_by_key(|standing| standing.ordinal);
    saved.since = record.since;
    saved.sweep = record.sweep.clone();
    saved.tally = record.tally.clone();
    saved.life = record.life;
    saved.filtering = record.filtering.clone();
    saved.strange = false;
}
