//! Names that are pointed elsewhere after they were looked at: a real resolver that changes its mind, in a network of its own.

use std::path::Path;
use std::process::Command;

use crate::support::left_out;

#[test]
fn a_name_that_is_rebound_reaches_nothing() {
    let apart = ["--user", "--map-root-user", "--net", "--mount"];
    let may = Command::new("unshare").args(apart).arg("true").output();
    if !may.is_ok_and(|output| output.status.success()) {
        return left_out("names that are rebound: a network of one's own (unshare) is not allowed here");
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/safety/rebinding.py");
    let output = Command::new("unshare")
        .args(apart)
        .args(["timeout", "120", "python3"])
        .args([script.as_path(), Path::new(env!("CARGO_BIN_EXE_flare")), folder.path()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
