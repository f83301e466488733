//! `flare migrate status | up`.

use std::io::Write;

use anyhow::Context;
use flare_core::config;
use flare_embedded::migrations;
use serde_json::json;

use crate::cli::{Exit, Format, Migrate};

/// Runs the command.
pub fn run(action: &Migrate, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (Migrate::Status(args) | Migrate::Up(args)) = action;
    let loaded = config::load(&args.sources())?;
    if loaded.config.provider.store == config::Store::Memory {
        writeln!(out, "the memory store has no migrations")?;
        return Ok(Exit::Done);
    }
    if loaded.config.provider.store == config::Store::Postgresql {
        writeln!(out, "the migrations of PostgreSQL are applied when a node starts")?;
        return Ok(Exit::Done);
    }
    let path = &loaded.config.provider.embedded.path;
    let found = match action {
        Migrate::Up(_) => migrations::up(path),
        Migrate::Status(_) => migrations::status(path),
    };
    let found = found.with_context(|| format!("migrations of {}", path.display()))?;
    let pending = found.iter().filter(|migration| migration.applied.is_none()).count();
    match output {
        Format::Json => {
            let list: Vec<_> = found
                .iter()
                .map(|migration| {
                    let applied = migration.applied.as_ref();
                    json!({
                        "number": migration.number,
                        "name": migration.name,
                        "appliedAt": applied.map(|applied| &applied.at),
                        "appliedBy": applied.map(|applied| &applied.by),
                    })
                })
                .collect();
            writeln!(out, "{}", json!({"migrations": list, "pending": pending}))?;
        }
        Format::Human => {
            for migration in &found {
                let state = match &migration.applied {
                    Some(applied) => format!("applied {}", applied.at),
                    None => "pending".to_owned(),
                };
                writeln!(out, "{:>4}  {}  {state}", migration.number, migration.name)?;
            }
        }
    }
    Ok(if pending == 0 { Exit::Done } else { Exit::Found })
}
