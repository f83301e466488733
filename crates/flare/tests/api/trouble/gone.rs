//! Thousands of clients that are gone at once: each is disabled, durably, and served again once it is resumed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Api, Receiver, Reply, Setup, Story, until_true};

/// More than wait in any queue between a delivery thread and the node.
const CLIENTS: usize = 1500;

/// Sends requests to many paths, some at once.
async fn send_all(api: Api, requests: Vec<(String, String)>, status: u16) -> Vec<String> {
    let mut senders = JoinSet::new();
    for part in requests.chunks(requests.len().div_ceil(16)) {
        let part = part.to_vec();
        senders.spawn(async move {
            let mut locations = Vec::new();
            for (path, body) in part {
                let answer = api.send("POST", &path, &[], body).await.expect(status);
                locations.push(answer.header("location").to_owned());
            }
            locations
        });
    }
    senders.join_all().await.concat()
}

/// How many subscriptions stand so, by the lists of the API.
async fn standing(story: &Story, status: &str) -> usize {
    let mut found = 0;
    for offset in (0..CLIENTS).step_by(100) {
        let list = format!("/subscriptions?limit=100&offset={offset}");
        let list = story.api().get(&list).await.expect(200).json();
        let all: Vec<Value> = list["subscriptions"].as_array().unwrap().clone();
        found += all.iter().filter(|one| one["status"] == status).count();
    }
    found
}

#[tokio::test]
async fn thousands_of_clients_that_are_gone_at_once_are_all_disabled_and_all_served_when_resumed() {
    let receiver = Receiver::answering(|_| Reply::Status(410)).await;
    let mut story = Story::with(Setup::default(), receiver).await;
    let one_lane =
        json!({"endpoint": "http://origin.test/things/{id}", "change": {"field": "rev"}, "lanes": 1});
    let created = story.api().post("/resources", &one_lane).await.expect(201).json();
    story.resource = created["id"].as_str().unwrap().to_owned();
    let document = |rev| json!({"rev": rev});
    let new: Vec<(String, String)> = (0..CLIENTS)
        .map(|client| json!({"endpoint": {"url": story.receiver.url(&format!("/told/{client}"))}}))
        .map(|body| (story.subscriptions(), body.to_string()))
        .collect();
    let paths = send_all(story.api(), new, 201).await;
    story.api().put("http://origin.test/things/1", &document(1)).await;
    until_true("each was asked", || story.receiver.count() == CLIENTS).await;
    until_true("each is disabled durably", || story.flare.count_logged("subscription disabled") == CLIENTS)
        .await;
    assert_eq!(standing(&story, "disabled").await, CLIENTS);
    assert_eq!(story.receiver.count(), CLIENTS, "whoever is gone is asked once");
    let served = Arc::new(Mutex::new(HashSet::new()));
    let noted = served.clone();
    story.receiver.answer(move |request| {
        if request.document() == "http://origin.test/things/2" {
            noted.lock().unwrap().insert(request.path.clone());
        }
        Reply::Status(200)
    });
    let resumed: Vec<(String, String)> =
        paths.iter().map(|path| (format!("{path}/resume"), String::new())).collect();
    send_all(story.api(), resumed, 200).await;
    story.api().put("http://origin.test/things/2", &document(1)).await;
    until_true("each is served", || served.lock().unwrap().len() == CLIENTS).await;
    assert_eq!(standing(&story, "active").await, CLIENTS);
}
