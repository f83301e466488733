//! What is kept outlives its operators: backups, what they are restored to, stores that are looked through, keys that are
//! replaced.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::bridge::{page, poll_orders, until_status};
use crate::support::{
    Receiver, Request, Setup, Story, document_url, minimal_resource, store_is_durable, until_true,
};

async fn flare(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command.args(words).env_clear().current_dir(std::env::temp_dir());
    tokio::task::spawn_blocking(move || command.output().expect("the binary runs")).await.unwrap()
}

#[track_caller]
fn insist(output: &Output, code: i32, words: &[&str]) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    for word in words {
        assert!(out.contains(word) || err.contains(word), "`{word}` is not in: {out}{err}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

/// A client that keeps the highest sequence of each document and ignores what is lower, as the guide says.
#[derive(Default)]
struct Careful {
    has: BTreeMap<String, (u64, Option<i64>)>,
}

impl Careful {
    fn hear(&mut self, requests: &[Request]) {
        for request in requests {
            let known = self.has.get(request.document()).map_or(0, |(sequence, _)| *sequence);
            if request.sequence() >= known {
                let state = (request.action() != "delete").then(|| request.revision());
                self.has.insert(request.document().to_owned(), (request.sequence(), state));
            }
        }
    }

    fn state(&self, id: u32) -> Option<i64> {
        self.has.get(&document_url(id)).and_then(|(_, state)| *state)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_brings_every_client_to_what_is_in_it() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, again) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("again/data"));
    let mut story = Story::with(Setup::default().data(&data), Receiver::start().await).await;
    let path = story.subscribe_simply(json!({})).await;
    for id in 1..=4 {
        story.put(id, 10).await;
    }
    story.settled(&path).await;
    insist(
        &flare(&["backup", "--to", text(&copy), "--data", text(&data)]).await,
        0,
        &["is a backup of", "keep it like one"],
    );
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left beside it");
    insist(&flare(&["backup", "--to", text(&copy), "--data", text(&data)]).await, 4, &["is there already"]);
    // What nobody will remember.
    story.put(1, 11).await;
    story.remove(2).await;
    story.put(5, 10).await;
    for revision in 11..30 {
        story.put(3, revision).await;
    }
    story.settled(&path).await;
    assert!(story.flare.stop().await.success());
    let mut client = Careful::default();
    client.hear(&story.receiver.requests());
    assert_eq!((client.state(1), client.state(2), client.state(3)), (Some(11), None, Some(29)));
    let before = story.receiver.count();
    let highest = client.has.values().map(|(sequence, _)| *sequence).max().unwrap();

    insist(
        &flare(&["restore", "--from", text(&copy), "--data", text(&again)]).await,
        0,
        &["is restored from"],
    );
    insist(&flare(&["doctor", "--data", text(&again)]).await, 0, &["is sound"]);
    insist(&flare(&["restore", "--from", text(&copy), "--data", text(&again)]).await, 4, &["is not empty"]);
    let restored = Setup::default().data(&again).start().await;
    until_true("every document is told anew", || story.receiver.count() >= before + 4).await;
    let anew = story.receiver.requests()[before..].to_vec();
    assert!(anew.iter().all(|request| request.sequence() > highest), "no sequence is given out twice");
    assert!(anew.iter().all(|request| !request.header("webhook-signature").is_empty()), "the key came along");
    client.hear(&anew);
    for id in 1..=4 {
        assert_eq!(client.state(id), Some(10), "document {id} is what the store has");
    }
    // And it goes on from there.
    restored.api().put(&document_url(3), &json!({"rev": 12})).await;
    until_true("a new change is told", || story.receiver.count() >= before + 5).await;
    client.hear(&story.receiver.requests());
    assert_eq!(client.state(3), Some(12));
    // A second life of the same copy is another again.
    let third = folder.path().join("third");
    drop(restored);
    let before = story.receiver.count();
    insist(&flare(&["restore", "--from", text(&copy), "--data", text(&third)]).await, 0, &[]);
    let _third = Setup::default().data(&third).start().await;
    until_true("every document is told once more", || story.receiver.count() >= before + 4).await;
    client.hear(&story.receiver.requests());
    assert_eq!(client.state(3), Some(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_encrypted_with_a_key_that_is_given() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (key, other) = (folder.path().join("key"), folder.path().join("other"));
    std::fs::write(&key, STANDARD.encode([1; 32])).unwrap();
    std::fs::write(&other, STANDARD.encode([2; 32])).unwrap();
    let story = Story::with(Setup::default().data(&data), Receiver::start().await).await;
    story.api().put(&document_url(1), &json!({"rev": 1, "name": "a customer of ours"})).await;
    let to = ["backup", "--to", text(&copy), "--data", text(&data)];
    insist(&flare(&[&to[..], &["--key-file", text(&key)]].concat()).await, 0, &["is a backup of"]);
    let bytes = std::fs::read(&copy).unwrap();
    for word in ["customer", "SQLite", "origin.test"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
    }
    let into = folder.path().join("into");
    let from = ["restore", "--from", text(&copy), "--data", text(&into)];
    insist(&flare(&from).await, 4, &["--key-file"]);
    insist(&flare(&[&from[..], &["--key-file", text(&other)]].concat()).await, 4, &["key is another"]);
    assert!(!into.exists(), "nothing is left of what was refused");
    insist(&flare(&[&from[..], &["--key-file", text(&key)]].concat()).await, 0, &["is restored"]);
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    std::fs::write(&copy, damaged).unwrap();
    let into = folder.path().join("damaged");
    let from = ["restore", "--from", text(&copy), "--data", text(&into), "--key-file", text(&key)];
    insist(&flare(&from).await, 4, &["is damaged"]);
    assert!(!into.exists());
    insist(
        &flare(&["restore", "--from", text(&key), "--data", text(&into)]).await,
        4,
        &["not a backup of Flare"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_what_is_wrong_beside_a_node_or_without_one() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut story = Story::with(Setup::default().data(&data), Receiver::start().await).await;
    story.subscribe(json!({"endpoint": {"url": story.receiver.url("/a?key=credential")}})).await;
    for id in 0..50 {
        story.put(id, 1).await;
    }
    let doctor = ["doctor", "--data", text(&data)];
    insist(&flare(&doctor).await, 0, &["is sound"]);
    insist(&flare(&[&doctor[..], &["--output", "json"]].concat()).await, 0, &["\"ok\":true"]);
    assert!(story.flare.stop().await.success());
    insist(&flare(&doctor).await, 0, &["is sound"]);
    let key = data.join("secret.key");
    let (right, mode) = (std::fs::read_to_string(&key).unwrap(), std::fs::Permissions::from_mode(0o644));
    std::fs::set_permissions(&key, mode).unwrap();
    insist(&flare(&doctor).await, 1, &["secret.key", "mode 644"]);
    std::fs::write(&key, STANDARD.encode([1; 32])).unwrap();
    insist(&flare(&doctor).await, 1, &["its secret cannot be opened", "its endpoint cannot be opened"]);
    std::fs::write(&key, right).unwrap();
    let database = data.join("flare.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0x5a);
    std::fs::write(&database, bytes).unwrap();
    let output = flare(&doctor).await;
    assert!(matches!(output.status.code(), Some(1 | 4)), "{}", String::from_utf8_lossy(&output.stdout));
    insist(&flare(&["doctor", "--data", text(&folder.path().join("nowhere"))]).await, 4, &["no database"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_rotated_and_everything_works_as_before() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut story = Story::with(Setup::default().data(&data), Receiver::start().await).await;
    let url = story.receiver.url("/told?token=abcdefgh");
    let body = json!({"endpoint": {"url": url, "headers": {"Authorization": ["Bearer kept"]}}});
    let path = story.subscribe(body.clone()).await;
    let orders = Receiver::start().await;
    let polled = json!({
        "source": {"type": "http.poll", "url": orders.url("/orders?token=abcdefgh"), "interval": "1s",
            "headers": {"Authorization": ["Bearer polled"]}},
        "payload": {"id": "id"},
    });
    story.api().post("/consumers", &polled).await.expect(201);
    story.put(1, 1).await;
    story.settled(&path).await;
    let key = data.join("secret.key");
    let first = std::fs::read_to_string(&key).unwrap();
    let rotate = ["key", "rotate", "--data", text(&data)];
    insist(&flare(&rotate).await, 4, &["another Flare uses the folder"]);
    assert!(story.flare.stop().await.success());
    insist(&flare(&[&rotate[..], &["--output", "json"]].concat()).await, 0, &["\"resealed\":2"]);
    let second = std::fs::read_to_string(&key).unwrap();
    let line = |text: &str| text.lines().next().unwrap().to_owned();
    assert_ne!(line(&first), line(&second));
    assert!(!second.contains(&line(&first)) && !second.contains("former"), "the former key is gone");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    insist(&flare(&["doctor", "--data", text(&data)]).await, 0, &["is sound"]);
    let before = orders.count();
    story.flare.restart().await;
    let asked = orders.wait_for(before + 1).await.remove(before);
    assert_eq!(
        (asked.path.as_str(), asked.header("authorization")),
        ("/orders?token=abcdefgh", "Bearer polled"),
        "what is polled is asked as before"
    );
    story.put(1, 2).await;
    let told = story.receiver.wait_for(2).await;
    assert_eq!(
        (told[1].path.as_str(), told[1].header("authorization")),
        ("/told?token=abcdefgh", "Bearer kept")
    );
    let signatures = [&told[0], &told[1]].map(|request| request.header("webhook-signature").to_owned());
    assert!(signatures.iter().all(|signature| signature.starts_with("v1,")), "{signatures:?}");
    story.api().post(&story.subscriptions(), &body).await.refused(409, &["same url"]);
    // One that was interrupted: both keys are there, and some is sealed with each.
    assert!(story.flare.stop().await.success());
    let third = STANDARD.encode([9; 32]);
    std::fs::write(&key, format!("{third}\nformer {}\n", line(&second))).unwrap();
    story.flare.restart().await;
    story.put(1, 3).await;
    assert_eq!(story.receiver.wait_for(3).await[2].header("authorization"), "Bearer kept");
    assert!(story.flare.stop().await.success());
    insist(&flare(&rotate).await, 0, &["1 subscriptions and 1 consumers"]);
    assert_eq!(
        line(&std::fs::read_to_string(&key).unwrap()),
        third,
        "it goes on with the key it had begun with"
    );
    insist(&flare(&["doctor", "--data", text(&data)]).await, 0, &["is sound"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_polled_with_credentials_is_sealed_anew_with_the_rest() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let origin = Receiver::start().await;
    origin.answer(|_| page(None, &json!({"orders": []})));
    let mut node = Setup::default().data(&data).start().await;
    let headers = json!({"headers": {"Authorization": ["Bearer kept"]}});
    let path = poll_orders(node.api(), &origin, headers, json!({})).await;
    origin.wait_for(1).await;
    assert!(node.stop().await.success());
    let sealed_anew = "0 subscriptions and 1 consumers are sealed anew";
    insist(&flare(&["key", "rotate", "--data", text(&data)]).await, 0, &[sealed_anew]);
    let doctor = ["doctor", "--data", text(&data)];
    insist(&flare(&doctor).await, 0, &["is sound"]);
    node.restart().await;
    let asked = origin.count();
    let told = origin.wait_for(asked + 1).await;
    assert_eq!(told[asked].header("authorization"), "Bearer kept");

    // The key is lost: that is said, and nothing is asked with the word that stands for what is gone.
    assert!(node.stop().await.success());
    std::fs::write(data.join("secret.key"), STANDARD.encode([1; 32])).unwrap();
    insist(&flare(&doctor).await, 1, &["consumer con_", "its source cannot be opened"]);
    let start = ["start", "--addr", "127.0.0.1:0", "--data", text(&data)];
    insist(&flare(&start).await, 4, &["consumer con_", "put the former key back"]);
    let asked = origin.count();
    let lost = Setup::default().data(&data).with("FLARE_AUTH_DISCARD_LOST_SECRETS", "true").start().await;
    let status = until_status(lost.api(), &path, "it is not read", |status| status["status"] == "disabled");
    assert!(status.await["reason"].as_str().expect("why").contains("credentials are lost"));
    let again = json!({
        "source": {
            "type": "http.poll", "url": origin.url("/orders"), "interval": "1s", "items": "orders",
            "headers": {"Authorization": ["[redacted]"]},
        },
        "payload": {"id": "id", "revision": {"field": "rev"}},
    });
    lost.api().send("PUT", &path, &[], again.to_string()).await.refused(400, &["none is"]);
    let again = again.to_string().replace("[redacted]", "Bearer new");
    lost.api().send("PUT", &path, &[], again).await.expect(200);
    let told = origin.wait_for(asked + 1).await;
    assert_eq!(told[asked].header("authorization"), "Bearer new", "nothing was asked before");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_finds_what_a_node_could_not_read() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut node = Setup::default().guarded().data(&data).start().await;
    let operator = node.operator();
    operator.post("/accounts", &json!({"name": "acme"})).await.expect(201);
    operator.post("/tokens", &json!({"name": "shop", "scopes": ["read"]})).await.expect(201);
    operator.post("/resources", &minimal_resource()).await.expect(201);
    assert!(node.stop().await.success());
    let doctor = ["doctor", "--data", text(&data)];
    insist(&flare(&doctor).await, 0, &["is sound"]);
    let database = rusqlite::Connection::open(data.join("flare.db")).unwrap();
    for kind in ["account", "token", "resource"] {
        let body: String = database
            .query_row("SELECT body FROM entities WHERE kind = ?1", [kind], |row| row.get(0))
            .unwrap();
        let write = "UPDATE entities SET body = ?2 WHERE kind = ?1";
        database.execute(write, (kind, "{\"of\":")).unwrap();
        insist(&flare(&doctor).await, 1, &[&format!("{kind} "), "cannot be read"]);
        database.execute(write, (kind, body)).unwrap();
    }
    drop(database);
    insist(&flare(&doctor).await, 0, &["is sound"]);
}
