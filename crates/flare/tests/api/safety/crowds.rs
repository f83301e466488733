//! Crowds: those who connect and say nothing, speak slowly, or do not listen. Whoever runs the node can look at it all the time, and
//! afterwards everybody is served.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{Api, Flare, Setup, document_url, minimal_resource, until};

/// A node with few places, which soon loses patience.
async fn small() -> Flare {
    Setup::default()
        .with("FLARE_HTTP_SERVER_MAX_CONNECTIONS", "20")
        .with("FLARE_HTTP_SERVER_SPARE_CONNECTIONS", "4")
        .with("FLARE_HTTP_SERVER_TIMEOUT", "600ms")
        .with("FLARE_HTTP_SERVER_HEADER_TIMEOUT", "500ms")
        .start()
        .await
}

async fn connected(addr: SocketAddr, say: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.expect("somebody listens");
    stream.write_all(say).await.expect("it is taken");
    stream
}

/// Asks how the node fares, until it says so. A spare place may be taken for a moment.
async fn vital(api: &Api) {
    until("a node that is full says how it fares", || async {
        let answer = api.try_send("GET", "/healthz", &[], "").await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await;
}

/// Waits until anybody is served.
async fn served(api: &Api) {
    until("others are served again", || async {
        let answer = api.try_send("GET", "/resources", &[], "").await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_who_do_not_read_are_cut_and_keep_nobody_from_looking() {
    let flare = small().await;
    let ask = format!("GET /openapi.json HTTP/1.1\r\nhost: {}\r\n\r\n", flare.addr()).repeat(100);
    let mut deaf = Vec::new();
    for _ in 0..20 {
        deaf.push(connected(flare.addr(), ask.as_bytes()).await);
    }
    vital(&flare.api()).await;
    let began = Instant::now();
    served(&flare.api()).await;
    assert!(began.elapsed() < Duration::from_secs(20), "their places are free soon after the timeout");
    drop(deaf);
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_and_bodies_that_trickle_are_cut() {
    let flare = small().await;
    let api = flare.api();
    api.post("/resources", &minimal_resource()).await.expect(201);
    let head = format!("GET /resources HTTP/1.1\r\nhost: {}\r\nx-slow: ", flare.addr());
    let path = document_url(1);
    let body =
        format!("PUT /documents/{path} HTTP/1.1\r\nhost: {}\r\ncontent-length: 100000\r\n\r\n", flare.addr());
    let mut slow = JoinSet::new();
    for begin in [head, body].into_iter().flat_map(|begin| std::iter::repeat_n(begin, 12)) {
        let addr = flare.addr();
        slow.spawn(async move {
            let began = Instant::now();
            let Ok(mut stream) = TcpStream::connect(addr).await else { return began.elapsed() };
            let _ = stream.write_all(begin.as_bytes()).await;
            let (mut reading, mut writing) = stream.split();
            let trickle = async {
                while writing.write_all(b"1").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            let mut answer = Vec::new();
            tokio::select! {
                () = trickle => {}
                _ = reading.read_to_end(&mut answer) => {}
            }
            began.elapsed()
        });
    }
    vital(&api).await;
    for lasted in slow.join_all().await {
        assert!(lasted < Duration::from_secs(20), "{lasted:?}");
    }
    served(&api).await;
    assert_eq!(api.get(&format!("/documents/{path}")).await.status, 404, "a part of a document is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_connections_passes() {
    let flare = small().await;
    let mut flood = JoinSet::new();
    for _ in 0..400 {
        let addr = flare.addr();
        flood.spawn(async move {
            let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(addr)).await
            else {
                return;
            };
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(stream);
        });
    }
    vital(&flare.api()).await;
    flood.join_all().await;
    served(&flare.api()).await;
    let log = flare.count_logged("could not be accepted");
    assert_eq!(log, 0, "nothing ran out");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_of_every_depth_is_taken_or_refused() {
    let flare = Flare::start().await;
    let api = flare.api();
    api.post("/resources", &minimal_resource()).await.expect(201);
    for depth in [1, 10, 100, 127, 128, 129, 1_000, 10_000, 100_000, 400_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for (method, path, body) in [
                (
                    "PUT",
                    format!("/documents/{}", document_url(depth)),
                    format!("{{\"rev\":1,\"deep\":{deep}}}"),
                ),
                ("POST", "/resources".to_owned(), deep.clone()),
                ("POST", "/filters/test".to_owned(), format!("{{\"document\":{deep},\"filter\":\"true\"}}")),
                (
                    "POST",
                    "/documents".to_owned(),
                    format!("{{\"url\":\"{}\",\"document\":{deep}}}\n", document_url(1)),
                ),
            ] {
                let answer = api.send(method, &path, &[], body).await;
                let status = answer.status.as_u16();
                assert!([200, 202, 400, 404, 413].contains(&status), "{method} {path} {depth}: {status}");
            }
        }
    }
    api.get("/healthz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_compressed_is_refused_by_name() {
    let flare = Flare::start().await;
    let api = flare.api();
    api.post("/resources", &minimal_resource()).await.expect(201);
    let body = json!({"rev": 1}).to_string();
    for coding in ["gzip", "br", "zstd", "deflate, gzip", "x"] {
        for (method, path) in [
            ("PUT", format!("/documents/{}", document_url(1))),
            ("POST", "/resources".into()),
            ("POST", "/documents".into()),
        ] {
            let answer = api.send(method, &path, &[("content-encoding", coding)], body.clone()).await;
            answer.refused(400, &["Content-Encoding", coding]);
        }
    }
    let plain = [("content-encoding", "identity")];
    api.send("PUT", &format!("/documents/{}", document_url(1)), &plain, body).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_writes_headers_or_lines_of_the_log_of_their_own() {
    let flare = Setup::default().with("FLARE_LOG_LEVEL", "trace").start().await;
    let api = flare.api();
    let resource = api.post("/resources", &minimal_resource()).await.expect(201).json();
    let path = format!("/resources/{}/subscriptions", resource["id"].as_str().unwrap());
    for value in ["a\r\nx-forged: 1", "a\nb", "a\rb", "a\0b", "\u{85}x", "a\u{2028}b"] {
        for headers in [json!({"X-Plain": [value]}), json!({"X-Bad\r\nname": ["a"]}), json!({value: ["a"]})] {
            let body = json!({"endpoint": {"url": "http://127.0.0.1:9/", "headers": headers}});
            api.post(&path, &body).await.refused(400, &["endpoint.headers"]);
        }
        let body = json!({"endpoint": {"url": format!("http://127.0.0.1:9/{value}")}});
        let answer = api.post(&path, &body).await;
        assert!([201, 400].contains(&answer.status.as_u16()), "{value:?}: {}", answer.status);
        if answer.status == 201 {
            assert!(!answer.header("location").contains(['\r', '\n']));
        }
        let reason = json!({"reason": format!("{value} \u{1b}[31m {{\"forged\":true}}")});
        let made = json!({"endpoint": {"url": format!("http://127.0.0.1:9/{}", value.len())}});
        let made = api.post(&path, &made).await;
        if made.status == 201 {
            let _ = api.post(&format!("{}/pause", made.header("location")), &reason).await;
        }
    }
    for name in
        ["Flare-Action", "webhook-signature", "Host", "Transfer-Encoding", "Connection", "Content-Length"]
    {
        let body = json!({"endpoint": {"url": "http://127.0.0.1:9/", "headers": {name: ["a"]}}});
        api.post(&path, &body).await.refused(400, &["endpoint.headers"]);
    }
    for asked in [
        "/resources/%0d%0aforged",
        "/documents/http://origin.test/users/%0d%0aset-cookie:%20a",
        "/%00",
        "/%1b%5b31m",
    ] {
        let answer = api.get(asked).await;
        assert!(
            answer.headers.get("set-cookie").is_none() && answer.headers.get("forged").is_none(),
            "{asked}"
        );
    }
    let forged = format!(
        "GET / HTTP/1.1\r\nhost: {}\r\nuser-agent: a\u{1b}[31m\r\nconnection: close\r\n\r\n",
        flare.addr()
    );
    api.raw(forged.as_bytes()).await;
    // Every line is one object that Flare has written.
    for line in flare.lines() {
        let read = serde_json::from_str::<serde_json::Value>(&line);
        assert!(read.is_ok_and(|line| line["forged"].is_null()), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
    }
}
