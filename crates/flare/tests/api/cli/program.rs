//! The program from the outside: its commands, their words, and their exit codes.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Flare, Setup, left_out, store_is_durable};

/// Runs the binary in a directory, with these variables and no others.
fn run(directory: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command.args(words).current_dir(directory).env_clear().envs(variables.iter().copied());
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("words")
}

#[track_caller]
fn insist(output: &Output, code: i32, words: &[&str]) -> String {
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "`{word}` is not in: {all}");
    }
    all
}

#[test]
fn the_version_is_printed_for_people_and_for_machines() {
    let here = tempfile::tempdir().unwrap();
    insist(&run(here.path(), &["version"], &[]), 0, &["flare ", env!("CARGO_PKG_VERSION")]);
    insist(&run(here.path(), &["--version"], &[]), 0, &[env!("CARGO_PKG_VERSION")]);
    let output = run(here.path(), &["version", "--output", "json"], &[]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["sha"].is_string() && json["buildTime"].is_string(), "{json}");
}

#[test]
fn wrong_words_are_usage_errors() {
    let here = tempfile::tempdir().unwrap();
    for words in [&["strat"][..], &["start", "--nope"], &["config"], &["migrate", "down"], &[]] {
        insist(&run(here.path(), words, &[]), 2, &["Usage"]);
    }
    insist(&run(here.path(), &["strat"], &[]), 2, &["start"]);
    insist(&run(here.path(), &["--help"], &[]), 0, &["Exit codes", "migrate"]);
}

#[test]
fn a_right_configuration_is_ok() {
    let here = tempfile::tempdir().unwrap();
    insist(&run(here.path(), &["config", "check"], &[]), 0, &["ok"]);
    std::fs::write(here.path().join("flare.toml"), "[log]\nlevel = \"debug\"\n").unwrap();
    insist(&run(here.path(), &["config", "check"], &[]), 0, &["flare.toml is ok"]);
}

#[test]
fn authorities_that_cannot_be_read_end_the_start_and_the_setting_is_named() {
    let here = tempfile::tempdir().unwrap();
    let key = here.path().join("key.pem");
    std::fs::write(&key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    for (name, content, words) in [
        ("missing.pem", None, "No such file"),
        ("words.pem", Some("not a certificate"), "BEGIN CERTIFICATE"),
        ("key.pem", None, "BEGIN CERTIFICATE"),
        ("cut.pem", Some("-----BEGIN CERTIFICATE-----\nMIIB"), "not PEM"),
        ("none.pem", Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "is none"),
    ] {
        if let Some(content) = content {
            std::fs::write(here.path().join(name), content).unwrap();
        }
        let variables = [
            ("FLARE_HTTP_SERVER_ADDR", "127.0.0.1:0"),
            ("FLARE_TELEMETRY_ENDPOINT", "https://127.0.0.1:1"),
            ("FLARE_TELEMETRY_CERTIFICATE", name),
        ];
        let output = run(here.path(), &["start"], &variables);
        insist(&output, 4, &["telemetry.certificate", name, "PEM file", words]);
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("flare.toml"), "[http.server]\nadr = \"127.0.0.1:1\"\n").unwrap();
    for words in [&["config", "check"][..], &["config", "show"], &["start"], &["migrate", "status"]] {
        insist(&run(here.path(), words, &[]), 3, &["http.server.adr", "http.server.addr", "flare.toml:2"]);
    }
    let variables = [("FLARE_HTTP_SERVER_ADR", "x")];
    let elsewhere = tempfile::tempdir().unwrap();
    insist(
        &run(elsewhere.path(), &["config", "check"], &variables),
        3,
        &["FLARE_HTTP_SERVER_ADR", "FLARE_HTTP_SERVER_ADDR"],
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let here = tempfile::tempdir().unwrap();
    let file = "[log]\nlevel = \"loud\"\n[http.server]\naddr = \"nowhere\"\nbody-limit = \"many\"\n";
    std::fs::write(here.path().join("flare.toml"), file).unwrap();
    let words = ["log.level", "loud", "http.server.addr", "nowhere", "http.server.body-limit", "many"];
    insist(&run(here.path(), &["config", "check"], &[]), 3, &words);
    std::fs::write(here.path().join("flare.toml"), "[log\n").unwrap();
    insist(&run(here.path(), &["config", "check"], &[]), 3, &["flare.toml"]);
    insist(&run(here.path(), &["config", "check", "--config", "missing.toml"], &[]), 3, &["missing.toml"]);
}

#[test]
fn config_show_says_where_each_value_came_from() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("flare.toml"), "[log]\nlevel = \"debug\"\n").unwrap();
    let output = run(here.path(), &["config", "show"], &[("FLARE_DOMAIN_LANES", "4")]);
    let shown = insist(&output, 0, &[]);
    let line = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("level").contains("debug") && line("level").contains("flare.toml:2"), "{shown}");
    assert!(line("lanes").contains("4") && line("lanes").ends_with("# FLARE_DOMAIN_LANES"), "{shown}");
    assert!(line("store").contains("embedded") && line("store").ends_with("# default"), "{shown}");
    // What is shown is itself a configuration.
    std::fs::write(here.path().join("shown.toml"), &shown).unwrap();
    insist(&run(here.path(), &["config", "check", "--config", "shown.toml"], &[]), 0, &[]);
    let output = run(here.path(), &["config", "show", "--output", "json"], &[]);
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["settings"].is_array());
}

#[test]
fn the_default_file_is_complete_and_right() {
    let here = tempfile::tempdir().unwrap();
    let output = run(here.path(), &["config", "default"], &[]);
    std::fs::write(here.path().join("flare.toml"), &output.stdout).unwrap();
    insist(&run(here.path(), &["config", "check"], &[]), 0, &["flare.toml is ok"]);
}

#[test]
fn migrations_are_shown_applied_and_safe_to_repeat() {
    let here = tempfile::tempdir().unwrap();
    let pending = |code: i32, words: &[&str]| {
        let output = run(here.path(), &["migrate", words[0], "--data", "store", "--output", "json"], &[]);
        insist(&output, code, &[]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["pending"].as_u64().unwrap()
    };
    assert!(pending(1, &["status"]) > 0);
    assert_eq!(pending(0, &["up"]), 0);
    assert_eq!(pending(0, &["up"]), 0);
    assert_eq!(pending(0, &["status"]), 0);
    insist(&run(here.path(), &["migrate", "status", "--data", "store"], &[]), 0, &["applied"]);
    insist(&run(here.path(), &["migrate", "status", "--data", "other"], &[]), 1, &["pending"]);
    assert!(!here.path().join("other/flare.db").exists(), "looking creates nothing");
}

#[test]
fn an_address_that_others_reach_needs_a_word_of_consent() {
    let here = tempfile::tempdir().unwrap();
    insist(&run(here.path(), &["start", "--addr", "0.0.0.0:0"], &[]), 3, &["insecure"]);
}

#[tokio::test]
async fn a_port_in_use_is_said_and_the_data_is_not_touched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let here = tempfile::tempdir().unwrap();
    insist(&run(here.path(), &["start", "--addr", &addr], &[]), 4, &[&addr, "in use"]);
    assert!(!here.path().join("flare-data").exists());
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused() {
    if !store_is_durable() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let flare = Setup::default().data(data.path()).start().await;
    let path = data.path().to_str().unwrap();
    let here = tempfile::tempdir().unwrap();
    let second = run(here.path(), &["start", "--addr", "127.0.0.1:0", "--data", path], &[]);
    insist(&second, 4, &["another Flare", path]);
    flare.api().get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_store_written_by_a_newer_flare_is_refused_with_a_clear_word() {
    if !store_is_durable() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    insist(&run(here.path(), &["migrate", "up", "--data", "store"], &[]), 0, &[]);
    let python = "import sqlite3,sys;c=sqlite3.connect(sys.argv[1]);t=[r[0] for r in c.execute(\"select name from sqlite_master where type='table' and name like '%migration%'\")][0];cols=[r[1] for r in c.execute('pragma table_info('+t+')')];row=list(c.execute('select * from '+t).fetchone());row[cols.index('number')]=9999;c.execute('insert into '+t+' values ('+','.join('?'*len(row))+')',row);c.commit()";
    let database = here.path().join("store/flare.db");
    let edited = Command::new("python3").args(["-c", python]).arg(&database).status();
    if !edited.is_ok_and(|status| status.success()) {
        return left_out("a store of a newer Flare: python3 with sqlite3 writes it");
    }
    for words in [
        &["start", "--addr", "127.0.0.1:0", "--data", "store"][..],
        &["migrate", "up", "--data", "store"],
        &["migrate", "status", "--data", "store"],
    ] {
        insist(&run(here.path(), words, &[]), 4, &["newer"]);
    }
}

#[tokio::test]
async fn log_lines_are_json_with_version_and_sha_where_asked() {
    let flare = Flare::start().await;
    let line: serde_json::Value = serde_json::from_str(&flare.logged("Flare is ready").unwrap()).unwrap();
    for name in ["timestamp", "level", "message", "version", "sha"] {
        assert!(line[name].is_string(), "{name}: {line}");
    }
}

#[tokio::test]
async fn a_start_names_the_address_of_the_web_interface() {
    let ready = |flare: &Flare| -> serde_json::Value {
        serde_json::from_str(&flare.logged("Flare is ready").unwrap()).unwrap()
    };
    let flare = Flare::start().await;
    assert_eq!(ready(&flare)["ui"], format!("http://{}/ui", flare.addr()));
    let without = Setup::default().with("FLARE_UI_ENABLED", "false").start().await;
    assert!(ready(&without).get("ui").is_none(), "{}", ready(&without));
}

#[test]
fn a_data_directory_that_cannot_be_written_is_said() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("file"), "").unwrap();
    let output = run(here.path(), &["start", "--addr", "127.0.0.1:0", "--data", "file/data"], &[]);
    insist(&output, 4, &["file/data"]);
}
