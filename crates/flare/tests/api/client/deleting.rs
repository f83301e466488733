//! Subscriptions that come and go: nobody sees one that is half gone, and what was deleted stays so.

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Api, Receiver, Setup, Story, document_url, until};

/// Subscribes clients at urls of their own and deletes them again, until it is dropped.
fn churn(api: Api, subscriptions: &str, url: &str) -> JoinSet<()> {
    let mut churning = JoinSet::new();
    for client in 0..4 {
        let (subscriptions, body) =
            (subscriptions.to_owned(), json!({"endpoint": {"url": format!("{url}/{client}")}}));
        churning.spawn(async move {
            loop {
                let created = api.post(&subscriptions, &body).await.expect(201);
                api.delete(created.header("location")).await.expect(204);
            }
        });
    }
    churning
}

#[tokio::test]
async fn lists_answer_while_subscriptions_are_deleted() {
    let story = Story::begin().await;
    let path = story.subscribe_simply(json!({})).await;
    let churning = churn(story.api(), &story.subscriptions(), &story.receiver.url("/gone"));
    for _ in 0..50 {
        for list in [&story.subscriptions(), "/subscriptions", "/ui/subscriptions", "/ui", "/status"] {
            story.api().get(list).await.expect(200);
        }
        let listed = story.api().get("/subscriptions").await.expect(200).json();
        let ids = listed["subscriptions"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
        assert!(ids.into_iter().any(|id| path.ends_with(id)), "{listed}");
    }
    drop(churning);
}

#[tokio::test]
async fn tombstones_go_while_subscriptions_are_deleted() {
    let setup = Setup::default().with("FLARE_DOMAIN_RETENTION_TOMBSTONES", "1s");
    let story = Story::with(setup, Receiver::start().await).await;
    let churning = churn(story.api(), &story.subscriptions(), &story.receiver.url("/gone"));
    story.put(1, 1).await;
    story.remove(1).await;
    until("its tombstone is gone", || async {
        (story.api().get("/status").await.expect(200).json()["tombstones"] == 0).then_some(())
    })
    .await;
    drop(churning);
}

#[tokio::test]
async fn a_subscription_that_is_deleted_while_its_shards_change_stays_deleted() {
    let setup = Setup::default().with("FLARE_DELIVERY_THREADS", "4");
    let story = Story::with(setup, Receiver::start().await).await;
    let healthy = story.subscribe_simply(json!({})).await;
    for round in 0..30 {
        let body = json!({"endpoint": {"url": story.receiver.url("/gone")}});
        let path = story.subscribe(body).await;
        let shards = 2 + round % 3;
        story.api().patch(&path, &json!({"shards": shards})).await.expect(200);
        story.api().delete(&path).await.expect(204);
    }
    story.put("after", 1).await;
    story.settled(&healthy).await;
    until("its threads serve one", || async {
        let metrics = story.api().get("/metrics").await.expect(200);
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        let counts = text.lines().filter(|line| line.starts_with("flare_subscriptions{"));
        let counts = counts.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
        (counts.sum::<f64>() == 1.0).then_some(())
    })
    .await;
    let told = story.receiver.requests();
    let told: Vec<&str> =
        told.iter().filter(|r| r.document() == document_url("after")).map(|r| r.path.as_str()).collect();
    assert_eq!(told, ["/told"]);
}
