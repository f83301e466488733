//! What Flare says about clients is what they have recorded: status, drift, explain and `lagging`, at any moment of a thousand
//! histories of puts, deletes, changed filters, discards, dropped dead letters, pauses and crashes; and what was durable of how
//! a client fares is never taken back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flare_sim::run_probed;

const HISTORIES: u64 = 1_000;

#[test]
fn what_flare_says_is_so_in_a_thousand_histories() {
    let (next, probed) = (AtomicU64::new(1), AtomicU64::new(0));
    let wrong = Mutex::new(Vec::new());
    let jobs = std::thread::available_parallelism().map_or(2, usize::from);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > HISTORIES || wrong.lock().expect("nobody panics").len() > 3 {
                return;
            }
            let report = run_probed(seed, false);
            probed.fetch_add(report.probed, Ordering::Relaxed);
            let told = report.wrong.into_iter().map(|what| format!("seed {seed}: {what}"));
            wrong.lock().expect("nobody panics").extend(told);
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().expect("nobody panics");
    assert!(wrong.is_empty(), "cargo run -p flare-sim -- --truth --trace --seed SEED\n{}", wrong.join("\n"));
    assert!(probed.into_inner() > HISTORIES, "it was hardly asked");
}
