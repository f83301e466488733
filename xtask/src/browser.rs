//! `cargo xtask browser`: the web interface in Chromium, against the real binary. In: tests/browser. Out: the closing
//! lines of node's test runner, and pictures in target/browser; where asked for, those of the user guide are taken from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::needs::{self, LeftOut, Need};

#[derive(clap::Args, Default)]
pub struct Args {
    /// Put the pictures that the user guide shows into docs/images/ui, with a palette.
    #[arg(long)]
    screenshots: bool,
    /// The tests to run, by the beginning of their file's name; all when none is named.
    files: Vec<String>,
}

const NEEDS: [Need; 3] = [
    Need {
        program: "node",
        arguments: &["--version"],
        package: "nodejs",
        why: "the tests of the web interface are written for it",
    },
    Need {
        program: "npm",
        arguments: &["--version"],
        package: "npm",
        why: "it installs the libraries of these tests",
    },
    Need {
        program: "chromium",
        arguments: &["--version"],
        package: "chromium",
        why: "the web interface is looked at in it",
    },
];

const PALETTE: Need = Need {
    program: "pngquant",
    arguments: &["--version"],
    package: "pngquant",
    why: "it makes the pictures of the user guide small",
};

/// Runs the tests and fails if one does.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut left_out = LeftOut::default();
    let can_illustrate = !args.screenshots || needs::provide(&[PALETTE], &mut left_out);
    if !provide(&mut left_out) || !can_illustrate {
        left_out.tell()?;
        bail!("something is missing that the browser tests need");
    }
    build()?;
    look(args)?;
    if args.screenshots { illustrate() } else { Ok(()) }
}

/// The same, with a binary that was built already.
pub fn look(args: &Args) -> anyhow::Result<()> {
    let mut node = Command::new("node");
    // Named, because what it prints by itself depends on the version and on whether a terminal is there.
    node.args(["--test", "--test-reporter=spec"]).args(files(args)?);
    node.current_dir(folder()).env("FLARE_BINARY", target().join("debug/flare"));
    if !node.status().context("running node --test")?.success() {
        bail!("some browser tests failed");
    }
    Ok(())
}

/// Puts the pictures that docs/ui.md shows where it looks for them; no others are kept in the repository.
fn illustrate() -> anyhow::Result<()> {
    let guide = std::fs::read_to_string(root().join("docs/ui.md")).context("reading docs/ui.md")?;
    let shown = guide.split("(images/ui/").skip(1).filter_map(|rest| rest.split_once(')'));
    for (name, _) in shown {
        let (from, to) =
            (root().join("target/browser/screenshots").join(name), root().join("docs/images/ui").join(name));
        // With a palette a page takes a third of the bytes and looks the same.
        let mut palette = Command::new("pngquant");
        palette.args(["--force", "--strip", "--quality", "70-95", "--output"]).arg(&to).arg(&from);
        if !palette.status().context("running pngquant")?.success() {
            bail!("{} cannot be made smaller", from.display());
        }
    }
    Ok(())
}

/// Sees to what these tests need: the programs, and the libraries by their lock file. Answers whether all is there.
pub fn provide(left_out: &mut LeftOut) -> bool {
    if !needs::provide(&NEEDS, left_out) {
        left_out.because("the tests of the web interface".to_owned());
        return false;
    }
    if let Err(error) = needs::npm_install(&folder()) {
        left_out.because(format!("the tests of the web interface ({error:#})"));
        return false;
    }
    true
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

fn folder() -> PathBuf {
    root().join("tests/browser")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The debug binary.
fn build() -> anyhow::Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "flare"]).current_dir(root());
    // What cargo told this program about itself would have build scripts run again that were told nothing.
    for (name, _) in std::env::vars_os() {
        let of_xtask = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(of_xtask) {
            cargo.env_remove(name);
        }
    }
    if !cargo.status().context("building flare")?.success() {
        bail!("flare does not build");
    }
    Ok(())
}

/// Named one by one: a folder means something else to every version of node.
fn files(args: &Args) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder()).context("reading tests/browser")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let wanted = args.files.is_empty() || args.files.iter().any(|start| name.starts_with(start.as_str()));
        if name.ends_with(".test.mjs") && wanted {
            files.push(name);
        }
    }
    if files.is_empty() {
        bail!("no file of tests/browser is called {}*.test.mjs", args.files.join("* or "));
    }
    files.sort();
    Ok(files)
}
