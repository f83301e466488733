//! Schedules break no promise, and are the same when they are played again.

use flare_sim::run;

/// So many are played twice.
const TWICE: u64 = 100;

#[test]
fn a_schedule_is_the_same_to_the_last_line_when_it_is_played_again() {
    for seed in 1..=TWICE {
        let (one, again) = (run(seed, true), run(seed, true));
        let parted = one.trace.iter().zip(&again.trace).position(|(one, again)| one != again);
        assert_eq!(parted, None, "seed {seed}: {:?}", parted.map(|at| (&one.trace[at], &again.trace[at])));
        assert_eq!(one.trace.len(), again.trace.len(), "seed {seed}");
        assert_eq!(one.wrong, Vec::<String>::new(), "cargo run -p flare-sim -- --seed {seed} --trace");
    }
}
