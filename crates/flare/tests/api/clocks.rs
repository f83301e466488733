//! Clocks that jump: retries still happen, nothing waits for years, and revisions decide, not time.

use std::path::PathBuf;

use serde_json::json;

use crate::support::{Receiver, Reply, Setup, Story, store_is_durable};

const YEARS: i64 = 10 * 365 * 24 * 3600 * 1000;

/// The clock of a process, as a file with what is added to the real one.
pub struct Clock(tempfile::TempDir);

impl Clock {
    pub fn new() -> Clock {
        let clock = Clock(tempfile::tempdir().unwrap());
        clock.jump(0);
        clock
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("offset")
    }

    pub fn jump(&self, millis: i64) {
        // Written aside and renamed: a reader sees the one or the other.
        let aside = self.0.path().join("aside");
        std::fs::write(&aside, millis.to_string()).unwrap();
        std::fs::rename(aside, self.file()).unwrap();
    }

    pub fn setup(&self) -> Setup {
        Setup::default().with("FLARE_TEST_CLOCK_OFFSET_FILE", self.file().to_str().unwrap())
    }
}

/// Waits until the process has noticed where its clock is.
pub async fn noticed(story: &Story, millis: i64) {
    crate::support::until("the clock has jumped", || async {
        let status = story.api().get("/status").await.expect(200).json();
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
        let off = status["currentTimeEpochSecs"].as_i64().unwrap() - now - millis / 1000;
        (off.abs() < 60).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_retry_happens_wherever_the_clock_jumps_meanwhile() {
    for jump in [YEARS, -YEARS, 3_600_000, -3_600_000] {
        let clock = Clock::new();
        let story = Story::with(clock.setup(), Receiver::answering(|_| Reply::Status(503)).await).await;
        let subscription =
            story.subscribe_simply(json!({"retry": {"interval": "400ms", "maxInterval": "1s"}})).await;
        story.put(1, 1).await;
        story.until_status(&subscription, "it waits", |s| s["feed"]["waiting"] == 1).await;
        clock.jump(jump);
        noticed(&story, jump).await;
        story.receiver.answer(|_| Reply::Status(200));
        story.settled(&subscription).await;
        // And what comes after the jump fares like anything else.
        let before = story.receiver.count();
        let mut first = true;
        story.receiver.answer(move |_| Reply::Status(if std::mem::take(&mut first) { 503 } else { 200 }));
        story.put(2, 1).await;
        story.settled(&subscription).await;
        assert_eq!(story.receiver.count(), before + 2, "{jump}");
    }
}

#[tokio::test]
async fn a_due_time_far_away_is_pulled_in_by_the_next_process() {
    if !store_is_durable() {
        return;
    }
    let clock = Clock::new();
    clock.jump(YEARS);
    let mut story = Story::with(clock.setup(), Receiver::answering(|_| Reply::Status(503)).await).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "500ms", "maxInterval": "500ms"}})).await;
    story.put(1, 1).await;
    story.until_status(&subscription, "it waits", |s| s["feed"]["waiting"] == 1).await;
    assert!(story.flare.stop().await.success());
    clock.jump(0);
    story.receiver.answer(|_| Reply::Status(200));
    story.flare.restart().await;
    let status = story.settled(&subscription).await;
    assert_eq!(status["delivered"], 1);
}

#[tokio::test]
async fn revisions_decide_and_not_the_clock() {
    let clock = Clock::new();
    let story = Story::with(clock.setup(), Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    assert_eq!(story.put(1, 1).await, "created");
    clock.jump(-YEARS);
    noticed(&story, -YEARS).await;
    assert_eq!(story.put(1, 2).await, "updated");
    assert_eq!(story.put(1, 1).await, "stale");
    story.settled(&subscription).await;
    let last = story.receiver.requests().pop().unwrap();
    assert_eq!((last.action(), last.revision()), ("update", 2));
}

#[tokio::test]
async fn a_pause_across_a_jump_ends_like_any_other() {
    for jump in [YEARS, -YEARS] {
        let clock = Clock::new();
        let story = Story::with(clock.setup(), Receiver::answering(|_| Reply::Status(503)).await).await;
        let subscription =
            story.subscribe_simply(json!({"retry": {"interval": "300ms", "maxInterval": "300ms"}})).await;
        story.put(1, 1).await;
        story.until_status(&subscription, "it waits", |s| s["feed"]["waiting"] == 1).await;
        story.command(&subscription, "pause").await.expect(200);
        clock.jump(jump);
        noticed(&story, jump).await;
        story.receiver.answer(|_| Reply::Status(200));
        story.command(&subscription, "resume").await.expect(200);
        let status = story.settled(&subscription).await;
        assert_eq!((&status["delivered"], &status["feed"]["deadLetters"]), (&1.into(), &0.into()), "{jump}");
    }
}
