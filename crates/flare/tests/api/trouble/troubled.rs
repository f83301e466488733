//! The dashboard's list of clients in trouble: who is in it, in which order, and that nobody is crowded out.

use serde_json::json;

use crate::support::{Receiver, Reply, Setup, Story, until};

async fn dashboard(story: &Story) -> String {
    String::from_utf8(story.api().get("/ui").await.expect(200).body.to_vec()).expect("text")
}

#[tokio::test]
async fn one_that_fails_is_shown_however_many_are_paused_or_disabled() {
    let answer = |request: &crate::support::Request| match request.path.as_str() {
        path if path.starts_with("/gone") => Reply::Status(410),
        "/well" => Reply::Status(200),
        _ => Reply::Status(500),
    };
    let setup = Setup::default().with("FLARE_DELIVERY_FAILING_AFTER", "0s");
    let story = Story::with(setup, Receiver::answering(answer).await).await;
    let subscribe = async |path: &str| {
        let retry = json!({"interval": "50ms", "maxInterval": "50ms", "quantity": 10000});
        let url = story.receiver.url(path);
        story.subscribe(json!({"endpoint": {"url": url}, "delivery": {"retry": retry}})).await
    };
    let mut paused = Vec::new();
    for number in 0..66 {
        paused.push(subscribe(&format!("/paused/{number}")).await);
    }
    for number in 0..12 {
        subscribe(&format!("/gone/{number}")).await;
    }
    subscribe("/well").await;
    story.put(1, 1).await;
    for subscription in &paused {
        story.until_status(subscription, "it fails", |status| status["status"] == "failing").await;
        story.command(subscription, "pause").await.expect(200);
    }
    let page = until("all that are gone are known", || async {
        Some(dashboard(&story).await).filter(|page| page.contains("And 4 more"))
    })
    .await;
    assert_eq!(page.matches("/gone/").count(), 8, "the first of them");
    assert!(!page.contains("/paused/"), "who is paused is in no trouble");

    let failing = subscribe("/failing").await;
    story.put(1, 2).await;
    story.until_status(&failing, "it fails", |status| status["status"] == "failing").await;
    let page = until("it is shown", || async {
        Some(dashboard(&story).await).filter(|page| page.contains("/failing<"))
    })
    .await;
    let places = ["/failing<", "/gone/"].map(|words| page.find(words).expect("both are there"));
    assert!(places[0] < places[1], "those that fail come first");
    assert!(page.contains("And 5 more"), "the others are counted");

    story.receiver.answer(|_| Reply::Status(200));
    until("whoever recovers is no longer there", || async {
        let page = dashboard(&story).await;
        (!page.contains("/failing<") && page.contains("And 4 more")).then_some(())
    })
    .await;
}
