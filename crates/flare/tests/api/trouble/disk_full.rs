//! A disk that is full: origins are told to come again, nothing accepted is lost, and when there is room it goes on.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::{
    Gate, Receiver, Reply, Setup, Story, document_url, left_out, store_is_durable, until, until_true,
};

/// A small disk of memory, gone when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where mounting is not permitted.
    fn mount() -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(directory.path());
        let mounted = command.output().is_ok_and(|output| output.status.success());
        mounted.then_some(SmallDisk(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the process may still be ending.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// PUTs a large document; its revision when it was accepted, `None` when there is no room.
async fn put(story: &Story, id: usize, revision: i64) -> Option<i64> {
    let document = json!({"rev": revision, "filling": "x".repeat(100_000)}).to_string();
    let answer = story.api().send("PUT", &format!("/documents/{}", document_url(id)), &[], document).await;
    match answer.status.as_u16() {
        202 => Some(revision),
        503 => {
            assert!(!answer.header("retry-after").is_empty(), "{answer:?}");
            assert!(answer.json()["error"]["detail"].is_string());
            None
        }
        _ => panic!("{answer:?}"),
    }
}

async fn insist_on_all(story: &Story, accepted: &HashMap<usize, i64>) {
    for (id, revision) in accepted {
        let shown = story.api().get(&format!("/documents/{}", document_url(id))).await.expect(200).json();
        assert_eq!(shown["revision"], *revision, "{id}");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_what_it_cannot_keep_and_keeps_what_it_took() {
    if !store_is_durable() {
        return;
    }
    let Some(disk) = SmallDisk::mount() else {
        return left_out("a full disk: mounting a tmpfs is not permitted here");
    };
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![0; 3 << 20]).unwrap();
    let receiver = Receiver::start().await;
    let setup = Setup::default()
        .data(&disk.path().join("data"))
        .with("FLARE_PROVIDER_EMBEDDED_CHECKPOINT_BYTES", "1MB")
        .with("FLARE_HTTP_SERVER_BODY_LIMIT", "200KB");
    let mut story = Story::with(setup, receiver).await;
    let subscription = story.subscribe_simply(json!({})).await;
    let mut accepted = HashMap::new();
    let mut refused = 0;
    for id in 0..200 {
        match put(&story, id, 1).await {
            Some(revision) => drop(accepted.insert(id, revision)),
            None => refused += 1,
        }
        if refused == 10 {
            break;
        }
    }
    assert_eq!(refused, 10, "8 MB hold no 200 documents of 100 KB");
    assert!(accepted.len() >= 5, "{}", accepted.len());
    insist_on_all(&story, &accepted).await;

    std::fs::remove_file(&filler).unwrap();
    for id in 1000..1003 {
        until("there is room again", || put(&story, id, 1)).await;
        accepted.insert(id, 1);
    }
    let status = story.settled(&subscription).await;
    assert_eq!(
        (&status["delivered"], &status["feed"]["held"]),
        (&accepted.len().into(), &accepted.len().into())
    );
    insist_on_all(&story, &accepted).await;

    story.flare.restart().await;
    insist_on_all(&story, &accepted).await;
    assert_eq!(story.status(&subscription).await["feed"]["held"], accepted.len());
    let sent = story.receiver.count();
    story.put(0, 2).await;
    assert_eq!(story.receiver.wait_for(sent + 1).await.pop().unwrap().action(), "update");
}

#[tokio::test]
async fn a_node_that_refuses_documents_is_not_ready_and_logs_them_by_number() {
    if !store_is_durable() {
        return;
    }
    let Some(disk) = SmallDisk::mount() else {
        return left_out("a full disk: mounting a tmpfs is not permitted here");
    };
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![0; 3 << 20]).unwrap();
    let setup = Setup::default()
        .data(&disk.path().join("data"))
        .with("FLARE_PROVIDER_EMBEDDED_CHECKPOINT_BYTES", "1MB")
        .with("FLARE_HTTP_SERVER_BODY_LIMIT", "200KB");
    let story = Story::with(setup, Receiver::start().await).await;
    story.api().get("/readyz").await.expect(200);
    let mut refused = 0;
    for id in 0..200 {
        refused += usize::from(put(&story, id, 1).await.is_none());
        if refused == 10 {
            break;
        }
    }
    let told = story.api().get("/readyz").await;
    assert!(!told.header("retry-after").is_empty());
    told.refused(503, &["takes no documents"]);
    story.api().get("/healthz").await.expect(200);
    let logged = async |line: &str| until("it is logged", || async { story.flare.logged(line) }).await;
    let line = logged("the store takes no documents").await;
    assert!(line.contains("\"refused\":1") && line.contains("the disk is full"), "{line}");
    assert_eq!(story.flare.count_logged("the store takes no documents"), 1, "once a minute");
    std::fs::remove_file(&filler).unwrap();
    until("there is room again", || put(&story, 1000, 1)).await;
    story.api().get("/readyz").await.expect(200);
    // Whichever was written first, what an origin said or what the node tried.
    let again = || {
        ["documents", "writes"]
            .iter()
            .find_map(|what| story.flare.logged(&format!("the store takes {what} again")))
    };
    let line = until("it is logged", || async { again() }).await;
    assert!(line.contains("\"refused\":"), "{line}");
}

#[tokio::test]
async fn a_node_is_not_ready_while_nothing_can_be_written_and_finds_out_by_itself_when_it_can() {
    if !store_is_durable() {
        return;
    }
    let Some(disk) = SmallDisk::mount() else {
        return left_out("a full disk: mounting a tmpfs is not permitted here");
    };
    let setup = Setup::default().data(&disk.path().join("data"));
    let gate = Gate::closed();
    let held = gate.clone();
    let receiver = Receiver::answering(move |_| held.then(Reply::Status(200))).await;
    let story = Story::with(setup, receiver).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    until_true("it is told", || story.receiver.in_flight() == 1).await;
    let filler = disk.path().join("filler");
    fill(&filler);
    // No origin says anything. What cannot be written is that the client has it.
    gate.open();
    let not_ready = async || (story.api().get("/readyz").await.status == 503).then_some(());
    until("the record is refused", not_ready).await;
    // Nor is it ready a while later, though nobody tried anything but the node itself.
    for _ in 0..12 {
        assert_eq!(story.api().get("/readyz").await.status, 503);
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    std::fs::remove_file(&filler).unwrap();
    until("it is ready", || async { (story.api().get("/readyz").await.status == 200).then_some(()) }).await;
    story.settled(&subscription).await;
}

#[tokio::test]
async fn a_process_killed_on_a_full_disk_opens_again_with_all_it_took() {
    if !store_is_durable() {
        return;
    }
    let Some(disk) = SmallDisk::mount() else {
        return left_out("a full disk: mounting a tmpfs is not permitted here");
    };
    let setup = Setup::default()
        .data(&disk.path().join("data"))
        .with("FLARE_PROVIDER_EMBEDDED_CHECKPOINT_BYTES", "1MB")
        .with("FLARE_HTTP_SERVER_BODY_LIMIT", "200KB");
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![0; 2 << 20]).unwrap();
    let mut story = Story::with(setup, Receiver::start().await).await;
    let mut accepted = HashMap::new();
    let mut refused = 0;
    for id in 0..200 {
        match put(&story, id, 1).await {
            Some(revision) => drop(accepted.insert(id, revision)),
            None => refused += 1,
        }
        if refused == 3 {
            break;
        }
    }
    story.flare.kill();
    std::fs::remove_file(&filler).unwrap();
    story.flare.restart().await;
    insist_on_all(&story, &accepted).await;
    until("there is room again", || put(&story, 1000, 1)).await;
}

/// Writes until there is not a byte left.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).expect("a file");
    for size in [64 << 10, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test]
async fn starting_on_a_full_disk_serves_reads_and_delivers_when_there_is_room() {
    if !store_is_durable() {
        return;
    }
    for stop in [true, false] {
        let Some(disk) = SmallDisk::mount() else {
            return left_out("a full disk: mounting a tmpfs is not permitted here");
        };
        let setup = Setup::default()
            .data(&disk.path().join("data"))
            .with("FLARE_PROVIDER_EMBEDDED_CHECKPOINT_BYTES", "1MB")
            .with("FLARE_HTTP_SERVER_BODY_LIMIT", "200KB");
        let mut story = Story::with(setup, Receiver::start().await).await;
        let subscription = story.subscribe_simply(json!({})).await;
        story.put(1, 1).await;
        story.settled(&subscription).await;
        story.command(&subscription, "pause").await.expect(200);
        story.put(2, 1).await;
        if stop {
            assert!(story.flare.stop().await.success());
        } else {
            story.flare.kill();
        }
        let filler = disk.path().join("filler");
        fill(&filler);
        story.flare.restart().await;
        let api = story.api();
        for id in [1, 2] {
            let shown = api.get(&format!("/documents/{}", document_url(id))).await.expect(200).json();
            assert_eq!(shown["revision"], 1);
        }
        api.get(&format!("/resources/{}", story.resource)).await.expect(200);
        assert_eq!(
            api.get(&subscription).await.expect(200).json()["id"],
            subscription.rsplit('/').next().unwrap()
        );
        assert_eq!(api.get(&story.subscriptions()).await.expect(200).json()["pagination"]["total"], 1);
        api.get("/healthz").await.expect(200);
        let told = api.get("/readyz").await;
        assert!(!told.header("retry-after").is_empty());
        told.refused(503, &["takes no writes", "read"]);
        api.get(&format!("{subscription}/status")).await.refused(503, &["takes no writes"]);
        assert_eq!(put(&story, 3, 1).await, None, "there is no room");
        api.post(&story.subscriptions(), &json!({"endpoint": {"url": story.receiver.url("/x")}}))
            .await
            .refused(503, &[]);
        until("it is logged", || async { story.flare.logged("the store takes no writes") }).await;
        let sent = story.receiver.count();

        std::fs::remove_file(&filler).unwrap();
        until("it is ready", || async { (api.get("/readyz").await.status == 200).then_some(()) }).await;
        story.command(&subscription, "resume").await.expect(200);
        story.receiver.wait_for(sent + 1).await;
        until("the one that waited is told", || async {
            let requests = story.receiver.requests();
            requests.iter().any(|request| request.header("flare-document") == document_url(2)).then_some(())
        })
        .await;
        until("there is room again", || put(&story, 3, 1)).await;
        let status = story.settled(&subscription).await;
        assert_eq!(status["feed"]["held"], 3);
    }
}
