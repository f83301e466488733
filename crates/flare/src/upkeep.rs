//! `flare setup | fixup | cleanup`, and what `flare migrate up` does: a plan is made, shown and asked for, and carried out.

mod brokers;

use std::io::{self, IsTerminal as _, Write};

use anyhow::Context as _;
use flare_core::config::{self, Config, Store};
use flare_postgresql::upkeep::{Purpose, Upkeep};
use flare_provider::upkeep::{Action, Change};
use serde_json::json;

use brokers::Brokers;

use crate::cli::{Exit, Format, UpkeepArgs};
use crate::node::engine::postgresql_options;

/// What is to be looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// What is needed and not there yet.
    Setup,
    /// What was there and is missing.
    Fixup,
    /// What is there and belongs to nothing.
    Cleanup,
}

/// Runs the command.
pub fn run(task: Task, args: &UpkeepArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let loaded = config::load(&args.store.sources())?;
    let keeper = Keeper::of(&loaded.config)?;
    let asking = Asking { args, output, migrations: false };
    // The store first: where it is not set up, that is what there is to say.
    let plan = || {
        let mut all = keeper.planned(task)?;
        if let Some(brokers) = keeper.brokers(&loaded.config, task)? {
            all.extend(brokers.plan(task)?);
        }
        Ok(all)
    };
    let apply = || {
        let mut all = keeper.applied(task)?;
        if let Some(brokers) = keeper.brokers(&loaded.config, task)? {
            all.extend(brokers.apply(task)?);
        }
        Ok(all)
    };
    asking.carry_out(out, plan, apply)
}

/// A change of a plan, and the engine that it is about.
pub struct Planned {
    /// The engine.
    pub engine: &'static str,
    /// The change.
    pub change: Change,
}

/// `flare migrate up`. A database in a folder is its node's alone, which does the same when it starts: nobody has to be asked.
pub fn migrate(args: &UpkeepArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let loaded = config::load(&args.store.sources())?;
    let keeper = Keeper::of(&loaded.config)?;
    let yes = args.yes || matches!(keeper, Keeper::Embedded(_));
    let args = &UpkeepArgs { yes, ..args.clone() };
    let asking = Asking { args, output, migrations: true };
    asking.carry_out(out, || keeper.planned(Task::Setup), || keeper.applied(Task::Setup))
}

/// How a plan is shown and asked for.
pub struct Asking<'a> {
    /// What was said already.
    pub args: &'a UpkeepArgs,
    /// How it is shown.
    pub output: Format,
    /// Whether it is about migrations: then machines are told how many are pending.
    pub migrations: bool,
}

impl Asking<'_> {
    /// Shows a plan, asks unless that was said already, and carries it out.
    pub fn carry_out(
        &self,
        out: &mut dyn Write,
        plan: impl FnOnce() -> anyhow::Result<Vec<Planned>>,
        apply: impl FnOnce() -> anyhow::Result<Vec<Planned>>,
    ) -> anyhow::Result<Exit> {
        let changes = plan()?;
        let args = self.args;
        if changes.is_empty() || args.plan_only {
            self.show(&changes, false, out)?;
            return Ok(if changes.is_empty() { Exit::Done } else { Exit::Found });
        }
        if !args.yes {
            if !io::stdin().is_terminal() {
                self.show(&changes, false, out)?;
                writeln!(io::stderr(), "flare: there is no terminal to ask: nothing is done without --yes")?;
                return Ok(Exit::Usage);
            }
            if self.output == Format::Human {
                self.show(&changes, false, out)?;
            }
            write!(io::stderr(), "Do it? [y/N] ")?;
            let mut answer = String::new();
            io::stdin().read_line(&mut answer)?;
            if !matches!(answer.trim(), "y" | "Y" | "yes") {
                if self.output == Format::Json {
                    self.show(&changes, false, out)?;
                }
                return Ok(Exit::Done);
            }
        }
        // What it is by now: someone else may have done it meanwhile.
        let done = apply()?;
        self.show(&done, true, out)?;
        Ok(Exit::Done)
    }

    fn show(&self, changes: &[Planned], applied: bool, out: &mut dyn Write) -> io::Result<()> {
        if self.output == Format::Json {
            let each = changes.iter().map(|Planned { engine, change }| {
                json!({
                    "action": word(change.action), "kind": change.kind, "engine": engine,
                    "name": change.name, "detail": change.detail,
                })
            });
            let each: Vec<_> = each.collect();
            let mut answer = json!({"changes": each, "applied": applied && !changes.is_empty()});
            if self.migrations {
                answer["pending"] = if applied { 0 } else { changes.len() }.into();
            }
            return writeln!(out, "{answer}");
        }
        if changes.is_empty() {
            return writeln!(out, "there is nothing to do");
        }
        for Planned { change: Change { action, kind, name, detail }, .. } in changes {
            let sign = match action {
                Action::Create => '+',
                Action::Update => '~',
                Action::Delete => '-',
            };
            writeln!(out, "{sign} {kind} {name}  {detail}")?;
        }
        let count = |action| changes.iter().filter(|planned| planned.change.action == action).count();
        let (create, update, delete) = (count(Action::Create), count(Action::Update), count(Action::Delete));
        match applied {
            true => writeln!(out, "done: {create} created, {update} changed, {delete} deleted"),
            false => writeln!(out, "plan: {create} to create, {update} to change, {delete} to delete"),
        }
    }
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
    }
}

/// The store that is looked after.
enum Keeper<'c> {
    Embedded(&'c std::path::Path),
    Memory,
    Postgresql(Box<Upkeep>),
}

/// Connects to the server of the configuration. The name of the cluster is the mark that its schema carries.
pub fn postgresql(config: &Config) -> anyhow::Result<Upkeep> {
    let options = postgresql_options(config, std::sync::Arc::new(|_| {}));
    Upkeep::open(&options, config.cluster.name.as_str()).context("the schema of PostgreSQL")
}

impl Keeper<'_> {
    fn of(config: &Config) -> anyhow::Result<Keeper<'_>> {
        Ok(match config.provider.store {
            Store::Embedded => Keeper::Embedded(&config.provider.embedded.path),
            Store::Memory => Keeper::Memory,
            Store::Postgresql => Keeper::Postgresql(Box::new(postgresql(config)?)),
        })
    }

    fn engine(&self) -> &'static str {
        match self {
            Keeper::Embedded(_) => "embedded",
            Keeper::Memory => "memory",
            Keeper::Postgresql(_) => "postgresql",
        }
    }

    /// The consumers that are stored, each with its id; `None` where nothing is known of them.
    fn consumers(&self) -> anyhow::Result<Option<Vec<(String, String)>>> {
        match self {
            Keeper::Postgresql(upkeep) => Ok(Some(upkeep.consumers().context("the schema of PostgreSQL")?)),
            Keeper::Embedded(path) => flare_embedded::upkeep::consumers(path)
                .with_context(|| format!("the database in {}", path.display())),
            Keeper::Memory => Ok(None),
        }
    }

    /// What consumers have of brokers; nothing where the consumers are not known, and so not what belongs to them.
    fn brokers(&self, config: &Config, task: Task) -> anyhow::Result<Option<Brokers>> {
        match task {
            Task::Setup => Ok(None),
            Task::Fixup | Task::Cleanup => {
                self.consumers()?.map(|consumers| Brokers::of(config, consumers)).transpose()
            }
        }
    }

    fn planned(&self, task: Task) -> anyhow::Result<Vec<Planned>> {
        Ok(self.named(self.plan(task)?))
    }

    fn applied(&self, task: Task) -> anyhow::Result<Vec<Planned>> {
        // A node may use the store, which is no hindrance where there is nothing to do.
        match self.plan(task)?.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.named(self.apply(task)?)),
        }
    }

    fn named(&self, changes: Vec<Change>) -> Vec<Planned> {
        changes.into_iter().map(|change| Planned { engine: self.engine(), change }).collect()
    }

    fn plan(&self, task: Task) -> anyhow::Result<Vec<Change>> {
        match (self, task) {
            (Keeper::Postgresql(upkeep), task) => {
                upkeep.plan(purpose(task)).context("the schema of PostgreSQL")
            }
            (Keeper::Embedded(path), Task::Setup) => {
                let plan = flare_embedded::upkeep::plan_setup(path);
                plan.with_context(|| format!("the database in {}", path.display()))
            }
            (Keeper::Embedded(path), Task::Fixup) => {
                let plan = flare_embedded::upkeep::plan_fixup(path);
                plan.with_context(|| format!("the database in {}", path.display()))
            }
            // What is deleted there goes by itself, and memory keeps nothing.
            (Keeper::Embedded(_), Task::Cleanup) | (Keeper::Memory, _) => Ok(Vec::new()),
        }
    }

    fn apply(&self, task: Task) -> anyhow::Result<Vec<Change>> {
        match (self, task) {
            (Keeper::Postgresql(upkeep), task) => {
                upkeep.apply(purpose(task)).context("the schema of PostgreSQL")
            }
            (Keeper::Embedded(path), Task::Setup) => {
                let plan = self.plan(task)?;
                let done = flare_embedded::migrations::up(path)
                    .with_context(|| format!("migrations of {}", path.display()))?;
                Ok(if done.is_empty() { Vec::new() } else { plan })
            }
            (Keeper::Embedded(path), Task::Fixup) => flare_embedded::upkeep::fixup(path)
                .with_context(|| format!("the database in {}", path.display())),
            (Keeper::Embedded(_), Task::Cleanup) | (Keeper::Memory, _) => Ok(Vec::new()),
        }
    }
}

fn purpose(task: Task) -> Purpose {
    match task {
        Task::Setup => Purpose::Setup,
        Task::Fixup => Purpose::Fixup,
        Task::Cleanup => Purpose::Cleanup,
    }
}
