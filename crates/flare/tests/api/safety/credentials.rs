//! Credentials that are planted wherever one can be given: clients get them, and nobody else ever does.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{
    Receiver, Reply, Setup, Story, document_url, minimal_resource, store_is_durable, until_true,
};

/// All that is planted has this in it.
const PLANTED: &str = "planted-secret";

/// Everything in a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file"))).collect()
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[track_caller]
fn nowhere_in(files: &[(String, Vec<u8>)], word: &str) {
    for (name, bytes) in files {
        assert!(!has(bytes, word), "{name} has {word}");
    }
}

fn planted_endpoint(receiver: &Receiver) -> Value {
    json!({
        "url": receiver.url("/told?token=planted-secret-1&page=2"),
        "headers": {"Authorization": ["Bearer planted-secret-2"], "X-Plain": ["seen"]},
        "actions": {"delete": {
            "url": receiver.url("/gone?api_key=planted-secret-3"), "headers": {"X-Api-Key": ["planted-secret-4"]},
        }},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_planted_reaches_its_client_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // A client that answers with what it was sent, as many do.
    let receiver = Receiver::answering(|request| {
        let echo = format!("{} {:?}", request.path, request.header("authorization"));
        let headers = vec![("x-echo", request.header("authorization").to_owned())];
        Reply::Full { status: 500, headers, body: echo }
    })
    .await;
    let signing = format!("whsec_{}", STANDARD.encode("planted-secret-of-a-signature-5"));
    let setup = Setup::default()
        .data(&data)
        .with("FLARE_LOG_LEVEL", "trace")
        .with("FLARE_AUTH_OPERATOR_TOKEN", "planted-secret-6-that-is-long-enough")
        .with("FLARE_NOTIFY_URL", &receiver.url("/notify?key=planted-secret-7"))
        .with("FLARE_DELIVERY_FAILING_AFTER", "10ms")
        .with("FLARE_DELIVERY_ATTEMPTS_SAMPLE", "1");
    let story = Story::with(setup, receiver).await;
    let api = story.api();
    let body = json!({
        "endpoint": planted_endpoint(&story.receiver), "secret": signing,
        "delivery": {"retry": {"quantity": 1}},
    });
    let created = api.post(&story.subscriptions(), &body).await.expect(201);
    let path = created.header("location").to_owned();
    assert_eq!(created.json()["endpoint"]["headers"]["Authorization"], json!(["[redacted]"]));
    story.put(1, 1).await;
    let told = story.receiver.wait_for(1).await;
    assert!(told[0].path.contains("token=planted-secret-1"), "{}", told[0].path);
    assert_eq!(told[0].header("authorization"), "Bearer planted-secret-2");
    story.until_status(&path, "it is given up", |status| status["feed"]["deadLetters"] == 1).await;
    let id = path.rsplit('/').next().unwrap();
    let mut answers = Vec::new();
    for asked in [
        path.clone(),
        format!("{path}/status"),
        format!("{path}/attempts"),
        format!("{path}/dead-letters"),
        format!("{path}/documents"),
        story.subscriptions(),
        "/subscriptions".to_owned(),
        format!("/subscriptions/{id}"),
        format!("/explain?document={}&subscription={id}", document_url(1)),
        "/metrics".to_owned(),
        "/openapi.json".to_owned(),
        "/resources".to_owned(),
        "/ui".to_owned(),
        "/ui/settings".to_owned(),
        "/ui/subscriptions".to_owned(),
        format!("/ui/subscriptions/{id}"),
        format!("/ui/subscriptions/{id}/edit"),
        format!("/ui/subscriptions/{id}/edit?view=json"),
        format!("/ui/subscriptions/{id}/attempts"),
        format!("/ui/subscriptions/{id}/dead-letters"),
    ] {
        let answer = api.get(&asked).await;
        assert!(answer.status == 200, "{asked}: {}", answer.status);
        answers.push((asked, answer.body.to_vec()));
    }
    let attempts = api.get(&format!("{path}/attempts")).await.json();
    let attempt = attempts["attempts"][0]["id"].as_str().expect("an attempt").to_owned();
    let whole = api.get(&format!("{path}/attempts/{attempt}")).await.expect(200);
    assert!(has(&whole.body, "token=[redacted]") && has(&whole.body, "seen"), "{}", whole.json());
    answers.push(("an attempt".to_owned(), whole.body.to_vec()));
    let tried = api.post(&format!("{path}/test"), &json!({})).await.expect(200);
    answers.push(("a test".to_owned(), tried.body.to_vec()));
    let search = api.get("/ui/subscriptions?q=told").await.expect(200);
    assert!(has(&search.body, id), "it is found by what everybody may know");
    let search = api.get(&format!("/ui/subscriptions?q={PLANTED}")).await.expect(200);
    assert!(!has(&search.body, id), "nobody guesses a credential by searching for it");
    for (name, bytes) in &answers {
        assert!(!has(bytes, PLANTED), "{name}: {}", String::from_utf8_lossy(bytes));
    }
    // It goes on failing, which is told where a credential leads as well.
    for id in 2..6 {
        story.put(id, 1).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until_true("the operator is told", || {
        story.receiver.requests().iter().any(|request| request.path.contains("planted-secret-7"))
    })
    .await;
    assert_eq!(story.flare.logged(PLANTED), None, "not in the log, however much of it there is");
    if store_is_durable() {
        nowhere_in(&contents(&data), PLANTED);
        let copy = folder.path().join("copy");
        let backup = flare(&["backup", "--to", copy.to_str().unwrap(), "--data", data.to_str().unwrap()]);
        assert!(backup.status.success(), "{}", String::from_utf8_lossy(&backup.stderr));
        nowhere_in(&[("the backup".to_owned(), std::fs::read(&copy).unwrap())], PLANTED);
    }
    let shown = Command::new(env!("CARGO_BIN_EXE_flare"))
        .args(["config", "show"])
        .env_clear()
        .env("FLARE_NOTIFY_URL", "https://hooks.test/a?key=planted-secret-7")
        .env("FLARE_AUTH_OPERATOR_TOKEN", "planted-secret-6-that-is-long-enough")
        .env("FLARE_AUTH_SECRET_KEY", STANDARD.encode("planted-secret-8-of-32-bytes-...").as_str())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        shown.status.success() && !has(&shown.stdout, PLANTED),
        "{}",
        String::from_utf8_lossy(&shown.stdout)
    );
}

fn flare(words: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_flare")).args(words).env_clear().output().expect("the binary runs")
}

#[tokio::test]
async fn what_is_read_changed_and_written_back_keeps_its_credentials() {
    let story = Story::begin().await;
    let api = story.api();
    let path = story.subscribe(json!({"endpoint": planted_endpoint(&story.receiver)})).await;
    let mut read = api.get(&path).await.expect(200).json();
    assert_eq!(read["endpoint"]["url"], story.receiver.url("/told?token=[redacted]&page=2"));
    assert_eq!(read["endpoint"]["actions"]["delete"]["headers"]["X-Api-Key"], json!(["[redacted]"]));
    read["endpoint"]["headers"]["X-Plain"] = json!(["other"]);
    let patch = json!({"endpoint": read["endpoint"], "delivery": {"concurrency": 3}});
    api.patch(&path, &patch).await.expect(200);
    story.put(1, 1).await;
    let told = story.receiver.wait_for(1).await;
    assert_eq!(told[0].path, "/told?token=planted-secret-1&page=2");
    assert_eq!(
        (told[0].header("authorization"), told[0].header("x-plain")),
        ("Bearer planted-secret-2", "other")
    );
    story.remove(1).await;
    let told = story.receiver.wait_for(2).await;
    assert_eq!(
        (told[1].path.as_str(), told[1].header("x-api-key")),
        ("/gone?api_key=planted-secret-3", "planted-secret-4")
    );
    api.patch(&path, &json!({"endpoint": {"headers": {"Authorization": ["Bearer another"]}}}))
        .await
        .expect(200);
    story.put(1, 2).await;
    assert_eq!(story.receiver.wait_for(3).await[2].header("authorization"), "Bearer another");
    // The word for a credential is none, and one for another place is not sent there.
    let elsewhere = json!({"endpoint": {"url": "http://127.0.0.1:1/told?token=[redacted]"}});
    api.patch(&path, &elsewhere).await.refused(400, &["endpoint.url", "write the value"]);
    let unknown = json!({"endpoint": {"headers": {"X-Other-Token": ["[redacted]"]}}});
    api.patch(&path, &unknown).await.refused(400, &["endpoint.headers.X-Other-Token", "write it"]);
    let new = json!({"endpoint": {"url": story.receiver.url("/new?token=[redacted]")}});
    api.post(&story.subscriptions(), &new).await.refused(400, &["endpoint.url", "write it"]);
    // Two urls that differ in their credential alone are two; the same one again is not.
    let same = json!({"endpoint": {"url": story.receiver.url("/told?token=planted-secret-1&page=2")}});
    api.post(&story.subscriptions(), &same).await.refused(409, &["same url"]);
    let other = json!({"endpoint": {"url": story.receiver.url("/told?token=planted-secret-9&page=2")}});
    api.post(&story.subscriptions(), &other).await.expect(201);
}

#[tokio::test]
async fn a_store_of_an_earlier_version_is_sealed_on_the_way() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/safety/stores");
    for name in ["flare.db", "secret.key"] {
        std::fs::copy(kept.join(format!("0.1.0-{name}")), data.join(name)).unwrap();
    }
    assert!(
        has(&std::fs::read(data.join("flare.db")).unwrap(), "planted-in-a-header"),
        "it is there, for all to read"
    );
    let mut flare = Setup::default().data(&data).start().await;
    assert_eq!(flare.count_logged("are sealed"), 2);
    assert_eq!(flare.count_logged("now only its owner can"), 1);
    let api = flare.api();
    let first = api.get("/subscriptions").await.expect(200).json()["subscriptions"][0].clone();
    let list = format!("/resources/{}/subscriptions", first["resource"].as_str().unwrap());
    let all = api.get(&list).await.expect(200).json();
    let of = |number: usize| all["subscriptions"][number]["endpoint"].clone();
    assert_eq!(of(0)["url"], "http://127.0.0.1:9/hook?token=[redacted]&page=2");
    assert_eq!(of(1)["actions"]["delete"]["headers"]["X-Api-Key"], json!(["[redacted]"]));
    assert_eq!(of(2)["headers"]["X-Plain"], json!(["seen"]));
    assert!(flare.stop().await.success());
    nowhere_in(&contents(&data), "planted");
    flare.restart().await;
    assert_eq!(flare.count_logged("are sealed"), 0, "once is enough");
    let path = format!("{list}/{}", first["id"].as_str().unwrap());
    // It is what it was: told at another place, it is what was kept that is sent.
    let receiver = Receiver::start().await;
    let patch = json!({"endpoint": {"url": receiver.url("/moved")}, "mode": "active"});
    flare.api().patch(&path, &patch).await.expect(200);
    flare.api().post(&format!("{path}/test"), &json!({})).await.expect(200);
    assert_eq!(receiver.wait_for(1).await[0].header("authorization"), "Bearer planted-in-a-header");
}

#[tokio::test]
async fn credentials_whose_key_is_lost_are_not_sent_as_something_else() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::default().data(folder.path()).with("FLARE_AUTH_DISCARD_LOST_SECRETS", "true");
    let mut story = Story::with(setup, Receiver::start().await).await;
    let path = story.subscribe(json!({"endpoint": planted_endpoint(&story.receiver)})).await;
    assert!(story.flare.stop().await.success());
    std::fs::remove_file(folder.path().join("secret.key")).unwrap();
    story.flare.restart().await;
    let status = story.status(&path).await;
    assert_eq!(status["status"], "disabled");
    assert!(status["reason"].as_str().unwrap().contains("credentials are lost"), "{status}");
    story.command(&path, "resume").await.refused(400, &["[redacted]", "write it"]);
    let endpoint = json!({"endpoint": planted_endpoint(&story.receiver)});
    story.api().patch(&path, &endpoint).await.expect(200);
    story.command(&path, "resume").await;
    story.put(1, 1).await;
    assert_eq!(story.receiver.wait_for(1).await[0].header("authorization"), "Bearer planted-secret-2");
}

#[tokio::test]
async fn a_resource_is_nobodys_credential() {
    let story = Story::begin().await;
    let mut resource = minimal_resource();
    resource["endpoint"] = json!("http://origin.test/keys/{token}");
    story.api().post("/resources", &resource).await.expect(201);
}
