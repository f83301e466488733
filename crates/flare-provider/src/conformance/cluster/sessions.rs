//! Behaviours of sessions: how long they last, and what goes with them.

use std::time::Duration;

use super::fixture::*;
use super::{Gathering, Participant};
use crate::cluster::{Session, SessionId};
use crate::error::ErrorKind;

/// A coordinator may give more, as etcd does where little is asked for.
pub async fn a_session_gets_at_least_the_time_it_asked_for(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let ttl = gathering.shortest_ttl();
    let granted = one.grant("a", ttl).await;
    assert!(granted.ttl >= ttl);
    let renewed = one.cluster.renew(&granted.session, "a").await.expect("renewed");
    assert!(renewed >= ttl);
}

/// Never before: whoever sees a key gone while its owner's deadline holds would take what is still in use.
pub async fn keys_of_a_session_are_there_until_its_deadline(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let clock = stopwatch();
    let session = Session::begin(contract(&one), &clock, "a", gathering.shortest_ttl()).await.expect("begun");
    one.put("k", "v", Some(session.id())).await;
    let mut looks = 0;
    loop {
        let there = other.get("k").await.is_some();
        if clock() >= session.deadline() {
            break;
        }
        assert!(there, "gone {:?} before the deadline", session.deadline() - clock());
        looks += 1;
        tokio::time::sleep(gathering.shortest_ttl() / 20).await;
    }
    assert!(looks > 0, "it was looked");
}

/// Nobody has to do anything for it.
pub async fn keys_of_a_session_vanish_when_its_time_is_over(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = one.grant("a", gathering.shortest_ttl()).await.session;
    one.put("k", "v", Some(&session)).await;
    one.put("kept", "v", None).await;
    other.until_gone("k").await;
    assert_eq!(other.names("").await, ["kept"]);
}

/// At once, and for everybody.
pub async fn keys_of_a_session_vanish_together_when_it_ends(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    let another = other.grant("b", PATIENCE).await.session;
    one.put("k/1", "v", Some(&session)).await;
    one.put("k/2", "v", Some(&session)).await;
    other.put("k/3", "v", Some(&another)).await;
    one.cluster.end(&session, "a").await.expect("ended");
    assert_eq!(other.names("k/").await, ["k/3"]);
    one.cluster.end(&session, "a").await.expect("ending twice is fine");
}

async fn left(asked: &Participant, session: &SessionId) -> Option<Duration> {
    asked.cluster.left(session).await.expect("it is told")
}

/// For people: in whole seconds or finer, and never less than it is.
pub async fn it_is_told_how_long_a_session_lasts_yet(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let short = one.grant("a", gathering.shortest_ttl()).await;
    let long = one.grant("b", PATIENCE).await;
    one.put("k", "v", Some(&short.session)).await;
    let first = left(&other, &short.session).await.expect("it is there");
    assert!(first > Duration::ZERO && first <= short.ttl + Duration::from_secs(1), "{first:?}");
    let lasting = left(&other, &long.session).await.expect("it is there");
    assert!(lasting > first, "{lasting:?}");
    other.until_gone("k").await;
    assert_eq!(left(&other, &short.session).await, None, "it is over");
    assert!(left(&other, &long.session).await.expect("it is there") < lasting, "it goes on");
    one.cluster.end(&long.session, "b").await.expect("ended");
    assert_eq!(left(&other, &long.session).await, None);
}

/// Three times its time to live.
pub async fn a_renewed_session_outlives_its_first_deadline(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let clock = stopwatch();
    let ttl = gathering.shortest_ttl();
    let mut session = Session::begin(contract(&one), &clock, "a", ttl).await.expect("begun");
    let put = one.put("k", "v", Some(session.id())).await;
    let first = session.deadline();
    while clock() < first + ttl * 2 {
        tokio::time::sleep(ttl / 4).await;
        session.renew(contract(&one), &clock).await.expect("renewed in time");
    }
    assert!(session.deadline() > first + ttl);
    assert_eq!(other.get("k").await.map(|entry| entry.version), Some(put), "and its keys did not change");
}

/// For ever: a node that was away for long must not come back as the owner it was.
pub async fn a_session_that_is_over_is_never_renewed_again(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let session = one.grant("a", gathering.shortest_ttl()).await.session;
    one.put("k", "v", Some(&session)).await;
    one.until_gone("k").await;
    for _ in 0..2 {
        assert_eq!(kind(one.cluster.renew(&session, "a").await), ErrorKind::Fenced);
    }
    one.grant("a", gathering.shortest_ttl()).await;
    assert_eq!(
        kind(one.cluster.renew(&session, "a").await),
        ErrorKind::Fenced,
        "nor with a new one beside it"
    );
}

/// By whomever.
pub async fn a_session_that_was_ended_is_never_renewed_again(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    other.cluster.end(&session, "a").await.expect("ended");
    assert_eq!(kind(one.cluster.renew(&session, "a").await), ErrorKind::Fenced);
}

/// A session that is known is not enough, nor is a name.
pub async fn a_renewal_names_its_owner(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    let another = other.grant("b", PATIENCE).await.session;
    assert_eq!(kind(other.cluster.renew(&session, "b").await), ErrorKind::Fenced);
    assert_eq!(kind(one.cluster.renew(&another, "a").await), ErrorKind::Fenced);
    one.cluster.renew(&session, "a").await.expect("its owner still may");
}

/// One node cannot end another's by mistake.
pub async fn only_its_owner_ends_a_session(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    one.put("k", "v", Some(&session)).await;
    assert_eq!(kind(other.cluster.end(&session, "b").await), ErrorKind::Fenced);
    assert!(other.get("k").await.is_some());
}

/// A request that was under way for too long takes nothing.
pub async fn an_ended_session_writes_nothing(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let session = one.grant("a", PATIENCE).await.session;
    one.cluster.end(&session, "a").await.expect("ended");
    assert_eq!(kind(one.cluster.put_if_absent("k", "v".into(), Some(&session)).await), ErrorKind::Fenced);
    let over = one.grant("a", gathering.shortest_ttl()).await.session;
    one.put("other", "v", Some(&over)).await;
    one.until_gone("other").await;
    assert_eq!(kind(one.cluster.put_if_absent("k", "v".into(), Some(&over)).await), ErrorKind::Fenced);
    assert_eq!(one.names("").await, Vec::<String>::new());
}

/// However long the answer takes.
pub async fn a_deadline_counts_from_before_the_question(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let clock = stopwatch();
    let before = clock();
    let mut session = Session::begin(contract(&one), &clock, "a", PATIENCE).await.expect("begun");
    assert!(session.deadline() <= clock() + PATIENCE && session.deadline() >= before + PATIENCE);
    let before = clock();
    session.renew(contract(&one), &clock).await.expect("renewed");
    assert!(session.deadline() >= before + PATIENCE && session.deadline() <= clock() + PATIENCE);
}

/// A process that starts again has nothing of the one before.
pub async fn sessions_of_one_owner_are_told_apart(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let first = one.grant("a", PATIENCE).await.session;
    let second = other.grant("a", PATIENCE).await.session;
    assert_ne!(first, second);
    one.put("k/1", "v", Some(&first)).await;
    other.put("k/2", "v", Some(&second)).await;
    one.cluster.end(&first, "a").await.expect("ended");
    assert_eq!(one.names("k/").await, ["k/2"]);
    other.cluster.renew(&second, "a").await.expect("the second lives on");
}
