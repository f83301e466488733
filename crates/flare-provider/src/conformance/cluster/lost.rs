//! Behaviours under lost answers: what the caller finds when it looks.

use std::sync::Arc;

use super::fixture::*;
use super::{Gathering, Participant};
use crate::cluster::Session;
use crate::error::ErrorKind;
use crate::faulty::{Fault, FaultyCluster, Plan};

fn faulty(participant: &Participant) -> (Participant, Plan) {
    let plan = Plan::default();
    let cluster = Arc::new(FaultyCluster::new(participant.cluster.clone(), plan.clone()));
    (Participant { cluster, doorbell: participant.doorbell.clone() }, plan)
}

/// By its session, at a version that it then has; a repeat would only say that the key is taken.
pub async fn a_put_whose_answer_was_lost_is_found_by_looking(gathering: &dyn Gathering) {
    let (one, plan) = faulty(&gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    plan.once("cluster.put_if_absent", Fault::After(ErrorKind::Unknown));
    assert_eq!(kind(one.cluster.put_if_absent("k", "v".into(), Some(&session)).await), ErrorKind::Unknown);
    assert_eq!(kind(one.cluster.put_if_absent("k", "v".into(), Some(&session)).await), taken("k"));
    let found = one.get("k").await.expect("it was put");
    assert_eq!(found.session, Some(session));
    plan.once("cluster.put_if", Fault::After(ErrorKind::Unknown));
    assert_eq!(kind(one.replace("k", found.version, "w").await), ErrorKind::Unknown);
    assert_eq!(kind(one.replace("k", found.version, "w").await), OTHER_VERSION);
    let found = one.get("k").await.expect("it is there");
    plan.once("cluster.delete_if", Fault::After(ErrorKind::Unknown));
    assert_eq!(kind(one.cluster.delete_if("k", found.version).await), ErrorKind::Unknown);
    assert_eq!(one.get("k").await, None);
}

/// The session may live longer than its owner believes, never the other way round.
pub async fn a_renewal_whose_answer_was_lost_moves_no_deadline(gathering: &dyn Gathering) {
    let (one, plan) = faulty(&gathering.join().await);
    let clock = stopwatch();
    let mut session = Session::begin(contract(&one), &clock, "a", PATIENCE).await.expect("begun");
    let deadline = session.deadline();
    for fault in [Fault::After(ErrorKind::Unknown), Fault::Before(ErrorKind::Unavailable)] {
        plan.once("cluster.renew", fault);
        session.renew(contract(&one), &clock).await.expect_err("it was not answered");
        assert_eq!(session.deadline(), deadline);
    }
    session.renew(contract(&one), &clock).await.expect("renewed");
    assert!(session.deadline() >= deadline);
}

/// As when the task that called is cancelled.
pub async fn a_dropped_call_leaves_the_participant_usable(gathering: &dyn Gathering) {
    let (one, plan) = faulty(&gathering.join().await);
    let session = one.grant("a", PATIENCE).await.session;
    for round in 0..5 {
        let key = round.to_string();
        plan.once("cluster.put_if_absent", Fault::Cancelled(ErrorKind::Unknown));
        let _ = kind(one.cluster.put_if_absent(&key, "v".into(), Some(&session)).await);
        one.cluster.renew(&session, "a").await.expect("renewed");
        // It is there, or not, or comes a little later; putting it again ends with one of it.
        match one.cluster.put_if_absent(&key, "v".into(), Some(&session)).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind, taken(&key)),
        }
        assert_eq!(one.get(&key).await.and_then(|entry| entry.session), Some(session.clone()));
    }
}
