//! Clocks that jump: retries still happen, nothing waits for years or is given up, and revisions decide, not time.

use std::path::PathBuf;

use serde_json::json;

use crate::insight::metrics::{Scrape, until_counted};
use crate::support::{Receiver, Reply, Setup, Story, document_url, store_is_durable};

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

const HOUR: i64 = 3_600_000;

/// Moves the clock and waits until the process has found out that it was set.
async fn set(story: &Story, clock: &Clock, millis: i64) -> serde_json::Value {
    let steps = async || story.api().get("/status").await.expect(200).json()["clock"].clone();
    let before = steps().await["steps"].as_u64().unwrap();
    clock.jump(millis);
    crate::support::until("the step is noticed", async || {
        let seen = steps().await;
        (seen["steps"] == before + 1).then_some(seen)
    })
    .await
}

fn tirelessly() -> serde_json::Value {
    json!({"retry": {"quantity": 1_000_000, "interval": "20ms", "maxInterval": "20ms"}})
}

/// Waits until a client that fails has been asked so many times more.
async fn fails_on(story: &Story, subscription: &str, times: u64) -> serde_json::Value {
    let failed = story.status(subscription).await["failed"].as_u64().unwrap();
    story
        .until_status(subscription, "it is asked again", |s| s["failed"].as_u64() >= Some(failed + times))
        .await
}

#[tokio::test]
async fn a_step_of_the_clock_is_said() {
    let clock = Clock::new();
    let story = Story::with(clock.setup(), Receiver::start().await).await;
    for (step, by) in [(1, 100 * HOUR), (2, -100 * HOUR)] {
        let seen = set(&story, &clock, if step == 1 { by } else { 0 }).await;
        let off = seen["lastStep"]["millis"].as_i64().unwrap() - by;
        assert!(off.abs() < 60_000, "{seen}");
        until_counted(&story.flare, &[("flare_clock_steps_total", f64::from(step))]).await;
    }
    assert_eq!(story.flare.count_logged("the wall clock was set"), 2);
}

#[tokio::test]
async fn a_step_gives_up_nothing_and_disables_nobody() {
    for hours in [100, -100] {
        let clock = Clock::new();
        let setup = clock.setup().with("FLARE_DELIVERY_DISABLE_AFTER", "24h");
        let story = Story::with(setup, Receiver::start().await).await;
        let subscription = story.subscribe_simply(tirelessly()).await;
        story.put(0, 1).await;
        story.settled(&subscription).await;
        story.receiver.answer(|_| Reply::Status(503));
        story.put(1, 1).await;
        fails_on(&story, &subscription, 2).await;
        clock.jump(hours * HOUR);
        // Before and after it is noticed.
        let status = fails_on(&story, &subscription, 3).await;
        assert_eq!((&status["feed"]["deadLetters"], &status["status"]), (&0.into(), &"active".into()));
        set(&story, &clock, hours * HOUR + 50 * HOUR).await;
        let status = fails_on(&story, &subscription, 3).await;
        assert_eq!((&status["feed"]["deadLetters"], &status["status"]), (&0.into(), &"active".into()));
        story.receiver.answer(|_| Reply::Status(200));
        story.settled(&subscription).await;
    }
}

#[tokio::test]
async fn a_clock_set_while_nobody_ran_gives_up_nothing() {
    if !store_is_durable() {
        return;
    }
    for hours in [100, -100] {
        let clock = Clock::new();
        let mut story = Story::with(clock.setup(), Receiver::answering(|_| Reply::Status(503)).await).await;
        let subscription = story.subscribe_simply(tirelessly()).await;
        story.put(1, 1).await;
        fails_on(&story, &subscription, 2).await;
        assert!(story.flare.stop().await.success());
        clock.jump(hours * HOUR);
        story.flare.restart().await;
        let status = fails_on(&story, &subscription, 3).await;
        assert_eq!(status["feed"]["deadLetters"], 0, "{status}");
    }
}

#[tokio::test]
async fn a_step_that_was_noticed_is_made_up_for_in_the_next_process_too() {
    if !store_is_durable() {
        return;
    }
    let clock = Clock::new();
    let mut story = Story::with(clock.setup(), Receiver::answering(|_| Reply::Status(503)).await).await;
    let subscription = story.subscribe_simply(tirelessly()).await;
    story.put(1, 1).await;
    fails_on(&story, &subscription, 2).await;
    set(&story, &clock, 100 * HOUR).await;
    fails_on(&story, &subscription, 2).await;
    assert!(story.flare.stop().await.success());
    story.flare.restart().await;
    let status = fails_on(&story, &subscription, 3).await;
    assert_eq!(status["feed"]["deadLetters"], 0, "{status}");
}

#[tokio::test]
async fn a_paused_subscription_and_what_it_holds_outlast_a_step() {
    let clock = Clock::new();
    let setup = clock.setup().with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 5).await;
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    story.remove(1).await;
    set(&story, &clock, 800 * HOUR).await;
    // A tombstone that nobody needs shows that it was tidied up since.
    let other = json!({"endpoint": "http://origin.test/things/{id}", "change": {"field": "rev"}});
    story.api().post("/resources", &other).await.expect(201);
    story.api().put("http://origin.test/things/1", &json!({"rev": 5})).await;
    story.api().remove("http://origin.test/things/1").await;
    crate::trouble::retention::forgotten(&story, "http://origin.test/things/1").await;
    assert_eq!(story.status(&subscription).await["status"], "paused");
    assert_eq!(story.put(1, 4).await, "stale");
    story.command(&subscription, "resume").await.expect(200);
    story.settled(&subscription).await;
    assert_eq!(story.receiver.requests().pop().unwrap().action(), "delete");
}

#[tokio::test]
async fn a_step_makes_no_tombstone_old() {
    let clock = Clock::new();
    let setup = clock
        .setup()
        .with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "4s")
        .with("FLARE_DOMAIN_RETENTION_HISTORY", "1s");
    let story = Story::with(setup, Receiver::start().await).await;
    // The process has been there for long enough to forget anything.
    story.put(1, 5).await;
    story.remove(1).await;
    crate::trouble::retention::forgotten(&story, &document_url(1)).await;
    let every = story.subscribe_simply(json!({"revision": "all"})).await;
    let removed = std::time::Instant::now();
    story.put(2, 5).await;
    story.remove(2).await;
    clock.jump(800 * HOUR);
    noticed(&story, 800 * HOUR).await;
    // What is removed of the history shows that it was tidied up since, twice.
    let name = r#"flare_revisions_removed_total{reason="done"}"#;
    for round in 1..=2 {
        story.put("other", round * 2).await;
        story.put("other", round * 2 + 1).await;
        story.settled(&every).await;
        let before = Scrape::of(&story.flare).await.value(name);
        let tidied = async || (Scrape::of(&story.flare).await.value(name) > before).then_some(());
        crate::support::until("it is tidied up", tidied).await;
    }
    let outcome = story.put(2, 4).await;
    assert!(outcome == "stale" || removed.elapsed().as_secs() >= 4, "{outcome}");
    crate::trouble::retention::forgotten(&story, &document_url(2)).await;
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
