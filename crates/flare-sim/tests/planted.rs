//! Bugs that are planted are found: what the simulation is for.

use flare_model::planted::{Bug, plant};
use flare_sim::run;

/// Each is found within so many schedules.
const SCHEDULES: u64 = 1000;

/// The first seed that finds a bug, and what it says.
fn find(bug: Bug) -> Option<(u64, String)> {
    plant(Some(bug));
    let found = (1..=SCHEDULES).find_map(|seed| Some((seed, run(seed, false).wrong.into_iter().next()?)));
    plant(None);
    found
}

fn is_found(bug: Bug) {
    match find(bug) {
        Some((seed, what)) => println!("{bug:?} is found by seed {seed}: {what}"),
        None => panic!("{bug:?} is not found within {SCHEDULES} schedules"),
    }
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
}
