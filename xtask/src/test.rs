//! `cargo xtask test`: everything the tests need, then every test.

use std::process::Command;

use anyhow::{Context, bail};

#[derive(clap::Args)]
pub struct Args {
    /// Leave out the crash tests and the exhaustive checks.
    #[arg(long)]
    quick: bool,
}

/// A program the tests need, and the Debian package that has it.
struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

const NEEDS: [Need; 1] =
    [Need { program: "cc", package: "build-essential", why: "SQLite is compiled from its source" }];

/// Runs every test and fails if one does.
pub fn run(args: &Args) -> anyhow::Result<()> {
    provide()?;
    let mut test = Command::new(env!("CARGO"));
    test.args(["test", "--workspace", "--no-fail-fast"]);
    if args.quick {
        test.args(["--", "--skip", "crashes", "--skip", "check::"]);
    }
    let status = test.status().context("running cargo test")?;
    if !status.success() {
        bail!("some tests failed");
    }
    Ok(())
}

fn provide() -> anyhow::Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !is_there(need.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        eprintln!("missing: {} (package {}): {}", need.program, need.package, need.why);
    }
    if std::env::var_os("CI").is_none() || !is_root() {
        bail!("install what is missing and try again");
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    for arguments in [vec!["update"], [&["install", "-y", "--no-install-recommends"], &packages[..]].concat()]
    {
        let status = Command::new("apt-get").args(&arguments).status().context("running apt-get")?;
        if !status.success() {
            bail!("apt-get {} failed", arguments.join(" "));
        }
    }
    Ok(())
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
