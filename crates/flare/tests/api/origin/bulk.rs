//! `POST /documents`: NDJSON in, a line for each line out.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Receiver, Setup, Story, document_url};

async fn bulk(story: &Story, body: impl Into<bytes::Bytes>) -> Vec<Value> {
    let answer = story.api().send("POST", "/documents", &[], body).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line(id: impl std::fmt::Display, revision: i64) -> String {
    json!({"id": document_url(id), "document": {"rev": revision}}).to_string()
}

#[tokio::test]
async fn every_line_has_its_outcome_in_order() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let delete = json!({"id": document_url(1), "delete": true}).to_string();
    let lines = [line(1, 1), line(1, 2), line(1, 2), line(1, 1), delete.clone(), delete, line(2, 1)];
    let answers = bulk(&story, lines.join("\n")).await;
    let outcomes: Vec<_> = answers.iter().map(|answer| answer["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["created", "updated", "unchanged", "stale", "deleted", "absent", "created"]);
    assert!(answers[..6].iter().all(|answer| answer["id"] == document_url(1)));
    story.settled(&subscription).await;
    assert_eq!(crate::client::order::state_of(&story.receiver.requests()).len(), 1);
}

#[tokio::test]
async fn a_line_that_is_wrong_is_named_by_its_number_and_stops_nothing() {
    let story = Story::begin().await;
    let lines = [
        line(1, 1),
        "nonsense".into(),
        String::new(),
        r#"{"id":"http://elsewhere.test/1","document":{"rev":1}}"#.into(),
        r#"{"id":"nonsense","document":{"rev":1}}"#.into(),
        format!(r#"{{"id":"{}"}}"#, document_url(2)),
        format!(r#"{{"id":"{}","document":{{"rev":1}},"delete":true}}"#, document_url(2)),
        format!(r#"{{"id":"{}","document":{{}}}}"#, document_url(2)),
        format!(r#"{{"id":"{}","document":{{"rev":1}},"extra":1}}"#, document_url(2)),
        format!(r#"{{"id":"{}","document":[1]}}"#, document_url(2)),
        format!(r#"{{"id":"{}?a=b","document":{{"rev":1}}}}"#, document_url(2)),
        r#"{"document":{"rev":1}}"#.into(),
        line(3, 1),
    ];
    let answers = bulk(&story, lines.join("\r\n")).await;
    assert_eq!(answers.len(), 12, "an empty line has no answer");
    assert_eq!(answers[0]["outcome"], "created");
    assert_eq!(answers[11]["outcome"], "created");
    let numbers: Vec<_> = answers[1..11].iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [2, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    for (answer, word) in answers[1..11].iter().zip([
        "expected",
        "no resource",
        "http://",
        "document",
        "delete",
        "rev",
        "extra",
        "object",
        "query",
        "id",
    ]) {
        let detail = answer["error"]["detail"].as_str().unwrap();
        assert!(detail.contains(word) && answer["error"]["title"].is_string(), "{word}: {answer}");
    }
}

#[tokio::test]
async fn a_deletion_may_carry_its_revision() {
    let story = Story::begin().await;
    let delete = |id: i64, revision: Value| {
        json!({"id": document_url(id), "delete": true, "revision": revision}).to_string()
    };
    let lines = [line(1, 5), delete(1, 4.into()), delete(1, 6.into()), delete(2, 3.into()), line(2, 3)];
    let outcomes: Vec<_> = bulk(&story, lines.join("\n"))
        .await
        .iter()
        .map(|a| a["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes, ["created", "stale", "deleted", "absent", "unchanged"]);
}

#[tokio::test]
async fn thousands_of_lines_go_through_and_reach_the_client() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({"concurrency": 50})).await;
    let lines: Vec<_> = (0..3000).map(|id| line(id, 1)).collect();
    let answers = bulk(&story, lines.join("\n")).await;
    assert_eq!(answers.len(), 3000);
    assert!(answers.iter().all(|answer| answer["outcome"] == "created"));
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, (0..3000).map(document_url).collect::<Vec<_>>());
    let status = story.settled(&subscription).await;
    assert_eq!((&status["delivered"], &status["feed"]["held"]), (&3000.into(), &3000.into()));
}

#[tokio::test]
async fn an_empty_body_has_an_empty_answer() {
    let story = Story::begin().await;
    assert_eq!(bulk(&story, "").await, Vec::<Value>::new());
    assert_eq!(bulk(&story, "\n\n  \n").await, Vec::<Value>::new());
}

#[tokio::test]
async fn answers_come_while_lines_are_still_being_sent() {
    let story = Story::begin().await;
    let mut stream = tokio::net::TcpStream::connect(story.flare.addr()).await.unwrap();
    let head = "POST /documents HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = String::new();
    for id in 0..3 {
        let line = line(id, 1) + "\n";
        stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).await.unwrap();
        while seen.matches("created").count() <= id {
            let mut part = [0; 4096];
            let read = tokio::time::timeout(crate::support::PATIENCE, stream.read(&mut part)).await;
            let read = read.expect("an answer while the body is open").unwrap();
            assert_ne!(read, 0, "{seen}");
            seen.push_str(std::str::from_utf8(&part[..read]).unwrap());
        }
    }
}

#[tokio::test]
async fn a_line_over_the_limit_is_refused_and_those_around_it_are_taken() {
    let setup = Setup::default().with("FLARE_HTTP_SERVER_BODY_LIMIT", "10KB");
    let story = Story::with(setup, Receiver::start().await).await;
    let long = json!({"id": document_url(2), "document": {"rev": 1, "x": "x".repeat(400_000)}}).to_string();
    let answers = bulk(&story, format!("{}\n{long}\n\n{}\n{long}", line(1, 1), line(3, 1))).await;
    assert_eq!(answers.len(), 4, "{answers:?}");
    for (at, number) in [(1, 2), (3, 5)] {
        assert_eq!(answers[at]["line"], number);
        let detail = answers[at]["error"]["detail"].as_str().unwrap();
        assert!(detail.contains("10000 bytes") && detail.contains("body-limit"), "{answers:?}");
    }
    for (at, id, status) in [(0, 1, 200), (2, 3, 200), (1, 2, 404)] {
        if status == 200 {
            assert_eq!(
                (&answers[at]["outcome"], &answers[at]["id"]),
                (&json!("created"), &json!(document_url(id)))
            );
        }
        story.api().get(&format!("/documents/{}", document_url(id))).await.expect(status);
    }
}

#[tokio::test]
async fn a_bulk_that_stalls_is_cut() {
    let setup = Setup::default()
        .with("FLARE_HTTP_SERVER_TIMEOUT", "1s")
        .with("FLARE_HTTP_SERVER_HEADER_TIMEOUT", "1s");
    let story = Story::with(setup, Receiver::start().await).await;
    let line = line(1, 1) + "\n";
    let request =
        format!("POST /documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{line}");
    let answer = tokio::time::timeout(Duration::from_secs(20), story.api().raw(request.as_bytes())).await;
    let answer = answer.expect("the connection is closed");
    assert!(answer.contains("created") && answer.contains("within 1s"), "{answer}");
    story.api().get(&format!("/documents/{}", document_url(1))).await.expect(200);
}
