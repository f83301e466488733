//! Rules of every path: errors, methods, limits, slow callers, pages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Flare, PATIENCE, Receiver, Setup, Story, document_url};

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let flare = Flare::start().await;
    for path in
        ["/nothing", "/resource", "/resources/a/b", "/resources/a/subscriptions/b/c", "/documentsx", "/%00"]
    {
        flare.api().get(path).await.refused(404, &[]);
        flare.api().post(path, &json!({})).await.refused(404, &[]);
    }
}

#[tokio::test]
async fn a_wrong_method_is_answered_with_those_that_work() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let document = format!("/documents/{}", document_url(1));
    let cases = [
        ("/".to_owned(), "POST", vec!["GET"]),
        ("/status".into(), "DELETE", vec!["GET"]),
        ("/resources".into(), "PUT", vec!["GET", "POST"]),
        (format!("/resources/{}", story.resource), "PATCH", vec!["GET", "DELETE"]),
        (story.subscriptions(), "DELETE", vec!["GET", "POST"]),
        (subscription.clone(), "PUT", vec!["GET", "PATCH", "DELETE"]),
        (format!("{subscription}/pause"), "GET", vec!["POST"]),
        (format!("{subscription}/replay"), "GET", vec!["POST"]),
        (format!("{subscription}/dead-letters"), "POST", vec!["GET", "DELETE"]),
        ("/documents".into(), "GET", vec!["POST"]),
        (document, "PATCH", vec!["GET", "PUT", "DELETE"]),
    ];
    for (path, method, allowed) in cases {
        let answer = story.api().send(method, &path, &[], "{}").await.refused(405, &[method]);
        for method in allowed {
            assert!(answer.header("allow").contains(method), "{path}: {}", answer.header("allow"));
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let setup = Setup::default().with("FLARE_HTTP_SERVER_BODY_LIMIT", "2KB");
    let story = Story::with(setup, Receiver::start().await).await;
    let path = format!("/documents/{}", document_url(1));
    let body = |length: usize| {
        let frame = json!({"rev": 1, "x": ""}).to_string().len();
        json!({"rev": 1, "x": "x".repeat(length - frame)}).to_string()
    };
    story.api().send("PUT", &path, &[], body(2000)).await.expect(202);
    story.api().send("PUT", &path, &[], body(2001)).await.refused(413, &["2000"]);
    for path in ["/resources", &story.subscriptions()] {
        story.api().send("POST", path, &[], "x".repeat(3000)).await.refused(413, &["2000"]);
    }
}

#[tokio::test]
async fn a_terabyte_that_is_only_announced_is_refused_at_once() {
    let story = Story::begin().await;
    for path in [format!("PUT /documents/{}", document_url(1)), "POST /resources".into()] {
        let began = Instant::now();
        let request =
            format!("{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1099511627776\r\n\r\n{{");
        let mut stream = TcpStream::connect(story.flare.addr()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ =
            tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("it is closed");
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_chunked_body_over_the_limit_is_refused() {
    let setup = Setup::default().with("FLARE_HTTP_SERVER_BODY_LIMIT", "10KB");
    let story = Story::with(setup, Receiver::start().await).await;
    let mut stream = TcpStream::connect(story.flare.addr()).await.unwrap();
    let head = format!(
        "PUT /documents/{} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
        document_url(1)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let (mut reader, mut writer) = stream.split();
    // It never ends: the answer has to come before.
    let writing = async {
        while writer.write_all(chunk.as_bytes()).await.is_ok() {}
        std::future::pending::<()>().await;
    };
    let mut answer = [0; 12];
    let reading = async { reader.read_exact(&mut answer).await };
    tokio::select! {
        () = writing => {}
        read = tokio::time::timeout(PATIENCE, reading) => { read.expect("an answer").unwrap(); }
    }
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn slow_request_headers_are_cut() {
    let flare = Setup::default().with("FLARE_HTTP_SERVER_HEADER_TIMEOUT", "1s").start().await;
    let mut stream = TcpStream::connect(flare.addr()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    let trickle = async {
        loop {
            if stream.write_all(b"x-a: b\r\n").await.is_err() {
                break;
            }
            let mut byte = [0; 1];
            let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut byte)).await;
            if matches!(read, Ok(Ok(0) | Err(_))) {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, trickle).await.expect("the connection is closed");
    flare.api().get("/").await.expect(200);
}

#[tokio::test]
async fn a_body_that_trickles_is_cut() {
    let setup = Setup::default()
        .with("FLARE_HTTP_SERVER_TIMEOUT", "1s")
        .with("FLARE_HTTP_SERVER_HEADER_TIMEOUT", "1s");
    let story = Story::with(setup, Receiver::start().await).await;
    let head = format!(
        "PUT /documents/{} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10000\r\n\r\n",
        document_url(1)
    );
    let stream = TcpStream::connect(story.flare.addr()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    writer.write_all(head.as_bytes()).await.unwrap();
    let trickle = tokio::spawn(async move {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = String::new();
    let _ = tokio::time::timeout(PATIENCE, reader.read_to_string(&mut answer)).await.expect("it is closed");
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("within 1s"), "{answer}");
    trickle.abort();
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let flare = Flare::start().await;
    let request = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "x".repeat(100_000));
    let mut stream = TcpStream::connect(flare.addr()).await.unwrap();
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an end");
    read.expect("the answer arrives, and then the end");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 431 ") && head.contains("application/json"), "{head}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["error"]["title"], "The head is too large");
    let detail = body["error"]["detail"].as_str().expect("a detail");
    assert!(detail.contains("16000 bytes") && detail.contains("http.server.header-limit"), "{detail}");
    flare.api().get("/").await.expect(200);
}

#[tokio::test]
async fn nonsense_is_no_reason_to_stop() {
    let flare = Flare::start().await;
    for nonsense in [
        &b"\x00\xff\xfe\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = tokio::time::timeout(PATIENCE, flare.api().raw(nonsense)).await.expect("it is closed");
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 505"),
            "{answer}"
        );
    }
    flare.api().get("/").await.expect(200);
}

#[tokio::test]
async fn a_head_that_contradicts_itself_or_lacks_its_host_is_refused() {
    let story = Story::begin().await;
    let delete = format!("DELETE /documents/{} HTTP/1.1\r\n", document_url(1));
    let chunked = "GET / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    let (one, two) = ("flare-revision: 1\r\n", "flare-revision: 2\r\n");
    for (request, status, words) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400, "Host"),
        ("GET / HTTP/1.1\r\nhost: localhost\r\nhost: y\r\n\r\n".to_owned(), 400, "Host"),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), 200, "version"),
        (chunked.to_owned(), 400, "Transfer-Encoding"),
        (format!("{delete}host: localhost\r\nconnection: close\r\n{one}{two}\r\n"), 400, "Flare-Revision"),
        (format!("{delete}host: localhost\r\nconnection: close\r\n{one}{one}\r\n"), 202, "absent"),
    ] {
        let answer = tokio::time::timeout(PATIENCE, story.api().raw(request.as_bytes())).await;
        let answer = answer.expect("it is answered, and closed");
        assert!(answer.starts_with("HTTP/1.") && answer.contains(words), "{request}{answer}");
        assert_eq!(answer[9..12], status.to_string(), "{request}{answer}");
        assert_eq!(answer.contains("{\"error\":{\"title\":"), status == 400, "{request}{answer}");
    }
}

#[tokio::test]
async fn lists_are_paged() {
    let flare = Flare::start().await;
    let api = flare.api();
    for number in 0..35 {
        let body = json!({"endpoint": format!("http://h/{number}/{{id}}"), "change": {"field": "rev"}});
        api.post("/resources", &body).await.expect(201);
    }
    for (query, limit, offset, first, count) in [
        ("", 30, 0, 0, 30),
        ("?limit=10", 10, 0, 0, 10),
        ("?limit=10&offset=30", 10, 30, 30, 5),
        ("?offset=34", 30, 34, 34, 1),
        ("?offset=35", 30, 35, 0, 0),
        ("?offset=1000000", 30, 1_000_000, 0, 0),
        ("?limit=0", 0, 0, 0, 0),
        ("?limit=100", 100, 0, 0, 35),
        ("?limit=101", 100, 0, 0, 35),
        ("?limit=99999999", 100, 0, 0, 35),
    ] {
        let page = api.get(&format!("/resources{query}")).await.expect(200).json();
        assert_eq!(page["pagination"], json!({"limit": limit, "offset": offset, "total": 35}), "{query}");
        let resources = page["resources"].as_array().unwrap();
        assert_eq!(resources.len(), count, "{query}");
        if count > 0 {
            assert_eq!(resources[0]["endpoint"], format!("http://h/{first}/{{id}}"), "in order of creation");
        }
    }
}

#[tokio::test]
async fn a_page_that_is_no_number_is_refused() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    for path in ["/resources".to_owned(), story.subscriptions(), format!("{subscription}/dead-letters")] {
        for (query, word) in [
            ("limit=-1", "limit"),
            ("limit=abc", "limit"),
            ("limit=", "limit"),
            ("limit=1.5", "limit"),
            ("offset=-1", "offset"),
            ("offset=x", "offset"),
            ("page=2", "page"),
            ("limit=1&limit=2", "twice"),
        ] {
            story.api().get(&format!("{path}?{query}")).await.refused(400, &[word]);
        }
    }
}

#[tokio::test]
async fn a_limit_beyond_all_numbers_is_lowered_too() {
    let flare = Flare::start().await;
    let page = flare.api().get("/resources?limit=99999999999999999999999").await.expect(200).json();
    assert_eq!(page["pagination"]["limit"], 100);
    let page = flare.api().get("/resources?offset=99999999999999999999999").await.expect(200).json();
    assert_eq!(page["resources"], json!([]));
}

#[tokio::test]
async fn pages_follow_the_configuration() {
    let setup = Setup::default()
        .with("FLARE_DOMAIN_PAGINATION_DEFAULT_LIMIT", "2")
        .with("FLARE_DOMAIN_PAGINATION_MAXIMUM_LIMIT", "3");
    let flare = setup.start().await;
    for (query, limit) in [("", 2), ("?limit=10", 3)] {
        let page = flare.api().get(&format!("/resources{query}")).await.expect(200).json();
        assert_eq!(page["pagination"]["limit"], limit);
    }
}

#[tokio::test]
async fn flare_says_who_and_how_it_is() {
    let story = Story::begin().await;
    story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    let hello = story.api().get("/").await.expect(200).json();
    assert!(hello["version"].as_str().unwrap().split('.').count() == 3, "{hello}");
    assert!(hello["sha"].is_string());
    let status = story.api().get("/status").await.expect(200).json();
    for name in ["startTimeEpochSecs", "currentTimeEpochSecs"] {
        assert!(status[name].as_i64().unwrap() > 1_700_000_000, "{name}: {status}");
    }
    assert!(status["uptime"].is_string() && status["version"] == hello["version"]);
    assert_eq!(
        (&status["resources"], &status["subscriptions"], &status["documents"]),
        (&1.into(), &1.into(), &1.into())
    );
    story.api().get("/healthz").await.expect(200);
    story.api().get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_list_is_not_taken_for_the_fields_in_their_order() {
    let story = Story::begin().await;
    let api = story.api();
    let resource = json!(["http://origin.test/others/{id}", {"field": "rev"}]);
    api.post("/resources", &resource).await.refused(400, &["a list stands where an object is expected"]);
    let resource = json!({"endpoint": "http://origin.test/others/{id}", "change": ["rev"]});
    api.post("/resources", &resource).await.refused(400, &["change: ", "a list stands where"]);
    let subscription = story.subscribe_simply(json!({})).await;
    api.post(&format!("{subscription}/replay"), &json!([]))
        .await
        .refused(400, &["a list stands where an object is expected"]);
    let patch = json!({"endpoint": {"actions": [null, null]}});
    api.patch(&subscription, &patch).await.refused(400, &["endpoint.actions", "a list stands where"]);
    let patch = json!({"delivery": {"retry": [3]}});
    api.patch(&subscription, &patch).await.refused(400, &["delivery.retry", "a list stands where"]);
}

#[tokio::test]
async fn a_query_is_refused_where_none_is_known() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    for path in ["/", "/status", "/healthz", &subscription, &format!("{subscription}/status")] {
        let told = story.api().get(&format!("{path}?limit=3")).await;
        told.refused(400, &["unknown query parameter `limit`", "none is known here"]);
        story.api().get(&format!("{path}?")).await.expect(200);
    }
    // A method that is not taken is that in the first place.
    story.api().send("PUT", "/status?limit=3", &[], "").await.refused(405, &[]);
}

/// Sends all of a request before it listens, as many clients do, and reads what comes.
fn send_then_listen(addr: std::net::SocketAddr, head: &str, body: &[u8]) -> std::io::Result<String> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(crate::support::PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !answer.windows(4).any(|end| end == b"}}\r\n" || end.ends_with(b"}}")) {
        match stream.read(&mut piece)? {
            0 => break,
            length => answer.extend_from_slice(&piece[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_too_much_before_listening_hears_why_it_is_refused() {
    let flare = Setup::default().with("FLARE_HTTP_SERVER_BODY_LIMIT", "100KB").start().await;
    let addr = flare.addr();
    let body = vec![b'x'; 8 << 20];
    let announced = format!(
        "PUT /documents/http://h/1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let chunked = "PUT /documents/http://h/1 HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n800000\r\n";
    for (head, body) in
        [(announced.as_str(), body.clone()), (chunked, [&body[..], b"\r\n0\r\n\r\n"].concat())]
    {
        for _ in 0..5 {
            let (head, body) = (head.to_owned(), body.clone());
            let heard =
                tokio::task::spawn_blocking(move || send_then_listen(addr, &head, &body)).await.unwrap();
            let heard = heard.expect("nothing breaks before the answer");
            assert!(heard.starts_with("HTTP/1.1 413") && heard.contains("body-limit"), "{heard}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_before_sending_is_answered_before_sending() {
    let flare = Setup::default().with("FLARE_HTTP_SERVER_BODY_LIMIT", "100KB").start().await;
    let addr = flare.addr();
    let head = |length: usize| {
        format!(
            "PUT /documents/http://h/1 HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let large = head(200 << 10);
    let heard = tokio::task::spawn_blocking(move || send_then_listen(addr, &large, b"")).await.unwrap();
    assert!(heard.unwrap().starts_with("HTTP/1.1 413"), "and not told to go on");
    let small = head(2);
    let heard = tokio::task::spawn_blocking(move || send_then_listen(addr, &small, b"{}")).await.unwrap();
    assert!(heard.unwrap().starts_with("HTTP/1.1 100 Continue"), "what may be sent is asked for");
}
