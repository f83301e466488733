//! What a process cannot go on after: it ends at once and says why, and the next one has all that was accepted.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::json;

use crate::support::{Receiver, Shim, Story, document_url, left_out, store_is_durable, until_true};

/// The signal by which a process ends itself; a shell calls it 134.
const ABORTED: i32 = 6;

/// Ten documents that are accepted, on a process that the shim can fail.
async fn begin(shim: &Shim) -> (Story, String) {
    let story = Story::with(shim.setup(), Receiver::start().await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    for id in 0..10 {
        assert_eq!(story.put(id, 1).await, "created");
    }
    (story, subscription)
}

/// Says one more thing; whether it is still answered does not matter.
async fn say(story: &Story) {
    let path = format!("/documents/{}", document_url(10));
    let _ = story.api().try_send("PUT", &path, &[], json!({"rev": 1}).to_string()).await;
}

/// The next process has all that was accepted, and its client gets it.
async fn goes_on(mut story: Story, subscription: &str, shim: &Shim) {
    shim.heal();
    story.flare.restart().await;
    for id in 0..10 {
        story.api().get(&format!("/documents/{}", document_url(id))).await.expect(200);
    }
    let status = story.settled(subscription).await;
    assert!(status["feed"]["held"].as_u64() >= Some(10), "{status}");
}

#[tokio::test]
async fn a_panic_on_a_delivery_thread_ends_the_process_and_nothing_is_lost() {
    if !store_is_durable() {
        return;
    }
    let Some(shim) = Shim::build() else {
        return left_out(
            "a panic on a delivery thread: there is no cc to build what provokes it, or no Linux",
        );
    };
    let (mut story, subscription) = begin(&shim).await;
    shim.fail_clock();
    say(&story).await;
    let ended = story.flare.ended().await;
    assert_eq!((ended.code(), ended.signal()), (None, Some(ABORTED)), "{ended}");
    until_true("the panic is in the log", || story.flare.logged("thread 'flare-deliver-").is_some()).await;
    assert!(story.flare.logged("while processing panic").is_none(), "it ended on purpose");
    goes_on(story, &subscription, &shim).await;
}

#[tokio::test]
async fn a_sync_that_failed_is_not_retried_over_but_ends_the_process_with_its_reason() {
    if !store_is_durable() {
        return;
    }
    let Some(shim) = Shim::build() else {
        return left_out("a failed fsync: there is no cc to build what fails it, or no Linux");
    };
    let (mut story, subscription) = begin(&shim).await;
    shim.fail_syncs();
    say(&story).await;
    assert_eq!(story.flare.ended().await.code(), Some(4));
    until_true("the log says why", || {
        story.flare.logged("flare: ").is_some_and(|line| line.contains("sync"))
    })
    .await;
    goes_on(story, &subscription, &shim).await;
}
