//! Streams: notifications as they come, over Server-Sent Events.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{passive, passively, reserve, reserve_one, settle};
use crate::support::{PATIENCE, Receiver, Setup, Story, document_url, store_is_durable, until};

/// What a stream said.
#[derive(Debug, PartialEq)]
enum Said {
    Comment(String),
    Event { id: String, data: Value },
    End,
}

/// A client that reads a stream line by line.
struct Listener {
    lines: BufReader<TcpStream>,
}

impl Listener {
    async fn begin(story: &Story, subscription: &str, query: &str, last: Option<&str>) -> Listener {
        let mut stream = TcpStream::connect(story.flare.addr()).await.expect("Flare listens");
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!("GET {subscription}/stream?{query} HTTP/1.1\r\nhost: localhost\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).await.expect("Flare reads");
        let mut listener = Listener { lines: BufReader::new(stream) };
        assert!(listener.line().await.starts_with("HTTP/1.1 200"));
        let mut kind = false;
        loop {
            let line = listener.line().await.to_ascii_lowercase();
            kind |= line.starts_with("content-type: text/event-stream");
            if line.is_empty() {
                break;
            }
        }
        assert!(kind, "it says what it is");
        listener
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.lines.read_line(&mut line));
        read.await.expect("a line comes").expect("the stream can be read");
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// The next event or comment. The sizes of chunks, which stand in lines of their own, are passed over.
    async fn next(&mut self) -> Said {
        let (mut id, mut data) = (String::new(), Vec::new());
        loop {
            let line = self.line().await;
            if let Some(comment) = line.strip_prefix(": ") {
                return Said::Comment(comment.to_owned());
            } else if let Some(value) = line.strip_prefix("id: ") {
                id = value.to_owned();
            } else if let Some(value) = line.strip_prefix("data: ") {
                data.push(value.to_owned());
            } else if line.is_empty() && !data.is_empty() {
                let data = serde_json::from_str(&data.join("\n")).expect("an event of JSON");
                return Said::Event { id, data };
            } else if line == "0" {
                return Said::End;
            }
        }
    }

    /// The next event, whatever is said before it.
    async fn event(&mut self) -> Value {
        loop {
            match self.next().await {
                Said::Event { id, data } => {
                    assert_eq!(data["id"], id);
                    return data;
                }
                Said::Comment(_) => {}
                Said::End => panic!("the stream ended"),
            }
        }
    }
}

#[tokio::test]
async fn events_come_as_changes_do_and_are_settled_like_any_lease() {
    let (story, subscription) = passive().await;
    let mut listener = Listener::begin(&story, &subscription, "", None).await;
    story.put(1, 1).await;
    let first = listener.event().await;
    assert_eq!((&first["document"], &first["action"]), (&json!(document_url(1)), &json!("create")));
    assert_eq!(first["body"]["document"], json!({"rev": 1}));
    story.put(1, 2).await;
    story.put(2, 1).await;
    let second = listener.event().await;
    assert_eq!(second["document"], document_url(2), "the first is still out");
    assert_eq!(settle(&story, &subscription, &[first, second], "success").await, ["settled", "settled"]);
    let third = listener.event().await;
    assert_eq!((&third["action"], &third["revision"]), (&json!("update"), &json!(2)));
    assert_eq!(story.status(&subscription).await["feed"]["inFlight"], 1);
}

#[tokio::test]
async fn no_more_are_unsettled_than_asked_for() {
    let (story, subscription) = passive().await;
    for document in 0..6 {
        story.put(document, 1).await;
    }
    let mut listener = Listener::begin(&story, &subscription, "quantity=2&lease=10m", None).await;
    let mut out = vec![listener.event().await, listener.event().await];
    assert_eq!(story.status(&subscription).await["feed"]["inFlight"], 2);
    let mut seen = 2;
    while seen < 6 {
        let oldest = out.remove(0);
        assert_eq!(settle(&story, &subscription, &[oldest], "success").await, ["settled"]);
        out.push(listener.event().await);
        seen += 1;
        assert_eq!(story.status(&subscription).await["feed"]["inFlight"], 2);
    }
}

#[tokio::test]
async fn what_is_not_settled_in_time_is_told_again() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let mut listener = Listener::begin(&story, &subscription, "quantity=1&lease=50ms", None).await;
    let first = listener.event().await;
    let second = listener.event().await;
    assert_eq!((&first["id"], &second["attempt"]), (&second["id"], &json!(2)));
}

#[tokio::test]
async fn the_last_event_id_acknowledges_what_came_up_to_it() {
    let (story, subscription) = passive().await;
    for document in 0..4 {
        story.put(document, 1).await;
    }
    let mut listener = Listener::begin(&story, &subscription, "quantity=4&lease=10m", None).await;
    assert_eq!(listener.next().await, Said::Comment("0 acknowledged by Last-Event-ID".into()));
    let mut events = Vec::new();
    while events.len() < 4 {
        events.push(listener.event().await);
    }
    drop(listener);
    let id = events[2]["id"].as_str().unwrap();
    let mut listener = Listener::begin(&story, &subscription, "quantity=4", Some(id)).await;
    assert_eq!(listener.next().await, Said::Comment("3 acknowledged by Last-Event-ID".into()));
    assert_eq!(story.status(&subscription).await["delivered"], 3);
    // What came after it is sent again at once.
    let fourth = listener.event().await;
    assert_eq!((&fourth["id"], &fourth["attempt"]), (&events[3]["id"], &json!(2)));
    assert_eq!(settle(&story, &subscription, &events[3..], "success").await, ["unknown"]);
    drop(listener);
    // Said again, it acknowledges nothing more; the fourth is still out.
    let mut listener = Listener::begin(&story, &subscription, "quantity=4", Some(id)).await;
    assert_eq!(listener.next().await, Said::Comment("0 acknowledged by Last-Event-ID".into()));
    assert_eq!(settle(&story, &subscription, &[fourth], "success").await, ["settled"]);
    let mut listener = Listener::begin(&story, &subscription, "", Some("msg_of_another_time")).await;
    let Said::Comment(comment) = listener.next().await else { panic!("it says so") };
    assert!(comment.contains("not known"), "{comment}");
}

#[tokio::test]
async fn after_a_restart_the_last_event_id_still_acknowledges_and_the_rest_is_sent_again_at_once() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    for stop in [false, true] {
        let (mut story, subscription) = passive().await;
        let mut listener = Listener::begin(&story, &subscription, "quantity=9&lease=1h", None).await;
        let mut events = Vec::new();
        for document in 0..6 {
            story.put(document, 1).await;
            events.push(listener.event().await);
        }
        // One is settled before; of one its client says nothing more than the others do.
        assert_eq!(settle(&story, &subscription, &events[1..2], "success").await, ["settled"]);
        if stop {
            assert!(story.flare.stop().await.success());
        } else {
            story.flare.kill();
        }
        story.flare.restart().await;
        let id = events[3]["id"].as_str().unwrap();
        let mut listener = Listener::begin(&story, &subscription, "quantity=9&lease=1h", Some(id)).await;
        assert_eq!(listener.next().await, Said::Comment("3 acknowledged by Last-Event-ID".into()));
        assert_eq!(story.status(&subscription).await["delivered"], 4);
        let mut again = vec![listener.event().await, listener.event().await];
        again.sort_by_key(|event| event["document"].as_str().unwrap().to_owned());
        for (event, before) in again.iter().zip(&events[4..]) {
            assert_eq!((&event["id"], &event["attempt"]), (&before["id"], &json!(2)));
        }
        assert_eq!(settle(&story, &subscription, &again, "success").await, ["settled", "settled"]);
        let status = story.settled(&subscription).await;
        assert_eq!((&status["feed"]["held"], &status["delivered"]), (&json!(6), &json!(6)));
    }
}

#[tokio::test]
async fn an_event_that_two_streams_sent_settles_nothing_that_only_the_other_sent() {
    let (story, subscription) = passive().await;
    story.put(1, 1).await;
    let mut first = Listener::begin(&story, &subscription, "quantity=1&lease=3s", None).await;
    let event = first.event().await;
    let mut second = Listener::begin(&story, &subscription, "quantity=4&lease=1h", None).await;
    story.put(2, 1).await;
    let only_of_second = second.event().await;
    assert_eq!(only_of_second["document"], document_url(2));
    drop(first);
    // Its lease ends, and it is sent on the stream that is left.
    let again = second.event().await;
    assert_eq!((&again["id"], &again["attempt"]), (&event["id"], &json!(2)));
    let id = event["id"].as_str().unwrap();
    let mut first = Listener::begin(&story, &subscription, "quantity=1", Some(id)).await;
    assert_eq!(first.next().await, Said::Comment("1 acknowledged by Last-Event-ID".into()));
    let outcome = settle(&story, &subscription, &[only_of_second], "success").await;
    assert_eq!(outcome, ["settled"], "the client that came back never had it");
}

#[tokio::test]
async fn a_stream_that_breaks_leaves_its_leases_to_expire() {
    let setup = Setup::default().with("FLARE_DELIVERY_PASSIVE_WAITERS", "1");
    let (story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    story.put(1, 1).await;
    let mut listener = Listener::begin(&story, &subscription, "lease=4s", None).await;
    let event = listener.event().await;
    drop(listener);
    until("it is noticed", || async {
        let answer = story.command(&subscription, "reserve").await;
        (answer.status == 200).then_some(())
    })
    .await;
    story.put(2, 1).await;
    let other = reserve_one(&story, &subscription, "").await;
    assert_eq!(other["document"], document_url(2), "nothing goes to a stream that is gone");
    let again = reserve_one(&story, &subscription, "").await;
    assert_eq!((&again["id"], &again["attempt"]), (&event["id"], &json!(2)));
}

#[tokio::test]
async fn a_quiet_stream_shows_that_it_lives_and_ends_when_flare_stops() {
    let setup = Setup::default().with("FLARE_DELIVERY_PASSIVE_HEARTBEAT", "100ms");
    let (mut story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    let mut listener = Listener::begin(&story, &subscription, "", None).await;
    listener.next().await;
    assert_eq!(listener.next().await, Said::Comment("still here".into()));
    story.flare.signal("TERM");
    while listener.next().await != Said::End {}
    assert!(story.flare.ended().await.success());
}

#[tokio::test]
async fn a_stream_ends_with_its_subscription_and_when_it_turns_active() {
    let (story, subscription) = passive().await;
    for delete in [false, true] {
        let mut listener = Listener::begin(&story, &subscription, "", None).await;
        if delete {
            story.api().delete(&subscription).await.expect(204);
        } else {
            story.api().patch(&subscription, &json!({"mode": "active"})).await.expect(200);
        }
        while listener.next().await != Said::End {}
        if !delete {
            story.api().patch(&subscription, &json!({"mode": "passive"})).await.expect(200);
        }
    }
}

#[tokio::test]
async fn streams_share_what_there_is_and_are_bounded() {
    let setup = Setup::default().with("FLARE_DELIVERY_PASSIVE_WAITERS", "2");
    let (story, subscription) = passively(setup, Receiver::start().await, json!({})).await;
    let mut first = Listener::begin(&story, &subscription, "quantity=3", None).await;
    let mut second = Listener::begin(&story, &subscription, "quantity=3", None).await;
    story.api().get(&format!("{subscription}/stream")).await.refused(429, &["waiters"]);
    for document in 0..6 {
        story.put(document, 1).await;
    }
    let mut documents = Vec::new();
    for _ in 0..3 {
        documents.push(first.event().await["document"].clone());
        documents.push(second.event().await["document"].clone());
    }
    documents.sort_by_key(|url| url.as_str().unwrap().to_owned());
    documents.dedup();
    assert_eq!(documents.len(), 6);
    drop(first);
    until("there is room", || async {
        let answer = story.command(&subscription, "reserve").await;
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(reserve(&story, &subscription, "").await.len(), 0);
}

#[tokio::test]
async fn a_document_with_line_breaks_arrives_whole() {
    let (story, subscription) = passive().await;
    let path = format!("/documents/{}", document_url(1));
    story.api().send("PUT", &path, &[], "{\r\n  \"rev\": 1,\n  \"a\": \"b\"\r}").await.expect(202);
    let mut listener = Listener::begin(&story, &subscription, "", None).await;
    assert_eq!(listener.event().await["body"]["document"], json!({"rev": 1, "a": "b"}));
}
