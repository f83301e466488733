//! Programs that the tests need: what is missing is installed where that is permitted, and otherwise named, with the
//! one command that would install it.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// A program the tests need, and the Debian package that has it.
pub struct Need {
    pub program: &'static str,
    /// With these it succeeds where all of it is there.
    pub arguments: &'static [&'static str],
    pub package: &'static str,
    pub why: &'static str,
}

/// What could not be had, and so was not tested; told at the end.
#[derive(Default)]
pub struct LeftOut {
    /// Debian packages that would help.
    packages: Vec<&'static str>,
    /// What was left out and why, in words.
    words: Vec<String>,
}

impl LeftOut {
    /// Something was left out.
    pub fn because(&mut self, why: String) {
        if !self.words.contains(&why) {
            self.words.push(why);
        }
    }

    /// Says what was left out, if anything was. In CI that is a failure: a run that tests less must not look like one
    /// that tests everything.
    pub fn tell(&self) -> anyhow::Result<()> {
        if self.words.is_empty() {
            return Ok(());
        }
        eprintln!("\nLeft out, because something is missing on this machine:");
        for words in &self.words {
            eprintln!("  - {words}");
        }
        if !self.packages.is_empty() {
            eprintln!(
                "To have it all: sudo apt-get install --no-install-recommends {}",
                self.packages.join(" ")
            );
        }
        anyhow::ensure!(!is_ci(), "in CI nothing may be left out");
        Ok(())
    }
}

/// Sees to it that they are there, and answers whether they are. What could not be installed is noted.
pub fn provide(needs: &[Need], left_out: &mut LeftOut) -> bool {
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_there(need)).collect();
    if missing.is_empty() {
        return true;
    }
    for need in &missing {
        eprintln!("missing: {} (package {}): {}", need.program, need.package, need.why);
    }
    let packages: Vec<&'static str> = missing.iter().map(|need| need.package).collect();
    if let Err(why) = install(&packages) {
        eprintln!("not installed: {why}");
    }
    let mut complete = true;
    for need in missing.into_iter().filter(|need| !is_there(need)) {
        complete = false;
        left_out.packages.push(need.package);
        left_out.because(format!("{} is missing: {}", need.program, need.why));
    }
    complete
}

/// Installs the libraries that a folder's lock file names, once for each version of it.
pub fn npm_install(folder: &Path) -> anyhow::Result<()> {
    let wanted =
        std::fs::read_to_string(folder.join("package-lock.json")).context("reading the lock file")?;
    let list = folder.join("node_modules/.installed-lock.json");
    if std::fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder);
    anyhow::ensure!(
        npm.status().context("running npm ci")?.success(),
        "npm could not install what {} lists",
        folder.display()
    );
    std::fs::write(&list, wanted).context("noting what was installed")
}

/// Whether this is CI, where nothing may be left out.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// Installs Debian packages as root, or where `sudo` asks for no password.
fn install(packages: &[&str]) -> Result<(), String> {
    let prefix: &[&str] = if is_root() {
        &[]
    } else if succeeds("sudo", &["-n", "true"]) {
        &["sudo", "-n"]
    } else {
        return Err("this is not root, and sudo asks for a password".to_owned());
    };
    if !succeeds("apt-get", &["--version"]) {
        return Err("there is no apt-get on this machine".to_owned());
    }
    eprintln!("installing with apt-get: {}", packages.join(" "));
    let update = [prefix, &["apt-get", "update", "-q"]].concat();
    let install = [prefix, &["apt-get", "install", "-y", "-q", "--no-install-recommends"], packages].concat();
    for words in [update, install] {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{}: {status}", words.join(" "))),
            Err(error) => return Err(format!("{}: {error}", words.join(" "))),
        }
    }
    Ok(())
}

fn is_there(need: &Need) -> bool {
    succeeds(need.program, need.arguments)
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
