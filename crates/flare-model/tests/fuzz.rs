//! A short run of each fuzz target of this crate; `fuzz/run.sh` runs one for as long as one likes.

#[path = "../../../fuzz/bodies/change.rs"]
mod change;
#[path = "../../../fuzz/bodies/layout.rs"]
mod layout;
#[path = "../../../fuzz/bodies/patch.rs"]
mod patch;
#[path = "../../../fuzz/bodies/short.rs"]
mod short;
#[path = "../../../fuzz/bodies/token.rs"]
mod token;
#[path = "../../../fuzz/bodies/url.rs"]
mod url;

use std::path::{Path, PathBuf};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

#[test]
fn urls_patterns_and_templates() {
    short::run(&corpus("url"), 20_000, url::run);
}

#[test]
fn layouts_and_dates() {
    short::run(&corpus("layout"), 20_000, layout::run);
}

#[test]
fn changes_and_revisions() {
    short::run(&corpus("change"), 20_000, change::run);
}

#[test]
fn patches() {
    short::run(&corpus("patch"), 20_000, patch::run);
}

#[test]
fn tokens() {
    short::run(&corpus("token"), 20_000, token::run);
}
