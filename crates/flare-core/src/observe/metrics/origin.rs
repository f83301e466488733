//! What origins said and how long they waited.

use flare_model::document::Outcome;

use super::{Family, Samples, alone};
use crate::observe::count::{REFUSALS, REMOVALS, Totals};

/// Families about the way in.
pub fn families(totals: &Totals) -> Vec<Family> {
    let outcomes = Outcome::ALL.map(|outcome| (outcome.as_str(), totals.outcomes[outcome as usize]));
    vec![
        Family::counters(
            "flare_documents_received_total",
            "Documents that origins sent and Flare compared, by what became of them.",
            "outcome",
            outcomes,
        ),
        Family::counters(
            "flare_documents_refused_total",
            "Documents that origins sent and Flare did not take, by why.",
            "reason",
            REFUSALS.into_iter().zip(totals.refused),
        ),
        Family::counter(
            "flare_documents_received_bytes_total",
            "Bytes of the documents that were committed, whatever became of them.",
            totals.bytes,
        ),
        Family::seconds(
            "flare_commit_duration_seconds",
            "How long requests of origins waited until what they said was durable.",
            totals.commit.clone(),
        ),
        Family {
            name: "flare_commit_changes",
            help: "How many changes shared one commit of the store.",
            samples: Samples::Histogram(vec![alone(totals.group.clone())], 1.0),
        },
        Family::counter(
            "flare_tombstones_removed_total",
            "Deleted documents that are no longer remembered.",
            totals.tombstones,
        ),
        Family::counters(
            "flare_revisions_removed_total",
            "Older revisions of documents that were removed, by whether every client had what it wanted of them.",
            "reason",
            REMOVALS.into_iter().zip(totals.revisions),
        ),
    ]
}
