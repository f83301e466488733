//! The life of nodes under many schedules, with the rules and without each of them.

use super::check::{Broken, play, trace};

fn seeds(usually: u64, deeply: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("FLARE_CHECK_DEEP").is_some() { deeply } else { usually }
}

#[test]
fn a_unit_never_has_two_owners_and_has_one_in_the_end() {
    for seed in seeds(200, 20_000) {
        if let Err(wrong) = play(seed, None) {
            panic!("seed {seed}: {wrong}\n{}", trace(seed));
        }
    }
}

/// Without the rule some schedule has two owners, or a unit that is cut for nothing.
fn is_missed(broken: Broken) {
    let found = seeds(4_000, 20_000).find(|seed| play(*seed, Some(broken)).is_err());
    assert!(found.is_some(), "{broken:?} is not noticed");
}

#[test]
fn a_deadline_that_counts_from_the_answer_is_found() {
    is_missed(Broken::DeadlineFromAnswer);
}

#[test]
fn a_node_that_keeps_what_it_believed_is_found() {
    is_missed(Broken::KeepsWhatItBelieved);
}

/// Whoever cannot record and cuts what nobody else can have leaves doubt for nothing.
#[test]
fn a_node_that_gives_up_what_nobody_can_take_is_found() {
    is_missed(Broken::GivesUpAlone);
}

#[test]
fn a_list_from_before_the_last_write_that_is_believed_is_found() {
    is_missed(Broken::BelievesOldLists);
}
