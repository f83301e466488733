//! Traces by OTLP, from the PUT to the client's answer, as a real receiver gets them: which spans, under which, when
//! nothing is sent, and what a collector that fails costs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Certificates, Collector, Flare, Receiver, Reply, Setup, Story, document_url, store_is_durable,
    throughout, until,
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// A Flare that sends to this receiver at once.
fn sending_to(collector: &Collector) -> Setup {
    Setup::default()
        .with("FLARE_TELEMETRY_ENDPOINT", &collector.endpoint())
        .with("FLARE_TELEMETRY_PROTOCOL", collector.protocol())
        .with("FLARE_TELEMETRY_TRACES_INTERVAL", "20ms")
        .with("FLARE_TELEMETRY_TIMEOUT", "5s")
}

async fn put(story: &Story, id: u32, revision: i64, headers: &[(&str, &str)]) {
    let path = format!("/documents/{}", document_url(id));
    story.api().send("PUT", &path, headers, json!({"rev": revision}).to_string()).await.expect(202);
}

fn named<'a>(spans: &'a [Value], name: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["name"].as_str().is_some_and(|n| n.starts_with(name))).collect()
}

/// The trace, span and flags of a request that a client got.
fn sent(header: &str) -> (String, String, String) {
    let parts: Vec<&str> = header.split('-').collect();
    assert_eq!((parts.len(), parts[0]), (4, "00"), "{header}");
    (parts[1].to_owned(), parts[2].to_owned(), parts[3].to_owned())
}

async fn telemetry(flare: &Flare) -> Value {
    flare.api().get("/status").await.expect(200).json()["telemetry"].clone()
}

/// Waits until what `GET /status` says of telemetry is as wanted.
async fn until_telemetry(flare: &Flare, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(what, || async {
        let telemetry = telemetry(flare).await;
        holds(&telemetry).then_some(telemetry)
    })
    .await
}

async fn one_trace_from_the_put_to_the_answer(protocol: &'static str) {
    let Some(collector) = Collector::start(protocol).await else { return };
    let setup = sending_to(&collector)
        .with("FLARE_TELEMETRY_HEADERS", "api-key=s%2Ccret")
        .with("FLARE_TELEMETRY_SERVICE_NAME", "flare-of-the-test")
        .with("FLARE_TELEMETRY_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    let story = Story::with(setup, Receiver::start().await).await;
    let url = story.receiver.url("/users/{id}?key=secret");
    let subscription = story.subscribe(json!({"endpoint": {"url": url}})).await;
    let headers = [("traceparent", traceparent("01")), ("tracestate", "congo=t61rcWkgMzE".to_owned())];
    put(&story, 1, 10, &[("traceparent", &headers[0].1), ("tracestate", &headers[1].1)]).await;

    let request = story.receiver.wait_for(1).await.remove(0);
    let (trace, told, flags) = sent(request.header("traceparent"));
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
    assert_eq!(request.header("tracestate"), "congo=t61rcWkgMzE");

    let spans = collector.spans(4).await;
    assert_eq!(spans.len(), 4, "{spans:?}");
    let [accept, commit, spread, attempt] =
        ["PUT /documents/{url}", "commit", "spread", "POST "].map(|name| named(&spans, name)[0]);
    assert_eq!(accept["parent"], PARENT);
    assert_eq!(commit["parent"], accept["id"]);
    assert_eq!(spread["parent"], commit["id"]);
    assert_eq!(attempt["parent"], spread["id"]);
    assert_eq!(attempt["id"], told, "the client was told the span of its own attempt");
    for span in &spans {
        assert_eq!((&span["trace"], &span["state"]), (&json!(TRACE), &json!("congo=t61rcWkgMzE")));
        assert!(span["start"].as_u64() <= span["end"].as_u64(), "{span}");
        let resource = &span["resource"];
        assert_eq!(resource["service.name"], "flare-of-the-test");
        assert_eq!(resource["deployment.environment.name"], "test");
        assert_eq!(span["headers"]["api-key"], "s,cret");
        assert_eq!(span["status"], "STATUS_CODE_UNSET");
    }
    // Within a few seconds of the machine's own time, and one after the other.
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    let began = u128::from(accept["start"].as_u64().expect("a time"));
    assert!(now.abs_diff(began) < 60_000_000_000, "{began} is not about {now}");
    assert!(commit["start"].as_u64() >= accept["start"].as_u64());
    assert!(spread["end"].as_u64() <= attempt["start"].as_u64());

    let attributes = &accept["attributes"];
    assert_eq!(accept["spanKind"], "SPAN_KIND_SERVER");
    assert_eq!(
        (&attributes["http.request.method"], &attributes["http.route"]),
        (&json!("PUT"), &json!("/documents/{url}"))
    );
    assert_eq!(attributes["http.response.status_code"], 202);
    assert_eq!(
        (&attributes["flare.outcome"], &attributes["flare.resource.id"]),
        (&json!("created"), &json!(story.resource))
    );
    let attributes = &attempt["attributes"];
    assert_eq!(attempt["spanKind"], "SPAN_KIND_CLIENT");
    assert_eq!(
        attempt["name"],
        format!("POST {}", story.receiver.url("/users/{id}")),
        "the template, no query"
    );
    assert_eq!(attributes["http.response.status_code"], 200);
    assert_eq!(attributes["server.port"], story.receiver.addr().port());
    assert_eq!(attributes["flare.document.url"], document_url(1));
    assert!(subscription.ends_with(attributes["flare.subscription.id"].as_str().expect("an id")));
    assert_eq!(
        (&attributes["flare.action"], &attributes["flare.outcome"]),
        (&json!("create"), &json!("delivered"))
    );
    assert!(!spans.iter().any(|span| span["attributes"].to_string().contains("secret")));
}

#[tokio::test]
async fn one_trace_from_the_put_to_the_answer_by_grpc() {
    one_trace_from_the_put_to_the_answer("grpc").await;
}

#[tokio::test]
async fn one_trace_from_the_put_to_the_answer_by_http() {
    one_trace_from_the_put_to_the_answer("http/protobuf").await;
}

#[tokio::test]
async fn every_attempt_is_a_span_of_its_own() {
    let Some(collector) = Collector::start("http/protobuf").await else { return };
    let mut left = 2;
    let receiver = Receiver::answering(move |_| match left {
        0 => Reply::Status(200),
        _ => {
            left -= 1;
            Reply::Status(503)
        }
    });
    let story = Story::with(sending_to(&collector), receiver.await).await;
    story.subscribe_simply(json!({"retry": {"immediate": 5, "interval": "10ms"}})).await;
    put(&story, 1, 10, &[]).await;
    let requests = story.receiver.wait_for(3).await;
    let spans = collector.spans(6).await;
    assert_eq!(spans.len(), 6, "{spans:?}");
    let attempts = named(&spans, "POST ");
    let wait = named(&spans, "spread")[0];
    assert_eq!(named(&spans, "PUT ")[0]["parent"], "", "a trace that began here");
    for (request, attempt) in requests.iter().zip(&attempts) {
        let (trace, span, flags) = sent(request.header("traceparent"));
        assert_eq!((&attempt["trace"], &attempt["id"]), (&json!(trace), &json!(span)));
        assert_eq!(
            (flags.as_str(), &attempt["parent"]),
            ("03", &wait["id"]),
            "sampled, and its id is random"
        );
    }
    let told: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            let attributes = &attempt["attributes"];
            let resent = attributes["http.request.resend_count"].as_u64();
            (resent, attributes["error.type"].as_str(), attempt["status"].as_str().unwrap())
        })
        .collect();
    let (error, unset) = ("STATUS_CODE_ERROR", "STATUS_CODE_UNSET");
    assert_eq!(told, [(None, Some("503"), error), (Some(1), Some("503"), error), (Some(2), None, unset)]);
}

#[tokio::test]
async fn a_client_that_cannot_be_reached_is_an_error_in_words() {
    let Some(collector) = Collector::start("grpc").await else { return };
    let story = Story::with(sending_to(&collector), Receiver::answering(|_| Reply::Reset).await).await;
    story.subscribe_simply(json!({"retry": {"interval": "1h"}})).await;
    put(&story, 1, 10, &[]).await;
    let spans = collector.spans(4).await;
    let attempt = named(&spans, "POST ")[0];
    assert_eq!(
        (&attempt["status"], &attempt["attributes"]["error.type"]),
        (&json!("STATUS_CODE_ERROR"), &json!("connection"))
    );
    assert!(attempt["why"].as_str().is_some_and(|why| why.contains("connection broke")), "{attempt}");
}

#[tokio::test]
async fn with_a_ratio_of_zero_only_what_comes_with_a_trace_is_sent() {
    let Some(collector) = Collector::start("http/protobuf").await else { return };
    let setup = sending_to(&collector).with("FLARE_TELEMETRY_TRACES_RATIO", "0");
    let mut story = Story::with(setup, Receiver::start().await).await;
    story.subscribe_simply(json!({})).await;
    put(&story, 1, 1, &[]).await;
    assert_eq!(story.receiver.wait_for(1).await[0].header("traceparent"), "", "no trace, no header");
    put(&story, 2, 1, &[("traceparent", &traceparent("00"))]).await;
    let passed_on = sent(story.receiver.wait_for(2).await[1].header("traceparent"));
    assert_eq!((passed_on.0.as_str(), passed_on.2.as_str()), (TRACE, "00"), "passed on with its decision");
    assert_ne!(passed_on.1, PARENT);
    put(&story, 3, 1, &[("traceparent", &traceparent("01"))]).await;
    story.receiver.wait_for(3).await;
    assert!(story.flare.stop().await.success());
    let spans = collector.spans(4).await;
    assert_eq!(spans.len(), 4, "nothing of the first two: {spans:?}");
    assert!(spans.iter().all(|span| span["trace"] == TRACE));
}

#[tokio::test]
async fn where_the_parent_is_not_asked_the_ratio_decides() {
    let Some(collector) = Collector::start("http/protobuf").await else { return };
    let setup = sending_to(&collector)
        .with("FLARE_TELEMETRY_TRACES_RATIO", "0")
        .with("FLARE_TELEMETRY_TRACES_PARENT_BASED", "false");
    let mut story = Story::with(setup, Receiver::start().await).await;
    story.subscribe_simply(json!({})).await;
    put(&story, 1, 1, &[("traceparent", &traceparent("01"))]).await;
    let (trace, _, flags) = sent(story.receiver.wait_for(1).await[0].header("traceparent"));
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "00"));
    assert!(story.flare.stop().await.success());
    assert!(collector.seen("span").is_empty());
}

#[tokio::test]
async fn without_a_collector_nothing_is_passed_on() {
    let story = Story::begin().await;
    story.subscribe_simply(json!({})).await;
    put(&story, 1, 1, &[("traceparent", &traceparent("01"))]).await;
    assert_eq!(story.receiver.wait_for(1).await[0].header("traceparent"), "");
    assert_eq!(telemetry(&story.flare).await, Value::Null);
}

#[tokio::test]
async fn the_lines_of_a_bulk_share_a_trace() {
    let Some(collector) = Collector::start("grpc").await else { return };
    let story = Story::with(sending_to(&collector), Receiver::start().await).await;
    story.subscribe_simply(json!({})).await;
    let line = |id: u32| json!({"id": document_url(id), "document": {"rev": 1}}).to_string();
    // With an end to the last one too: both are there to be committed as one.
    let body = [line(1), line(2), String::new()].join("\n");
    story.api().send("POST", "/documents", &[("traceparent", &traceparent("01"))], body).await.expect(200);
    for request in story.receiver.wait_for(2).await {
        assert_eq!(sent(request.header("traceparent")).0, TRACE);
    }
    let spans = collector.spans(6).await;
    assert_eq!(named(&spans, "POST /documents").len(), 1);
    assert_eq!(named(&spans, "commit")[0]["attributes"]["flare.changes"], 2);
    assert_eq!((named(&spans, "spread").len(), named(&spans, "POST http").len()), (2, 2));
}

#[tokio::test]
async fn what_is_handed_out_on_a_lease_carries_its_trace() {
    let Some(collector) = Collector::start("http/protobuf").await else { return };
    let story = Story::with(sending_to(&collector), Receiver::start().await).await;
    let passive = json!({"endpoint": {"url": story.receiver.url("/told")}, "mode": "passive"});
    let subscription = story.subscribe(passive).await;
    put(&story, 1, 1, &[("traceparent", &traceparent("01"))]).await;
    let reserve = format!("{subscription}/reserve?quantity=1&wait=20s");
    let reserved = story.api().post(&reserve, &json!({})).await.expect(200).json();
    let header = reserved["messages"][0]["headers"]["traceparent"][0].as_str().expect("a trace").to_owned();
    let spans = collector.spans(3).await;
    let (trace, span, _) = sent(&header);
    assert_eq!((trace.as_str(), &json!(span)), (TRACE, &named(&spans, "spread")[0]["id"]));
}

#[tokio::test]
async fn the_trace_of_a_change_does_not_outlive_the_process() {
    if !store_is_durable() {
        return;
    }
    let Some(collector) = Collector::start("http/protobuf").await else { return };
    let receiver = Receiver::answering(|_| Reply::Status(500)).await;
    let mut story = Story::with(sending_to(&collector), receiver).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "10ms", "maxInterval": "50ms"}})).await;
    put(&story, 1, 1, &[]).await;
    story.receiver.wait_for(1).await;
    story.flare.restart().await;
    story.receiver.answer(|_| Reply::Status(200));
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    let last = requests.last().expect("it was told");
    assert_eq!(last.header("traceparent"), "", "read from the store");
    assert!(requests.iter().any(|request| !request.header("traceparent").is_empty()));
}

#[tokio::test]
async fn what_is_left_is_sent_when_the_node_stops() {
    for protocol in ["grpc", "http/protobuf"] {
        let Some(collector) = Collector::start(protocol).await else { return };
        let setup = sending_to(&collector).with("FLARE_TELEMETRY_TRACES_INTERVAL", "1h");
        let mut story = Story::with(setup, Receiver::start().await).await;
        let subscription = story.subscribe_simply(json!({})).await;
        put(&story, 1, 1, &[]).await;
        story.settled(&subscription).await;
        assert!(collector.seen("span").is_empty(), "not before its time");
        assert!(story.flare.stop().await.success());
        assert_eq!(collector.spans(4).await.len(), 4);
    }
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_nobody_anything_and_drops_are_counted() {
    for protocol in ["grpc", "http/protobuf"] {
        let Some(collector) = Collector::start(protocol).await else { return };
        let port: u16 =
            collector.endpoint().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let setup = sending_to(&collector)
            .with("FLARE_TELEMETRY_TRACES_QUEUE", "16")
            .with("FLARE_TELEMETRY_TRACES_BATCH", "8");
        drop(collector);
        // It is to be there again later, so nobody else may take its port.
        let nobody = tokio::net::TcpSocket::new_v4().expect("a socket");
        nobody.set_reuseaddr(true).expect("a socket takes options");
        nobody.bind(([127, 0, 0, 1], port).into()).expect("the port is free");
        let story = Story::with(setup, Receiver::start().await).await;
        let subscription = story.subscribe_simply(json!({})).await;
        for id in 0..20 {
            put(&story, id, 1, &[]).await;
        }
        story.receiver.wait_for(20).await;
        story.settled(&subscription).await;
        let seen = until_telemetry(&story.flare, "spans were dropped", |seen| {
            seen["spansDropped"].as_u64().is_some_and(|dropped| dropped > 0) && seen["failing"].is_string()
        })
        .await;
        assert_eq!(seen["spansExported"], 0, "{seen}");
        assert_eq!(seen["spansWaiting"], 16, "{seen}");
        drop(nobody);
        let collector = Collector::start_on(protocol, port).await.expect("it was there before");
        collector.spans(16).await;
        let seen =
            until_telemetry(&story.flare, "the outage is over", |seen| seen["failing"].is_null()).await;
        assert!(seen["spansExported"].as_u64() > Some(0), "{seen}");
        until("it is said", || std::future::ready(story.flare.logged("collector takes things again"))).await;
        assert_eq!(story.flare.count_logged("collector takes nothing"), 1, "once for the whole outage");
        assert_eq!(story.flare.count_logged("collector takes things again"), 1);
    }
}

#[tokio::test]
async fn a_collector_that_hangs_keeps_nobody_waiting_and_the_end_is_bounded() {
    for protocol in ["grpc", "http/protobuf"] {
        let Some(mut collector) = Collector::start(protocol).await else { return };
        collector.mode("hang").await;
        let setup = sending_to(&collector).with("FLARE_TELEMETRY_TIMEOUT", "300ms");
        let mut story = Story::with(setup, Receiver::start().await).await;
        let subscription = story.subscribe_simply(json!({})).await;
        for id in 0..20 {
            put(&story, id, 1, &[]).await;
        }
        story.receiver.wait_for(20).await;
        story.settled(&subscription).await;
        let seen = until_telemetry(&story.flare, "it is known", |seen| seen["failing"].is_string()).await;
        assert!(seen["failing"].as_str().is_some_and(|why| why.contains("telemetry.timeout")), "{seen}");
        let began = std::time::Instant::now();
        assert!(story.flare.stop().await.success());
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn what_a_collector_puts_off_is_sent_again_and_what_it_refuses_is_not() {
    for protocol in ["grpc", "http/protobuf"] {
        let Some(mut collector) = Collector::start(protocol).await else { return };
        let story = Story::with(sending_to(&collector), Receiver::start().await).await;
        collector.mode("later").await;
        put(&story, 1, 1, &[]).await;
        collector
            .until("it was put off", |lines| lines.iter().find(|line| line["kind"] == "refused").cloned())
            .await;
        collector.mode("take").await;
        assert_eq!(collector.spans(2).await.len(), 2, "the very same, once");

        collector.mode("never").await;
        put(&story, 2, 1, &[]).await;
        let rejected = |count| move |seen: &Value| seen["spansRejected"] == json!(count);
        until_telemetry(&story.flare, "it was refused", rejected(2)).await;
        // What the receiver says comes line by line: once it says this, all that it said before is here.
        collector.mode("never").await;
        let refused = collector.seen("refused").len();
        throughout(Duration::from_millis(200), "it is not sent again", || {
            collector.seen("refused").len() == refused
        })
        .await;

        collector.mode("partly").await;
        put(&story, 3, 1, &[]).await;
        until_telemetry(&story.flare, "a part was refused", |seen| {
            seen["spansRejected"].as_u64() >= Some(3) && seen["failing"].is_null()
        })
        .await;
        until("the log says why", || std::future::ready(story.flare.logged("one is too old"))).await;
    }
}

#[tokio::test]
async fn the_standard_variables_are_understood_and_those_of_flare_go_before_them() {
    let Some(collector) = Collector::start("grpc").await else { return };
    let setup = Setup::default()
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint())
        .with("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .with("OTEL_EXPORTER_OTLP_HEADERS", "api-key=abc")
        .with("OTEL_SERVICE_NAME", "not-this")
        .with("OTEL_RESOURCE_ATTRIBUTES", "region=eu,service.name=nor-this")
        .with("FLARE_TELEMETRY_SERVICE_NAME", "this")
        .with("FLARE_TELEMETRY_TRACES_INTERVAL", "20ms");
    let story = Story::with(setup, Receiver::start().await).await;
    put(&story, 1, 1, &[]).await;
    let span = collector.spans(2).await.remove(0);
    assert_eq!(
        (&span["resource"]["service.name"], &span["resource"]["region"]),
        (&json!("this"), &json!("eu"))
    );
    assert_eq!(span["headers"]["api-key"], "abc");
}

#[tokio::test]
async fn over_tls_a_collector_is_trusted_whom_the_authority_of_the_file_vouches_for() {
    let certificates = Certificates::new();
    let authority = certificates.authority();
    let authority = authority.to_str().expect("a plain path");
    for (protocol, variable) in [
        ("grpc", "FLARE_TELEMETRY_CERTIFICATE"),
        ("http/protobuf", "FLARE_TELEMETRY_CERTIFICATE"),
        ("http/protobuf", "OTEL_EXPORTER_OTLP_CERTIFICATE"),
    ] {
        let Some(collector) = Collector::start_with(protocol, &certificates).await else { return };
        assert!(collector.endpoint().starts_with("https://"));
        let setup = sending_to(&collector)
            .with(variable, authority)
            .with("FLARE_TELEMETRY_METRICS_INTERVAL", "100ms");
        let story = Story::with(setup, Receiver::start().await).await;
        put(&story, 1, 1, &[("traceparent", &traceparent("01"))]).await;
        let spans = collector.spans(2).await;
        assert!(spans.iter().all(|span| span["trace"] == TRACE), "{spans:?}");
        collector
            .until("metrics come the same way", |lines| {
                lines.iter().any(|line| line["kind"] == "metric").then_some(())
            })
            .await;
        assert_eq!(telemetry(&story.flare).await["failing"], Value::Null);
    }
}

#[tokio::test]
async fn over_tls_nothing_is_sent_to_a_collector_for_whom_nobody_vouches() {
    let certificates = Certificates::new();
    let (ours, others) = (certificates.authority(), Certificates::new());
    let strangers = others.authority();
    for protocol in ["grpc", "http/protobuf"] {
        let Some(collector) = Collector::start_with(protocol, &certificates).await else { return };
        let elsewhere = collector.endpoint().replace("127.0.0.1", "localhost");
        for (endpoint, certificate, words) in [
            // The public ones have never heard of it; another of the same name did not sign it; and the host is not
            // the one it is for.
            (collector.endpoint(), "none", "UnknownIssuer"),
            (collector.endpoint(), strangers.to_str().expect("a plain path"), "BadSignature"),
            (elsewhere, ours.to_str().expect("a plain path"), "not valid for name"),
        ] {
            let setup = sending_to(&collector)
                .with("FLARE_TELEMETRY_ENDPOINT", &endpoint)
                .with("FLARE_TELEMETRY_CERTIFICATE", certificate);
            let story = Story::with(setup, Receiver::start().await).await;
            put(&story, 1, 1, &[]).await;
            let seen = until_telemetry(&story.flare, "it is known", |seen| seen["failing"].is_string()).await;
            assert!(seen["failing"].as_str().is_some_and(|why| why.contains(words)), "{words}: {seen}");
            assert_eq!(seen["spansExported"], 0, "{seen}");
        }
        assert!(collector.seen("span").is_empty());
    }
}

async fn the_same_metrics_as_prometheus_gets(protocol: &'static str) {
    let Some(collector) = Collector::start(protocol).await else { return };
    let setup = sending_to(&collector)
        .with("FLARE_TELEMETRY_METRICS_INTERVAL", "100ms")
        .with("FLARE_TELEMETRY_TRACES_RATIO", "0");
    let mut story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    for id in 0..3 {
        put(&story, id, 1, &[]).await;
    }
    story.settled(&subscription).await;
    let of = |lines: &[Value], name: &str, labels: Value| {
        let fits = |line: &&Value| line["name"] == name && line["attributes"] == labels;
        lines.iter().rev().find(fits).cloned()
    };
    let delivered = json!({"outcome": "delivered", "status": "2xx"});
    let attempts = collector.until("the attempts are there", |lines| {
        of(lines, "flare_attempts_total", delivered.clone()).filter(|line| line["value"] == 3.0)
    });
    let attempts = attempts.await;
    assert_eq!((&attempts["type"], &attempts["temporality"]), (&json!("sum"), &json!(2)), "cumulative");
    assert!(attempts["start"].as_u64() < attempts["time"].as_u64());
    assert_eq!(attempts["resource"]["service.name"], "flare");
    let took = collector.until("their times too", |lines| {
        of(lines, "flare_attempt_duration_seconds", json!({})).filter(|line| line["count"] == 3)
    });
    let took = took.await;
    assert_eq!((&took["type"], &took["unit"]), (&json!("histogram"), &json!("s")));
    assert!(took["sum"].as_f64().is_some_and(|sum| sum > 0.0 && sum < 30.0), "{took}");
    let of_puts = json!({"method": "PUT", "route": "/documents/{*url}"});
    let puts = collector.until("those of origins, by route", |lines| {
        of(lines, "flare_http_request_duration_seconds", of_puts.clone()).filter(|line| line["count"] == 3)
    });
    assert_eq!(puts.await["type"], "histogram");
    let documents =
        collector.until("and how everything stands", |lines| of(lines, "flare_documents", json!({})));
    assert_eq!(documents.await["type"], "gauge");

    let page = story.api().get("/metrics").await.expect(200);
    let page = String::from_utf8(page.body.to_vec()).expect("text");
    let shown: std::collections::BTreeSet<_> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    // What the receiver says comes line by line.
    collector
        .until("the same names are sent", |lines| {
            let names =
                lines.iter().filter(|line| line["kind"] == "metric").map(|line| line["name"].as_str());
            let sent: std::collections::BTreeSet<_> = names.flatten().collect();
            assert!(sent.is_subset(&shown), "{:?} are not shown", sent.difference(&shown));
            (sent == shown).then_some(())
        })
        .await;

    put(&story, 9, 1, &[]).await;
    story.receiver.wait_for(4).await;
    assert!(story.flare.stop().await.success());
    collector
        .until("the last ones are sent when the node stops", |lines| {
            of(lines, "flare_attempts_total", delivered.clone()).filter(|line| line["value"] == 4.0)
        })
        .await;
}

#[tokio::test]
async fn the_same_metrics_as_prometheus_gets_by_grpc() {
    the_same_metrics_as_prometheus_gets("grpc").await;
}

#[tokio::test]
async fn the_same_metrics_as_prometheus_gets_by_http() {
    the_same_metrics_as_prometheus_gets("http/protobuf").await;
}
