//! Limits of what can be sent, at, below and above each.

use serde_json::{Value, json};

use crate::support::{Answer, Setup, Story, document_url};

/// What a request of this size is answered.
async fn document(story: &Story, bytes: usize) -> Answer {
    let rest = bytes - r#"{"rev":1,"x":""}"#.len();
    let body = format!(r#"{{"rev":1,"x":"{}"}}"#, "x".repeat(rest));
    assert_eq!(body.len(), bytes);
    story.api().send("PUT", &format!("/documents/{}", document_url(bytes)), &[], body).await
}

async fn url(story: &Story, bytes: usize) -> Answer {
    let url = document_url("");
    let url = format!("{url}{}", "x".repeat(bytes - url.len()));
    story.api().send("PUT", &format!("/documents/{url}"), &[], r#"{"rev":1}"#).await
}

async fn depth(story: &Story, depth: usize) -> Answer {
    let inner = depth - 1;
    let body = format!(r#"{{"rev":1,"x":{}{}}}"#, "[".repeat(inner), "]".repeat(inner));
    story.api().send("PUT", &format!("/documents/{}", document_url(depth)), &[], body).await
}

async fn wildcards(story: &Story, count: usize) -> Answer {
    let path: String = (0..count).map(|number| format!("/{{w{number}}}")).collect();
    let body = json!({"endpoint": format!("http://wild-{count}.test{path}"), "change": {"field": "rev"}});
    story.api().post("/resources", &body).await
}

async fn subscription(story: &Story, body: Value) -> Answer {
    let made = story.api().post(&story.subscriptions(), &body).await;
    if made.status == 201 {
        story.api().delete(made.header("location")).await.expect(204);
    }
    made
}

async fn headers(story: &Story, count: usize) -> Answer {
    let headers: serde_json::Map<String, Value> =
        (0..count).map(|n| (format!("x-{n}"), json!(["a"]))).collect();
    subscription(story, json!({"endpoint": {"url": "http://127.0.0.1:9/", "headers": headers}})).await
}

async fn header_value(story: &Story, bytes: usize) -> Answer {
    let headers = json!({"x-long": ["x".repeat(bytes)]});
    subscription(story, json!({"endpoint": {"url": "http://127.0.0.1:9/", "headers": headers}})).await
}

async fn data(story: &Story, count: usize) -> Answer {
    let data: serde_json::Map<String, Value> = (0..count).map(|n| (format!("d{n}"), json!(n))).collect();
    subscription(story, json!({"endpoint": {"url": "http://127.0.0.1:9/"}, "data": data})).await
}

async fn filter(story: &Story, bytes: usize) -> Answer {
    let filter = format!("true{}", " ".repeat(bytes - 4));
    subscription(story, json!({"endpoint": {"url": "http://127.0.0.1:9/"}, "filter": filter})).await
}

async fn concurrency(story: &Story, count: usize) -> Answer {
    subscription(
        story,
        json!({"endpoint": {"url": "http://127.0.0.1:9/"}, "delivery": {"concurrency": count}}),
    )
    .await
}

async fn timeout(story: &Story, seconds: usize) -> Answer {
    let delivery = json!({"timeout": format!("{seconds}s")});
    subscription(story, json!({"endpoint": {"url": "http://127.0.0.1:9/"}, "delivery": delivery})).await
}

async fn page(story: &Story, limit: usize) -> Answer {
    story.api().get(&format!("/resources?limit={limit}")).await
}

async fn head(story: &Story, bytes: usize) -> Answer {
    let long = "x".repeat(bytes);
    story.api().send("GET", "/healthz", &[("x-long", long.as_str())], "").await
}

/// Tries what is below, at and above a bound.
macro_rules! bound {
    ($story:expr, $limit:ident, $most:expr, $good:expr, $bad:expr) => {
        for (size, expected) in [($most - 1, $good), ($most, $good), ($most + 1, $bad)] {
            let answer = $limit(&$story, size).await;
            assert_eq!(answer.status, expected, "{} {size}: {:?}", stringify!($limit), answer.body);
        }
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_sent_is_bounded_where_it_is_said() {
    let setup = Setup::default()
        .with("FLARE_HTTP_SERVER_BODY_LIMIT", "100000")
        .with("FLARE_HTTP_SERVER_HEADER_LIMIT", "16384")
        .with("FLARE_DELIVERY_MAXIMUM_CONCURRENCY", "50")
        .with("FLARE_DELIVERY_MAXIMUM_TIMEOUT", "20s")
        .with("FLARE_DOMAIN_PAGINATION_MAXIMUM_LIMIT", "60");
    let story = Story::with(setup, crate::support::Receiver::start().await).await;
    bound!(story, document, 100_000, 202, 413);
    bound!(story, url, 8192, 202, 400);
    bound!(story, depth, 128, 202, 400);
    bound!(story, wildcards, 25, 201, 400);
    bound!(story, headers, 64, 201, 400);
    bound!(story, header_value, 8192, 201, 400);
    bound!(story, data, 64, 201, 400);
    bound!(story, filter, 2048, 201, 400);
    bound!(story, concurrency, 50, 201, 400);
    bound!(story, timeout, 20, 201, 400);
    // A page is as long as it may be.
    for (limit, given) in [(59, 59), (60, 60), (61, 60)] {
        assert_eq!(page(&story, limit).await.expect(200).json()["pagination"]["limit"], given, "{limit}");
    }
    // Of a head the library counts in pieces of its own: half is taken, twice is not.
    for (bytes, expected) in [(8_000, 200), (33_000, 431)] {
        assert_eq!(head(&story, bytes).await.status, expected, "{bytes}");
    }
}
