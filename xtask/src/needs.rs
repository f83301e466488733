//! Programs that the tests need: in CI, as root, they are installed; elsewhere what is missing is named.

use std::process::Command;

use anyhow::{Context, bail};

/// A program the tests need, and the Debian package that has it.
pub struct Need {
    pub program: &'static str,
    /// With these it succeeds where all of it is there.
    pub arguments: &'static [&'static str],
    pub package: &'static str,
    pub why: &'static str,
}

/// Sees to it that they are there.
pub fn provide(needs: &[Need]) -> anyhow::Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_there(need)).collect();
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

fn is_there(need: &Need) -> bool {
    let run = Command::new(need.program).args(need.arguments).output();
    run.is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
