//! Behaviours of keys: who gets one, and which version is which.

use bytes::Bytes;

use super::Gathering;
use super::fixture::*;
use crate::cluster::{Entry, Version};
use crate::error::ErrorKind;

/// With its session.
pub async fn a_key_comes_back_as_it_was_put(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let session = one.grant("a", PATIENCE).await.session;
    let version = one.put("k", "v", Some(&session)).await;
    let alone = one.put("l", "", None).await;
    let entry = |key: &str, value: &'static str, version, session| Entry {
        key: key.to_owned(),
        value: value.into(),
        version,
        session,
    };
    let expected = vec![entry("k", "v", version, Some(session)), entry("l", "", alone, None)];
    assert_eq!(one.list("").await, expected);
}

/// Whoever put it.
pub async fn a_key_that_is_there_is_taken(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let version = one.put("k", "v", None).await;
    assert_eq!(kind(other.cluster.put_if_absent("k", "w".into(), None).await), taken("k"));
    assert_eq!(kind(one.cluster.put_if_absent("k", "v".into(), None).await), taken("k"));
    assert_eq!(other.get("k").await.map(|entry| (entry.value, entry.version)), Some(("v".into(), version)));
}

/// The one who read it too early.
pub async fn an_old_version_writes_nothing(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let first = one.put("k", "1", None).await;
    let second = other.replace("k", first, "2").await.expect("replaced");
    assert_eq!(kind(one.replace("k", first, "3").await), OTHER_VERSION);
    assert_eq!(kind(one.replace("k", Version(second.0 + 1), "3").await), OTHER_VERSION);
    assert_eq!(kind(one.replace("unknown", second, "3").await), OTHER_VERSION);
    assert_eq!(one.get("k").await.map(|entry| (entry.value, entry.version)), Some(("2".into(), second)));
}

/// Likewise.
pub async fn an_old_version_deletes_nothing(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let first = one.put("k", "1", None).await;
    let second = other.replace("k", first, "2").await.expect("replaced");
    assert_eq!(kind(one.cluster.delete_if("k", first).await), OTHER_VERSION);
    assert!(other.get("k").await.is_some());
    one.cluster.delete_if("k", second).await.expect("deleted");
    assert_eq!(kind(one.cluster.delete_if("k", second).await), OTHER_VERSION, "it is gone");
    assert_eq!(other.get("k").await, None);
}

/// So that a delete that arrives late cannot reach what came after.
pub async fn a_deleted_key_may_be_put_again_with_a_higher_version(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let first = one.put("k", "1", None).await;
    one.cluster.delete_if("k", first).await.expect("deleted");
    let second = one.put("k", "1", None).await;
    assert!(second > first);
    assert_eq!(kind(one.cluster.delete_if("k", first).await), OTHER_VERSION);
    assert_eq!(kind(one.replace("k", first, "x").await), OTHER_VERSION);
}

/// Also over those of sessions that end.
pub async fn versions_grow_over_all_keys(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut last = one.put("a", "1", None).await;
    for round in 0..5 {
        let session = other.grant("b", PATIENCE).await.session;
        let next = other.put("b", "1", Some(&session)).await;
        assert!(next > last, "round {round}");
        let replaced = one.get("a").await.expect("it is there").version;
        last = one.replace("a", replaced, "2").await.expect("replaced");
        assert!(last > next, "round {round}");
        other.cluster.end(&session, "b").await.expect("ended");
    }
}

/// A claim that gets another value does not outlive its owner for that.
pub async fn a_replaced_key_stays_in_its_session(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    let first = one.put("k", "1", Some(&session)).await;
    let alone = one.put("l", "1", None).await;
    other.replace("k", first, "2").await.expect("replaced");
    other.replace("l", alone, "2").await.expect("replaced");
    assert_eq!(one.get("k").await.and_then(|entry| entry.session), Some(session.clone()));
    one.cluster.end(&session, "a").await.expect("ended");
    assert_eq!(one.names("").await, ["l"]);
}

/// It stays until somebody deletes it.
pub async fn a_key_without_a_session_outlives_all(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    one.put("k", "v", None).await;
    one.cluster.end(&session, "a").await.expect("ended");
    drop(one);
    assert_eq!(other.names("").await, ["k"]);
}

/// And nothing else: `a/1` is not below `a/10`.
pub async fn a_list_has_what_begins_with_the_prefix_by_name(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    for key in ["b", "a/2", "a/10", "a", "a/1", "aa", "a0"] {
        one.put(key, key, None).await;
    }
    assert_eq!(one.names("a/").await, ["a/1", "a/10", "a/2"]);
    assert_eq!(one.names("a/1").await, ["a/1", "a/10"]);
    assert_eq!(one.names("").await, ["a", "a/1", "a/10", "a/2", "a0", "aa", "b"]);
    assert_eq!(one.names("c").await, Vec::<String>::new());
}

/// And keys of any text.
pub async fn values_of_any_bytes_come_back(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let every: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let key = "subscription/ä/\u{1f525} %2F\"\\";
    let version =
        one.cluster.put_if_absent(key, Bytes::from(every.clone()), None).await.expect("it is not there");
    let entry = one.get(key).await.expect("it is there");
    assert_eq!((entry.version, entry.value.len()), (version, every.len()));
    assert!(entry.value == every);
}

/// As soon as it is answered.
pub async fn what_one_puts_the_others_list(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut version = one.put("k", "0", None).await;
    for round in 0..20 {
        let (from, to) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        version = from.replace("k", version, &round.to_string()).await.expect("replaced");
        let seen = to.get("k").await.expect("it is there");
        assert_eq!((seen.version, seen.value), (version, round.to_string().into()));
    }
}

/// The others are told that it is taken.
pub async fn one_of_many_gets_the_key(gathering: &dyn Gathering) {
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..6 {
        let participant = gathering.join().await;
        tries.spawn(async move {
            let session = participant.grant(&number.to_string(), PATIENCE).await.session;
            let put = participant.cluster.put_if_absent("k", number.to_string().into(), Some(&session)).await;
            put.map(|version| (number, version))
        });
    }
    let outcomes = within(tries.join_all(), "all are answered").await;
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 5));
    assert!(lost.into_iter().all(|lost| kind(lost) == taken("k")));
    let (number, version) = won.into_iter().next().expect("one").expect("won");
    let entry = gathering.join().await.get("k").await.expect("it is there");
    assert_eq!((entry.value, entry.version), (number.to_string().into(), version));
}

/// And no write of the others gets lost in between.
pub async fn one_of_many_replaces_a_version(gathering: &dyn Gathering) {
    let first = gathering.join().await;
    first.put("k", "0", None).await;
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let participant = gathering.join().await;
        tries.spawn(async move {
            let mut added = 0;
            while added < 5 {
                let entry = participant.get("k").await.expect("it is there");
                let count: u32 = std::str::from_utf8(&entry.value).expect("text").parse().expect("a number");
                match participant.replace("k", entry.version, &(count + 1).to_string()).await {
                    Ok(_) => added += 1,
                    Err(error) => assert_eq!(error.kind, OTHER_VERSION),
                }
            }
        });
    }
    within(tries.join_all(), "all have added").await;
    assert_eq!(first.get("k").await.map(|entry| entry.value), Some("20".into()));
}

/// The next owner waits for the release or the end of the session, and then there is one.
pub async fn a_taken_key_is_free_for_one_when_its_session_ends(gathering: &dyn Gathering) {
    let (one, two, three) = (gathering.join().await, gathering.join().await, gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    one.put("k", "a", Some(&session)).await;
    assert_eq!(kind(two.cluster.put_if_absent("k", "b".into(), None).await), taken("k"));
    one.cluster.end(&session, "a").await.expect("ended");
    let (second, third) = tokio::join!(
        two.cluster.put_if_absent("k", "b".into(), None),
        three.cluster.put_if_absent("k", "c".into(), None)
    );
    assert_eq!(u8::from(second.is_ok()) + u8::from(third.is_ok()), 1);
    let late = one.cluster.put_if_absent("k", "a".into(), Some(&session)).await;
    let refused = [ErrorKind::Fenced, taken("k")];
    assert!(refused.contains(&kind(late)), "its first owner has nothing to say");
}
