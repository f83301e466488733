//! `flare migrate status | up | copy`.

use std::io::Write;

use anyhow::Context;
use flare_core::config::{self, Config, Store};
use flare_embedded::migrations;
use flare_provider::upkeep::{Action, Change};
use serde_json::json;

use crate::cli::{CopyArgs, Exit, Format, Migrate, StoreArgs};
use crate::upkeep::{self, Asking, Planned};

/// Runs the command.
pub fn run(action: &Migrate, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match action {
        Migrate::Status(args) => status(args, output, out),
        Migrate::Up(args) => upkeep::migrate(args, output, out),
        Migrate::Copy(args) => copy(args, output, out),
    }
}

/// A migration, whichever engine it is of.
struct Listed {
    number: i64,
    name: String,
    /// When, and by which version.
    applied: Option<(String, String)>,
}

fn list(config: &Config) -> anyhow::Result<(&'static str, Vec<Listed>)> {
    match config.provider.store {
        Store::Memory => Ok(("memory", Vec::new())),
        Store::Embedded => {
            let path = &config.provider.embedded.path;
            let found = migrations::status(path);
            let found = found.with_context(|| format!("migrations of {}", path.display()))?;
            let listed = found.into_iter().map(|one| {
                let applied = one.applied.map(|applied| (applied.at, applied.by));
                Listed { number: one.number, name: one.name, applied }
            });
            Ok(("embedded", listed.collect()))
        }
        Store::Postgresql => {
            let found = upkeep::postgresql(config)?.status().context("migrations of PostgreSQL")?;
            let listed = found.into_iter().map(|one| {
                let applied = one.applied.map(|applied| (applied.at, applied.by));
                Listed { number: one.number, name: one.name, applied }
            });
            Ok(("postgresql", listed.collect()))
        }
    }
}

fn status(args: &StoreArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let loaded = config::load(&args.sources())?;
    let (engine, found) = list(&loaded.config)?;
    let pending = found.iter().filter(|migration| migration.applied.is_none()).count();
    match output {
        Format::Json => {
            let list = found.iter().map(|migration| {
                let applied = migration.applied.as_ref();
                json!({
                    "number": migration.number,
                    "name": migration.name,
                    "appliedAt": applied.map(|(at, _)| at),
                    "appliedBy": applied.map(|(_, by)| by),
                })
            });
            let changes = found.iter().filter(|migration| migration.applied.is_none()).map(|migration| {
                json!({
                    "action": "update", "kind": "migration", "engine": engine,
                    "name": migration.number.to_string(), "detail": migration.name,
                })
            });
            let (list, changes): (Vec<_>, Vec<_>) = (list.collect(), changes.collect());
            let answer =
                json!({"migrations": list, "pending": pending, "changes": changes, "applied": false});
            writeln!(out, "{answer}")?;
        }
        Format::Human if engine == "memory" => writeln!(out, "the memory store has no migrations")?,
        Format::Human => {
            for migration in &found {
                let state = match &migration.applied {
                    Some((at, _)) => format!("applied {at}"),
                    None => "pending".to_owned(),
                };
                writeln!(out, "{:>4}  {}  {state}", migration.number, migration.name)?;
            }
        }
    }
    Ok(if pending == 0 { Exit::Done } else { Exit::Found })
}

/// Copies everything from the data directory into a schema.
fn copy(args: &CopyArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let loaded = config::load(&args.upkeep.store.sources())?;
    let config = &loaded.config;
    let path = &config.provider.embedded.path;
    anyhow::ensure!(
        config.provider.postgresql.url.reveal().is_some(),
        "provider.postgresql.url is needed: where to copy to, best given as FLARE_PROVIDER_POSTGRESQL_URL"
    );
    let keeper = upkeep::postgresql(config)?;
    let name = config.provider.postgresql.schema.as_str().to_owned();
    let change = |detail: String| {
        let change = Change { action: Action::Create, kind: "rows", name: name.clone(), detail };
        Planned { engine: "postgresql", change }
    };
    let plan = || Ok(vec![change(format!("everything that is in {}", path.display()))]);
    let apply = || {
        let copied = keeper.import(|rows| flare_embedded::transfer::export(path, rows));
        let rows = copied.with_context(|| format!("copying {} to PostgreSQL", path.display()))?;
        Ok(vec![change(format!("{rows} rows of {}", path.display()))])
    };
    let asking = Asking { args: &args.upkeep, output, migrations: false };
    asking.carry_out(out, plan, apply)
}
