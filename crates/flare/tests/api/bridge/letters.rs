//! Messages that cannot be read: tried, kept for as long as they are to be, and read once more on request.

use serde_json::{Value, json};

use super::poll::not_modified;
use super::{page, poll_orders, until_status};
use crate::support::{Api, Receiver, Setup, store_is_durable, until};

#[tokio::test]
async fn a_document_that_cannot_be_read_is_tried_so_often_and_then_a_dead_letter_that_can_be_replayed() {
    let setup = Setup::default().with("FLARE_DOMAIN_CONSUMER_TRIES", "2");
    let (flare, origin) = (setup.start().await, Receiver::start().await);
    origin.answer(|request| match request.header("if-none-match") == "\"1\"" {
        true => not_modified(),
        false => page(Some("\"1\""), &json!({"orders": [{"name": "x", "rev": 1}, {"id": "b", "rev": 1}]})),
    });
    let api = flare.api();
    let path = poll_orders(api, &origin, json!({}), json!({})).await;
    // What is stored is seen before it is counted.
    let given_up = |status: &Value| status["deadLetters"] == 1 && status["rejected"] == 2;
    let status = until_status(api, &path, "it is given up", given_up).await;
    assert_eq!(status["accepted"], 1, "{status}");
    assert_eq!(status["status"], "active", "it holds up nothing: {status}");
    let letters = format!("{path}/dead-letters");
    let listed = api.get(&letters).await.expect(200).json();
    let letter = &listed["deadLetters"][0];
    assert_eq!((&listed["pagination"]["total"], &letter["tries"]), (&json!(1), &json!(2)), "{listed}");
    assert!(letter["error"].as_str().expect("why").contains("\"id\""), "{letter}");
    assert_eq!(letter["excerpt"], r#"{"name":"x","rev":1}"#);

    let done = replayed(api, &path).await;
    assert_eq!((&done["total"], &done["done"], &done["stored"]), (&json!(1), &json!(1), &json!(0)), "{done}");
    assert_eq!(api.get(&letters).await.expect(200).json()["pagination"]["total"], 1, "it cannot be read yet");
    let shown = api.get(&path).await.expect(200).json();
    let draft = json!({"source": shown["source"], "payload": {"id": "name", "revision": {"field": "rev"}}});
    api.send("PUT", &path, &[], draft.to_string()).await.expect(200);
    let done = replayed(api, &path).await;
    assert_eq!((&done["done"], &done["stored"]), (&json!(1), &json!(1)), "now it can: {done}");
    assert_eq!(api.get(&letters).await.expect(200).json()["pagination"]["total"], 0);
    let listed = api.get(&format!("{path}/replays")).await.expect(200).json();
    assert_eq!((&listed["pagination"]["total"], &listed["replays"][1]), (&json!(2), &done), "{listed}");
    assert_eq!(replayed(api, &path).await["total"], 0, "there is nothing left");
    api.get(&format!("{path}/replays/rpl_9")).await.refused(404, &["rpl_9"]);
    api.post(&format!("{path}/replay"), &json!({"scope": "all"})).await.refused(400, &["scope"]);
    api.delete(&format!("{letters}?id=ltr_99")).await.refused(404, &["ltr_99"]);
    api.delete(&letters).await.expect(204);
}

/// Replays the dead letters of a consumer, and waits until that is done.
async fn replayed(api: Api, consumer: &str) -> Value {
    let begun = api.post(&format!("{consumer}/replay"), &json!({"scope": "deadLetters"})).await.expect(202);
    let (location, said) = (begun.header("location").to_owned(), begun.json());
    assert_eq!(location, format!("{consumer}/replays/{}", said["id"].as_str().expect("an id")));
    let keys: Vec<&String> = said.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["id", "total"], "as a replay of a subscription is answered: {said}");
    until("the replay is done", || async {
        let shown = api.get(&location).await.expect(200).json();
        assert_eq!((&shown["id"], &shown["total"]), (&said["id"], &said["total"]), "{shown}");
        assert!(["running", "done"].contains(&shown["state"].as_str().expect("a word")), "{shown}");
        (shown["state"] == "done").then_some(shown)
    })
    .await
}

#[tokio::test]
async fn a_replay_of_many_dead_letters_goes_on_after_a_kill() {
    if !store_is_durable() {
        return;
    }
    const LETTERS: usize = 1000;
    let setup = Setup::default().with("FLARE_DOMAIN_CONSUMER_TRIES", "1");
    let (mut flare, origin) = (setup.start().await, Receiver::start().await);
    origin.answer(|request| match request.header("if-none-match") == "\"1\"" {
        true => not_modified(),
        false => {
            let orders: Vec<Value> = (0..LETTERS).map(|n| json!({"name": n, "rev": 1})).collect();
            page(Some("\"1\""), &json!({"orders": orders}))
        }
    });
    let path = poll_orders(flare.api(), &origin, json!({"interval": "1h"}), json!({})).await;
    until_status(flare.api(), &path, "all are dead letters", |status| status["deadLetters"] == LETTERS).await;
    let shown = flare.api().get(&path).await.expect(200).json();
    let draft = json!({"source": shown["source"], "payload": {"id": "name", "revision": {"field": "rev"}}});
    flare.api().send("PUT", &path, &[], draft.to_string()).await.expect(200);
    let begun = flare.api().post(&format!("{path}/replay"), &json!({"scope": "deadLetters"})).await;
    let location = begun.expect(202).header("location").to_owned();
    flare.restart().await;
    until("it is done", || async {
        let shown = flare.api().get(&location).await.expect(200).json();
        (shown["state"] == "done").then(|| assert_eq!(shown["done"], LETTERS, "{shown}"))
    })
    .await;
    let status = flare.api().get(&format!("{path}/status")).await.expect(200).json();
    assert_eq!(status["deadLetters"], 0, "{status}");
    assert_eq!(flare.api().get("/status").await.expect(200).json()["documents"], LETTERS);
}

#[tokio::test]
async fn what_is_said_again_after_a_kill_is_no_second_dead_letter() {
    if !store_is_durable() {
        return;
    }
    let setup = Setup::default().with("FLARE_DOMAIN_CONSUMER_TRIES", "1");
    let (mut flare, origin) = (setup.start().await, Receiver::start().await);
    origin.answer(|_| page(None, &json!({"orders": [{"id": "a", "rev": 1}]})));
    let path = poll_orders(flare.api(), &origin, json!({}), json!({})).await;
    until_status(flare.api(), &path, "the first is stored", |status| status["accepted"] == 1).await;
    origin.answer(|_| page(None, &json!({"orders": [{"id": "a", "rev": 1}, {"name": "x", "rev": 1}]})));
    until_status(flare.api(), &path, "it is a dead letter", |status| status["deadLetters"] == 1).await;
    flare.restart().await;
    let asked = origin.count();
    origin.wait_for(asked + 3).await;
    let status = flare.api().get(&format!("{path}/status")).await.expect(200).json();
    assert_eq!(status["deadLetters"], 1, "{status}");
}

#[tokio::test]
async fn a_dead_letter_is_kept_for_as_long_as_the_operator_says() {
    let setup = Setup::default()
        .with("FLARE_DOMAIN_CONSUMER_TRIES", "1")
        .with("FLARE_DOMAIN_RETENTION_DEAD_LETTERS", "1s");
    let (flare, origin) = (setup.start().await, Receiver::start().await);
    origin.answer(|request| match request.header("if-none-match") == "\"1\"" {
        true => not_modified(),
        false => page(Some("\"1\""), &json!({"orders": [{"name": "x", "rev": 1}]})),
    });
    let path = poll_orders(flare.api(), &origin, json!({}), json!({})).await;
    let gone = |status: &Value| status["rejected"] == 1 && status["deadLetters"] == 0;
    until_status(flare.api(), &path, "it was kept for long enough", gone).await;
    assert_eq!(flare.count_logged("dead letters were kept for long enough"), 1);
}
