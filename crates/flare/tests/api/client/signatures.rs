//! Signatures by Standard Webhooks: the published library verifies what is sent, and the secret is shown once, kept
//! over a restart, and in no file as it is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Request, Setup, Story, store_is_durable, verify};
use crate::trouble::clocks::{Clock, noticed};

const GIVEN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Subscribes the client at `/told`, and returns the path and the secret that the answer shows.
pub async fn subscribe(story: &Story, mut body: Value) -> (String, String) {
    body["endpoint"] = json!({"url": story.receiver.url("/told")});
    let created = story.api().post(&story.subscriptions(), &body).await.expect(201);
    let secret = created.json()["secret"].as_str().expect("a new subscription shows its secret").to_owned();
    (created.header("location").to_owned(), secret)
}

/// Insists that the published library takes every request with this secret.
#[track_caller]
pub fn assert_verified(requests: &[Request], secret: &str) {
    let pairs: Vec<(&Request, &str)> = requests.iter().map(|request| (request, secret)).collect();
    if let Some(verdicts) = verify(&pairs) {
        assert!(verdicts.iter().all(|verdict| verdict == "verified"), "{verdicts:?}");
    }
}

#[tokio::test]
async fn the_published_library_verifies_every_notification() {
    let story = Story::begin().await;
    let (subscription, secret) = subscribe(&story, json!({})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    story.put(1, 2).await;
    story.settled(&subscription).await;
    story.remove(1).await;
    let requests = story.receiver.wait_for(3).await;
    assert_eq!(requests.iter().map(Request::action).collect::<Vec<_>>(), ["create", "update", "delete"]);
    assert_verified(&requests, &secret);
    let mut forged = requests[0].clone();
    forged.body.push(b' ');
    if let Some(verdicts) = verify(&[(&forged, &secret), (&requests[0], GIVEN)]) {
        assert_eq!(verdicts, ["No matching signature found", "No matching signature found"]);
    }
}

#[tokio::test]
async fn an_empty_body_and_the_documents_own_bytes_are_signed() {
    let story = Story::begin().await;
    let (subscription, secret) = subscribe(&story, json!({"content": {"envelope": false}})).await;
    story.put("é", 1).await;
    story.settled(&subscription).await;
    story.remove("é").await;
    let requests = story.receiver.wait_for(2).await;
    assert_eq!(requests[1].body.len(), 0);
    assert_verified(&requests, &secret);
}

#[tokio::test]
async fn a_secret_that_is_given_signs_and_a_wrong_one_is_refused() {
    let story = Story::begin().await;
    for wrong in [json!("whsec_abc"), json!(1234567), json!("hunter2"), json!({"a": "hunter2"})] {
        let mut body = json!({"endpoint": {"url": story.receiver.url("/told")}});
        body["secret"] = wrong;
        let refused =
            story.api().post(&story.subscriptions(), &body).await.refused(400, &["secret", "whsec_"]);
        let text = String::from_utf8_lossy(&refused.body);
        assert!(!text.contains("hunter2") && !text.contains("1234567"), "{text}");
    }
    let (_, shown) = subscribe(&story, json!({"secret": GIVEN})).await;
    assert_eq!(shown, GIVEN);
    story.put(1, 1).await;
    assert_verified(&story.receiver.wait_for(1).await, GIVEN);
}

#[tokio::test]
async fn a_secret_is_shown_once_and_cannot_be_patched() {
    let setup = Setup::default().with("FLARE_LOG_LEVEL", "trace");
    let story = Story::with(setup, Receiver::start().await).await;
    let (subscription, secret) = subscribe(&story, json!({})).await;
    let api = story.api();
    api.patch(&subscription, &json!({"secret": GIVEN})).await.refused(400, &["secret", "/secret/rotate"]);
    let patched = api.patch(&subscription, &json!({"data": {"a": 1}})).await.expect(200);
    let shown = api.get(&subscription).await.expect(200);
    assert!(shown.json()["secrets"][0]["createdAt"].is_string(), "{}", shown.json());
    story.put(1, 1).await;
    story.settled(&subscription).await;
    let encoded = secret.strip_prefix("whsec_").expect("a secret");
    for answer in [
        patched,
        shown,
        api.get(&story.subscriptions()).await.expect(200),
        api.get(&format!("{subscription}/status")).await.expect(200),
        story.command(&subscription, "pause").await.expect(200),
        story.command(&subscription, "resume").await.expect(200),
    ] {
        assert!(!String::from_utf8_lossy(&answer.body).contains(encoded));
        assert!(answer.json().get("secret").is_none());
    }
    assert!(story.flare.logged("subscription created").is_some());
    assert!(story.flare.logged(encoded).is_none() && story.flare.logged("MfKQ9r8GKYqr").is_none());
}

#[tokio::test]
async fn a_retry_has_the_same_id_and_the_time_of_its_own_attempt() {
    let clock = Clock::new();
    let story = Story::with(clock.setup(), Receiver::answering(|_| Reply::Status(503)).await).await;
    let (subscription, secret) =
        subscribe(&story, json!({"delivery": {"retry": {"interval": "200ms"}}})).await;
    story.put(1, 1).await;
    let first = story.receiver.wait_for(1).await.remove(0);
    clock.jump(120_000);
    noticed(&story, 120_000).await;
    story.receiver.answer(|_| Reply::Status(200));
    story.settled(&subscription).await;
    let last = story.receiver.requests().pop().expect("it came");
    let timestamp = |request: &Request| request.header("webhook-timestamp").parse::<i64>().expect("seconds");
    assert!(timestamp(&last) >= timestamp(&first) + 119, "{} {}", timestamp(&first), timestamp(&last));
    assert_eq!(first.header("webhook-id"), last.header("webhook-id"));
    assert_verified(&[first, last], &secret);
}

/// Every file below a folder, with what is in it.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries =
        std::fs::read_dir(folder).expect("the data is there").map(|entry| entry.expect("an entry").path());
    entries.map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file"))).collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_restart_keeps_the_secret_and_no_file_has_it() {
    if !store_is_durable() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let mut story = Story::with(Setup::default().data(data.path()), Receiver::start().await).await;
    let (subscription, secret) = subscribe(&story, json!({})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    story.flare.restart().await;
    story.put(1, 2).await;
    story.settled(&subscription).await;
    assert_verified(&story.receiver.wait_for(2).await, &secret);
    story.flare.stop().await;
    use base64::Engine as _;
    let encoded = secret.strip_prefix("whsec_").expect("a secret");
    let raw = base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64");
    for (name, bytes) in files(data.path()) {
        assert!(!contains(&bytes, encoded.as_bytes()) && !contains(&bytes, &raw), "the secret is in {name}");
    }
    let key = std::fs::metadata(data.path().join("secret.key")).expect("a key was drawn");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_lost_key_is_said_at_the_start_and_can_be_given_up() {
    if !store_is_durable() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let key = "FLARE_AUTH_SECRET_KEY";
    let former = Setup::default().data(data.path()).with(key, "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=");
    let mut story = Story::with(former, Receiver::start().await).await;
    let (subscription, _) = subscribe(&story, json!({})).await;
    story.flare.stop().await;
    assert!(!data.path().join("secret.key").exists(), "a key that is given is not written");
    let output = Command::new(env!("CARGO_BIN_EXE_flare"))
        .args(["start", "--addr", "127.0.0.1:0", "--data"])
        .arg(data.path())
        .env_clear()
        .output()
        .expect("the binary runs");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.contains("auth.discard-lost-secrets"), "{words}");
    let setup = Setup::default().data(data.path()).with("FLARE_AUTH_DISCARD_LOST_SECRETS", "true");
    story.flare = setup.start().await;
    story.put(1, 1).await;
    assert_eq!(story.receiver.wait_for(1).await[0].header("webhook-signature"), "");
    let rotated = story.command(&subscription, "secret/rotate").await.expect(200).json();
    assert!(rotated.get("formerEndsAt").is_none(), "the lost one does not sign: {rotated}");
    story.flare.stop().await;
    story.flare = Setup::default().data(data.path()).start().await;
    story.put(1, 2).await;
    let requests = story.receiver.wait_for(2).await;
    assert_verified(&requests[1..], rotated["secret"].as_str().expect("a secret"));
}
