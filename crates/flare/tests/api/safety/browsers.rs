//! A page in somebody's browser is not the operator.

use serde_json::{Value, json};

use crate::support::{Flare, Setup, document_url, minimal_resource};

/// Every operation of the description, with something in place of what its path leaves open.
fn operations(description: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().expect("paths") {
        let path = match path.strip_prefix("/documents/") {
            Some(_) => format!("/documents/{}", document_url(1)),
            None => path.replace("{rid}", "r").replace("{id}", "s").replace("{replay}", "x"),
        };
        for method in methods.as_object().expect("methods").keys() {
            if ["get", "put", "post", "patch", "delete"].contains(&method.as_str()) {
                all.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    assert!(all.len() > 30, "{all:?}");
    all
}

#[tokio::test]
async fn no_operation_is_done_for_a_page_of_another_site() {
    let flare = Flare::start().await;
    let api = flare.api();
    let own = format!("http://{}", flare.addr());
    for (method, path) in operations(&api.get("/openapi.json").await.expect(200).json()) {
        for lines in [
            [("origin", "http://evil.example"), ("content-type", "text/plain")],
            [("origin", "null"), ("content-type", "text/plain")],
            [("origin", "http://127.0.0.1:1"), ("sec-fetch-site", "same-site")],
            [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
            [("sec-fetch-site", "cross-site"), ("origin", own.as_str())],
            [("origin", own.as_str()), ("origin", "http://evil.example")],
        ] {
            let answer = api.send(&method, &path, &lines, minimal_resource().to_string()).await;
            answer.refused(403, &["http.server.cors"]);
        }
    }
    assert_eq!(api.get("/resources").await.expect(200).json()["pagination"]["total"], 0);
    // A link to a page may be followed, and none to an operation: some of those that only ask give something out.
    let follows =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    api.send("GET", "/ui/resources", &follows, "").await.expect(200);
    for path in ["/resources", "/metrics", "/resources/r/subscriptions/s/stream"] {
        api.send("GET", path, &follows, "").await.refused(403, &["http.server.cors"]);
    }
    let lines = [("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
    api.send("POST", "/resources", &lines, minimal_resource().to_string()).await.expect(201);
}

#[tokio::test]
async fn a_name_that_is_pointed_at_this_machine_reaches_nothing() {
    let flare = Setup::default().with("FLARE_HTTP_SERVER_HOSTS", "flare.test").start().await;
    let ask = async |host: &str| {
        let request = format!("GET /resources HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        flare.api().raw(request.as_bytes()).await
    };
    for host in ["127.0.0.1", "localhost:8080", "[::1]", "flare.test", "FLARE.test:80"] {
        assert!(ask(host).await.starts_with("HTTP/1.1 200"), "{host}");
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1:evil.example",
        "[::1].evil.example",
        "flare.test.evil.example:8080",
    ] {
        let answer = ask(host).await;
        assert!(
            answer.starts_with("HTTP/1.1 421") && answer.contains("http.server.hosts"),
            "{host}: {answer}"
        );
    }
}

#[tokio::test]
async fn pages_of_listed_origins_may_ask_first_and_read_the_answer() {
    let flare = Setup::default().with("FLARE_HTTP_SERVER_CORS", "https://console.test").start().await;
    let api = flare.api();
    let theirs = ("origin", "https://console.test");
    let asks = [theirs, ("access-control-request-method", "POST"), ("sec-fetch-site", "cross-site")];
    let may = api.send("OPTIONS", "/resources", &asks, "").await.expect(204);
    assert_eq!(may.header("access-control-allow-origin"), "https://console.test");
    assert!(may.header("access-control-allow-methods").contains("PATCH"));
    assert!(may.header("access-control-allow-headers").contains("authorization"));
    let body = minimal_resource().to_string();
    let created = api.send("POST", "/resources", &[theirs, ("sec-fetch-site", "cross-site")], body).await;
    let created = created.expect(201);
    assert_eq!(created.header("access-control-allow-origin"), "https://console.test");
    assert!(created.header("vary").contains("origin"), "a cache keeps answers apart");
    assert!(created.header("access-control-expose-headers").contains("location"));
    let others = [("origin", "https://console.test.evil.example"), ("access-control-request-method", "POST")];
    api.send("OPTIONS", "/resources", &others, "").await.refused(403, &["http.server.cors"]);
    let plain = api.post("/resources", &json!({})).await;
    assert_eq!(plain.header("access-control-allow-origin"), "", "nobody else is told");
}
