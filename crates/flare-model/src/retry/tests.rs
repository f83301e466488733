//! What the phases and progressions plan, what ends them, and that no policy panics, shrinks or passes its limits.

use proptest::prelude::*;

use super::*;

fn policy(json: &str) -> RetryPolicy {
    let policy: RetryPolicy = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    policy.validate().unwrap_or_else(|error| panic!("{json}: {error}"));
    policy
}

fn planned(json: &str, retries: u32) -> Vec<u64> {
    (1..=retries).map(|retry| policy(json).planned(retry).as_secs()).collect()
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn everything_may_be_left_out() {
    assert_eq!(policy("{}"), RetryPolicy::default());
    let shown = serde_json::to_value(RetryPolicy::default()).unwrap();
    let expected = serde_json::json!({
        "quantity": 50, "ttl": "72h", "interval": "5s", "maxInterval": "1h", "ratio": 2,
        "progression": "geometric", "immediate": 0, "preBackoff": 0,
    });
    assert_eq!(shown, expected);
    assert_eq!(serde_json::from_value::<RetryPolicy>(shown).unwrap(), RetryPolicy::default());
    assert_eq!(policy(r#"{"interval":"2h"}"#).max_interval.0, 2 * HOUR);
}

#[test]
fn an_unknown_field_or_progression_is_refused_by_name() {
    let error = serde_json::from_str::<RetryPolicy>(r#"{"retries":3}"#).unwrap_err().to_string();
    assert!(error.contains("unknown field `retries`"), "{error}");
    let error = serde_json::from_str::<RetryPolicy>(r#"{"progression":"cubic"}"#).unwrap_err().to_string();
    assert!(error.contains("unknown variant `cubic`") && error.contains("geometric"), "{error}");
}

#[test]
fn each_progression_grows_in_its_own_way() {
    for (progression, expected) in [
        ("linear", [5, 10, 15, 20, 25, 30]),
        ("arithmetic", [5, 10, 20, 35, 55, 80]),
        ("geometric", [5, 10, 20, 40, 80, 160]),
        ("exponential", [5, 10, 40, 320, 3600, 3600]),
    ] {
        let json = format!(r#"{{"progression":"{progression}"}}"#);
        assert_eq!(planned(&json, 6), expected, "{progression}");
        let flat = format!(r#"{{"progression":"{progression}","ratio":1}}"#);
        assert_eq!(planned(&flat, 3), [5, 5, 5], "{progression}");
    }
    assert_eq!(planned(r#"{"progression":"linear","ratio":1.2}"#, 3), [5, 6, 7]);
}

#[test]
fn phases_follow_each_other() {
    let json = r#"{"immediate":2,"preBackoff":1,"interval":"1s","maxInterval":"4s","postBackoff":2}"#;
    assert_eq!(planned(json, 8), [0, 0, 1, 1, 2, 4, 4, 4]);
    let offsets: Vec<u64> = policy(json).simulate(100).iter().map(Duration::as_secs).collect();
    assert_eq!(offsets, [0, 0, 0, 1, 2, 4, 8, 12, 16]);
    assert_eq!(policy(json).next(8, secs(12), 0.5), Next::Retry(secs(4)));
    assert_eq!(policy(json).next(9, secs(16), 0.5), Next::GiveUp(Reason::Quantity));
}

#[test]
fn the_first_limit_ends_the_attempts() {
    let three = policy(r#"{"quantity":3}"#);
    assert_eq!(three.simulate(100), [secs(0), secs(5), secs(15)]);
    assert_eq!(three.next(2, secs(5), 0.5), Next::Retry(secs(10)));
    assert_eq!(three.next(3, secs(15), 0.5), Next::GiveUp(Reason::Quantity));
    let minute = policy(r#"{"ttl":"1m"}"#);
    assert_eq!(minute.simulate(100), [secs(0), secs(5), secs(15), secs(35)]);
    assert_eq!(minute.next(4, secs(35), 0.5), Next::GiveUp(Reason::Ttl));
    assert_eq!(minute.next(1, secs(60), 0.5), Next::GiveUp(Reason::Ttl));
    assert_eq!(policy(r#"{"quantity":1}"#).next(1, secs(0), 0.5), Next::GiveUp(Reason::Quantity));
    assert_eq!(RetryPolicy::default().simulate(3), [secs(0), secs(5), secs(15)]);
}

#[test]
fn a_backoff_that_never_reaches_its_end_lasts_until_the_quantity() {
    let flat = policy(r#"{"ratio":1,"postBackoff":1,"quantity":7}"#);
    assert_eq!(flat.simulate(100).len(), 7);
    let reached = policy(r#"{"ratio":1,"postBackoff":1,"quantity":7,"interval":"1s","maxInterval":"1s"}"#);
    assert_eq!(reached.simulate(100).len(), 3);
}

#[test]
fn jitter_spreads_delays_but_not_immediate_retries() {
    let policy = policy(r#"{"immediate":1,"interval":"10s"}"#);
    assert_eq!(policy.next(1, secs(0), 0.9), Next::Retry(secs(0)));
    assert_eq!(policy.next(2, secs(0), 0.0), Next::Retry(secs(9)));
    assert_eq!(policy.next(2, secs(0), 0.5), Next::Retry(secs(10)));
    assert_eq!(policy.longest(), secs(3_960));
}

#[test]
fn a_retry_after_is_honoured_within_the_longest_interval() {
    let policy = policy(r#"{"interval":"10s","maxInterval":"1m"}"#);
    assert_eq!(policy.next_after(1, secs(0), 0.0, secs(30)), Next::Retry(secs(30)));
    assert_eq!(policy.next_after(1, secs(0), 0.5, secs(20)), Next::Retry(secs(21)));
    assert_eq!(policy.next_after(1, secs(0), 0.0, secs(86_400)), Next::Retry(secs(60)));
    // Shorter than planned anyway.
    assert_eq!(policy.next_after(1, secs(0), 0.5, secs(1)), Next::Retry(secs(10)));
}

#[test]
fn a_policy_without_sense_is_refused_by_the_name_of_its_field() {
    for (json, expected) in [
        (r#"{"quantity":0}"#, "delivery.retry.quantity must be at least 1 (the first attempt counts), got 0"),
        (r#"{"ttl":"0s"}"#, "delivery.retry.ttl must be longer than 0s; to try once only, set quantity to 1"),
        (
            r#"{"interval":"0s"}"#,
            "delivery.retry.interval must be longer than 0s; for retries without delay use immediate",
        ),
        (
            r#"{"interval":"1m","maxInterval":"30s"}"#,
            "delivery.retry.maxInterval must be at least the interval (1m), got 30s",
        ),
        (r#"{"ratio":0.5}"#, "delivery.retry.ratio must be at least 1, got 0.5"),
    ] {
        let policy: RetryPolicy = serde_json::from_str(json).unwrap();
        assert_eq!(policy.validate().unwrap_err().to_string(), expected);
    }
}

fn duration() -> impl Strategy<Value = HumanDuration> {
    (any::<u64>(), 0_u32..64).prop_map(|(nanos, shift)| HumanDuration(Duration::from_nanos(nanos >> shift)))
}

fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    let count = || prop_oneof![0_u32..5, any::<u32>()];
    let ratio = prop_oneof![Just(1.0), 1.0..1.000_001_f64, 1.0..3.0_f64, any::<f64>()];
    let progression = prop::sample::select(vec![
        Progression::Linear,
        Progression::Arithmetic,
        Progression::Geometric,
        Progression::Exponential,
    ]);
    let numbers = (count(), count(), count(), prop::option::of(count()), ratio, progression);
    (numbers, duration(), duration(), duration()).prop_map(|(numbers, ttl, interval, max_interval)| {
        let (quantity, immediate, pre_backoff, post_backoff, ratio, progression) = numbers;
        RetryPolicy {
            quantity,
            ttl,
            interval,
            max_interval,
            ratio,
            progression,
            immediate,
            pre_backoff,
            post_backoff,
        }
    })
}

/// Any policy, with what validation refuses put right.
fn valid_policy() -> impl Strategy<Value = RetryPolicy> {
    any_policy().prop_map(|any| {
        let least = HumanDuration(Duration::from_nanos(1));
        let interval = any.interval.max(least);
        let ratio = if any.ratio.is_finite() && any.ratio >= 1.0 { any.ratio } else { 1.5 };
        let max_interval = any.max_interval.max(interval);
        let valid = RetryPolicy {
            quantity: any.quantity.max(1),
            ttl: any.ttl.max(least),
            interval,
            max_interval,
            ratio,
            ..any
        };
        assert_eq!(valid.validate(), Ok(()));
        valid
    })
}

proptest! {
    #[test]
    fn no_policy_panics(policy in any_policy(), made: u32, since: u64, jitter: f64, after: u64) {
        let _ = policy.validate();
        let _ = policy.next_after(made, Duration::from_nanos(since), jitter, secs(after));
        let _ = (policy.planned(made), policy.longest(), policy.simulate(50));
        prop_assert!(serde_json::to_string(&policy).is_ok());
    }

    #[test]
    fn delays_never_shrink_and_stay_within_their_limits(policy in valid_policy(), retry: u32, jitter in 0.0..1.0_f64) {
        for retry in [retry.saturating_sub(1), retry % 1_000, retry % 30] {
            let (one, next) = (policy.planned(retry), policy.planned(retry + 1));
            prop_assert!(one <= next, "{one:?} then {next:?}");
            prop_assert!(next <= policy.max_interval.0);
            prop_assert!(next.is_zero() == (retry < policy.immediate) && (next.is_zero() || next >= policy.interval.0));
            if let Next::Retry(delay) = policy.next(retry, Duration::ZERO, jitter) {
                prop_assert!(delay <= policy.longest() && delay <= policy.ttl.0 && retry < policy.quantity);
            }
        }
    }

    #[test]
    fn what_is_simulated_is_what_happens_without_jitter(policy in valid_policy()) {
        let offsets = policy.simulate(40);
        prop_assert!(offsets.len() <= 40 && offsets.first() == Some(&Duration::ZERO));
        for (made, pair) in offsets.windows(2).enumerate() {
            let made = made as u32 + 1;
            prop_assert_eq!(pair[0].saturating_add(policy.planned(made)), pair[1]);
            // The float of a middling jitter may round either way near the ttl.
            let next = policy.next(made, pair[0], 0.0);
            prop_assert!(matches!(next, Next::Retry(_)), "{next:?}");
        }
    }
}
