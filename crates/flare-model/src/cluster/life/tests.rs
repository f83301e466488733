//! The life of nodes under many schedules, with the rules and without each of them.

use super::check::{Broken, play, trace};

#[test]
fn a_unit_never_has_two_owners_and_has_one_in_the_end() {
    let seeds = if std::env::var_os("FLARE_CHECK_DEEP").is_some() { 100_000 } else { 1_000 };
    for seed in 0..seeds {
        if let Err(wrong) = play(seed, None) {
            panic!("seed {seed}: {wrong}\n{}", trace(seed));
        }
    }
}

#[test]
fn a_rule_that_is_taken_away_is_missed() {
    for broken in [
        Broken::DeadlineFromAnswer,
        Broken::KeepsWhatItBelieved,
        Broken::UsesWhatItReleased,
        Broken::BelievesOldLists,
    ] {
        let found = (0..3_000).find(|seed| play(*seed, Some(broken)).is_err());
        assert!(found.is_some(), "{broken:?} is not noticed");
        eprintln!("{broken:?} is noticed by seed {}", found.unwrap_or_default());
    }
}
