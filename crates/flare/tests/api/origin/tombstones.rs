//! Tombstones: seen, and removed where nobody needs them.

use serde_json::json;

use crate::support::{Story, document_url, store_is_durable};

fn tombstone(id: u64) -> String {
    format!("/documents/{}?tombstone=true", document_url(id))
}

#[tokio::test]
async fn a_tombstone_is_shown_with_its_revision() {
    let story = Story::begin().await;
    let api = story.api();
    api.get(&tombstone(1)).await.refused(404, &["tombstone"]);
    story.put(1, 7).await;
    api.get(&tombstone(1)).await.refused(404, &["tombstone"]);
    assert_eq!(story.remove(1).await, "deleted");
    let shown = api.get(&tombstone(1)).await.expect(200).json();
    let updated_at = shown["updatedAt"].as_str().expect("a time");
    let expected = json!({"id": document_url(1), "revision": 7, "updatedAt": updated_at, "deleted": true});
    assert_eq!(shown, expected);
    api.get(&format!("/documents/{}", document_url(1))).await.refused(404, &["document"]);
    // One that came with the delete of a document that never was.
    let path = format!("/documents/{}", document_url(2));
    api.send("DELETE", &path, &[("Flare-Revision", "9")], "").await.expect(202);
    assert_eq!(api.get(&tombstone(2)).await.expect(200).json()["revision"], 9);
    for (query, words) in [
        ("?tombstone=yes", &["tombstone", "true or false"][..]),
        ("?tombstone=true&x=1", &["query string"]),
        ("?x=1", &["query string"]),
    ] {
        api.get(&format!("/documents/{}{query}", document_url(1))).await.refused(400, words);
        api.delete(&format!("/documents/{}{query}", document_url(1))).await.refused(400, words);
    }
    // Without it is as ever.
    story.put(3, 1).await;
    let path = format!("/documents/{}?tombstone=false", document_url(3));
    assert_eq!(api.get(&path).await.expect(200).json()["content"], json!({"rev": 1}));
    assert_eq!(api.delete(&path).await.expect(202).header("flare-outcome"), "deleted");
}

#[tokio::test]
async fn a_tombstone_that_is_removed_is_forgotten_for_good_and_no_other_is() {
    let mut story = Story::begin().await;
    for document in 1..=3 {
        story.put(document, 7).await;
        story.remove(document).await;
    }
    let api = story.api();
    api.delete(&tombstone(9)).await.refused(404, &["tombstone"]);
    let given = [("Flare-Revision", "9")];
    api.send("DELETE", &tombstone(2), &given, "").await.refused(400, &["Flare-Revision"]);
    api.delete(&tombstone(2)).await.expect(204);
    api.get(&tombstone(2)).await.refused(404, &["tombstone"]);
    api.delete(&tombstone(2)).await.refused(404, &["tombstone"]);
    if store_is_durable() {
        story.flare.kill();
        story.flare.restart().await;
    }
    let outcomes = [story.put(1, 3).await, story.put(2, 3).await, story.put(3, 3).await];
    assert_eq!(outcomes, ["stale", "created", "stale"]);
}

#[tokio::test]
async fn a_tombstone_stays_while_a_client_has_yet_to_be_told() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    story.command(&subscription, "pause").await.expect(200);
    story.remove(1).await;
    let id = subscription.rsplit('/').next().expect("an id");
    let api = story.api();
    api.delete(&tombstone(1)).await.refused(409, &["is needed", id]);
    assert_eq!(story.put(1, 1).await, "unchanged", "it is still there");
    story.command(&subscription, "resume").await.expect(200);
    crate::support::until("the client is told", || async {
        let status = story.status(&subscription).await;
        (status["delivered"] == 2 && status["feed"]["held"] == 0).then_some(())
    })
    .await;
    // Known to be durable once a record of it is.
    crate::support::until("nobody needs it", || async {
        let answer = story.api().delete(&tombstone(1)).await;
        (answer.status != 409).then(|| answer.expect(204))
    })
    .await;
    assert_eq!(story.put(1, 1).await, "created");
    crate::support::until("it is new to the client", || async {
        let status = story.status(&subscription).await;
        (status["delivered"] == 3 && status["feed"]["held"] == 1).then_some(())
    })
    .await;
}
