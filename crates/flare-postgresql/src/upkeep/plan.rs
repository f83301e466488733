//! Plans of a schema: what is there comes in, and is compared with what the migrations of this version make; changes go out.

use std::collections::BTreeSet;

use flare_provider::upkeep::{Action, Change, Object, objects};
use flare_provider::{ErrorKind, ProviderError};

use super::{OPERATION, Purpose};
use crate::connect::{Session, quoted};
use crate::error::{Work, corrupt};
use crate::migrations;

/// Which schema, and the name of the cluster that owns it.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub schema: &'p str,
    pub owner: &'p str,
}

impl Place<'_> {
    fn named(&self, name: &str) -> String {
        format!("{}.{name}", self.schema)
    }

    /// What the comment of a schema of this cluster is.
    fn mark(&self) -> String {
        format!("Flare, cluster {}", self.owner)
    }
}

/// What belonged to something by this column, and to nothing if that is not there.
const BELONGINGS: [(&str, &str, &str); 6] = [
    ("documents", "lane", "lanes"),
    ("history", "lane", "lanes"),
    ("held", "feed", "feeds"),
    ("standings", "feed", "feeds"),
    ("notes", "feed", "feeds"),
    ("kept", "feed", "feeds"),
];

/// What would be done.
pub(super) async fn plan(session: &Session, place: Place<'_>, purpose: Purpose) -> Work<Vec<Change>> {
    let mark = mark(session, place).await?;
    match purpose {
        Purpose::Setup => setup(session, place, &mark).await,
        Purpose::Fixup => fixup(session, place, &mark).await,
        Purpose::Cleanup => cleanup(session, place, &mark).await,
    }
}

/// Does it: one who does at a time, and each looks again.
pub(super) async fn apply(session: &Session, place: Place<'_>, purpose: Purpose) -> Work<Vec<Change>> {
    session.client.batch_execute("BEGIN").await?;
    let done = apply_within(session, place, purpose).await;
    session.client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    done
}

async fn apply_within(session: &Session, place: Place<'_>, purpose: Purpose) -> Work<Vec<Change>> {
    migrations::lock(&session.client).await?;
    let changes = plan(session, place, purpose).await?;
    if changes.is_empty() {
        return Ok(changes);
    }
    if purpose == Purpose::Setup {
        migrations::steps(&session.client, place.schema).await?;
    }
    for change in &changes {
        let name = change.name.rsplit('.').next().unwrap_or_default();
        match (change.action, change.kind) {
            (Action::Create | Action::Update, "schema") => set_mark(session, place).await?,
            (Action::Create, "index") if purpose == Purpose::Fixup => {
                let sql = expected().find(|object| object.name == name).map(|object| object.sql);
                session.client.batch_execute(sql.unwrap_or_default()).await?;
            }
            (Action::Update, "index") => {
                session.client.batch_execute(&format!("REINDEX INDEX {}", quoted(name))).await?;
            }
            (Action::Delete, "rows") => remove(session, name).await?,
            _ => {}
        }
    }
    Ok(changes)
}

/// Whose schema it is.
enum Mark {
    /// There is no schema.
    Missing,
    /// It does not say.
    None,
    Ours,
    /// Its comment is this.
    Other(String),
}

async fn mark(session: &Session, place: Place<'_>) -> Work<Mark> {
    let find = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1";
    let Some(row) = session.client.query_opt(find, &[&place.schema]).await? else { return Ok(Mark::Missing) };
    Ok(match row.try_get::<_, Option<String>>(0)? {
        None => Mark::None,
        Some(comment) if comment == place.mark() => Mark::Ours,
        Some(comment) => Mark::Other(comment),
    })
}

async fn set_mark(session: &Session, place: Place<'_>) -> Work<()> {
    let mark = place.mark().replace('\'', "''");
    let sql = format!("COMMENT ON SCHEMA {} IS '{mark}'", quoted(place.schema));
    Ok(session.client.batch_execute(&sql).await?)
}

fn change(action: Action, kind: &'static str, name: String, detail: impl Into<String>) -> Change {
    Change { action, kind, name, detail: detail.into() }
}

/// The schema, whose it is, and what pending migrations make.
async fn setup(session: &Session, place: Place<'_>, mark: &Mark) -> Work<Vec<Change>> {
    let mut changes = Vec::new();
    match mark {
        Mark::Missing => {
            changes.push(change(Action::Create, "schema", place.schema.to_owned(), place.mark()));
        }
        Mark::None => changes.push(marked(place)),
        Mark::Ours => {}
        Mark::Other(comment) => return Err(another(place, comment).into()),
    }
    for migration in migrations::status(&session.client, place.schema).await? {
        if migration.applied.is_some() {
            continue;
        }
        let about = format!("migration {} ({})", migration.number, migration.name);
        let sql = migrations::sql_of(migration.number);
        let made = objects(sql);
        let nothing = made.is_empty();
        let each = made
            .into_iter()
            .map(|object| change(Action::Create, object.kind, place.named(object.name), about.clone()));
        changes.extend(each);
        if nothing {
            let name = place.named(&migration.number.to_string());
            changes.push(change(Action::Update, "migration", name, migration.name));
        }
    }
    Ok(changes)
}

fn marked(place: Place<'_>) -> Change {
    let detail = format!("says whose it is: {}", place.mark());
    change(Action::Update, "schema", place.schema.to_owned(), detail)
}

fn another(place: Place<'_>, comment: &str) -> ProviderError {
    let detail = format!(
        "the schema {} says that it is of another: \"{comment}\"; give this cluster a schema of its own \
         (provider.postgresql.schema)",
        place.schema
    );
    ProviderError::new(ErrorKind::Unsupported, OPERATION, detail)
}

fn expected() -> impl Iterator<Item = Object<'static>> {
    migrations::all().flat_map(objects)
}

/// Indexes that are missing or not valid. A table that is missing took its rows along: that is not mended by an empty one.
async fn fixup(session: &Session, place: Place<'_>, mark: &Mark) -> Work<Vec<Change>> {
    let mut changes = Vec::new();
    match mark {
        Mark::Missing => return Err(not_set_up(place).into()),
        Mark::None => changes.push(marked(place)),
        Mark::Ours => {}
        Mark::Other(comment) => return Err(another(place, comment).into()),
    }
    if migrations::status(&session.client, place.schema).await?.iter().any(|one| one.applied.is_none()) {
        return Err(not_set_up(place).into());
    }
    let there = "SELECT c.relname, coalesce(i.indisvalid, true) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                 LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE n.nspname = $1";
    let (mut found, mut invalid) = (BTreeSet::new(), BTreeSet::new());
    for row in session.client.query(there, &[&place.schema]).await? {
        let name: String = row.try_get(0)?;
        if !row.try_get::<_, bool>(1)? {
            invalid.insert(name.clone());
        }
        found.insert(name);
    }
    for Object { kind, name, .. } in expected() {
        if invalid.contains(name) {
            changes.push(change(
                Action::Update,
                "index",
                place.named(name),
                "it is not valid, and made anew",
            ));
        } else if !found.contains(name) && kind == "index" {
            changes.push(change(Action::Create, "index", place.named(name), "it is missing"));
        } else if !found.contains(name) {
            let detail =
                format!("the table {} is missing, with its rows: restore a backup", place.named(name));
            return Err(corrupt(OPERATION, detail).into());
        }
    }
    Ok(changes)
}

fn not_set_up(place: Place<'_>) -> ProviderError {
    let detail = format!("the schema {} is not of this version: run flare setup first", place.schema);
    ProviderError::new(ErrorKind::Unsupported, OPERATION, detail)
}

/// Rows that belong to nothing, and sessions of nodes that are over.
async fn cleanup(session: &Session, place: Place<'_>, mark: &Mark) -> Work<Vec<Change>> {
    match mark {
        Mark::Missing => return Ok(Vec::new()),
        Mark::Ours => {}
        Mark::None => {
            let detail = format!(
                "the schema {} does not say whose it is, so nothing in it is deleted: flare fixup marks it",
                place.schema
            );
            return Err(ProviderError::new(ErrorKind::Unsupported, OPERATION, detail).into());
        }
        Mark::Other(comment) => return Err(another(place, comment).into()),
    }
    let mut changes = Vec::new();
    for (table, column, parent) in BELONGINGS {
        let count = format!(
            "SELECT count(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = t.{column})
             AND NOT EXISTS (SELECT 1 FROM leavings l WHERE l.kind = '{column}' AND l.key = t.{column})"
        );
        let rows: i64 = session.client.query_one(&count, &[]).await?.try_get(0)?;
        if rows > 0 {
            let detail = format!("{rows} rows of {parent} that do not exist");
            changes.push(change(Action::Delete, "rows", place.named(table), detail));
        }
    }
    let over = "SELECT count(*) FROM sessions WHERE ends <= clock_timestamp()";
    let over: i64 = session.client.query_one(over, &[]).await?.try_get(0)?;
    if over > 0 {
        let detail = format!("{over} sessions of nodes that are over");
        changes.push(change(Action::Delete, "rows", place.named("sessions"), detail));
    }
    Ok(changes)
}

async fn remove(session: &Session, table: &str) -> Work<()> {
    let sql = match BELONGINGS.iter().find(|(name, _, _)| *name == table) {
        Some((table, column, parent)) => format!(
            "DELETE FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = t.{column})
             AND NOT EXISTS (SELECT 1 FROM leavings l WHERE l.kind = '{column}' AND l.key = t.{column})"
        ),
        None => "DELETE FROM sessions WHERE ends <= clock_timestamp()".to_owned(),
    };
    Ok(session.client.batch_execute(&sql).await?)
}
