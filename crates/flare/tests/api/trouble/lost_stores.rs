//! A store that is brought to its shape by several at once, that vanishes under a node, or that is not the one its key
//! belongs to; and a supervisor that is told how the node is.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use crate::support::{PATIENCE, Receiver, Setup, Story, document_url, store_is_durable, until};

fn flare(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command.args(words).current_dir(std::env::temp_dir()).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

#[track_caller]
fn insist(output: &Output, code: i32, words: &[&str]) {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

#[test]
fn migrations_from_several_places_at_once_are_applied_once_and_all_succeed() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = || flare(&["migrate", "up", "--data", text(&data)]).spawn().expect("the binary runs");
    let all: Vec<_> = (0..6).map(|_| start()).collect();
    for child in all {
        insist(&child.wait_with_output().expect("it ends"), 0, &[]);
    }
    insist(&flare(&["migrate", "status", "--data", text(&data)]).output().unwrap(), 0, &["applied"]);
}

#[tokio::test]
async fn migrate_up_beside_a_running_node_finds_nothing_to_do() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = Setup::default().data(folder.path()).start().await;
    insist(&flare(&["migrate", "up", "--data", text(folder.path())]).output().unwrap(), 0, &[]);
    running.api().get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_data_directory_that_vanished_ends_the_node_at_the_next_commit() {
    if !store_is_durable() {
        return;
    }
    for replaced in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let setup = Setup::default().data(&data);
        let mut story = Story::with(setup, Receiver::start().await).await;
        story.put(1, 1).await;
        std::fs::rename(&data, folder.path().join("elsewhere")).unwrap();
        if replaced {
            std::fs::create_dir(&data).unwrap();
            std::fs::write(data.join("flare.db"), "").unwrap();
        }
        let put = format!("/documents/{}", document_url(1));
        let answer = story.api().try_send("PUT", &put, &[], r#"{"rev":2}"#).await;
        assert!(!answer.is_ok_and(|answer| answer.status == 202), "what nobody will find is not accepted");
        assert_eq!(story.flare.ended().await.code(), Some(4));
        assert!(story.flare.logged("removed, moved or replaced").is_some());
    }
}

#[tokio::test]
async fn an_empty_store_beside_a_key_that_sealed_something_is_refused() {
    if !store_is_durable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::default().data(folder.path());
    let mut story = Story::with(setup.clone(), Receiver::start().await).await;
    story.flare.restart().await;
    story.subscribe_simply(json!({})).await;
    story.flare.stop().await;
    for file in ["flare.db", "flare.db-wal", "flare.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(file));
    }
    let words = ["start", "--addr", "127.0.0.1:0", "--data", text(folder.path())];
    let mut refused = flare(&words).spawn().expect("the binary runs");
    let ended = || std::future::ready(refused.try_wait().expect("a child can be asked"));
    until("it is refused", ended).await;
    insist(&refused.wait_with_output().unwrap(), 4, &["secret.key", "restore", "remove the key"]);
    assert!(!folder.path().join("flare.db").exists(), "nothing was created there");
    std::fs::remove_file(folder.path().join("secret.key")).unwrap();
    setup.start().await.api().get("/readyz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_is_told_that_the_node_is_ready_lives_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let setup = Setup::default().with("NOTIFY_SOCKET", text(&path)).with("WATCHDOG_USEC", "100000");
    let mut flare = setup.start().await;
    let heard = move || {
        let mut words = [0; 64];
        let length = socket.recv(&mut words).expect("the supervisor is told");
        String::from_utf8_lossy(&words[..length]).into_owned()
    };
    assert_eq!(heard(), "READY=1");
    assert_eq!([heard(), heard()], ["WATCHDOG=1", "WATCHDOG=1"]);
    // Read meanwhile: a socket that nobody reads takes few words, and drops what comes after them.
    let rest = std::thread::spawn(move || {
        std::iter::repeat_with(heard).take_while(|words| words != "STOPPING=1").collect::<Vec<String>>()
    });
    assert_eq!(flare.stop().await.code(), Some(0));
    let rest = rest.join().expect("the end is told");
    assert!(rest.iter().all(|words| words == "WATCHDOG=1"), "{rest:?}");
}
