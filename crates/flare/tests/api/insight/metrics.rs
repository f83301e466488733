//! `/metrics`: what is counted, what Prometheus says to it, and that the documents speak of the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::{self, Flare, Receiver, Reply, Request, Setup, Story, document_url, left_out, until};

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

pub fn text_of(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A page of metrics, read.
pub struct Scrape {
    pub text: String,
    /// By family, its type.
    pub families: BTreeMap<String, String>,
    /// By name and labels as written.
    pub values: BTreeMap<String, f64>,
}

impl Scrape {
    pub async fn of(flare: &Flare) -> Scrape {
        let answer = flare.api().get("/metrics").await.expect(200);
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        let text = String::from_utf8(answer.body.to_vec()).expect("text");
        let (mut families, mut values) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').expect("a name and a type");
                assert!(families.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} is there twice");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                values.insert(name.to_owned(), value.parse().expect("a number"));
            }
        }
        Scrape { text, families, values }
    }

    pub fn value(&self, name: &str) -> f64 {
        *self.values.get(name).unwrap_or_else(|| panic!("there is no {name} in:\n{}", self.text))
    }
}

/// Scrapes until each of these is what it should be, one after the other: none of them moves away from that again.
pub async fn until_counted(flare: &Flare, expected: &[(&str, f64)]) -> Scrape {
    for (name, value) in expected {
        until(&format!("{name} is {value}"), async || {
            (Scrape::of(flare).await.value(name) == *value).then_some(())
        })
        .await;
    }
    Scrape::of(flare).await
}

/// Runs promtool and answers whether it is content, and what it says. `None` where it is not installed, see
/// [`left_out`].
pub fn promtool(arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(repository("deploy/prometheus"));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        left_out("what promtool says of metrics and rules: `cargo xtask test` installs it");
        return None;
    };
    let mut stdin = child.stdin.take().expect("it was piped");
    stdin.write_all(input.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[tokio::test]
async fn what_origins_and_clients_do_is_counted() {
    let answer = |request: &Request| match request.document().rsplit('/').next() {
        Some("bad") => Reply::Status(503),
        Some("drop") => Reply::Status(404),
        _ => Reply::Status(200),
    };
    let story = Story::told(Receiver::answering(answer).await).await;
    let retry = json!({"quantity": 2, "interval": "1ms", "maxInterval": "1ms"});
    let subscription = story.subscribe_simply(json!({"discard": [404], "retry": retry})).await;
    assert_eq!(story.put("good", 1).await, "created");
    story.settled(&subscription).await;
    assert_eq!(story.put("good", 2).await, "updated");
    assert_eq!(story.put("good", 2).await, "unchanged");
    assert_eq!(story.put("good", 1).await, "stale");
    story.settled(&subscription).await;
    assert_eq!(story.remove("good").await, "deleted");
    assert_eq!(story.remove("nobody").await, "absent");
    assert_eq!(story.put("drop", 1).await, "created");
    assert_eq!(story.put("bad", 1).await, "created");
    let bulk = format!(
        "{}\n{}\n",
        json!({"id": document_url("bulk"), "document": {"rev": 1}}),
        json!({"id": document_url("bulk"), "document": {"rev": "x"}})
    );
    story.api().send("POST", "/documents", &[], bulk).await.expect(200);
    story.api().send("PUT", "/documents/http://elsewhere.test/1", &[], r#"{"rev":1}"#).await.expect(404);
    story.until_status(&subscription, "it is given up", |status| status["feed"]["deadLetters"] == 1).await;
    story.settled(&subscription).await;

    let scrape = until_counted(
        &story.flare,
        &[
            (r#"flare_documents_received_total{outcome="created"}"#, 4.0),
            (r#"flare_documents_received_total{outcome="updated"}"#, 1.0),
            (r#"flare_documents_received_total{outcome="unchanged"}"#, 1.0),
            (r#"flare_documents_received_total{outcome="stale"}"#, 1.0),
            (r#"flare_documents_received_total{outcome="deleted"}"#, 1.0),
            (r#"flare_documents_received_total{outcome="absent"}"#, 1.0),
            (r#"flare_documents_refused_total{reason="no_resource"}"#, 1.0),
            (r#"flare_documents_refused_total{reason="unreadable"}"#, 1.0),
            (r#"flare_documents_refused_total{reason="unavailable"}"#, 0.0),
            (r#"flare_attempts_total{outcome="delivered",status="2xx"}"#, 4.0),
            (r#"flare_attempts_total{outcome="discarded",status="4xx"}"#, 1.0),
            (r#"flare_attempts_total{outcome="failed",status="5xx"}"#, 2.0),
            (r#"flare_attempts_total{outcome="failed",status="error"}"#, 0.0),
            ("flare_retries_total", 1.0),
            ("flare_given_up_total", 1.0),
            ("flare_attempt_duration_seconds_count", 7.0),
            ("flare_delivery_latency_seconds_count", 4.0),
            // Seven requests that each committed something, the bulk one with one line of two.
            ("flare_commit_duration_seconds_count", 9.0),
            ("flare_commit_changes_sum", 6.0),
            ("flare_dead_letters", 1.0),
            ("flare_backlog_notifications", 0.0),
            ("flare_inflight_attempts", 0.0),
            ("flare_lagging_subscriptions", 0.0),
            (r#"flare_subscriptions{status="active"}"#, 1.0),
            (r#"flare_subscriptions{status="paused"}"#, 0.0),
            ("flare_resources", 1.0),
        ],
    )
    .await;
    assert!(
        scrape.value("flare_records_total") > 0.0
            && scrape.value("flare_record_duration_seconds_count") > 0.0
    );
    assert!(scrape.value("flare_documents_received_bytes_total") > 30.0);
    let bodies: usize = story.receiver.requests().iter().map(|request| request.body.len()).sum();
    assert_eq!(scrape.value("flare_attempt_body_bytes_total"), bodies as f64);
    assert!(scrape.value("process_cpu_seconds_total") > 0.0);
    assert!(scrape.value("process_resident_memory_bytes") > 1e6);
    assert!(scrape.value("flare_census_age_seconds") < 30.0);
    assert!(scrape.text.contains("flare_build_info{version=\""), "{}", scrape.text);
    // What is stored is looked at every few seconds.
    let stored = [("flare_documents", 3.0), ("flare_tombstones", 1.0)];
    until_counted(&story.flare, &stored).await;

    story.command(&subscription, "pause").await.expect(200);
    story.put("later", 1).await;
    until_counted(
        &story.flare,
        &[
            (r#"flare_subscriptions{status="paused"}"#, 1.0),
            (r#"flare_subscriptions{status="active"}"#, 0.0),
            ("flare_backlog_notifications", 1.0),
            ("flare_largest_backlog_notifications", 1.0),
            ("flare_lagging_subscriptions", 1.0),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_sent_on_request_tells_nothing_of_how_late_changes_come() {
    let story = Story::begin().await;
    story.put("old", 1).await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "start": "beginning"})).await;
    story.receiver.wait_for(1).await;
    story.settled(&subscription).await;
    story.api().post(&format!("{subscription}/replay"), &json!({})).await.expect(202);
    story.receiver.wait_for(2).await;
    story.settled(&subscription).await;
    let counted = [
        (r#"flare_attempts_total{outcome="delivered",status="2xx"}"#, 2.0),
        ("flare_delivery_latency_seconds_count", 0.0),
        ("flare_replays_started_total", 1.0),
    ];
    until_counted(&story.flare, &counted).await;
    story.put("new", 1).await;
    until_counted(&story.flare, &[("flare_delivery_latency_seconds_count", 1.0)]).await;
}

#[tokio::test]
async fn a_client_that_fails_and_recovers_is_counted_with_its_host() {
    let operator = Receiver::start().await;
    let setup = Setup::default()
        .with("FLARE_DELIVERY_FAILING_AFTER", "50ms")
        .with("FLARE_DELIVERY_BREAKER_FAILURES", "2")
        .with("FLARE_DELIVERY_BREAKER_PAUSE", "50ms")
        .with("FLARE_DELIVERY_BREAKER_LONGEST_PAUSE", "50ms")
        .with("FLARE_NOTIFY_URL", &operator.url("/operator"));
    let story = Story::with(setup, Receiver::answering(|_| Reply::Reset).await).await;
    let retry = json!({"interval": "1ms", "maxInterval": "20ms", "quantity": 1_000_000});
    story.subscribe_simply(json!({"retry": retry})).await;
    story.put("it", 1).await;
    let failing = [
        (r#"flare_subscriptions{status="failing"}"#, 1.0),
        (r#"flare_subscription_notices_total{event="failing"}"#, 1.0),
        (r#"flare_notice_posts_total{outcome="posted"}"#, 1.0),
        ("flare_open_breakers", 1.0),
    ];
    let scrape = until_counted(&story.flare, &failing).await;
    assert!(scrape.value(r#"flare_attempts_total{outcome="failed",status="error"}"#) >= 2.0);
    assert!(scrape.value("flare_breaker_opened_total") >= 1.0);
    story.receiver.answer(|_| Reply::Status(200));
    let recovered = [
        (r#"flare_subscriptions{status="active"}"#, 1.0),
        (r#"flare_subscription_notices_total{event="recovered"}"#, 1.0),
        ("flare_open_breakers", 0.0),
    ];
    until_counted(&story.flare, &recovered).await;
}

#[tokio::test]
async fn a_notice_is_posted_as_often_as_configured_and_then_given_up() {
    let operator = Receiver::answering(|_| Reply::Status(500)).await;
    let setup = Setup::default()
        .with("FLARE_DELIVERY_FAILING_AFTER", "0s")
        .with("FLARE_NOTIFY_ATTEMPTS", "2")
        .with("FLARE_NOTIFY_URL", &operator.url("/operator"));
    let story = Story::with(setup, Receiver::answering(|_| Reply::Status(500)).await).await;
    story.subscribe_simply(json!({"retry": {"interval": "1h"}})).await;
    story.put("it", 1).await;
    until_counted(&story.flare, &[(r#"flare_notice_posts_total{outcome="failed"}"#, 1.0)]).await;
    assert_eq!(operator.count(), 2);
}

#[tokio::test]
async fn what_clients_pull_is_counted() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "mode": "passive"})).await;
    for id in ["one", "two", "three"] {
        story.put(id, 1).await;
    }
    let reserve = format!("{subscription}/reserve?quantity=3&wait=20s&lease=10m");
    let mut leases: Vec<Value> = Vec::new();
    while leases.len() < 3 {
        let reserved =
            story.command(&subscription, reserve.rsplit('/').next().unwrap()).await.expect(200).json();
        leases
            .extend(reserved["messages"].as_array().unwrap().iter().map(|message| message["lease"].clone()));
    }
    until_counted(&story.flare, &[("flare_leases_granted_total", 3.0), ("flare_leased_notifications", 3.0)])
        .await;
    let word = |index: usize, status: &str| json!({"lease": leases[index], "status": status});
    let words = json!({"messages": [word(0, "success"), word(1, "discard"), word(2, "release")]});
    story.api().post(&format!("{subscription}/settle"), &words).await.expect(200);
    let ended = [
        (r#"flare_leases_ended_total{outcome="success"}"#, 1.0),
        (r#"flare_leases_ended_total{outcome="discard"}"#, 1.0),
        (r#"flare_leases_ended_total{outcome="release"}"#, 1.0),
        (r#"flare_leases_ended_total{outcome="expired"}"#, 0.0),
        ("flare_leased_notifications", 0.0),
    ];
    until_counted(&story.flare, &ended).await;
}

/// The name of a series of requests.
fn requests(method: &str, route: &str, status: &str) -> String {
    format!(r#"flare_http_requests_total{{method="{method}",route="{route}",status="{status}"}}"#)
}

#[tokio::test]
async fn what_is_asked_is_counted_by_route_whatever_comes_of_it() {
    let story = Story::begin().await;
    let api = story.api();
    for id in ["one", "two", "three"] {
        story.put(id, 1).await;
    }
    api.send("PUT", &format!("/documents/{}", document_url("four")), &[], "nonsense").await.expect(400);
    api.get(&format!("/documents/{}", document_url("nobody"))).await.expect(404);
    // Refused by what stands before a handler: a parameter that is none, a form of another site, a wrong method.
    api.get("/status?verbose=1").await.expect(400);
    api.send("POST", "/ui/documents/delete", &[("origin", "http://evil.test")], "").await.expect(403);
    api.send("DELETE", "/metrics", &[], "").await.expect(405);
    api.send("OPTIONS", "/metrics", &[], "").await.expect(405);
    api.get("/ui").await.expect(200);
    api.get("/ui/").await.expect(200);
    for path in ["/nothing", "/nothing/else", "/documents-/x"] {
        api.get(path).await.expect(404);
    }
    let scrape = Scrape::of(&story.flare).await;
    for (method, route, status, times) in [
        ("PUT", "/documents/{*url}", "2xx", 3.0),
        ("PUT", "/documents/{*url}", "4xx", 1.0),
        ("PUT", "/documents/{*url}", "5xx", 0.0),
        ("GET", "/documents/{*url}", "4xx", 1.0),
        ("GET", "/status", "4xx", 1.0),
        ("POST", "/ui/documents/delete", "4xx", 1.0),
        ("DELETE", "/metrics", "4xx", 1.0),
        ("other", "/metrics", "4xx", 1.0),
        ("GET", "/ui", "2xx", 2.0),
        ("GET", "other", "4xx", 3.0),
    ] {
        assert_eq!(scrape.value(&requests(method, route, status)), times, "{method} {route} {status}");
    }
    let of_puts = r#"{method="PUT",route="/documents/{*url}"}"#;
    assert_eq!(scrape.value(&format!("flare_http_request_duration_seconds_count{of_puts}")), 4.0);
    let took = scrape.value(&format!("flare_http_request_duration_seconds_sum{of_puts}"));
    assert!(took > 0.0 && took < 60.0, "{took} s");
    assert_eq!(scrape.value("flare_http_requests_in_flight"), 1.0, "the scrape itself");
    assert!(scrape.value("flare_http_connections") >= 1.0);
    assert_eq!(scrape.value("flare_http_max_connections"), 4096.0);
    let chosen = scrape.values.keys().find(|name| name.contains("origin.test") || name.contains("nothing"));
    assert_eq!(chosen, None, "a label has a value that a user chose");
}

#[tokio::test]
async fn who_hangs_up_before_the_answer_is_counted_as_that() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "mode": "passive"})).await;
    let mut stream = TcpStream::connect(story.flare.addr()).await.expect("Flare listens");
    let request = format!(
        "POST {subscription}/reserve?wait=60s HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("Flare reads");
    until_counted(&story.flare, &[("flare_http_requests_in_flight", 2.0)]).await;
    drop(stream);
    let aborted = requests("POST", "/resources/{rid}/subscriptions/{id}/reserve", "aborted");
    let counted = [(aborted.as_str(), 1.0), ("flare_http_requests_in_flight", 1.0)];
    until_counted(&story.flare, &counted).await;
}

#[tokio::test]
async fn promtool_and_a_strict_parser_find_nothing_wrong() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put("it", 1).await;
    story.settled(&subscription).await;
    let scrape = Scrape::of(&story.flare).await;
    if let Some((content, said)) = promtool(&["check", "metrics"], &scrape.text) {
        assert!(content && said.is_empty(), "{said}");
        let (content, _) = promtool(&["check", "metrics"], "# TYPE x counter\nx 1\n").unwrap();
        assert!(!content, "promtool would not say if something was wrong");
    }
    let accept = [("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.3")];
    let open = story.api().send("GET", "/metrics", &accept, "").await.expect(200);
    assert_eq!(open.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = String::from_utf8(open.body.to_vec()).unwrap();
    if let Some(families) = support::open_metrics(&text) {
        let of_prometheus: BTreeSet<String> =
            scrape.families.keys().map(|name| name.trim_end_matches("_total").to_owned()).collect();
        assert_eq!(families, of_prometheus);
    }
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_one_exists() {
    let flare = Flare::start().await;
    let scrape = Scrape::of(&flare).await;
    let page = text_of("docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeMap<String, String> = rows
        .map(|row| {
            let (name, rest) = row.split_once("` | ").expect("a name and a type");
            let kind = rest.split(" | ").next().unwrap_or_default();
            (name.to_owned(), kind.to_owned())
        })
        .collect();
    let mut there = scrape.families.clone();
    there.insert("flare_telemetry_spans_total".into(), "counter".into());
    if !support::store_is_durable() {
        there.insert("flare_store_size_bytes".into(), "gauge".into());
    }
    assert_eq!(documented, there);
    // And every value of every label, but of those that tell of the build.
    let of_histograms = ["_bucket{", "_sum{", "_count{"];
    let plain =
        |name: &&String| !of_histograms.iter().any(|part| name.contains(part)) && !name.contains("_info{");
    for sample in scrape.values.keys().filter(plain) {
        let Some((name, labels)) = sample.split_once('{') else { continue };
        let row = page.lines().find(|line| line.contains(&format!("| `{name}` |"))).expect("documented");
        for label in labels.trim_end_matches('}').split(',') {
            let (label, value) = label.split_once('=').expect("a label");
            assert!(row.contains(&format!("`{label}`: ")), "{label} of {name}");
            let value = value.trim_matches('"');
            assert!(label == "route" || row.contains(value), "{value} of {name}");
        }
    }
    let (of_routes, others): (Vec<_>, Vec<_>) =
        scrape.values.keys().partition(|name| name.contains("route="));
    let routes = of_routes.iter().filter(|name| name.contains("duration_seconds_count")).count();
    assert_eq!(of_routes.len(), 16 * routes, "the page says how many each has");
    assert!((200..240).contains(&others.len()), "and of others about 220, found {}", others.len());
}
