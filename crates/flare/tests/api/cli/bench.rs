//! `flare bench` through the real binary: everything that is put is delivered, the numbers fit each other, and nothing is left.

use std::process::{Command, Stdio};

use serde_json::Value;

#[test]
fn a_bench_says_how_much_is_accepted_and_delivered_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
        command.args(["bench", "--documents", "200", "--clients", "2", "--connections", "4"]).args(words);
        command.env_clear().env("TMPDIR", temporary.path()).current_dir(temporary.path());
        let output = command.stdin(Stdio::null()).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let report: Value = serde_json::from_str(&run(&["--output", "json"])).unwrap();
    let number = |name: &str| report[name].as_f64().unwrap_or_else(|| panic!("{name}: {report}"));
    assert_eq!((number("documents"), number("clients"), number("connections")), (200.0, 2.0, 4.0));
    let delivered = number("deliveriesPerSecond") * number("seconds");
    assert!((380.0..=420.0).contains(&delivered), "apart from rounding: {report}");
    assert!(number("acceptedPerSecond") * number("seconds") > 190.0, "{report}");
    for spread in ["accept", "delivery"] {
        let [p50, p99] = ["p50", "p99"].map(|share| report[spread][share].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p99, "{report}");
    }
    let words = run(&[]);
    assert!(
        words.contains("200 documents") && words.contains("delivered") && words.contains("p99"),
        "{words}"
    );
    assert!(std::fs::read_dir(temporary.path()).unwrap().next().is_none(), "nothing of it is left");
}
