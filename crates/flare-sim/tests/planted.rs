//! Bugs that are planted are found: what the simulation is for.

use flare_model::planted::{Bug, plant};
use flare_sim::{Nodes, run_with};

/// Each is found within so many schedules.
const SCHEDULES: u64 = 1000;

/// The first seed that finds a bug, and what it says.
fn find(bug: Bug, nodes: impl Fn(u64) -> usize) -> Option<(u64, String)> {
    plant(Some(bug));
    let says = |seed| run_with(seed, false, Nodes::These(nodes(seed))).wrong.into_iter().next();
    let found = (1..=SCHEDULES).find_map(|seed| Some((seed, says(seed)?)));
    plant(None);
    found
}

fn must_be_found(bug: Bug, nodes: impl Fn(u64) -> usize) {
    match find(bug, nodes) {
        Some((seed, what)) => println!("{bug:?} is found by seed {seed}: {what}"),
        None => panic!("{bug:?} is not found within {SCHEDULES} schedules"),
    }
}

/// By schedules of one node.
fn is_found(bug: Bug) {
    must_be_found(bug, |_| 1);
}

/// By schedules of two or three nodes.
fn is_found_among_several(bug: Bug) {
    must_be_found(bug, |seed| 2 + seed as usize % 2);
}

/// A name by which they can be left out.
mod planted {
    use super::*;

    #[test]
    fn the_mark_falls_when_nothing_was_recorded() {
        is_found(Bug::MarkFalls);
    }

    #[test]
    fn a_sweep_stands_still_with_nothing_left_to_wake_it() {
        is_found(Bug::SweepStandsStill);
    }

    #[test]
    fn the_cursor_moves_before_the_record() {
        is_found(Bug::CursorBeforeRecord);
    }

    #[test]
    fn the_mark_is_not_durable_before_sending() {
        is_found(Bug::MarkNotDurable);
    }

    #[test]
    fn a_sweep_loses_what_changes_during_it() {
        is_found(Bug::SweepLosesChanges);
    }

    #[test]
    fn a_filter_changed_during_a_sweep_is_forgotten() {
        is_found(Bug::FilterForgotten);
    }

    #[test]
    fn a_late_answer_of_an_old_attempt_settles_a_new_one() {
        is_found(Bug::LateAnswerSettles);
    }

    #[test]
    fn a_patch_of_shards_drops_a_standing() {
        is_found(Bug::ShardsDropStanding);
    }

    #[test]
    fn fencing_is_removed() {
        is_found_among_several(Bug::FencingRemoved);
    }

    #[test]
    fn a_lease_is_renewed_after_it_was_over() {
        is_found_among_several(Bug::RenewedAfterExpiry);
    }

    #[test]
    fn a_lease_is_renewed_by_name_alone() {
        is_found_among_several(Bug::RenewedByName);
    }

    #[test]
    fn the_coordinator_gives_out_epochs_and_is_restored() {
        is_found_among_several(Bug::EpochFromCoordinator);
    }

    #[test]
    fn a_ring_is_lost_and_nobody_looks() {
        is_found_among_several(Bug::NoPoll);
    }

    #[test]
    fn a_change_of_the_catalog_is_missed() {
        is_found_among_several(Bug::CatalogChangeMissed);
    }

    #[test]
    fn a_stale_sweeper_removes_what_another_has_to_judge() {
        is_found_among_several(Bug::StaleSweeper);
    }

    #[test]
    fn an_attempt_is_not_cut_at_the_deadline() {
        is_found_among_several(Bug::AttemptNotCut);
    }

    #[test]
    fn the_tail_is_pushed_over_a_gap() {
        is_found_among_several(Bug::TailOverGap);
    }
}
