//! `flare demo` through the real binary: its clients behave as they are named, and nothing of it is left.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Api, PATIENCE, until};

fn demo(temporary: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command.args(["demo", "--addr", "127.0.0.1:0"]).args(words);
    command.env_clear().env("TMPDIR", temporary).current_dir(temporary);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// A demo that goes on until it is told to stop. Dropping it kills it.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(temporary: &Path) -> Running {
        Running::with(temporary, &[])
    }

    fn with(temporary: &Path, words: &[&str]) -> Running {
        let words = [&["--output", "json", "--rate", "50"][..], words].concat();
        let mut child = demo(temporary, &words).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    /// The next line that the demo writes.
    fn line(&mut self) -> Value {
        let line = self.lines.next().expect("the demo goes on").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for the end; the exit code and the last line.
    async fn end(mut self) -> (Option<i32>, Value) {
        let mut last = Value::Null;
        while let Some(Ok(line)) = self.lines.next() {
            last = serde_json::from_str(&line).unwrap();
        }
        let status = until("the demo ended", || std::future::ready(self.child.try_wait().unwrap())).await;
        (status.code(), last)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn finished(mut command: Command) -> Output {
    let output = tokio::task::spawn_blocking(move || command.output().expect("the binary runs"));
    tokio::time::timeout(4 * PATIENCE, output).await.expect("a bounded demo ends").unwrap()
}

/// The last line of a demo that closed in time: every client has what it should, whatever else it saw.
async fn closed(duration: &str) -> Value {
    let temporary = tempfile::tempdir().unwrap();
    let words = ["--output", "json", "--rate", "60", "--seed", "11", "--duration", duration];
    let output = finished(demo(temporary.path(), &words)).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (first, last) = (&lines[0], lines[lines.len() - 1].clone());
    assert_eq!(first["event"], "started");
    assert!(first["ui"].as_str().unwrap().ends_with("/ui"), "{first}");
    assert_eq!((&last["event"], &last["ended"]), (&"summary".into(), &"inTime".into()));
    assert_eq!((&last["complete"], &last["refused"]), (&true.into(), &0.into()), "{last}");
    for client in last["clients"].as_array().unwrap().iter().filter(|client| client["role"] != "failing") {
        assert_eq!(client["gap"], json!({"missing": 0, "outdated": 0, "surplus": 0}), "{client}");
        assert_eq!((&client["unwanted"], &client["waiting"]), (&0.into(), &0.into()), "{client}");
    }
    assert!(is_empty(temporary.path()));
    last
}

/// Whether everything that there is to see was seen, which takes a slow machine longer.
fn all_was_seen(last: &Value) -> bool {
    let number = |role: &str, field: &str| client(last, role)[field].as_u64().unwrap();
    let [_, _, left] = actions(last, "filtered");
    let [_, _, gone] = actions(last, "passive");
    last["repeats"] != 0
        && number("flapping", "refused") > 0
        && number("passive", "refused") > 0
        && number("slow", "delivered") < number("healthy", "delivered")
        && left > 0
        && gone > 0
}

fn client<'v>(last: &'v Value, role: &str) -> &'v Value {
    let found = last["clients"].as_array().unwrap().iter().find(|client| client["role"] == role);
    found.unwrap_or_else(|| panic!("no {role} client: {last}"))
}

/// Creates, updates and deletes.
fn actions(last: &Value, role: &str) -> [u64; 3] {
    let list = &client(last, role)["actions"];
    [0, 1, 2].map(|action| list[action].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_behaves_as_it_is_named_and_has_what_it_should_in_the_end() {
    let mut last = Value::Null;
    for duration in ["7s", "20s", "60s"] {
        last = closed(duration).await;
        if all_was_seen(&last) {
            break;
        }
    }
    assert!(all_was_seen(&last), "{last}");
    let number = |role: &str, field: &str| client(&last, role)[field].as_u64().unwrap();
    let latency = |role: &str| client(&last, role)["latencyMs"].as_f64().unwrap();
    assert_eq!(number("healthy", "failures"), 0);
    assert_eq!(number("healthy", "documents"), number("slow", "documents"));
    assert!(latency("slow") >= 150.0 && latency("slow") > latency("healthy"), "{last}");
    // What it refused it got in the end: those were retries.
    assert!(number("flapping", "failures") > 0, "{last}");
    assert_eq!(number("flapping", "documents"), 24);
    // Every document that enters the filter is a create and every one that leaves it a delete.
    let [creates, _, deletes] = actions(&last, "filtered");
    assert_eq!(creates - deletes, number("filtered", "documents"));
    assert!(number("filtered", "documents") < 24);
    // What never takes anything ends in dead letters.
    assert_eq!((number("failing", "delivered"), number("failing", "documents")), (0, 0));
    assert!((1..=24).contains(&number("failing", "deadLetters")), "{last}");
    assert!(number("failing", "failures") >= number("failing", "deadLetters"), "{last}");
    // What it settled as done is what Flare counts as delivered; what it gave back came again.
    assert_eq!(actions(&last, "passive").iter().sum::<u64>(), number("passive", "delivered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_of_a_demo_is_a_node_like_any_other_and_a_signal_leaves_no_trace() {
    for signal in ["INT", "TERM", "HUP"] {
        let temporary = tempfile::tempdir().unwrap();
        let mut running = Running::start(temporary.path());
        let started = running.line();
        let address = started["api"].as_str().unwrap().strip_prefix("http://").unwrap();
        let api = Api::new(address.parse().unwrap());
        assert_eq!(api.get("/status").await.expect(200).json()["subscriptions"], 6);
        assert!(!is_empty(temporary.path()), "its store is there");
        while running.line()["clients"][0]["delivered"] == 0 {}
        running.signal(signal);
        let (ended, last) = running.end().await;
        assert_eq!((ended, &last["ended"]), (Some(0), &"interrupted".into()), "{signal}: {last}");
        assert!(last["clients"][0]["delivered"].as_u64().unwrap() > 0, "{last}");
        assert!(is_empty(temporary.path()), "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_leaves_no_trace_either() {
    let temporary = tempfile::tempdir().unwrap();
    let mut running = Running::start(temporary.path());
    running.line();
    while running.line()["clients"][1]["waiting"] == 0 {}
    running.signal("INT");
    running.signal("TERM");
    // Which of the two it is depends on whether everything in flight had ended before the second.
    let (code, last) = running.end().await;
    assert!(matches!(code, Some(0 | 130 | 143)), "{code:?} {last}");
    assert!(is_empty(temporary.path()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_demo_left_is_removed_by_the_next_one() {
    let temporary = tempfile::tempdir().unwrap();
    let mut killed = Running::start(temporary.path());
    killed.line();
    let mut living = Running::start(temporary.path());
    living.line();
    killed.signal("KILL");
    killed.end().await;
    let entries = || std::fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(entries(), 2, "nobody was left to remove it");
    let output = finished(demo(temporary.path(), &["--duration", "100ms"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(entries(), 1, "that of the demo that lives stays");
    living.signal("INT");
    assert_eq!(living.end().await.0, Some(0));
    assert!(is_empty(temporary.path()));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_draws_over_anything_there_are_plain_lines_with_the_address_of_the_ui() {
    let temporary = tempfile::tempdir().unwrap();
    let output = finished(demo(temporary.path(), &["--duration", "100ms", "--log", "demo.log"])).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
    for word in ["/ui", "warehouse", "flapping", "Every client that answers has what it should"] {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let log = std::fs::read_to_string(temporary.path().join("demo.log")).unwrap();
    assert!(log.contains("Flare is ready"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_has_a_client_that_really_fails_and_says_so_in_the_end_within_80_columns() {
    let temporary = tempfile::tempdir().unwrap();
    let output = finished(demo(temporary.path(), &["--duration", "3s", "--seed", "5", "--rate", "50"])).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, end) = text.split_once("The shop is closed").expect("it says how it ended");
    for words in ["fax-machine answered 500", "documents are dead letters", "has what it should"] {
        assert!(end.contains(words), "`{words}` is not in: {end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_of_a_bridge_polls_a_list_and_both_targets_have_it_in_the_end_within_80_columns() {
    let temporary = tempfile::tempdir().unwrap();
    let words = ["--bridge", "--duration", "5s", "--seed", "5", "--rate", "60"];
    let output = finished(demo(temporary.path(), &words)).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("a list of orders that it polls"), "{text}");
    let (_, end) = text.split_once("The shop is closed").expect("it says how it ended");
    for words in ["warehouse", "accounting", "Flare asked for the list of orders", "has what it should"] {
        assert!(end.contains(words), "`{words}` is not in: {end}");
    }
    assert!(is_empty(temporary.path()));

    let words = [&["--output", "json"][..], &words].concat();
    let output = finished(demo(temporary.path(), &words)).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().expect("a summary")).unwrap();
    assert_eq!((&last["event"], &last["complete"]), (&"summary".into(), &true.into()), "{last}");
    assert!(last["polls"]["asked"].as_u64().unwrap() >= 3, "{last}");
    assert_eq!(last["clients"].as_array().unwrap().len(), 2, "{last}");
    for role in ["healthy", "slow"] {
        let client = client(&last, role);
        assert_eq!(client["gap"], json!({"missing": 0, "outdated": 0, "surplus": 0}), "{client}");
        assert_eq!(client["documents"], last["documents"], "{client}");
        assert!(client["documents"].as_u64().unwrap() > 0 && client["delivered"].as_u64().unwrap() > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_a_bridge_is_a_consumer_with_two_producers_that_anybody_can_look_at() {
    let temporary = tempfile::tempdir().unwrap();
    let mut running = Running::with(temporary.path(), &["--bridge"]);
    let started = running.line();
    let address = started["api"].as_str().unwrap().strip_prefix("http://").unwrap();
    let api = Api::new(address.parse().unwrap());
    let consumers = api.get("/consumers").await.expect(200).json();
    assert_eq!(consumers["consumers"][0]["source"]["type"], "http.poll", "{consumers}");
    let consumer = consumers["consumers"][0]["id"].as_str().unwrap().to_owned();
    let producers = api.get(&format!("/consumers/{consumer}/producers")).await.expect(200).json();
    assert_eq!(producers["pagination"]["total"], 2, "{producers}");
    while running.line()["clients"][1]["delivered"] == 0 {}
    running.signal("INT");
    let (ended, last) = running.end().await;
    assert_eq!((ended, &last["ended"]), (Some(0), &"interrupted".into()), "{last}");
    assert!(is_empty(temporary.path()));
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_and_no_trace_is_left() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command.args(["demo", "--addr", &addr]).env_clear().env("TMPDIR", temporary.path());
    let output = finished(command).await;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.contains(&addr) && errors.contains("in use") && errors.contains("--addr"), "{errors}");
    assert!(is_empty(temporary.path()));
}
