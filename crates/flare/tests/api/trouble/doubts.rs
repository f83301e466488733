//! What may have been sent when a process is killed, and what certainly was not: a client is told to delete the one, and
//! hears nothing of the other.

use serde_json::json;

use crate::support::{Gate, Receiver, Reply, Request, Story, store_is_durable, until_true};

/// A resource with one lane, so that all documents have one feed.
async fn one_lane(receiver: Receiver) -> Story {
    let mut story = Story::told(receiver).await;
    let resource =
        json!({"endpoint": "http://origin.test/things/{id}", "change": {"field": "rev"}, "lanes": 1});
    let created = story.api().post("/resources", &resource).await.expect(201).json();
    story.resource = created["id"].as_str().expect("an id").to_owned();
    story
}

fn thing(id: u64) -> String {
    format!("http://origin.test/things/{id}")
}

async fn put(story: &Story, id: u64, revision: i64) {
    story.api().put(&thing(id), &json!({"rev": revision})).await;
}

/// All that the client was told, as action and document.
fn told(story: &Story) -> Vec<(String, String)> {
    let requests = story.receiver.requests();
    requests.iter().map(|request| (request.action().to_owned(), request.document().to_owned())).collect()
}

fn line(action: &str, id: u64) -> (String, String) {
    (action.to_owned(), thing(id))
}

#[tokio::test]
async fn reading_the_dead_letters_forgets_nothing_that_may_have_been_sent() {
    if !store_is_durable() {
        return;
    }
    let gate = Gate::closed();
    let held = gate.clone();
    let answer = move |request: &Request| match request.document() == thing(1) {
        true if request.action() == "create" => Reply::Hang,
        true => Reply::Status(200),
        false => held.then(Reply::Status(200)),
    };
    let mut story = one_lane(Receiver::answering(answer).await).await;
    let subscription = story.subscribe_simply(json!({"timeout": "1m"})).await;
    put(&story, 1, 1).await;
    put(&story, 2, 1).await;
    until_true("both are in flight", || story.receiver.in_flight() == 2).await;
    let letters = format!("{subscription}/dead-letters");
    // The first makes durable all that is known; the second finds nothing to make durable.
    for _ in 0..2 {
        story.api().get(&letters).await.expect(200);
    }
    gate.open();
    story.until_status(&subscription, "one is delivered", |status| status["delivered"] == 1).await;
    story.command(&subscription, "pause").await.expect(200);
    story.api().get(&letters).await.expect(200);
    story.flare.restart().await;
    story.api().remove(&thing(1)).await;
    story.command(&subscription, "resume").await.expect(200);
    until_true("the client is told to delete what it may have", || {
        told(&story).last() == Some(&line("delete", 1))
    })
    .await;
}

#[tokio::test]
async fn a_client_that_was_paused_is_not_told_of_what_came_and_went_meanwhile_though_flare_was_killed() {
    if !store_is_durable() {
        return;
    }
    let mut story = one_lane(Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    put(&story, 1, 1).await;
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    story.api().get(&format!("{subscription}/dead-letters")).await.expect(200);
    put(&story, 2, 1).await;
    story.api().remove(&thing(2)).await;
    story.flare.restart().await;
    put(&story, 3, 1).await;
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    assert_eq!(told(&story), [line("create", 1), line("create", 3)]);
}

#[tokio::test]
async fn what_comes_and_goes_after_flare_was_killed_is_not_told() {
    if !store_is_durable() {
        return;
    }
    let gate = Gate::closed();
    let held = gate.clone();
    let mut story = one_lane(Receiver::answering(move |_| held.then(Reply::Status(200))).await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 1, "timeout": "1m"})).await;
    put(&story, 1, 1).await;
    put(&story, 2, 1).await;
    until_true("the client is busy", || story.receiver.count() == 1).await;
    story.flare.restart().await;
    until_true("the client is busy again", || story.receiver.count() == 2).await;
    put(&story, 3, 1).await;
    story.api().remove(&thing(3)).await;
    gate.open();
    story.settled(&subscription).await;
    assert_eq!(told(&story).into_iter().find(|(_, document)| *document == thing(3)), None);
}

#[tokio::test]
async fn what_a_passive_client_was_never_given_is_not_in_doubt_after_a_kill() {
    if !store_is_durable() {
        return;
    }
    let mut story = one_lane(Receiver::start().await).await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "mode": "passive"})).await;
    let take = async |story: &Story| {
        let path = format!("{subscription}/reserve?quantity=10");
        let answer = story.api().send("POST", &path, &[], "").await.expect(200).json();
        let messages = answer["messages"].as_array().expect("a list").clone();
        let settled = messages.iter().map(|message| json!({"lease": message["lease"], "status": "success"}));
        let settled = json!({"messages": settled.collect::<Vec<_>>()});
        story.api().post(&format!("{subscription}/settle"), &settled).await.expect(200);
        let told = |message: &serde_json::Value| {
            let [action, document] =
                ["action", "document"].map(|name| message[name].as_str().expect("a text"));
            (action.to_owned(), document.to_owned())
        };
        messages.iter().map(told).collect::<Vec<_>>()
    };
    put(&story, 1, 1).await;
    put(&story, 2, 1).await;
    assert_eq!(take(&story).await, [line("create", 1), line("create", 2)]);
    // What is sent on request may be in doubt; not any more, once that has ended.
    put(&story, 2, 2).await;
    let sent = story.command(&subscription, "deliver").await.expect(200).json();
    assert_eq!(sent["delivered"], 1, "{sent}");
    put(&story, 2, 3).await;
    assert_eq!(take(&story).await, [line("update", 2)]);
    put(&story, 1, 2).await;
    put(&story, 3, 1).await;
    story.api().remove(&thing(3)).await;
    put(&story, 4, 1).await;
    story.flare.restart().await;
    let page = story.api().get(&format!("{subscription}/documents")).await.expect(200).json();
    for entry in page["documents"].as_array().expect("a list") {
        assert_ne!(entry["clientHas"], "unknown", "{entry}");
    }
    story.api().remove(&thing(4)).await;
    assert_eq!(take(&story).await, [line("update", 1)], "it never had the others");
}
