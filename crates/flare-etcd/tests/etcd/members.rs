//! Members that come and go, a history that is compacted, and users.

use std::time::Duration;

use flare_etcd::Login;
use flare_provider::conformance::cluster::fixture::{kind, stopwatch, within};
use flare_provider::{Cluster, ErrorKind, Heard, Ring, Seen, Session};

use crate::server::{Servers, left_out};

const TTL: Duration = Duration::from_secs(8);

/// Does something until it works, as callers above the engine do.
async fn until_done<T, F: Future<Output = flare_provider::Result<T>>>(mut what: impl FnMut() -> F) -> T {
    let done = async {
        loop {
            if let Ok(done) = what().await {
                return done;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(done, "it works in the end").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_a_watch_and_a_listener_outlive_a_member() {
    let Some(mut servers) = Servers::start(3).await else { return };
    let (one, other) = (servers.participant(), servers.participant());
    let clock = stopwatch();
    let mut session = until_done(|| Session::begin(&*one.cluster, &clock, "a", TTL)).await;
    let put = until_done(|| one.cluster.put_if_absent("k/1", "v".into(), Some(session.id()))).await;
    let mut watch = until_done(|| one.cluster.watch("k/")).await;
    let mut listener = until_done(|| one.doorbell.listen()).await;
    // Whichever leads is among them: each is killed once.
    for member in 0..3 {
        servers.kill(member);
        let renewed = session.deadline();
        within(
            async {
                while session.renew(&*one.cluster, &clock).await.is_err() || session.deadline() <= renewed {
                    assert!(clock() < session.deadline(), "the session is over before it could be renewed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            "the session is renewed at another member",
        )
        .await;
        let listed = until_done(|| other.cluster.list("k/1")).await;
        assert_eq!(listed[0].version, put, "the key was there all the time");
        // A write whose answer was lost may be there: then it is taken, which is as good.
        let key = format!("k/new-{member}");
        within(
            async {
                loop {
                    match other.cluster.put_if_absent(&key, "v".into(), None).await {
                        Ok(_) => break,
                        Err(error) if matches!(error.kind, ErrorKind::Conflict(_)) => break,
                        Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                    }
                }
            },
            "a key is put at another member",
        )
        .await;
        within(
            async {
                loop {
                    let said = watch.next().await;
                    let listed = one.cluster.list(&key).await;
                    if said.is_ok() && listed.is_ok_and(|listed| listed.len() == 1) {
                        break;
                    }
                }
            },
            "the watch goes on at another member",
        )
        .await;
        let ring = Ring::Catalog { version: member as u64 };
        within(
            async {
                loop {
                    let _ = other.doorbell.ring(&[ring]).await;
                    let heard = tokio::time::timeout(Duration::from_secs(1), listener.next()).await;
                    if matches!(heard, Ok(Ok(Heard::Rings(rings))) if rings.contains(&ring)) {
                        break;
                    }
                }
            },
            "rings are heard over another member",
        )
        .await;
        servers.restart(member);
        servers.until_ready().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_most_members_nothing_is_promised_and_a_lost_answer_is_unknown() {
    let Some(mut servers) = Servers::start(3).await else { return };
    let one = servers.participant();
    let clock = stopwatch();
    let mut session =
        until_done(|| Session::begin(&*one.cluster, &clock, "a", Duration::from_secs(30))).await;
    let deadline = session.deadline();
    servers.kill(0);
    servers.kill(1);
    for _ in 0..3 {
        let refused = kind(one.cluster.put_if_absent("k", "v".into(), None).await);
        assert!(matches!(refused, ErrorKind::Unknown | ErrorKind::Unavailable), "{refused:?}");
        let refused = kind(session.renew(&*one.cluster, &clock).await);
        assert!(matches!(refused, ErrorKind::Unknown | ErrorKind::Unavailable), "{refused:?}");
        assert_eq!(kind(one.cluster.list("").await), ErrorKind::Unavailable);
    }
    assert_eq!(session.deadline(), deadline);
    servers.restart(0);
    servers.restart(1);
    servers.until_ready().await;
    until_done(|| one.cluster.list("")).await;
    let renewed = session.renew(&*one.cluster, &clock).await;
    assert!(clock() >= deadline || renewed.is_ok(), "{renewed:?}");
}

/// A member that hangs is left within the time that it may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_hangs_is_left() {
    let Some(servers) = Servers::start(3).await else { return };
    let one = servers.participant();
    let granted = until_done(|| one.cluster.grant("a", Duration::from_secs(30))).await;
    let mut watch = until_done(|| one.cluster.watch("k")).await;
    // The engine is with the first one.
    let _ = tokio::time::timeout(Duration::from_millis(100), watch.next()).await;
    servers.signal(0, "-STOP");
    until_done(|| one.cluster.renew(&granted.session, "a")).await;
    let other = servers.participant();
    within(
        async {
            loop {
                match other.cluster.put_if_absent("k", "v".into(), None).await {
                    Ok(_) => break,
                    Err(error) if matches!(error.kind, ErrorKind::Conflict(_)) => break,
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        },
        "a key is put",
    )
    .await;
    until_said(&mut watch).await;
    servers.signal(0, "-CONT");
}

/// What a watch says, once it can be followed.
async fn until_said(watch: &mut Box<dyn flare_provider::Watch>) -> Seen {
    let said = async {
        loop {
            if let Ok(said) = watch.next().await {
                return said;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(said, "the watch says something").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_was_away_too_long_says_that_it_lost_track() {
    let Some(mut servers) = Servers::start(1).await else { return };
    if std::process::Command::new("etcdctl").arg("version").output().is_err() {
        return left_out("etcdctl is missing: compaction is not tested (Debian package etcd-client)");
    }
    let one = servers.participant();
    let mut watch = one.cluster.watch("k").await.expect("it can be watched");
    let _ = tokio::time::timeout(Duration::from_millis(200), watch.next()).await;
    servers.kill(0);
    servers.restart(0);
    servers.until_ready().await;
    let mut version = one.cluster.put_if_absent("k", "0".into(), None).await.expect("put");
    for _ in 0..5 {
        version = one.cluster.put_if("k", version, "1".into()).await.expect("put");
    }
    servers.control(&["compact", &version.to_string()]);
    let said = until_said(&mut watch).await;
    assert_eq!(said, Seen::LostTrack);
    one.cluster.put_if("k", version, "2".into()).await.expect("put");
    until_said(&mut watch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_logs_in_and_again_when_the_token_is_old() {
    let Some(mut servers) = Servers::start(1).await else { return };
    if std::process::Command::new("etcdctl").arg("version").output().is_err() {
        return left_out("etcdctl is missing: users are not tested (Debian package etcd-client)");
    }
    servers.control(&["user", "add", "root:secret"]);
    servers.control(&["user", "grant-role", "root", "root"]);
    servers.control(&["auth", "enable"]);
    let login = |password: &str| Some(Login { user: "root".to_owned(), password: password.to_owned() });
    let engine = servers.engine(login("secret"));
    let granted = engine.grant("a", Duration::from_secs(30)).await.expect("the user may");
    engine.put_if_absent("k", "v".into(), Some(&granted.session)).await.expect("the user may");
    assert!(servers.engine(None).list("").await.is_err(), "nobody may");
    assert!(servers.engine(login("wrong")).list("").await.is_err(), "not with that password");
    // A server that starts again does not know the tokens that it gave.
    servers.kill(0);
    servers.restart(0);
    let listed = until_done(|| engine.list("")).await;
    assert_eq!(listed.len(), 1);
    let mut watch = until_done(|| engine.watch("k")).await;
    engine.put_if("k", listed[0].version, "w".into()).await.expect("the user may");
    within(watch.next(), "the watch says something").await.expect("it can be followed");
}
