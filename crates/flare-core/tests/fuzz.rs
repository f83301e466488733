//! A short run of the fuzz target of the configuration; `fuzz/run.sh config` runs it for as long as one likes.

#[path = "../../../fuzz/bodies/config.rs"]
mod config;
#[path = "../../../fuzz/bodies/short.rs"]
mod short;

use std::path::Path;

#[test]
fn configurations() {
    short::run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/config"), 5_000, config::run);
}
