//! What Flare says about a client is so: what it has, what it lacks and why, and how much it is owed.

use serde_json::{Value, json};

use crate::support::{Gate, Receiver, Reply, Request, Setup, Story, document_url, until};

async fn explain(story: &Story, subscription: &str, id: &str) -> Value {
    let subscription = subscription.rsplit('/').next().unwrap();
    let path = format!("/explain?document={}&subscription={subscription}", document_url(id));
    story.api().get(&path).await.expect(200).json()
}

async fn until_verdict(story: &Story, subscription: &str, id: &str, verdict: &str) -> Value {
    until(verdict, || async {
        let explanation = explain(story, subscription, id).await;
        (explanation["verdict"] == verdict).then_some(explanation)
    })
    .await
}

/// The words of all facts of a kind; of every kind for "".
fn words(explanation: &Value, kind: &str) -> String {
    let facts = explanation["facts"].as_array().unwrap().iter();
    let facts = facts.filter(|fact| kind.is_empty() || fact["fact"] == kind);
    facts.map(|fact| format!("{}\n", fact["detail"].as_str().unwrap())).collect()
}

/// What drift says of a document: in the list of all, and whether it is in the list of those that lag.
async fn drift(story: &Story, subscription: &str, id: &str) -> (Value, bool) {
    let url = document_url(id);
    let find = async |query: &str| {
        let page = story.api().get(&format!("{subscription}/documents{query}")).await.expect(200).json();
        page["documents"].as_array().unwrap().iter().find(|entry| entry["document"] == url).cloned()
    };
    let (all, lagging) = (find("").await.expect("it is a document"), find("?lagging=true").await);
    if let Some(lagging) = &lagging {
        assert_eq!(lagging, &all, "both lists say the same");
    }
    (all, lagging.is_some())
}

/// The entry of a document, which must say this, and lag or not.
async fn says(story: &Story, subscription: &str, id: &str, has: &str, lags: bool, why: &[&str]) -> Value {
    let (entry, lagging) = drift(story, subscription, id).await;
    assert_eq!((entry["clientHas"].as_str().unwrap(), lagging), (has, lags), "{entry}");
    for why in why {
        assert!(entry["why"].as_str().unwrap().contains(why), "`{why}` is not in {entry}");
    }
    entry
}

async fn put(story: &Story, id: &str, document: Value) {
    story.api().put(&document_url(id), &document).await;
}

#[tokio::test]
async fn a_filter_is_shown_with_the_values_it_saw_and_nobody_is_said_to_have_dropped_anything() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let body = json!({"endpoint": endpoint, "filter": "document.stock < 10 && wildcards.id != 'x'"});
    let subscription = story.subscribe(body).await;
    put(&story, "a", json!({"rev": 1, "stock": 49})).await;
    put(&story, "b", json!({"rev": 1, "stock": 3})).await;
    story.settled(&subscription).await;
    let out = explain(&story, &subscription, "a").await;
    assert_eq!(out["verdict"], "filtered", "{out}");
    let filter = words(&out, "filter");
    assert!(filter.contains("`document.stock < 10 && wildcards.id != 'x'`"), "{filter}");
    assert!(filter.contains("document.stock is 49") && filter.contains(": false"), "{filter}");
    assert!(filter.contains("wildcards.id is \"a\""), "{filter}");
    assert!(!words(&out, "").contains("drop"), "{out}");
    says(&story, &subscription, "a", "nothing", false, &["document.stock is 49"]).await;
    let within = explain(&story, &subscription, "b").await;
    assert_eq!(within["verdict"], "delivered", "{within}");
    assert!(words(&within, "filter").contains("document.stock is 3"), "{within}");
}

#[tokio::test]
async fn what_when_holds_back_is_said_to_be_and_with_which_values() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let body = json!({"endpoint": endpoint, "when": "document.price >= 100"});
    let subscription = story.subscribe(body).await;
    put(&story, "never", json!({"rev": 1, "price": 5})).await;
    put(&story, "once", json!({"rev": 1, "price": 100})).await;
    story.settled(&subscription).await;
    put(&story, "once", json!({"rev": 2, "price": 7})).await;
    story.settled(&subscription).await;
    let never = until_verdict(&story, &subscription, "never", "heldBack").await;
    let when = words(&never, "when");
    assert!(when.contains("`document.price >= 100`, document.price is 5: false"), "{never}");
    assert!(!words(&never, "").contains("drop"), "{never}");
    says(&story, &subscription, "never", "nothing", false, &["`when`", "document.price is 5"]).await;
    let once = until_verdict(&story, &subscription, "once", "heldBack").await;
    assert!(words(&once, "when").contains("document.price is 7: false"), "{once}");
    assert!(words(&once, "standing").contains("revision 1 of 2"), "{once}");
    says(&story, &subscription, "once", "older", false, &["has revision 1 of 2", "document.price is 7"])
        .await;
    put(&story, "once", json!({"rev": 3, "price": 200})).await;
    story.settled(&subscription).await;
    says(&story, &subscription, "once", "newest", false, &["delivered"]).await;
}

#[tokio::test]
async fn an_expression_without_a_result_leaves_a_client_with_what_it_has_and_says_so() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "filter": "document.stock > 0"})).await;
    put(&story, "a", json!({"rev": 1, "stock": 1})).await;
    story.settled(&subscription).await;
    put(&story, "a", json!({"rev": 2, "stock": "many"})).await;
    story.settled(&subscription).await;
    let unclear = until_verdict(&story, &subscription, "a", "filtered").await;
    assert!(words(&unclear, "filter").contains("document.stock is \"many\""), "{unclear}");
    says(&story, &subscription, "a", "older", false, &["has revision 1 of 2", "the filter cannot say"]).await;
}

#[tokio::test]
async fn a_passive_subscription_is_said_to_be_passive() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "mode": "passive"})).await;
    story.put("a", 1).await;
    let waiting = until_verdict(&story, &subscription, "a", "waiting").await;
    let rate = words(&waiting, "rate");
    assert!(rate.contains("the subscription is passive"), "{waiting}");
    assert!(!words(&waiting, "").contains("of at most 0") && !rate.contains("waits for one"), "{waiting}");
    assert!(waiting["next"].as_str().unwrap().contains("reserve"), "{waiting}");
    says(&story, &subscription, "a", "nothing", true, &["passive"]).await;
}

#[tokio::test]
async fn a_plain_503_is_an_answer_and_nothing_that_was_lost() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(503)).await).await;
    let retry = json!({"interval": "1h", "maxInterval": "1h"});
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    story.put("a", 1).await;
    story.until_status(&subscription, "it failed", |s| s["feed"]["waiting"] == 1).await;
    let waiting = explain(&story, &subscription, "a").await;
    assert!(!words(&waiting, "").contains("lost"), "{waiting}");
    assert!(words(&waiting, "standing").contains("it answered 503 to the create"), "{waiting}");
    says(&story, &subscription, "a", "unknown", true, &["waiting for retry at", "answered 503"]).await;
}

/// Answers this to a revision from 2 on, and to deletes.
fn refusing(status: u16) -> impl FnMut(&Request) -> Reply + Send + 'static {
    move |request| {
        let later = request.revision() > 1 || request.action() == "delete";
        Reply::Status(if later { status } else { 200 })
    }
}

#[tokio::test]
async fn a_discarded_revision_is_lacked_and_said_to_be_discarded_after_a_kill_too() {
    let mut story = Story::told(Receiver::answering(refusing(500)).await).await;
    let subscription = story.subscribe_simply(json!({"discard": [500]})).await;
    story.put("a", 1).await;
    story.put("fine", 1).await;
    story.settled(&subscription).await;
    story.put("a", 2).await;
    story.put("new", 5).await;
    let status = story.settled(&subscription).await;
    assert_eq!((&status["feed"]["lagging"], &status["feed"]["held"]), (&0.into(), &2.into()), "{status}");
    for round in 0..2 {
        let discarded = until_verdict(&story, &subscription, "a", "discarded").await;
        assert!(
            words(&discarded, "standing").contains("revision 2 was discarded with 500 at 20"),
            "{discarded}"
        );
        let why = ["has revision 1 of 2, revision 2 was discarded with 500 at 20"];
        let entry = says(&story, &subscription, "a", "older", true, &why).await;
        assert_eq!(entry["owed"], false, "{entry}");
        let why = ["has nothing of it, revision 5 was discarded with 500 at 20"];
        says(&story, &subscription, "new", "nothing", true, &why).await;
        says(&story, &subscription, "fine", "newest", false, &["delivered"]).await;
        if round == 0 {
            story.flare.kill();
            story.flare.restart().await;
        }
    }
    story.receiver.answer(|_| Reply::Status(200));
    story.put("a", 3).await;
    story.settled(&subscription).await;
    says(&story, &subscription, "a", "newest", false, &["delivered"]).await;
    let replay = json!({"scope": "lagging"});
    story.api().post(&format!("{subscription}/replay"), &replay).await.expect(202);
    story.settled(&subscription).await;
    says(&story, &subscription, "new", "newest", false, &["delivered"]).await;
}

#[tokio::test]
async fn a_dropped_dead_letter_of_an_update_leaves_an_older_state_and_says_so() {
    let mut story = Story::told(Receiver::answering(refusing(500)).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"quantity": 1}})).await;
    story.put("a", 1).await;
    story.settled(&subscription).await;
    story.put("a", 2).await;
    story.until_status(&subscription, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    let why = ["has revision 1 of 2, revision 2 was given up after 1 attempt, the last answered 500 at 20"];
    let entry = says(&story, &subscription, "a", "older", true, &why).await;
    assert!(entry["why"].as_str().unwrap().ends_with("a dead letter"), "{entry}");
    story
        .api()
        .delete(&format!("{subscription}/dead-letters?document={}", document_url("a")))
        .await
        .expect(204);
    for round in 0..2 {
        let dropped = explain(&story, &subscription, "a").await;
        assert_eq!(dropped["verdict"], "dropped", "{dropped}");
        assert!(dropped["next"].as_str().unwrap().contains("replay"), "{dropped}");
        let why = ["has revision 1 of 2, revision 2 was given up", "its dead letter was dropped"];
        says(&story, &subscription, "a", "older", true, &why).await;
        if round == 0 {
            story.flare.kill();
            story.flare.restart().await;
        }
    }
}

#[tokio::test]
async fn a_dropped_dead_letter_of_a_delete_is_told_of_beside_what_is_unknown() {
    let story = Story::told(Receiver::answering(refusing(500)).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"quantity": 1}})).await;
    story.put("a", 1).await;
    story.settled(&subscription).await;
    story.remove("a").await;
    story.until_status(&subscription, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    let letter = format!("{subscription}/dead-letters?document={}", document_url("a"));
    story.api().delete(&letter).await.expect(204);
    let dropped = until_verdict(&story, &subscription, "a", "inDoubt").await;
    let told = words(&dropped, "standing");
    for word in ["is unknown", "the delete was given up after 1 attempt", "its dead letter was dropped"] {
        assert!(told.contains(word), "{word}: {dropped}");
    }
}

#[tokio::test]
async fn a_discarded_delete_leaves_the_client_with_the_document_and_says_so() {
    let story = Story::told(Receiver::answering(refusing(500)).await).await;
    let subscription = story.subscribe_simply(json!({"discard": [500]})).await;
    story.put("a", 1).await;
    story.settled(&subscription).await;
    story.remove("a").await;
    story.settled(&subscription).await;
    let discarded = until_verdict(&story, &subscription, "a", "discarded").await;
    let told = words(&discarded, "standing");
    assert!(told.contains("the client has it") && !told.contains("does not have it"), "{discarded}");
    let why = ["has revision 1 of a deleted document, the delete was discarded with 500 at 20"];
    let entry = says(&story, &subscription, "a", "older", true, &why).await;
    assert!(!entry["why"].as_str().unwrap().contains("does not have it"), "{entry}");
}

#[tokio::test]
async fn what_is_on_its_way_is_not_known_to_be_there_or_not() {
    let gate = Gate::closed();
    let held = gate.clone();
    let answer = move |request: &Request| match request.revision() {
        1 => Reply::Status(200),
        _ => held.then(Reply::Status(200)),
    };
    let story = Story::told(Receiver::answering(answer).await).await;
    let subscription = story.subscribe_simply(json!({"timeout": "1m"})).await;
    story.put("a", 1).await;
    story.settled(&subscription).await;
    story.put("a", 2).await;
    until_verdict(&story, &subscription, "a", "inFlight").await;
    says(&story, &subscription, "a", "unknown", true, &["in flight (update)"]).await;
    gate.open();
    story.settled(&subscription).await;
    says(&story, &subscription, "a", "newest", false, &["delivered"]).await;
}

#[tokio::test]
async fn the_last_attempt_is_told_with_when_it_was_delivered_as_long_as_it_is_kept() {
    let mut story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put("a", 7).await;
    story.settled(&subscription).await;
    let told = explain(&story, &subscription, "a").await;
    let attempt = told["facts"].as_array().unwrap().iter().find(|fact| fact["fact"] == "attempt").unwrap();
    let detail = attempt["detail"].as_str().unwrap();
    assert!(detail.contains("(create, revision 7) was delivered: answered 200"), "{attempt}");
    assert!(attempt["at"].is_string(), "{attempt}");
    assert_eq!(told["next"], "nothing", "{told}");
    story.flare.stop().await;
    story.flare.restart().await;
    let told = explain(&story, &subscription, "a").await;
    assert_eq!(told["verdict"], "delivered", "{told}");
    assert!(words(&told, "attempt").contains("not known any more"), "{told}");
}

#[tokio::test]
async fn a_host_that_is_busy_with_others_is_named_with_how_many_connections_are_in_use() {
    let gate = Gate::closed();
    let held = gate.clone();
    let setup = Setup::default().with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "1");
    let story = Story::with(setup, Receiver::answering(move |_| held.then(Reply::Status(200))).await).await;
    let other = json!({"endpoint": {"url": story.receiver.url("/other")}, "delivery": {"timeout": "1m"}});
    story.subscribe(other).await;
    story.put("a", 1).await;
    story.receiver.wait_for(1).await;
    let subscription = story.subscribe_simply(json!({"timeout": "1m"})).await;
    story.put("b", 1).await;
    let host = format!("waits for a connection to host {}: 1 of 1 in use", story.receiver.addr());
    until("it waits for the host", || async {
        let told = explain(&story, &subscription, "b").await;
        words(&told, "host").contains(&host).then_some(())
    })
    .await;
    says(&story, &subscription, "b", "nothing", true, &["not read yet", &host]).await;
    gate.open();
    story.settled(&subscription).await;
    let told = explain(&story, &subscription, "b").await;
    assert_eq!((told["verdict"].as_str(), words(&told, "host").as_str()), (Some("delivered"), ""), "{told}");
}

#[tokio::test]
async fn a_host_that_is_left_alone_is_named_for_everything_that_waits_for_it() {
    let setup = Setup::default()
        .with("FLARE_DELIVERY_BREAKER_FAILURES", "2")
        .with("FLARE_DELIVERY_BREAKER_PAUSE", "1h")
        .with("FLARE_DELIVERY_BREAKER_LONGEST_PAUSE", "1h");
    let story = Story::with(setup, Receiver::answering(|_| Reply::Reset).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"interval": "10ms"}})).await;
    for id in 0..5 {
        story.put(id, 1).await;
    }
    story.until_status(&subscription, "its host is left alone", |s| s["breaker"].is_object()).await;
    let host = format!("{} does not answer: it is left alone", story.receiver.addr());
    until("what was in flight has ended, and all of it waits for the host", || async {
        let path = format!("{subscription}/documents?lagging=true");
        let page = story.api().get(&path).await.expect(200).json();
        let documents = page["documents"].as_array().unwrap();
        let named = documents.iter().filter(|document| document["why"].as_str().unwrap().contains(&host));
        (named.count() == 5).then_some(())
    })
    .await;
    story.command(&subscription, "pause").await.expect(200);
    let (paused, _) = drift(&story, &subscription, "1").await;
    assert!(paused["why"].as_str().unwrap().ends_with("the subscription is paused"), "{paused}");
}

#[tokio::test]
async fn lagging_counts_documents_and_not_changes() {
    let mut story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let chosen = json!({"endpoint": {"url": story.receiver.url("/chosen")}, "filter": "document.n < 5"});
    let chosen = story.subscribe(chosen).await;
    for subscription in [&subscription, &chosen] {
        story.command(subscription, "pause").await.expect(200);
    }
    let put_all = async |story: &Story, revisions: std::ops::Range<i64>| {
        for revision in revisions {
            let line = |n| json!({"id": document_url(n), "document": {"rev": revision, "n": n}}).to_string();
            let lines: Vec<String> = (0..50).map(line).collect();
            story.api().send("POST", "/documents", &[], lines.join("\n")).await.expect(200);
        }
    };
    put_all(&story, 1..40).await;
    let lagging = async |story: &Story, subscription: &str| {
        let status = story.status(subscription).await;
        let page =
            story.api().get(&format!("{subscription}/documents?lagging=true&limit=1")).await.expect(200);
        let pagination = &page.json()["pagination"];
        assert_eq!(
            pagination["total"], status["feed"]["lagging"],
            "drift says the same: {pagination} {status}"
        );
        assert_eq!(
            (&status["feed"]["laggingIsBound"], &pagination["totalIsBound"]),
            (&Value::Null, &Value::Null)
        );
        status["feed"]["lagging"].as_u64().unwrap()
    };
    assert_eq!(lagging(&story, &subscription).await, 50, "1,950 changes of 50 documents");
    assert_eq!(lagging(&story, &chosen).await, 5, "those that its filter chooses");
    story.remove(49).await;
    assert_eq!(lagging(&story, &subscription).await, 49, "it never had the one that is gone");
    story.flare.kill();
    story.flare.restart().await;
    assert_eq!(lagging(&story, &subscription).await, 49);
    put_all(&story, 40..42).await;
    assert_eq!((lagging(&story, &subscription).await, lagging(&story, &chosen).await), (50, 5));
    until("the metrics have it", || async {
        let page = story.api().get("/metrics").await.expect(200);
        let page = String::from_utf8_lossy(&page.body).into_owned();
        let line = page.lines().find_map(|line| line.strip_prefix("flare_backlog_notifications "));
        let backlog: f64 = line.unwrap().parse().unwrap();
        (backlog == 100.0).then_some(())
    })
    .await;
    for subscription in [&subscription, &chosen] {
        story.command(subscription, "resume").await.expect(200);
        story.settled(subscription).await;
    }
    assert_eq!(lagging(&story, &subscription).await, 0);
}

#[tokio::test]
async fn where_too_many_would_have_to_be_looked_at_lagging_is_a_bound_within_twice_of_what_is_so() {
    const ALL: i64 = 12_000;
    let story = Story::begin().await;
    let all = story.subscribe_simply(json!({})).await;
    let chosen =
        json!({"endpoint": {"url": story.receiver.url("/chosen")}, "filter": "document.n % 20 == 0"});
    let chosen = story.subscribe(chosen).await;
    for subscription in [&all, &chosen] {
        story.command(subscription, "pause").await.expect(200);
    }
    let bulk = async |lines: Vec<String>| {
        for part in lines.chunks(2_000) {
            story.api().send("POST", "/documents", &[], part.join("\n")).await.expect(200);
        }
    };
    let put = |n| json!({"id": document_url(n), "document": {"rev": 1, "n": n}}).to_string();
    bulk((0..ALL).map(put).collect()).await;
    let said = async |subscription: &str| {
        let feed = story.status(subscription).await["feed"].clone();
        let page =
            story.api().get(&format!("{subscription}/documents?lagging=true&limit=1")).await.expect(200);
        let pagination = &page.json()["pagination"];
        assert_eq!(pagination["totalIsBound"], feed["laggingIsBound"], "{pagination} {feed}");
        (feed["lagging"].as_i64().unwrap(), feed["laggingIsBound"] == true)
    };
    let within_twice = |(said, is_bound): (i64, bool), so: i64| {
        assert!(is_bound && said >= so && said <= 2 * so, "{said} where {so} are owed");
    };
    assert_eq!(said(&all).await, (ALL, false), "all that changed, and there is nothing to choose");
    within_twice(said(&chosen).await, ALL / 20);
    // Nobody has them, and nobody is told that they are gone.
    let remove = |n| json!({"id": document_url(n), "delete": true}).to_string();
    bulk((0..ALL / 2).map(remove).collect()).await;
    within_twice(said(&all).await, ALL / 2);
    within_twice(said(&chosen).await, ALL / 40);
    let list = story.api().get("/subscriptions").await.expect(200).json();
    for entry in list["subscriptions"].as_array().unwrap() {
        assert_eq!(
            (&entry["feed"]["lagging"], &entry["feed"]["laggingIsBound"]),
            (&json!(ALL), &json!(true))
        );
    }
    let page = story.api().get("/ui/subscriptions").await.expect(200);
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains("at most 12\u{202f}000"), "a bound is shown as one");
}
