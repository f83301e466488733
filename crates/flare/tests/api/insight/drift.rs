//! What a client has and lacks, document by document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Request, Story, document_url};

async fn drift(story: &Story, subscription: &str, query: &str) -> Value {
    story.api().get(&format!("{subscription}/documents{query}")).await.expect(200).json()
}

/// `clientHas` and `why` by the last segment of the document.
fn by_document(page: &Value) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entry = |entry: &Value| {
        let id = text(&entry["document"]).rsplit('/').next().unwrap().to_owned();
        (id, (text(&entry["clientHas"]), text(&entry["why"])))
    };
    page["documents"].as_array().unwrap().iter().map(entry).collect()
}

#[tokio::test]
async fn each_kind_of_drift_is_told_apart() {
    let answer = |request: &Request| {
        let bad = ["/older", "/dead", "/never"].iter().any(|name| request.document().ends_with(name));
        Reply::Status(if bad && request.revision() > 1 { 500 } else { 200 })
    };
    let story = Story::told(Receiver::answering(answer).await).await;
    story.put("before", 1).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "1h", "maxInterval": "1h"}})).await;
    story.put("fine", 1).await;
    story.put("older", 1).await;
    story.put("dead", 1).await;
    story.put("gone", 1).await;
    story.settled(&subscription).await;
    story.remove("gone").await;
    story.put("older", 2).await;
    story.put("never", 2).await;
    story.until_status(&subscription, "two wait", |s| s["feed"]["waiting"] == 2).await;
    let once = json!({"delivery": {"retry": {"quantity": 1}}});
    story.api().patch(&subscription, &once).await.expect(200);
    story.put("dead", 2).await;
    story.until_status(&subscription, "one given up", |s| s["feed"]["deadLetters"] == 1).await;

    let lagging = drift(&story, &subscription, "?lagging=true").await;
    assert_eq!(lagging["pagination"]["total"], 3, "{lagging}");
    let seen = by_document(&lagging);
    assert_eq!(seen.keys().map(String::as_str).collect::<Vec<_>>(), ["dead", "never", "older"]);
    assert_eq!((seen["older"].0.as_str(), seen["never"].0.as_str()), ("older", "unknown"));
    assert!(seen["older"].1.starts_with("waiting for retry at "), "{seen:?}");
    assert_eq!(seen["dead"].0, "older");
    assert!(seen["dead"].1.contains("given up"), "{seen:?}");

    let all = drift(&story, &subscription, "").await;
    assert_eq!(all["pagination"]["total"], 6, "tombstones too: {all}");
    let seen = by_document(&all);
    assert_eq!((seen["fine"].0.as_str(), seen["fine"].1.as_str()), ("newest", "delivered"));
    assert_eq!(seen["before"].0, "nothing");
    assert!(seen["before"].1.contains("start now"), "{seen:?}");
    assert_eq!(seen["gone"].0, "newest");
    let gone = all["documents"].as_array().unwrap().iter();
    let gone = gone.filter(|entry| entry["deleted"] == true).count();
    assert_eq!(gone, 1);

    story.command(&subscription, "pause").await.expect(200);
    story.put("fine", 2).await;
    let seen = by_document(&drift(&story, &subscription, "?lagging=true").await);
    assert_eq!(seen["fine"].0, "older");
    assert!(seen["fine"].1.contains("not read yet") && seen["fine"].1.contains("paused"), "{seen:?}");
}

#[tokio::test]
async fn what_the_filter_will_leave_out_does_not_lag() {
    let story = Story::begin().await;
    let url = story.receiver.url("/told");
    let filter = "document.quantity > 0";
    let subscription = story.subscribe(json!({"endpoint": {"url": url}, "filter": filter})).await;
    let put = async |id: &str, revision: i64, quantity: Value| {
        let document = json!({"rev": revision, "quantity": quantity});
        story.api().put(&document_url(id), &document).await;
    };
    put("leaves", 1, json!(1)).await;
    put("unclear", 1, json!(1)).await;
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    put("leaves", 2, json!(0)).await;
    put("unclear", 2, json!("many")).await;
    put("enters", 1, json!(1)).await;
    put("outside", 1, json!(0)).await;
    let seen = by_document(&drift(&story, &subscription, "?lagging=true").await);
    assert_eq!(seen.keys().map(String::as_str).collect::<Vec<_>>(), ["enters", "leaves"], "{seen:?}");
}

/// Follows `next` to the end, and returns the documents and the number of pages.
async fn follow(story: &Story, subscription: &str, query: &str) -> (Vec<String>, usize) {
    let (mut seen, mut pages, mut next) = (Vec::new(), 0, String::new());
    loop {
        let page = drift(story, subscription, &format!("?{query}{next}")).await;
        pages += 1;
        seen.extend(by_document(&page).into_keys());
        match page["pagination"]["next"].as_str() {
            Some(key) => next = format!("&after={key}"),
            None => return (seen, pages),
        }
    }
}

#[tokio::test]
async fn pages_neither_overlap_nor_leave_out() {
    let answer =
        |request: &Request| Reply::Status(if request.document().contains("/bad") { 500 } else { 200 });
    let story = Story::told(Receiver::answering(answer).await).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "1h", "maxInterval": "1h"}})).await;
    for document in 0..20 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    for document in 0..4 {
        story.put(format!("bad{document}"), 1).await;
    }
    story.until_status(&subscription, "some wait", |s| s["feed"]["waiting"] == 4).await;
    story.command(&subscription, "pause").await.expect(200);
    for document in 0..20 {
        story.put(document, 2).await;
    }
    for query in ["limit=5", "limit=5&lagging=true", "limit=1&lagging=true", "limit=100"] {
        let (seen, pages) = follow(&story, &subscription, query).await;
        let distinct: BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (24, 24), "{query} in {pages} pages: {seen:?}");
    }
    for lagging in ["", "&lagging=true"] {
        let mut seen = Vec::new();
        for offset in (0..30).step_by(7) {
            let page = drift(&story, &subscription, &format!("?limit=7&offset={offset}{lagging}")).await;
            assert_eq!(page["pagination"]["total"], 24, "{page}");
            seen.extend(by_document(&page).into_keys());
        }
        let distinct: BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (24, 24), "{lagging}: {seen:?}");
    }
    let none = drift(&story, &subscription, "?limit=0&lagging=true").await;
    assert_eq!((&none["pagination"]["total"], none["documents"].as_array().unwrap().len()), (&24.into(), 0));
}

#[tokio::test]
async fn odd_queries_are_refused_by_name() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    for (query, word) in [
        ("?lagging=maybe", "lagging"),
        ("?after=x", "after"),
        ("?offset=10001", "after"),
        ("?offset=-1", "offset"),
        ("?limit=x", "limit"),
        ("?laging=true", "laging"),
    ] {
        story.api().get(&format!("{subscription}/documents{query}")).await.refused(400, &[word]);
    }
    let nobody = format!("{}/none/documents", story.subscriptions());
    story.api().get(&nobody).await.refused(404, &["none"]);
    let empty = drift(&story, &subscription, "").await;
    assert_eq!(empty["documents"], json!([]));
}
