//! Every example of the description is sent to a real node, and the answer is compared with what the description says.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::world::World;
use super::{Operation, follow, operations};
use crate::support::{Answer, OPERATOR, validate};

/// A newer change of its document replaces a dead letter, so these come first.
const FIRST: [&str; 4] =
    ["listDeadLetters", "dropDeadLetters", "listDeadLettersOfProducer", "dropDeadLettersOfProducer"];

/// What takes something away that others need comes last.
const LAST: [&str; 3] = ["deleteDocument", "deleteSubscription", "deleteResource"];

#[tokio::test]
async fn every_example_is_answered_as_described() {
    let world = World::guarded().await;
    let mut all = operations(&world.description);
    let place = |list: &[&str], id: &str| list.iter().position(|known| *known == id);
    all.sort_by_key(|operation| match (place(&FIRST, operation.id()), place(&LAST, operation.id())) {
        (Some(at), _) => (0, at),
        (None, None) => (1, 0),
        (None, Some(at)) => (2, at),
    });
    let features = [
        ("takeCpuProfile", cfg!(feature = "cpu-profile")),
        ("takeHeapProfile", cfg!(feature = "heap-profile")),
    ];
    let mut claims = Vec::new();
    for operation in &all {
        let name = operation.id();
        let built = !features.contains(&(name, false));
        let (status, response) =
            if built { operation.success() } else { (501, &operation.says["responses"]["501"]) };
        if name == "createResource" {
            // The world began with it: the same again is a conflict.
            let schema = &response["content"]["application/json"]["schema"];
            claims.push(
                json!({"of": "the answer of createResource", "schema": schema, "instance": world.created}),
            );
            continue;
        }
        let answer = send(&world, operation).await;
        assert_eq!(answer.status, status, "{name}: {}", String::from_utf8_lossy(&answer.body));
        for (header, _) in response["headers"].as_object().into_iter().flatten() {
            assert!(answer.headers.contains_key(header.as_str()), "{name} has no {header}");
        }
        let Some((media, content)) = response["content"].as_object().and_then(|all| all.iter().next()) else {
            assert!(answer.body.is_empty(), "{name} is said to have no body");
            continue;
        };
        assert_eq!(answer.header("content-type"), media, "{name}");
        let instance = read(media, &answer.body);
        claims.push(
            json!({"of": format!("the answer of {name}"), "schema": content["schema"], "instance": instance}),
        );
    }
    claims.extend(own_examples(&world.description));
    assert!(claims.len() > 2 * all.len(), "only {} claims", claims.len());
    let Some(mistakes) = validate(&world.description["components"], claims) else { return };
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

/// The examples within the description, each with the schema that it is to fit.
fn own_examples(description: &Value) -> Vec<Value> {
    let mut claims = Vec::new();
    let mut claim = |of: String, part: &Value| {
        assert!(part.get("example").is_some(), "{of} has no example");
        claims.push(json!({"of": of, "schema": part["schema"], "instance": part["example"]}));
    };
    for operation in operations(description) {
        let name = operation.id().to_owned();
        for parameter in operation.parameters(description) {
            claim(format!("the example of {name}'s {}", parameter["name"]), parameter);
        }
        for (media, content) in operation.says["requestBody"]["content"].as_object().into_iter().flatten() {
            claim(format!("the example of {name}'s {media}"), content);
        }
        for (status, response) in operation.says["responses"].as_object().into_iter().flatten() {
            let response = follow(description, response);
            for (media, content) in response["content"].as_object().into_iter().flatten() {
                claim(format!("the example of {name}'s {status} {media}"), content);
            }
        }
    }
    claims
}

/// Sends what the example says, and reads the answer; of a stream without an end its beginning.
async fn send(world: &World, operation: &Operation) -> Answer {
    let (mut path, mut query, mut headers) = (operation.path.clone(), Vec::new(), Vec::new());
    for parameter in operation.parameters(&world.description) {
        let name = parameter["name"].as_str().expect("a name");
        let example = &parameter["example"];
        let text = example.as_str().map_or_else(|| example.to_string(), ToOwned::to_owned);
        let text = world.real(operation, &text);
        let encoded = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
        match parameter["in"].as_str() {
            Some("path") => path = path.replace(&format!("{{{name}}}"), &encoded),
            Some("query") => query.push(format!("{name}={encoded}")),
            Some("header") => headers.push((name.to_owned(), text)),
            other => panic!("{other:?} is no place for {name}"),
        }
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let content = operation.says["requestBody"]["content"].as_object().and_then(|all| all.iter().next());
    let body = content.map_or_else(String::new, |(media, content)| write(media, &content["example"]));
    let body = world.real(operation, &body);
    let stream = tokio::net::TcpStream::connect(world.flare.addr()).await.expect("Flare listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("Flare speaks HTTP");
    tokio::spawn(connection);
    let mut request = http::Request::builder().method(operation.method.as_str()).uri(&path);
    request = request.header("host", world.flare.addr().to_string());
    if world.tokens.is_some() {
        request = request.header("authorization", format!("Bearer {OPERATOR}"));
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).expect("an example is a request");
    let (head, mut body) = sender.send_request(request).await.expect("Flare answers").into_parts();
    let enough = match operation.id() {
        "stream" | "streamOfProducer" => "\ndata: ",
        "tail" => "\n",
        _ => "no answer has this in it",
    };
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        read.extend_from_slice(&frame.expect("the answer is whole").into_data().unwrap_or_default());
        if String::from_utf8_lossy(&read).contains(enough) {
            break;
        }
    }
    Answer { status: head.status, headers: head.headers, body: read.into() }
}

fn write(media: &str, example: &Value) -> String {
    match media {
        "application/json" => example.to_string(),
        "application/x-ndjson" => {
            let lines = example.as_array().expect("NDJSON is described as a list");
            lines.iter().map(|line| line.to_string() + "\n").collect()
        }
        other => panic!("{other} is not sent by any operation"),
    }
}

fn read(media: &str, body: &[u8]) -> Value {
    if media == "application/octet-stream" {
        assert!(!body.is_empty());
        return "bytes, which a schema says nothing of".into();
    }
    let text = std::str::from_utf8(body).expect("answers are text");
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    match media {
        "application/json" => json(text),
        "application/x-ndjson" => text.lines().filter(|line| !line.is_empty()).map(json).collect(),
        "text/event-stream" => {
            let field = |event: &str, name: &str| -> String {
                event.lines().filter_map(|line| line.strip_prefix(name)).collect()
            };
            let events = text.split("\n\n").filter(|event| event.contains("data: "));
            let events: Vec<Value> = events
                .map(|event| json!({"id": field(event, "id: "), "data": field(event, "data: ")}))
                .collect();
            assert!(!events.is_empty(), "{text}");
            events.into()
        }
        plain if plain.starts_with("text/plain;") => text.into(),
        other => panic!("{other} is not answered by any operation"),
    }
}
