//! Rotation of secrets: both sign until the former ends, then only the new one; never three.

use serde_json::{Value, json};

use crate::client::signatures::{assert_verified, subscribe};
use crate::support::{Flare, Receiver, Request, Setup, Story, store_is_durable};
use crate::trouble::clocks::{Clock, noticed};

const GIVEN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn rotate(story: &Story, subscription: &str, body: Value) -> Value {
    story.api().post(&format!("{subscription}/secret/rotate"), &body).await.expect(200).json()
}

fn secret(rotation: &Value) -> String {
    rotation["secret"].as_str().expect("a rotation shows the secret").to_owned()
}

fn signatures(request: &Request) -> usize {
    request.header("webhook-signature").split(' ').count()
}

/// PUTs a revision and returns the notification of it.
async fn told(story: &Story, revision: i64) -> Request {
    let before = story.receiver.count();
    story.put(1, revision).await;
    story.receiver.wait_for(before + 1).await.pop().expect("it came")
}

#[tokio::test]
async fn two_secrets_sign_until_the_former_ends() {
    let clock = Clock::new();
    let story = Story::with(clock.setup(), Receiver::start().await).await;
    let (subscription, former) = subscribe(&story, json!({})).await;
    let rotation = rotate(&story, &subscription, json!({"overlap": "2m"})).await;
    let new = secret(&rotation);
    assert_ne!(former, new);
    let request = told(&story, 1).await;
    assert_eq!(signatures(&request), 2);
    assert_verified(std::slice::from_ref(&request), &former);
    assert_verified(&[request], &new);
    let shown = story.api().get(&subscription).await.expect(200).json();
    assert_eq!(shown["secrets"][0]["endsAt"], rotation["formerEndsAt"]);
    assert_eq!((shown["secrets"].as_array().unwrap().len(), shown["secrets"][1].get("endsAt")), (2, None));
    clock.jump(130_000);
    noticed(&story, 130_000).await;
    let request = told(&story, 2).await;
    assert_eq!(signatures(&request), 1);
    assert_verified(&[request], &new);
    let shown = story.api().get(&subscription).await.expect(200).json();
    assert_eq!(shown["secrets"].as_array().unwrap().len(), 1, "{shown}");
}

#[tokio::test]
async fn a_rotation_within_the_overlap_ends_the_oldest_at_once() {
    let story = Story::begin().await;
    let (subscription, _) = subscribe(&story, json!({})).await;
    let second = secret(&rotate(&story, &subscription, json!({})).await);
    let third = secret(&rotate(&story, &subscription, json!({})).await);
    let request = told(&story, 1).await;
    assert_eq!(signatures(&request), 2);
    assert_verified(std::slice::from_ref(&request), &second);
    assert_verified(&[request], &third);
    let fourth = rotate(&story, &subscription, json!({"overlap": "0s"})).await;
    assert!(fourth.get("formerEndsAt").is_none(), "{fourth}");
    let request = told(&story, 2).await;
    assert_eq!(signatures(&request), 1);
    assert_verified(&[request], &secret(&fourth));
}

#[tokio::test]
async fn a_rotation_to_a_given_secret_can_be_repeated() {
    let story = Story::begin().await;
    let (subscription, former) = subscribe(&story, json!({})).await;
    let first = rotate(&story, &subscription, json!({"secret": GIVEN})).await;
    let again = rotate(&story, &subscription, json!({"secret": GIVEN})).await;
    assert_eq!((&first, secret(&again).as_str()), (&again, GIVEN));
    let request = told(&story, 1).await;
    assert_verified(std::slice::from_ref(&request), &former);
    assert_verified(&[request], GIVEN);
}

#[tokio::test]
async fn what_is_wrong_with_a_rotation_is_said() {
    let story = Story::begin().await;
    let (subscription, former) = subscribe(&story, json!({})).await;
    rotate(&story, &subscription, json!({})).await;
    let path = format!("{subscription}/secret/rotate");
    let api = story.api();
    for (body, words) in [
        (json!({"overlap": "169h"}), ["overlap", "168h"]),
        (json!({"overlap": "soon"}), ["overlap", "soon"]),
        (json!({"secret": "hunter2"}), ["secret", "whsec_"]),
        (json!({"secret": former}), ["secret", "being replaced"]),
        (json!({"nonsense": 1}), ["nonsense", "overlap"]),
    ] {
        api.post(&path, &body).await.refused(400, &words);
    }
    let elsewhere = path.replace("/subscriptions/sub_", "/subscriptions/sub_x");
    api.post(&elsewhere, &json!({})).await.refused(404, &["subscription"]);
    api.get(&path).await.refused(405, &["GET"]);
}

/// Takes the secrets out of the catalog, as if an earlier version had written it.
fn forget_secrets(data: &std::path::Path) {
    let script = "import json, sqlite3, sys\n\
        db = sqlite3.connect(sys.argv[1])\n\
        for number, body in db.execute(\"SELECT number, body FROM entities WHERE kind = 'subscription'\").fetchall():\n\
        \x20   stored = json.loads(body)\n\
        \x20   del stored['secrets']\n\
        \x20   db.execute(\"UPDATE entities SET body = ? WHERE kind = 'subscription' AND number = ?\", (json.dumps(stored), number))\n\
        db.commit()\n";
    let done = std::process::Command::new("python3").args(["-c", script]).arg(data.join("flare.db")).status();
    assert!(done.expect("there is a python3").success());
}

#[tokio::test]
async fn a_subscription_of_an_earlier_version_is_unsigned_until_it_is_rotated() {
    if !store_is_durable() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let setup = Setup::default().data(data.path());
    let mut story = Story::with(setup.clone(), Receiver::start().await).await;
    let (subscription, _) = subscribe(&story, json!({})).await;
    story.flare.stop().await;
    forget_secrets(data.path());
    story.flare = setup.start().await;
    let request = told(&story, 1).await;
    assert_eq!(request.header("webhook-signature"), "");
    assert_eq!(story.api().get(&subscription).await.expect(200).json()["secrets"], json!([]));
    let rotation = rotate(&story, &subscription, json!({})).await;
    let request = told(&story, 2).await;
    assert_verified(&[request], &secret(&rotation));
}

#[tokio::test]
async fn the_longest_overlap_is_configurable() {
    let flare: Flare = Setup::default()
        .with("FLARE_AUTH_SECRET_OVERLAP", "1m")
        .with("FLARE_AUTH_MAXIMUM_SECRET_OVERLAP", "1m")
        .start()
        .await;
    let receiver = Receiver::start().await;
    let api = flare.api();
    let resource = api.post("/resources", &crate::support::minimal_resource()).await.expect(201).json();
    let subscriptions = format!("/resources/{}/subscriptions", resource["id"].as_str().unwrap());
    let created =
        api.post(&subscriptions, &json!({"endpoint": {"url": receiver.url("/")}})).await.expect(201);
    let path = format!("{}/secret/rotate", created.header("location"));
    api.post(&path, &json!({"overlap": "61s"})).await.refused(400, &["overlap", "1m"]);
    let rotated = api.post(&path, &json!({})).await.expect(200).json();
    assert!(rotated["formerEndsAt"].is_string(), "{rotated}");
}
