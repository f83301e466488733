//! In: the git checkout, if there is one, `FLARE_GIT_SHA` and `SOURCE_DATE_EPOCH`. Out: `BUILT_SHA` and
//! `BUILT_TIME` for version.rs.
//! Their names do not begin with `FLARE_`: `cargo run` hands them to the program, which refuses variables it does not know.
//!
//! The time is that of the commit, never that of the compilation: the same source gives the same binary, and a build
//! with nothing to do does nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    for line in [
        "rerun-if-changed=build.rs",
        "rerun-if-env-changed=FLARE_GIT_SHA",
        "rerun-if-env-changed=SOURCE_DATE_EPOCH",
    ] {
        println!("cargo::{line}");
    }
    let checkout = is_our_checkout();
    if checkout {
        watch();
    }
    let of_git = |arguments: &[&str]| if checkout { git(arguments) } else { None };
    let sha = variable("FLARE_GIT_SHA").or_else(|| of_git(&["rev-parse", "--short=12", "HEAD"]));
    let time = variable("SOURCE_DATE_EPOCH")
        .or_else(|| of_git(&["-c", "log.showSignature=false", "show", "-s", "--format=%ct", "HEAD"]))
        .and_then(|seconds| seconds.parse().ok())
        .map(rfc3339);
    println!("cargo::rustc-env=BUILT_SHA={}", sha.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=BUILT_TIME={}", time.as_deref().unwrap_or("unknown"));
}

/// The directory of this crate. Asked at run time: cargo takes a compiled script from one checkout to another that
/// shares its target directory.
fn here() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells every build script where it is"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Whether the sources lie in a checkout of their own. A tarball unpacked inside some other repository is not of that
/// repository's commit.
fn is_our_checkout() -> bool {
    let workspace = here().join("../..").canonicalize().ok();
    let top = git(&["rev-parse", "--show-toplevel"]).and_then(|top| PathBuf::from(top).canonicalize().ok());
    top.is_some() && top == workspace
}

/// Has cargo run this again when HEAD moves, in a worktree too, and at no other time.
fn watch() {
    // A path that does not exist would make every build run this again.
    let watch_existing = |path: &Path| {
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    };
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        if let Some(path) = git_path(name) {
            watch_existing(&path);
        }
    }
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]).and_then(|name| git_path(&name)) {
        // A branch that is packed, or has no commit yet, gets a file of its own with its next commit: until then its
        // nearest directory is watched.
        if let Some(path) = branch.ancestors().find(|path| path.exists()) {
            watch_existing(path);
        }
    }
}

/// Where git keeps a file of this checkout, made absolute.
fn git_path(name: &str) -> Option<PathBuf> {
    git(&["rev-parse", "--git-path", name]).map(|path| here().join(path))
}

/// The first line that git answers; `None` where there is no git or it has nothing to say.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(here()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or_default().to_owned())
        .filter(|line| !line.is_empty())
}

/// Seconds since 1970 as a date and time in UTC.
fn rfc3339(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 1 March of year 0 in eras of 400 years, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}
