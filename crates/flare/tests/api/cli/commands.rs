//! The commands that talk to a running node: `status`, `tail`, `replay`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Flare, Receiver, Reply, Story, document_url};

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command.args(words).current_dir(std::env::temp_dir()).env_clear().stdin(Stdio::null());
    command
}

fn url(flare: &Flare) -> String {
    format!("http://{}", flare.addr())
}

/// Runs a command against a node, without standing in the way of the test's own tasks.
async fn run(flare: &Flare, words: &[&str]) -> Output {
    let mut command = command(words);
    command.args(["--url", &url(flare)]);
    tokio::task::spawn_blocking(move || command.output().expect("the binary runs")).await.unwrap()
}

#[track_caller]
fn insist(output: &Output, code: i32, words: &[&str]) -> String {
    let out = String::from_utf8(output.stdout.clone()).unwrap();
    let all = format!("{out}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "`{word}` is not in: {all}");
    }
    assert!(!out.contains('\x1b'), "no colours where nobody sees them: {out:?}");
    out
}

fn id_of(subscription: &str) -> &str {
    subscription.rsplit('/').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_the_node_and_what_needs_attention() {
    let story = Story::begin().await;
    let good = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.settled(&good).await;
    let told = run(&story.flare, &["status"]).await;
    insist(
        &told,
        0,
        &[
            env!("CARGO_PKG_VERSION"),
            "1 resources, 1 subscriptions, 1 documents",
            "every subscription is active",
        ],
    );

    let client = Receiver::answering(|_| Reply::Status(410)).await;
    let bad = story.subscribe(json!({"endpoint": {"url": client.url("/gone")}})).await;
    let other = Receiver::start().await;
    let paused = story.subscribe(json!({"endpoint": {"url": other.url("/paused")}})).await;
    story.command(&paused, "pause").await.expect(200);
    story.put(1, 2).await;
    story.until_status(&bad, "it is disabled", |s| s["status"] == "disabled").await;
    story.settled(&good).await;
    let told = run(&story.flare, &["status"]).await;
    let out = insist(&told, 0, &["SUBSCRIPTION", "disabled", "410 Gone", "paused"]);
    let line = |id: &str| out.lines().find(|line| line.starts_with(id)).unwrap_or_default().to_owned();
    assert!(line(id_of(&bad)).contains("disabled") && line(id_of(&paused)).contains("paused"), "{out}");
    assert_eq!(line(id_of(&good)), "", "one that works is not listed: {out}");

    let told = run(&story.flare, &["status", "--output", "json"]).await;
    let json: Value = serde_json::from_str(&insist(&told, 0, &[])).unwrap();
    assert_eq!(
        (&json["status"]["subscriptions"], json["attention"].as_array().unwrap().len()),
        (&3.into(), 2)
    );
    assert_eq!(json["health"]["status"], "green");
    assert_eq!((json["nodes"].as_array().unwrap().len(), &json["nodes"][0]["self"]), (1, &true.into()));
    let all = story.api().get("/subscriptions?limit=2").await.expect(200).json();
    assert_eq!((&all["pagination"]["total"], all["subscriptions"].as_array().unwrap().len()), (&3.into(), 2));
    assert_eq!(
        (&all["subscriptions"][0]["id"], &all["subscriptions"][0]["delivered"]),
        (&id_of(&good).into(), &2.into())
    );
    story.api().get("/subscriptions/none").await.refused(404, &["none"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn status_lists_clients_whose_expressions_have_no_result() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/filtered")});
    let filtered = story.subscribe(json!({"endpoint": endpoint, "filter": "document.stock > 0"})).await;
    story.api().put(&document_url(1), &json!({"rev": 1, "stock": "many"})).await;
    story.until_status(&filtered, "it has no result", |status| status["filter"]["erring"] == true).await;
    let told = run(&story.flare, &["status"]).await;
    let out = insist(&told, 0, &["SUBSCRIPTION", "an expression has no result"]);
    assert!(out.lines().any(|line| line.starts_with(id_of(&filtered))), "{out}");
    let page = story.api().get("/ui/subscriptions").await.expect(200);
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains("an expression has no result"), "the list says why");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_not_there_is_a_failure_and_the_configuration_says_where_it_is() {
    let here = tempfile::tempdir().unwrap();
    let (_nobody, free) = crate::trouble::dead_hosts::nobody();
    let free = free.to_string();
    for words in [&["status"][..], &["tail"], &["replay", "sub_1"]] {
        let output = command(words).env("FLARE_HTTP_SERVER_ADDR", &free).output().unwrap();
        insist(&output, 4, &[&free, "--url"]);
    }
    let flare = Flare::start().await;
    let file = here.path().join("flare.toml");
    std::fs::write(&file, format!("[http.server]\naddr = \"{}\"\n", flare.addr())).unwrap();
    let mut status = command(&["status", "--config", file.to_str().unwrap()]);
    insist(&tokio::task::spawn_blocking(move || status.output().unwrap()).await.unwrap(), 0, &["Flare"]);
    insist(&command(&["status", "--url", "nowhere"]).output().unwrap(), 2, &["--url"]);
    insist(
        &command(&["status"]).env("FLARE_HTTP_SERVER_ADDR", "x").output().unwrap(),
        3,
        &["FLARE_HTTP_SERVER_ADDR"],
    );
}

#[test]
fn a_node_that_hangs_is_given_up_after_the_timeout() {
    // Connections are made, and nobody ever answers.
    let hangs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", hangs.local_addr().unwrap());
    for words in [&["status"][..], &["replay", "sub_1", "--wait"], &["tail"]] {
        let output = command(words).args(["--url", &url, "--timeout", "300ms"]).output().unwrap();
        insist(&output, 4, &["300ms", "--timeout"]);
    }
    insist(&command(&["status", "--timeout", "soon"]).output().unwrap(), 2, &["--timeout"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_begins_and_waits() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let id = id_of(&subscription);
    for document in 0..5 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    insist(
        &run(&story.flare, &["replay", id, "--wait"]).await,
        0,
        &["rpl_1 is through: 5 of 5 documents (100%)"],
    );
    assert_eq!(story.receiver.count(), 10);
    let one = document_url(3);
    let told = run(&story.flare, &["replay", id, "--document", &one, "--wait", "--output", "json"]).await;
    let json: Value = serde_json::from_str(&insist(&told, 0, &[])).unwrap();
    assert_eq!((&json["total"], &json["done"], &json["state"]), (&1.into(), &1.into(), &"done".into()));
    for scope in ["--lagging", "--dead-letters"] {
        insist(&run(&story.flare, &["replay", id, scope, "--wait"]).await, 0, &["0 of 0"]);
    }
    insist(
        &run(&story.flare, &["replay", id, "--since", "2026-01-01T00:00:00Z"]).await,
        0,
        &["rpl_5 has begun: 5 documents"],
    );
    insist(&run(&story.flare, &["replay", "sub_none"]).await, 4, &["404", "sub_none"]);
    insist(&run(&story.flare, &["replay", id, "--document", "x"]).await, 4, &["400", "document"]);
    insist(&run(&story.flare, &["replay", id, "--lagging", "--dead-letters"]).await, 2, &["--lagging"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tail_prints_notifications_as_they_end() {
    let mut story = Story::told(
        Receiver::answering(|request| {
            Reply::Status(if request.document().ends_with("/bad") { 500 } else { 200 })
        })
        .await,
    )
    .await;
    let subscription = story.subscribe_simply(json!({"retry": {"interval": "1h"}})).await;
    let id = id_of(&subscription).to_owned();
    let start = |words: &[&str]| {
        let mut tail = command(words);
        tail.args(["--url", &url(&story.flare)]).stdout(Stdio::piped()).stderr(Stdio::piped());
        tail.spawn().expect("the binary runs")
    };
    let mut human = start(&["tail", "--subscription", &id]);
    let mut machine = start(&["tail", "--output", "json", "--document", &document_url("bad")]);
    for tail in [&mut human, &mut machine] {
        // It says so once the watch is on.
        let mut first = String::new();
        BufReader::new(tail.stderr.as_mut().unwrap()).read_line(&mut first).unwrap();
        assert!(first.contains("watching"), "{first}");
    }
    story.put("good", 7).await;
    story.put("bad", 1).await;
    story.until_status(&subscription, "both were tried", |s| s["delivered"] == 1 && s["failed"] == 1).await;
    assert!(story.flare.stop().await.success());
    let mut ends = Vec::new();
    for mut tail in [human, machine] {
        let mut out = String::new();
        tail.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(tail.wait().unwrap().success());
        ends.push(out);
    }
    let [human, machine] = ends.try_into().unwrap();
    assert_eq!(human.lines().count(), 2, "{human}");
    let good = human.lines().find(|line| line.contains("/good")).unwrap();
    for word in ["delivered", "create", "revision 7", &id, "200", "attempt 1"] {
        assert!(good.contains(word), "`{word}` is not in: {good}");
    }
    assert!(human.lines().any(|line| line.contains("failed") && line.contains("500")), "{human}");
    let line: Value = serde_json::from_str(machine.trim()).expect("one line of JSON");
    assert_eq!((&line["document"], &line["status"]), (&document_url("bad").into(), &500.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_answers_json_where_json_is_asked_for() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--output", "json", "status", "--url", "http://127.0.0.1:1"], 4, "reaching Flare"),
        (&["--output", "json", "replay", "sub_1", "--url", "http://127.0.0.1:1"], 4, "reaching Flare"),
        (&["status", "--output", "json", "--config", "/nowhere/flare.toml"], 3, "/nowhere/flare.toml"),
        (&["migrate", "up", "--output=json", "--data", "/dev/null/x"], 4, "/dev/null/x"),
        (&["--output", "json", "strat"], 2, "strat"),
    ];
    for (words, code, part) in cases {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut failing = command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let output =
            tokio::task::spawn_blocking(move || failing.output().expect("the binary runs")).await.unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}"));
        let detail = answer["error"]["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(part), "{words:?}: {answer}");
        assert!(answer["error"]["title"].is_string() && answer["exit"] == code, "{answer}");
        assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_waited_for_shows_a_bar_on_a_terminal() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    // `script` gives a command a terminal.
    let (flare, node) = (env!("CARGO_BIN_EXE_flare"), url(&story.flare));
    let line = format!("{flare} replay {} --wait --url {node}", id_of(&subscription));
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &line, "/dev/null"]).stdin(Stdio::null());
    let Ok(Ok(output)) = tokio::task::spawn_blocking(move || script.output()).await else {
        return crate::support::left_out("a bar on a terminal: `script` of util-linux gives a command one");
    };
    let seen = String::from_utf8_lossy(&output.stdout);
    assert!(seen.contains(&format!("[{}]", "#".repeat(30))) && seen.contains("1 of 1 documents"), "{seen:?}");
}
