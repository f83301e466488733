//! Migrations: a server comes in, a schema of the present shape goes out. What was applied is recorded in the schema
//! itself; two processes at once do it one after the other, and the second finds nothing to do.

use flare_provider::{ErrorKind, ProviderError};
use tokio_postgres::Client;

use crate::connect::quoted;
use crate::error::{Work, corrupt};

const OPERATION: &str = "postgresql.migrate";

/// One step of the schema's shape. Those that were released never change; new ones go to the end.
pub(crate) struct Step {
    number: i32,
    name: &'static str,
    sql: &'static str,
}

const STEPS: &[Step] = &[
    Step { number: 1, name: "beginning", sql: include_str!("migrations/0001_beginning.sql") },
    Step { number: 2, name: "access", sql: include_str!("migrations/0002_access.sql") },
    Step { number: 3, name: "nodes", sql: include_str!("migrations/0003_nodes.sql") },
    Step { number: 4, name: "coordination", sql: include_str!("migrations/0004_coordination.sql") },
    Step { number: 5, name: "intake", sql: include_str!("migrations/0005_intake.sql") },
];

/// Held by who brings a schema to the present shape, until the end of its transaction.
const LOCK: i64 = 0x464c_5245;

/// Creates the schema where it is missing, and applies what is pending.
pub(crate) async fn apply(client: &Client, schema: &str) -> Work<()> {
    let encoding: String = client.query_one("SHOW server_encoding", &[]).await?.try_get(0)?;
    if encoding != "UTF8" {
        let detail = format!("the database has the encoding {encoding}; Flare needs UTF8");
        return Err(ProviderError::new(ErrorKind::Unsupported, OPERATION, detail).into());
    }
    client.batch_execute("BEGIN").await?;
    let applied = steps(client, schema).await;
    client.batch_execute(if applied.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    for step in applied? {
        tracing::info!(migration.number = step.number, migration.name = step.name, "migration applied");
    }
    Ok(())
}

/// Waits for whoever else changes the shape of a schema, until the end of the transaction.
pub(crate) async fn lock(client: &Client) -> Work<()> {
    client.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    Ok(())
}

/// A migration and whether it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its place in the order.
    pub number: i64,
    /// What it is about.
    pub name: String,
    /// Who applied it and when; `None` while it is pending.
    pub applied: Option<Applied>,
}

/// When a migration was applied, and by which version of Flare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// RFC 3339.
    pub at: String,
    /// The version of Flare that did it.
    pub by: String,
}

/// The statements of all steps, in order.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.sql)
}

/// The statements of one step.
pub(crate) fn sql_of(number: i64) -> &'static str {
    STEPS.iter().find(|step| i64::from(step.number) == number).map_or("", |step| step.sql)
}

/// All migrations, applied and pending. Reads only. A schema that a newer Flare has written is an error.
pub(crate) async fn status(client: &Client, schema: &str) -> Work<Vec<Migration>> {
    let pending = |step: &Step| {
        let (number, name) = (i64::from(step.number), step.name.to_owned());
        Migration { number, name, applied: None }
    };
    let mut known: Vec<Migration> = STEPS.iter().map(pending).collect();
    let there = "SELECT to_regclass($1) IS NOT NULL";
    let table = format!("{}.migrations", quoted(schema));
    if !client.query_one(there, &[&table]).await?.try_get::<_, bool>(0)? {
        return Ok(known);
    }
    let applied = "SELECT number, name, flare, to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')
                   FROM migrations ORDER BY number";
    for row in client.query(applied, &[]).await? {
        let (number, name): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
        let by: String = row.try_get(2)?;
        let Some(known) = known.iter_mut().find(|known| known.number == i64::from(number)) else {
            return Err(newer(schema, number, &name, &by).into());
        };
        known.applied = Some(Applied { at: row.try_get(3)?, by });
    }
    Ok(known)
}

fn newer(schema: &str, number: i32, name: &str, by: &str) -> ProviderError {
    let detail = format!(
        "the schema {schema} was written by a newer Flare: it has migration {number} ({name}) of Flare {by}; \
         this is Flare {}",
        env!("CARGO_PKG_VERSION")
    );
    corrupt(OPERATION, detail)
}

/// Applies what is pending, within a transaction.
pub(crate) async fn steps(client: &Client, schema: &str) -> Work<Vec<&'static Step>> {
    lock(client).await?;
    // Only where it is missing: a role may use a schema that it could not have created.
    let there = client.query_opt("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[&schema]).await?;
    if there.is_none() {
        client.batch_execute(&format!("CREATE SCHEMA {}", quoted(schema))).await?;
    }
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS migrations (
                 number integer PRIMARY KEY, name text NOT NULL, flare text NOT NULL,
                 applied_at timestamptz NOT NULL DEFAULT now()
             )",
        )
        .await?;
    let mut done = Vec::new();
    for row in client.query("SELECT number, name, flare FROM migrations ORDER BY number", &[]).await? {
        let (number, name, by): (i32, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if STEPS.iter().all(|step| step.number != number) {
            return Err(newer(schema, number, &name, &by).into());
        }
        done.push(number);
    }
    let pending: Vec<&Step> = STEPS.iter().filter(|step| !done.contains(&step.number)).collect();
    for step in &pending {
        client.batch_execute(step.sql).await?;
        client
            .execute(
                "INSERT INTO migrations (number, name, flare) VALUES ($1, $2, $3)",
                &[&step.number, &step.name, &env!("CARGO_PKG_VERSION")],
            )
            .await?;
    }
    Ok(pending)
}
