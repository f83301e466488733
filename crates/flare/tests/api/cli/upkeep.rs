//! The commands that look after a store: their plans, what they ask, and their exit codes; and moving from the embedded engine to
//! PostgreSQL, after which clients notice nothing.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::postgresql::{Server, fresh_schema, server};
use crate::support::{Receiver, Setup, Story, left_out, store_is_durable};

/// A schema of its own on a server, and the variables that say so.
struct Schema {
    server: &'static Server,
    name: String,
}

impl Schema {
    fn fresh() -> Option<Schema> {
        let found = server().map(|server| Schema { server, name: fresh_schema() });
        if found.is_none() {
            left_out("upkeep of PostgreSQL: there is no PostgreSQL (package postgresql)");
        }
        found
    }

    fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("FLARE_PROVIDER_STORE", "postgresql".to_owned()),
            ("FLARE_PROVIDER_POSTGRESQL_URL", self.server.url.clone()),
            ("FLARE_PROVIDER_POSTGRESQL_SCHEMA", self.name.clone()),
        ]
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
        command.args(words).env_clear().envs(self.variables()).stdin(Stdio::null());
        command
    }

    /// Runs a command whose answer is JSON.
    fn json(&self, words: &[&str], code: i32) -> Value {
        let output = self.command(words).args(["--output", "json"]).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    fn words(&self, words: &[&str], code: i32) -> String {
        let output = self.command(words).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        told(&output)
    }

    fn sql(&self, sql: &str) {
        let sql = format!("SET search_path = {}; {sql}", self.name);
        let done =
            Command::new("psql").args(["-q", "-v", "ON_ERROR_STOP=1", "-c", &sql, &self.server.url]).output();
        let done = done.expect("psql comes with the server");
        assert!(done.status.success(), "{done:?}");
    }
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn names(plan: &Value) -> Vec<&str> {
    plan["changes"].as_array().unwrap().iter().map(|change| change["name"].as_str().unwrap()).collect()
}

#[test]
fn a_setup_is_planned_asked_for_and_done_once() {
    let Some(schema) = Schema::fresh() else { return };
    let documents = format!("{}.documents", schema.name);
    let plan = schema.json(&["setup", "--plan-only"], 1);
    assert_eq!(plan["applied"], false);
    assert!(names(&plan).contains(&documents.as_str()), "{plan}");
    let change =
        plan["changes"].as_array().unwrap().iter().find(|change| change["name"] == *documents).unwrap();
    assert_eq!(change["action"], "create");
    assert_eq!((&change["kind"], &change["engine"]), (&json!("table"), &json!("postgresql")));
    let refused = schema.json(&["setup"], 2);
    assert_eq!(
        (&refused["applied"], &refused["changes"]),
        (&json!(false), &plan["changes"]),
        "nobody was asked"
    );
    assert!(schema.words(&["setup"], 2).contains(&format!("+ table {documents}")));
    assert!(schema.words(&["migrate", "status"], 1).contains("pending"));
    let done = schema.json(&["setup", "--yes"], 0);
    assert_eq!((&done["applied"], &done["changes"]), (&json!(true), &plan["changes"]));
    for words in [&["setup", "--plan-only"][..], &["setup"], &["migrate", "up"], &["fixup"], &["cleanup"]] {
        assert_eq!(schema.json(words, 0)["changes"], json!([]), "{words:?}");
    }
    assert!(schema.words(&["migrate", "status"], 0).contains("applied"));
}

#[test]
fn setups_from_several_places_at_once_do_no_harm() {
    let Some(schema) = Schema::fresh() else { return };
    let start = || {
        let mut command = schema.command(&["setup", "--yes", "--output", "json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
    };
    let all: Vec<_> = (0..4).map(|_| start()).collect();
    let mut applied = 0;
    for child in all {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        applied += usize::from(answer["applied"] == true);
    }
    assert_eq!(applied, 1, "one did it, and the others had nothing to do");
}

#[test]
fn what_is_missing_is_made_again_and_what_belongs_to_nothing_goes() {
    let Some(schema) = Schema::fresh() else { return };
    assert!(schema.words(&["fixup"], 4).contains("flare setup"));
    schema.words(&["setup", "--yes"], 0);
    schema.sql(
        "DROP INDEX documents_tombstones;
         INSERT INTO documents VALUES (77, 0, 1, 1, 0, false, 1, 0, NULL, 0, 0, 'http://h/1', '{}');
         INSERT INTO sessions VALUES ('ses_1', 'flare', 'a', 1, now() - interval '1 hour')",
    );
    let index = format!("{}.documents_tombstones", schema.name);
    assert_eq!(names(&schema.json(&["fixup", "--plan-only"], 1)), [index.as_str()]);
    schema.words(&["fixup"], 2);
    assert!(schema.words(&["fixup", "--yes"], 0).contains(&format!("+ index {index}")));
    assert_eq!(schema.json(&["fixup"], 0)["changes"], json!([]));

    let rows = [format!("{}.documents", schema.name), format!("{}.sessions", schema.name)];
    let plan = schema.json(&["cleanup", "--plan-only"], 1);
    assert_eq!(
        (names(&plan), &plan["changes"][0]["action"]),
        (rows.iter().map(String::as_str).collect(), &json!("delete"))
    );
    assert!(schema.words(&["cleanup", "--yes"], 0).contains("- rows"));
    assert_eq!(schema.json(&["cleanup"], 0)["changes"], json!([]));

    schema.sql(&format!("COMMENT ON SCHEMA {} IS 'Flare, cluster another'", schema.name));
    schema.sql("INSERT INTO sessions VALUES ('ses_2', 'flare', 'a', 1, now() - interval '1 hour')");
    assert!(schema.words(&["cleanup", "--yes"], 4).contains("another"), "it is not ours to delete");
    assert!(schema.words(&["setup", "--yes"], 4).contains("another"));
}

/// The mark is the name of the cluster, whatever it is called.
#[test]
fn what_carries_the_name_of_another_cluster_is_not_cleaned_up() {
    let Some(schema) = Schema::fresh() else { return };
    let run = |name: &str, words: &[&str]| {
        let output = schema.command(words).env("FLARE_CLUSTER_NAME", name).output().expect("the binary runs");
        (output.status.code(), told(&output))
    };
    let (code, said) = run("shop", &["setup", "--yes"]);
    assert!(code == Some(0) && said.contains("cluster shop"), "{code:?} {said}");
    schema.sql("INSERT INTO sessions VALUES ('ses_1', 'shop', 'a', 1, now() - interval '1 hour')");
    for name in ["flare", "other"] {
        let (code, said) = run(name, &["cleanup", "--yes"]);
        assert!(code == Some(4) && said.contains("cluster shop"), "{name}: {code:?} {said}");
    }
    let (code, said) = run("shop", &["cleanup", "--yes"]);
    assert!(code == Some(0) && said.contains("- rows"), "{code:?} {said}");
}

#[tokio::test]
async fn everything_moves_from_the_embedded_engine_to_postgresql_and_clients_notice_nothing() {
    let Some(schema) = Schema::fresh() else { return };
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let before = Setup::default().data(folder.path()).with("FLARE_AUTH_SECRET_KEY", key);
    let mut story = Story::with(before, Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    for id in 1..=20 {
        story.put(id, 1).await;
    }
    story.put(3, 2).await;
    story.remove(4).await;
    story.settled(&subscription).await;
    let told = story.receiver.requests().len();
    let status = story.status(&subscription).await;
    assert_eq!(story.flare.stop().await.code(), Some(0));

    let data = folder.path().to_str().unwrap();
    let copy = ["migrate", "copy", "--from", "embedded", "--to", "postgresql", "--data", data];
    schema.json(&[&copy[..], &["--plan-only"]].concat(), 1);
    schema.words(&copy, 2);
    let done = schema.json(&[&copy[..], &["--yes"]].concat(), 0);
    assert_eq!(done["applied"], true);
    assert!(schema.words(&[&copy[..], &["--yes"]].concat(), 4).contains("in use"), "nothing is mixed");

    let mut after = Setup::default().with("FLARE_AUTH_SECRET_KEY", key);
    for (name, value) in schema.variables() {
        after = after.with(name, &value);
    }
    story.flare = after.start().await;
    story.settled(&subscription).await;
    assert_eq!(story.put(3, 2).await, "unchanged");
    assert_eq!(story.put(4, 1).await, "unchanged", "its tombstone is known");
    assert_eq!(story.put(5, 0).await, "stale");
    assert_eq!(story.receiver.requests().len(), told, "nobody is told anything again");
    let now = story.status(&subscription).await;
    assert_eq!((&now["delivered"], &now["status"]), (&status["delivered"], &status["status"]));
    assert_eq!(story.put(3, 3).await, "updated");
    assert_eq!(story.put(21, 1).await, "created");
    story.settled(&subscription).await;
    let last: Vec<(String, String)> = story.receiver.requests()[told..]
        .iter()
        .map(|request| (request.action().to_owned(), request.document().to_owned()))
        .collect();
    assert_eq!(last.len(), 2);
    assert!(last.iter().any(|(action, document)| action == "update" && document.ends_with("/3")), "{last:?}");
    assert_eq!(story.flare.stop().await.code(), Some(0));
}
