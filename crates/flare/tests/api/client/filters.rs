//! Filters: documents enter and leave a client by what is in them, and `when` says whether to tell.

use serde_json::{Value, json};

use crate::support::{Gate, Receiver, Reply, Setup, Story, document_url, store_is_durable, until};

const STOCKED: &str = "document.quantity > 0";

async fn subscribe(story: &Story, more: Value) -> String {
    let mut body = json!({"endpoint": {"url": story.receiver.url("/told")}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    story.subscribe(body).await
}

async fn put(story: &Story, id: impl std::fmt::Display, revision: i64, fields: Value) {
    let mut document = json!({"rev": revision});
    document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    story.api().put(&document_url(id), &document).await;
}

/// What the client was told, in order: action, the end of the url, revision.
fn told(story: &Story) -> Vec<(String, String, i64)> {
    let requests = story.receiver.requests();
    let short = |url: &str| url.rsplit('/').next().unwrap().to_owned();
    requests.iter().map(|r| (r.action().to_owned(), short(r.document()), r.revision())).collect()
}

fn sorted(story: &Story, skip: usize) -> Vec<(String, String, i64)> {
    let mut all = told(story).split_off(skip);
    all.sort();
    all
}

fn one(action: &str, id: &str, revision: i64) -> (String, String, i64) {
    (action.to_owned(), id.to_owned(), revision)
}

#[tokio::test]
async fn documents_enter_and_leave_a_client() {
    let story = Story::begin().await;
    let subscription = subscribe(&story, json!({"filter": STOCKED})).await;
    for (revision, quantity) in [(1, 0), (2, 5), (3, 7), (4, 0), (5, 0), (6, 1)] {
        put(&story, "a", revision, json!({"quantity": quantity})).await;
        story.settled(&subscription).await;
    }
    story.remove("a").await;
    story.settled(&subscription).await;
    let expected = [
        one("create", "a", 2),
        one("update", "a", 3),
        one("delete", "a", 4),
        one("create", "a", 6),
        one("delete", "a", 6),
    ];
    assert_eq!(told(&story), expected);
    let status = story.status(&subscription).await;
    assert_eq!(
        status["filter"],
        json!({"excluded": 3, "notTold": 0, "errors": 0, "lastError": null, "erring": false})
    );
    assert_eq!(status["feed"]["held"], 0);
}

#[tokio::test]
async fn the_delete_of_what_a_client_never_had_is_not_told() {
    let story = Story::begin().await;
    let subscription = subscribe(&story, json!({"filter": STOCKED})).await;
    put(&story, "a", 1, json!({"quantity": 0})).await;
    story.remove("a").await;
    put(&story, "b", 1, json!({"quantity": 1})).await;
    story.settled(&subscription).await;
    assert_eq!(told(&story), [one("create", "b", 1)]);
}

#[tokio::test]
async fn an_evaluation_error_leaves_the_client_as_it_is_and_shows_in_the_status() {
    let story = Story::begin().await;
    let subscription = subscribe(&story, json!({"filter": STOCKED})).await;
    put(&story, "a", 1, json!({"quantity": 1})).await;
    story.settled(&subscription).await;
    put(&story, "a", 2, json!({"quantity": "many"})).await;
    put(&story, "b", 1, json!({})).await;
    story.settled(&subscription).await;
    assert_eq!(told(&story), [one("create", "a", 1)]);
    let status = story.status(&subscription).await;
    assert_eq!((&status["filter"]["errors"], &status["feed"]["held"]), (&json!(2), &json!(1)), "{status}");
    let last = &status["filter"]["lastError"];
    assert!(last["document"].as_str().unwrap().starts_with("http://origin.test/users/"), "{last}");
    assert!(last["at"].is_string() && last["error"].is_string(), "{last}");
    put(&story, "a", 3, json!({"quantity": 3})).await;
    story.settled(&subscription).await;
    assert_eq!(told(&story)[1..], [one("update", "a", 3)], "it still has it");
}

#[tokio::test]
async fn when_decides_whether_to_tell_and_changes_nothing_held() {
    let story = Story::begin().await;
    let when = "action == 'delete' || document.loud";
    let subscription = subscribe(&story, json!({"filter": STOCKED, "when": when})).await;
    for (revision, quantity, loud) in
        [(1, 1, false), (2, 1, true), (3, 1, false), (4, 1, true), (5, 0, false)]
    {
        put(&story, "a", revision, json!({"quantity": quantity, "loud": loud})).await;
        story.settled(&subscription).await;
    }
    let expected = [one("create", "a", 2), one("update", "a", 4), one("delete", "a", 5)];
    assert_eq!(told(&story), expected);
    assert_eq!(story.status(&subscription).await["filter"]["notTold"], 2);
}

#[tokio::test]
async fn an_expression_sees_the_revision_and_the_wildcards() {
    let story = Story::begin().await;
    let filter = "wildcards.id.startsWith('x') && revision >= 2";
    let subscription = subscribe(&story, json!({"filter": filter})).await;
    for id in ["xa", "b"] {
        put(&story, id, 1, json!({})).await;
        put(&story, id, 2, json!({})).await;
    }
    story.settled(&subscription).await;
    assert_eq!(told(&story), [one("create", "xa", 2)]);
}

#[tokio::test]
async fn a_subscription_that_starts_at_the_beginning_gets_only_what_is_its_own() {
    let story = Story::begin().await;
    for id in 0..20 {
        put(&story, id, 1, json!({"quantity": id % 2})).await;
    }
    let subscription = subscribe(&story, json!({"filter": STOCKED, "start": "beginning"})).await;
    let prepared = |status: &Value| status["status"] == "active" && status["feed"]["held"] == 10;
    story.until_status(&subscription, "the beginning is through", prepared).await;
    let all = told(&story);
    assert_eq!(all.len(), 10, "{all:?}");
    assert!(all.iter().all(|(action, id, _)| action == "create" && id.parse::<u32>().unwrap() % 2 == 1));
}

/// Ten documents of which the even ones are green, and a client that has those.
async fn green(story: &Story) -> String {
    let subscription = subscribe(story, json!({"filter": "document.colour == 'green'"})).await;
    for id in 0..10 {
        let colour = if id % 2 == 0 { "green" } else { "red" };
        put(story, id, 1, json!({"colour": colour, "size": id})).await;
    }
    story.settled(&subscription).await;
    assert_eq!(told(story).len(), 5);
    subscription
}

async fn patch(story: &Story, subscription: &str, filter: Value) {
    story.api().patch(subscription, &json!({"filter": filter})).await.expect(200);
}

/// Waits until no sweep is under way any more: a changed filter was held against everything.
async fn swept(story: &Story, subscription: &str) {
    story
        .until_status(subscription, "everything is decided again", |status| status["feed"]["sweep"].is_null())
        .await;
}

/// Waits until the client is taken to have as many documents, and nothing is owed.
async fn holds(story: &Story, subscription: &str, held: u64) {
    // On the way there may be moments in which that holds and more is to come.
    swept(story, subscription).await;
    story
        .until_status(subscription, &format!("the client has {held}"), |status| {
            let feed = &status["feed"];
            feed["held"] == held && feed["lagging"] == 0 && feed["inFlight"] == 0
        })
        .await;
}

#[tokio::test]
async fn a_changed_filter_sends_what_enters_and_what_leaves_and_nothing_else() {
    let story = Story::begin().await;
    let subscription = green(&story).await;
    patch(&story, &subscription, json!("document.size < 4")).await;
    holds(&story, &subscription, 4).await;
    let expected = [
        one("create", "1", 1),
        one("create", "3", 1),
        one("delete", "4", 1),
        one("delete", "6", 1),
        one("delete", "8", 1),
    ];
    assert_eq!(sorted(&story, 5), expected);
    patch(&story, &subscription, json!(null)).await;
    holds(&story, &subscription, 10).await;
    let creates: Vec<_> = (4..10).map(|id| one("create", &id.to_string(), 1)).collect();
    assert_eq!(sorted(&story, 10), creates);
    // The same document entered, left and entered again at one sequence: three notifications, three ids.
    let requests = story.receiver.requests();
    let four = requests.iter().filter(|request| request.document() == document_url(4));
    let ids: std::collections::HashSet<_> = four.map(|request| request.header("webhook-id")).collect();
    assert_eq!(ids.len(), 3);
    assert!(requests.iter().all(|request| request.header("flare-replay").is_empty()));
    patch(&story, &subscription, json!("document.size == 0")).await;
    holds(&story, &subscription, 1).await;
    let deletes: Vec<_> = (1..10).map(|id| one("delete", &id.to_string(), 1)).collect();
    assert_eq!(sorted(&story, 16), deletes);
}

#[tokio::test]
async fn live_work_goes_on_while_a_changed_filter_is_swept_for() {
    let story = Story::begin().await;
    let subscription = subscribe(&story, json!({})).await;
    for id in 0..200 {
        put(&story, id, 1, json!({"size": id})).await;
    }
    story.settled(&subscription).await;
    patch(&story, &subscription, json!("document.size % 2 == 0")).await;
    // These belong to the live cursor, whatever the sweep is at: one enters the other half, one stays, one is new.
    put(&story, 0, 2, json!({"size": 1})).await;
    put(&story, 2, 2, json!({"size": 2})).await;
    put(&story, "new", 1, json!({"size": 0})).await;
    holds(&story, &subscription, 100).await;
    let mut has = std::collections::HashMap::new();
    for request in story.receiver.requests() {
        has.insert(request.document().to_owned(), (request.action() != "delete", request.revision()));
    }
    let kept: Vec<_> = has.iter().filter(|(_, (has, _))| *has).map(|(url, _)| url.clone()).collect();
    assert_eq!(kept.len(), 100);
    assert_eq!(has[&document_url(0)], (false, 2));
    assert_eq!(has[&document_url(2)], (true, 2));
    assert_eq!(has[&document_url("new")], (true, 1));
}

#[tokio::test]
async fn a_changed_filter_outlives_a_kill_before_its_sweep() {
    if !store_is_durable() {
        return;
    }
    let mut story = Story::begin().await;
    let subscription = green(&story).await;
    // Paused, it cannot begin before the process is killed.
    story.command(&subscription, "pause").await.expect(200);
    patch(&story, &subscription, json!("document.colour == 'red'")).await;
    story.flare.restart().await;
    story.command(&subscription, "resume").await.expect(200);
    let all = |story: &Story| sorted(story, 5);
    until("everything is decided again", || async { (all(&story).len() >= 10).then_some(()) }).await;
    holds(&story, &subscription, 5).await;
    let mut expected: Vec<_> = (0..5).map(|n| one("create", &(2 * n + 1).to_string(), 1)).collect();
    expected.extend((0..5).map(|n| one("delete", &(2 * n).to_string(), 1)));
    assert_eq!(all(&story), expected);
}

#[tokio::test]
async fn a_changed_filter_outlives_kills_in_the_middle_of_its_sweep() {
    if !store_is_durable() {
        return;
    }
    let mut story = Story::begin().await;
    let subscription = subscribe(&story, json!({"delivery": {"concurrency": 1}})).await;
    for id in 0..300 {
        put(&story, id, 1, json!({"size": id})).await;
    }
    story.settled(&subscription).await;
    for (round, left) in [(1, 1), (2, 0), (3, 1)] {
        // The client takes some of it, and is killed with the next one open.
        let (before, mut taken) = (story.receiver.count(), 0);
        story.receiver.answer(move |_| {
            taken += 1;
            if taken <= 3 * round { Reply::Status(200) } else { Reply::Hang }
        });
        patch(&story, &subscription, json!(format!("document.size % 2 == {left}"))).await;
        story.receiver.wait_for(before + 3 * round + 1).await;
        story.flare.kill();
        story.receiver.drained().await;
        story.flare.restart().await;
    }
    story.receiver.answer(|_| Reply::Status(200));
    holds(&story, &subscription, 150).await;
    let mut has = std::collections::HashMap::new();
    for request in story.receiver.requests() {
        has.insert(request.document().to_owned(), request.action() != "delete");
    }
    for id in 0..300 {
        assert_eq!(has.get(&document_url(id)), Some(&(id % 2 == 1)), "{id}");
    }
}

#[tokio::test]
async fn a_filter_that_changes_during_the_beginning_waits_for_it() {
    let story = Story::begin().await;
    for id in 0..40 {
        put(&story, id, 1, json!({"size": id})).await;
    }
    story
        .receiver
        .answer(|_| Reply::After(std::time::Duration::from_millis(5), Box::new(Reply::Status(200))));
    let more = json!({"filter": "document.size < 30", "start": "beginning", "delivery": {"concurrency": 1}});
    let subscription = subscribe(&story, more).await;
    story.receiver.wait_for(3).await;
    patch(&story, &subscription, json!("document.size >= 20")).await;
    holds(&story, &subscription, 20).await;
    let mut has = std::collections::HashMap::new();
    for request in story.receiver.requests() {
        has.insert(request.document().to_owned(), request.action() != "delete");
    }
    for id in 0..40 {
        assert_eq!(has.get(&document_url(id)).copied().unwrap_or(false), id >= 20, "{id}");
    }
}

#[tokio::test]
async fn a_filter_that_changes_during_the_sweep_for_another_is_held_against_everything() {
    let setup = Setup::default().with("FLARE_DOMAIN_LANES", "1").with("FLARE_DELIVERY_PAGE_ROWS", "20");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = subscribe(&story, json!({"delivery": {"concurrency": 1, "timeout": "1m"}})).await;
    for id in 0..200 {
        put(&story, id, 1, json!({"size": id})).await;
    }
    story.settled(&subscription).await;
    // A client that takes nothing: the sweep stands still in the middle, with as much of it waiting as may.
    let gate = Gate::closed();
    let held = gate.clone();
    story.receiver.answer(move |_| held.then(Reply::Status(200)));
    patch(&story, &subscription, json!("document.size % 2 == 1")).await;
    story.receiver.wait_for(201).await;
    let status = story.status(&subscription).await;
    assert_eq!(status["feed"]["sweep"], "filter", "{status}");
    patch(&story, &subscription, json!("document.size % 2 == 0")).await;
    gate.open();
    holds(&story, &subscription, 100).await;
    let mut has = std::collections::HashMap::new();
    for request in story.receiver.requests() {
        has.insert(request.document().to_owned(), request.action() != "delete");
    }
    for id in 0..200 {
        assert_eq!(has.get(&document_url(id)), Some(&(id % 2 == 0)), "{id}");
    }
}

#[tokio::test]
async fn a_wrong_expression_is_refused_with_its_place() {
    let story = Story::begin().await;
    let body = |field: &str, text: String| {
        let mut body = json!({"endpoint": {"url": story.receiver.url("/told")}});
        body[field] = json!(text);
        body
    };
    for (field, text, words) in [
        ("filter", "document.quantity >> 0".to_owned(), &["filter", "line 1, column 20"][..]),
        ("filter", "document.a ==\n docment.b".to_owned(), &["filter", "line 2, column 2", "docment"]),
        ("filter", "action == 'create'".to_owned(), &["filter", "`when` only"]),
        ("filter", "document.quantity + 1".to_owned(), &[]),
        ("filter", "'a' + 'b'".to_owned(), &["filter", "must be bool"]),
        ("filter", "wildcards.nope == 'x'".to_owned(), &["filter", "nope", "there are: id"]),
        ("filter", "document.tags.exists(t, t == 'x')".to_owned(), &["filter", "loops over a list"]),
        ("filter", "(".repeat(2000), &["filter", "64 operations"]),
        ("filter", "!".repeat(2000), &["filter", "64 operations"]),
        ("filter", vec!["1"; 1000].join("+") + ">0", &["filter", "64 operations"]),
        ("filter", "x".repeat(2049), &["filter", "at most 2048 bytes"]),
        ("filter", "document.a.matches('(a{1000}){1000}')".to_owned(), &["filter", "too large"]),
        ("filter", String::new(), &["filter", "is empty"]),
        ("when", "frob(action)".to_owned(), &["when", "there is no function `frob`"]),
    ] {
        // The one that can only be found out with a document is accepted.
        let answer = story.api().post(&story.subscriptions(), &body(field, text)).await;
        if words.is_empty() {
            answer.expect(201)
        } else {
            answer.refused(400, words)
        };
    }
    let subscription = subscribe(&story, json!({"endpoint": {"url": story.receiver.url("/other")}})).await;
    let patched = story.api().patch(&subscription, &json!({"filter": "nonsense ("})).await;
    patched.refused(400, &["filter", "line 1, column"]);
    assert_eq!(story.api().get(&subscription).await.json()["filter"], Value::Null);
}

#[tokio::test]
async fn an_expression_can_be_tried_on_a_document() {
    let story = Story::begin().await;
    let api = story.api();
    let trial = |body: Value| async move { api.post("/filters/test", &body).await };
    let document = json!({"quantity": 3, "price": 10.5});
    let result = trial(json!({"filter": STOCKED, "document": document})).await.expect(200).json();
    assert_eq!(result, json!({"result": true}));
    let when = "action == 'update' && document.price != state.price && wildcards.id == '1' && revision == 7";
    let all = json!({"when": when, "document": document, "state": {"price": 9}, "action": "update",
        "wildcards": {"id": "1"}, "revision": 7});
    assert_eq!(trial(all).await.expect(200).json(), json!({"result": true}));
    let wrong =
        trial(json!({"filter": "document.quantity >", "document": document})).await.expect(200).json();
    assert_eq!(wrong["error"]["position"], json!({"offset": 19, "line": 1, "column": 20}), "{wrong}");
    let error = trial(json!({"filter": "document.missing", "document": document})).await.expect(200).json();
    assert_eq!(error["error"]["detail"], "there is no field `missing`");
    assert_eq!(error["error"]["position"], Value::Null);
    trial(json!({"document": document})).await.refused(400, &["filter", "when"]);
    trial(json!({"filter": "true", "when": "true"})).await.refused(400, &["either"]);
    trial(json!({"filter": "true", "document": [1]})).await.refused(400, &["document", "object"]);
    trial(json!({"filter": "true", "frob": 1})).await.refused(400, &["frob"]);
    trial(json!({"filter": "true", "revision": 1.5})).await.refused(400, &["revision"]);
}

#[tokio::test]
async fn when_can_compare_with_what_the_client_last_got() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let when = "action != 'update' || document.price != state.price";
    let subscription = story.subscribe(json!({"endpoint": endpoint, "when": when})).await;
    let put = async |revision: i64, price: i64| {
        story.api().put(&document_url(1), &json!({"rev": revision, "price": price})).await;
        story.settled(&subscription).await
    };
    put(1, 10).await;
    put(2, 10).await;
    let status = put(3, 10).await;
    assert_eq!(status["filter"]["notTold"], 2);
    put(4, 11).await;
    put(5, 11).await;
    story.remove(1).await;
    story.settled(&subscription).await;
    put(6, 11).await;
    let told: Vec<_> =
        story.receiver.requests().iter().map(|r| (r.action().to_owned(), r.revision())).collect();
    let expected = [("create", 1), ("update", 4), ("delete", 5), ("create", 6)];
    assert_eq!(told, expected.map(|(action, revision)| (action.to_owned(), revision)));
}
