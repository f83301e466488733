//! Migrations: a server comes in, a schema of the present shape goes out. What was applied is recorded in the schema
//! itself; two processes at once do it one after the other, and the second finds nothing to do.

use flare_provider::{ErrorKind, ProviderError};
use tokio_postgres::Client;

use crate::connect::quoted;
use crate::error::{Work, corrupt};

const OPERATION: &str = "postgresql.migrate";

/// One step of the schema's shape. Those that were released never change; new ones go to the end.
struct Step {
    number: i32,
    name: &'static str,
    sql: &'static str,
}

const STEPS: &[Step] =
    &[Step { number: 1, name: "beginning", sql: include_str!("migrations/0001_beginning.sql") }];

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

async fn steps(client: &Client, schema: &str) -> Work<Vec<&'static Step>> {
    client.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
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
            let detail = format!(
                "the schema {schema} was written by a newer Flare: it has migration {number} ({name}) of Flare {by}; \
                 this is Flare {}",
                env!("CARGO_PKG_VERSION")
            );
            return Err(corrupt(OPERATION, detail).into());
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
