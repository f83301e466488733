//! What is kept, beside a node or without one: `flare backup`, `restore`, `doctor` and `key rotate` come in, and are done.

mod backup;
mod container;
mod doctor;
mod rotate;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use flare_core::config::{self, Config, KEY_BYTES, Store, parse_key};

use crate::cli::keeping::{Keeping, Key};
use crate::cli::{Exit, Format, StoreArgs};

/// Runs the command.
pub fn run(command: &Keeping, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match command {
        Keeping::Backup(args) => backup::backup(args, output, out),
        Keeping::Restore(args) => backup::restore(args, output, out),
        Keeping::Doctor(args) => doctor::run(args, output, out),
        Keeping::Key { action: Key::Rotate(args) } => rotate::run(args, output, out),
    }
}

/// The configuration, and the directory of the embedded store it names: the only one that these commands know.
fn embedded(args: &StoreArgs) -> anyhow::Result<(Config, PathBuf)> {
    let config = config::load(&args.sources())?.config;
    match config.provider.store {
        Store::Embedded => {}
        Store::Memory => bail!("provider.store = \"memory\": nothing of it outlives its process"),
        Store::Postgresql => bail!(
            "provider.store = \"postgresql\": this is for the embedded store; for a server use its own tools \
             (docs/operations.md says which)"
        ),
    }
    let path = config.provider.embedded.path.clone();
    Ok((config, path))
}

/// A key that a file has on its first line.
fn key_of(path: &Path) -> anyhow::Result<[u8; KEY_BYTES]> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading the key in {}", path.display()))?;
    let key = text.lines().next().and_then(|line| parse_key(line.trim()));
    key.with_context(|| {
        format!("{} should have the base64 of {KEY_BYTES} bytes on its first line", path.display())
    })
}

/// Says how it went: words to people, one value to machines.
fn tell(output: Format, out: &mut dyn Write, words: &str, value: &serde_json::Value) -> anyhow::Result<()> {
    match output {
        Format::Human => writeln!(out, "{words}")?,
        Format::Json => writeln!(out, "{value}")?,
    }
    Ok(())
}
