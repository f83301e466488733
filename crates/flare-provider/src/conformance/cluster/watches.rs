//! Behaviours of watches: whatever changes, a watch says something, and whoever then looks sees it.

use std::time::Duration;

use super::fixture::*;
use super::{Gathering, Participant};
use crate::cluster::Watch;

/// The next word, which has to come.
async fn next(watch: &mut Box<dyn Watch>) {
    within(watch.next(), "the watch says something").await.expect("it can be followed");
}

async fn watch(participant: &Participant, prefix: &str) -> Box<dyn Watch> {
    participant.cluster.watch(prefix).await.expect("it can be watched")
}

/// Listens until the keys are these: each word may be about something earlier.
async fn until(watch: &mut Box<dyn Watch>, participant: &Participant, prefix: &str, names: &[&str]) {
    while participant.names(prefix).await != names {
        next(watch).await;
    }
}

/// From another participant.
pub async fn a_watch_says_that_something_was_put(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut watch = watch(&one, "k/").await;
    other.put("k/1", "v", None).await;
    next(&mut watch).await;
    assert_eq!(one.names("k/").await, ["k/1"]);
}

/// One word at least for each that comes after the last.
pub async fn a_watch_says_that_something_was_replaced_or_deleted(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let first = other.put("k/1", "v", None).await;
    let mut watch = watch(&one, "k/").await;
    let second = other.replace("k/1", first, "w").await.expect("replaced");
    next(&mut watch).await;
    assert_eq!(one.get("k/1").await.map(|entry| entry.version), Some(second));
    other.cluster.delete_if("k/1", second).await.expect("deleted");
    until(&mut watch, &one, "k/", &[]).await;
}

/// That is how the others hear that a node has left.
pub async fn a_watch_says_that_a_session_ended(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = other.grant("b", PATIENCE).await.session;
    other.put("k/1", "v", Some(&session)).await;
    let mut watch = watch(&one, "k/").await;
    other.cluster.end(&session, "b").await.expect("ended");
    next(&mut watch).await;
    assert_eq!(one.names("k/").await, Vec::<String>::new());
}

/// And that it is dead.
pub async fn a_watch_says_that_a_session_was_over(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = other.grant("b", gathering.shortest_ttl()).await.session;
    other.put("k/1", "v", Some(&session)).await;
    let mut watch = watch(&one, "k/").await;
    until(&mut watch, &one, "k/", &[]).await;
}

/// What comes after them is the first word.
pub async fn a_watch_says_nothing_of_other_prefixes(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut watch = watch(&one, "k/").await;
    other.put("j/1", "v", None).await;
    other.put("k", "v", None).await;
    let early = tokio::time::timeout(Duration::from_millis(300), watch.next()).await;
    assert!(early.is_err(), "there was nothing to say");
    other.put("k/1", "v", None).await;
    next(&mut watch).await;
    assert_eq!(one.names("k/").await, ["k/1"]);
}

/// Between two questions.
pub async fn a_watch_sees_what_happened_while_nobody_asked(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut watch = watch(&one, "k/").await;
    for round in 0..3 {
        let keys: Vec<String> = (0..10).map(|number| format!("k/{round}/{number}")).collect();
        for key in &keys {
            other.put(key, "v", None).await;
        }
        let prefix = format!("k/{round}/");
        next(&mut watch).await;
        assert_eq!(one.names(&prefix).await, keys);
    }
}

/// As in a `select!`.
pub async fn a_dropped_question_loses_nothing(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut watch = watch(&one, "k/").await;
    let early = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    assert!(early.is_err(), "there was nothing to say");
    other.put("k/1", "v", None).await;
    next(&mut watch).await;
    let _ = tokio::time::timeout(Duration::from_millis(1), watch.next()).await;
    other.put("k/2", "v", None).await;
    until(&mut watch, &one, "k/", &["k/1", "k/2"]).await;
}

/// Listing at each word, while others write, and nothing in between.
pub async fn whoever_follows_a_watch_ends_with_the_truth(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut watch = watch(&one, "k/").await;
    let writes = async {
        for number in 0..40 {
            let key = format!("k/{}", number % 7);
            match other.get(&key).await {
                Some(entry) if number % 3 == 0 => {
                    other.cluster.delete_if(&key, entry.version).await.expect("deleted")
                }
                Some(entry) => drop(other.replace(&key, entry.version, &number.to_string()).await),
                None => drop(other.put(&key, &number.to_string(), None).await),
            }
        }
        other.put("k/last", "v", None).await;
    };
    let follows = async {
        loop {
            next(&mut watch).await;
            let seen = one.list("k/").await;
            if seen.iter().any(|entry| entry.key == "k/last") {
                return seen;
            }
        }
    };
    let ((), seen) = tokio::join!(writes, follows);
    assert_eq!(seen, other.list("k/").await);
}
