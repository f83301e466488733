//! What was given up is listed, with the reason, until it is replayed, replaced or dropped.

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Story, document_url};

/// A client that refuses everything, and a subscription that tries twice.
async fn refusing() -> (Story, String) {
    let body = "boom ".repeat(1000);
    let receiver =
        Receiver::answering(move |_| Reply::Full { status: 500, headers: vec![], body: body.clone() });
    let story = Story::told(receiver.await).await;
    let retry = json!({"quantity": 2, "interval": "10ms", "maxInterval": "10ms"});
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    (story, subscription)
}

async fn given_up(story: &Story, subscription: &str, count: u64) -> Value {
    story.until_status(subscription, "given up", |s| s["feed"]["deadLetters"] == count).await;
    story.api().get(&format!("{subscription}/dead-letters")).await.expect(200).json()
}

fn documents(list: &Value) -> Vec<String> {
    let letters = list["deadLetters"].as_array().unwrap();
    let mut all: Vec<_> =
        letters.iter().map(|letter| letter["document"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_dead_letter_says_what_happened() {
    let (story, subscription) = refusing().await;
    story.put(1, 7).await;
    let list = given_up(&story, &subscription, 1).await;
    assert_eq!(list["pagination"], json!({"limit": 30, "offset": 0, "total": 1}));
    let letter = &list["deadLetters"][0];
    assert_eq!((&letter["document"], &letter["revision"]), (&document_url(1).into(), &7.into()));
    assert_eq!(
        (&letter["action"], &letter["attempts"], &letter["status"]),
        (&"create".into(), &2.into(), &500.into())
    );
    let response = letter["response"].as_str().unwrap();
    assert!(response.starts_with("boom boom") && response.len() <= 1000, "an excerpt: {}", response.len());
    assert!(letter["firstAttemptAt"].as_str().unwrap() <= letter["lastAttemptAt"].as_str().unwrap());
    assert_eq!(story.receiver.count(), 2);
}

#[tokio::test]
async fn what_lasts_longer_than_its_time_to_live_is_given_up() {
    let (story, subscription) = refusing().await;
    let retry = json!({"quantity": null, "ttl": "2s", "interval": "600ms", "maxInterval": "600ms"});
    story.api().patch(&subscription, &json!({"delivery": {"retry": retry}})).await.expect(200);
    story.put(1, 1).await;
    let list = given_up(&story, &subscription, 1).await;
    let attempts = list["deadLetters"][0]["attempts"].as_u64().unwrap();
    assert!((2..=4).contains(&attempts), "{attempts}");
}

#[tokio::test]
async fn a_network_error_is_in_its_dead_letter() {
    let (story, subscription) = refusing().await;
    story.receiver.answer(|_| Reply::Reset);
    story.put(1, 1).await;
    let letter = given_up(&story, &subscription, 1).await["deadLetters"][0].clone();
    assert_eq!((&letter["status"], &letter["response"]), (&Value::Null, &Value::Null));
    assert!(!letter["error"].as_str().unwrap().is_empty(), "{letter}");
}

#[tokio::test]
async fn dead_letters_are_listed_in_pages_and_dropped_one_by_one_or_all() {
    let (story, subscription) = refusing().await;
    for document in 0..5 {
        story.put(document, 1).await;
    }
    let all = documents(&given_up(&story, &subscription, 5).await);
    assert_eq!(all, (0..5).map(document_url).collect::<Vec<_>>());
    let path = format!("{subscription}/dead-letters");
    let mut seen = Vec::new();
    for offset in [0, 2, 4, 6] {
        let page = story.api().get(&format!("{path}?limit=2&offset={offset}")).await.expect(200).json();
        assert_eq!(page["pagination"], json!({"limit": 2, "offset": offset, "total": 5}));
        seen.extend(documents(&page));
    }
    seen.sort();
    assert_eq!(seen, all, "pages neither overlap nor leave out");

    let one = format!("{path}?document={}", document_url(3));
    story.api().delete(&one).await.expect(204);
    story.api().delete(&one).await.refused(404, &["no dead letter"]);
    story.api().delete(&format!("{path}?document=nonsense")).await.refused(400, &["document"]);
    story.api().delete(&format!("{path}?doc=1")).await.refused(400, &["doc"]);
    let left = story.api().get(&path).await.json();
    assert_eq!(
        (left["pagination"]["total"].clone(), documents(&left).contains(&document_url(3))),
        (4.into(), false)
    );
    story.api().delete(&path).await.expect(204);
    let status = story.status(&subscription).await;
    assert_eq!(status["feed"]["deadLetters"], 0);
    assert_eq!(story.api().get(&path).await.json()["pagination"]["total"], 0);
}

#[tokio::test]
async fn a_newer_revision_replaces_the_dead_letter() {
    let (story, subscription) = refusing().await;
    story.put(1, 1).await;
    given_up(&story, &subscription, 1).await;
    story.receiver.answer(|_| Reply::Status(200));
    story.put(1, 2).await;
    let status = story.settled(&subscription).await;
    assert_eq!((&status["feed"]["deadLetters"], &status["delivered"]), (&0.into(), &1.into()));
    let last = story.receiver.requests().pop().unwrap();
    assert_eq!((last.action(), last.revision()), ("create", 2));
}

#[tokio::test]
async fn dead_letters_are_replayed_on_request() {
    let (story, subscription) = refusing().await;
    for document in 0..3 {
        story.put(document, 1).await;
    }
    given_up(&story, &subscription, 3).await;
    let failed = story.receiver.count();
    story.receiver.answer(|_| Reply::Status(200));
    let answer = story
        .api()
        .post(&format!("{subscription}/replay"), &json!({"scope": "deadLetters"}))
        .await
        .expect(202);
    assert_eq!(answer.json()["total"], 3);
    let status = story.settled(&subscription).await;
    assert_eq!((&status["feed"]["deadLetters"], &status["feed"]["held"]), (&0.into(), &3.into()));
    let sent = story.receiver.requests().split_off(failed);
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|r| r.header("flare-replay") == answer.json()["id"]), "{sent:?}");
    assert!(
        sent.iter().all(|request| request.action() == "create"),
        "the client never said that it has them"
    );
}

#[tokio::test]
async fn many_can_look_at_dead_letters_at_once() {
    let (story, subscription) = refusing().await;
    story.put(1, 1).await;
    given_up(&story, &subscription, 1).await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (api, path) = (story.api(), format!("{subscription}/dead-letters"));
        readers.spawn(async move {
            let answer = tokio::time::timeout(crate::support::PATIENCE, api.get(&path)).await;
            answer.expect("an answer").expect(200).json()["pagination"]["total"].clone()
        });
    }
    while let Some(total) = readers.join_next().await {
        assert_eq!(total.unwrap(), 1);
    }
}

#[tokio::test]
async fn dead_letters_of_one_kind_are_replayed_as_a_group() {
    let receiver = Receiver::answering(|request| {
        let early = ["/1", "/2"].iter().any(|end| request.document().ends_with(end));
        let status = if early { 500 } else { 422 };
        Reply::Full { status, headers: vec![], body: "no".into() }
    });
    let story = Story::told(receiver.await).await;
    let retry = json!({"quantity": 1});
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    for id in 1..=5 {
        story.put(id, 1).await;
    }
    given_up(&story, &subscription, 5).await;
    let replay = async |body: Value| story.api().post(&format!("{subscription}/replay"), &body).await;
    let begun = replay(json!({"scope": "deadLetters", "status": 422})).await.expect(202).json();
    assert_eq!(begun["total"], 3, "{begun}");
    let told = |id: u64| {
        let requests = story.receiver.requests();
        let again = requests.iter().filter(|request| !request.header("flare-replay").is_empty());
        again.filter(|request| request.document().ends_with(&format!("/{id}"))).count()
    };
    story.until_status(&subscription, "sent again", |s| s["failed"] == 8).await;
    assert_eq!([1, 2, 3, 4, 5].map(told), [0, 0, 1, 1, 1]);
    // One that never was: nothing is sent.
    let none = replay(json!({"scope": "deadLetters", "error": "nobody ever saw this"})).await.expect(202);
    assert_eq!(none.json()["total"], 0);
    for wrong in [
        json!({"status": 422}),
        json!({"scope": "lagging", "error": "x"}),
        json!({"scope": "deadLetters", "status": 422, "document": document_url(1)}),
        json!({"scope": "deadLetters", "status": 422, "error": "x"}),
    ] {
        replay(wrong).await.expect(400);
    }
}
