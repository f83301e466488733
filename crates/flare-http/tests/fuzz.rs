//! A short run of each fuzz target of this crate; `fuzz/run.sh` runs one for as long as one likes.

#[path = "../../../fuzz/bodies/short.rs"]
mod short;

use std::path::{Path, PathBuf};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

#[test]
fn bodies_of_lines() {
    short::run(&corpus("ndjson"), 20_000, flare_http::fuzzing::lines);
}

#[test]
fn heads_of_requests() {
    short::run(&corpus("head"), 20_000, flare_http::fuzzing::head);
}
