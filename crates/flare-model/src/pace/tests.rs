//! What counts as a failure, when a client is asked one thing at a time, and that no plan is put off by it.

use proptest::prelude::*;

use super::*;

const AT: Timestamp = Timestamp::from_millis(0);

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn policy(json: &str) -> RetryPolicy {
    serde_json::from_str(json).expect("a policy")
}

fn request(ask: Ask, began: u64, ended: u64) -> Ended {
    Ended { ask, began: millis(began), ended: millis(ended) }
}

/// How a client fares whose requests end so: when each began, when it ended, and whether it failed.
fn fared(requests: &[(u64, u64, bool)]) -> Fortune {
    let mut fortune = Fortune::default();
    for (began, ended, failed) in requests {
        match failed {
            true => fortune.failed(request(Ask::Retry, *began, *ended), AT, false, &policy("{}")),
            false => fortune.succeeded(10),
        }
    }
    fortune
}

#[test]
fn what_was_open_at_the_same_time_and_fails_is_one_failure() {
    for (requests, failures, room) in [
        (vec![], 0, 10),
        (vec![(0, 5, true)], 1, 10),
        // Together, however many.
        (vec![(0, 5, true), (0, 5, true), (1, 5, true), (2, 6, true), (4, 9, true), (3, 9, true)], 1, 10),
        // One after the other.
        (vec![(0, 5, true), (5, 6, true), (7, 8, true), (8, 9, true)], 4, 10),
        (vec![(0, 5, true), (5, 6, true), (7, 8, true), (8, 9, true), (9, 9, true)], 5, 1),
        // The second of each pair was open when the first failed.
        (vec![(0, 5, true), (4, 7, true), (6, 9, true), (8, 11, true)], 2, 10),
        // A long one that began before belongs to what failed then.
        (vec![(0, 5, true), (6, 7, true), (1, 900, true), (8, 9, true)], 3, 10),
        // A success ends it all.
        (vec![(0, 1, true), (2, 3, true), (4, 5, true), (6, 7, true), (8, 9, false), (8, 9, true)], 1, 10),
        (vec![(0, 1, true), (1, 2, true), (2, 3, true), (3, 4, true), (4, 5, true), (5, 6, false)], 0, 10),
    ] {
        let fortune = fared(&requests);
        assert_eq!((fortune.failures, fortune.room(10)), (failures, room), "{requests:?}");
        assert_eq!(fortune.struggling(), room == 1);
    }
}

#[test]
fn what_an_earlier_process_saw_is_known_and_holds_nobody_up() {
    let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
    let mut fortune = Fortune::default();
    fortune.remember(at(10), at(80), at(500), Duration::from_secs(60));
    assert_eq!((fortune.failing_since, fortune.told), (Some(at(10)), true));
    assert_eq!(fortune.untried, Duration::from_secs(420));
    assert!(!fortune.struggling());
    fortune.succeeded(10);
    assert_eq!((fortune.failing_since, fortune.told, fortune.untried), (None, false, Duration::ZERO));
    fortune.remember(at(10), at(69), at(500), Duration::from_secs(60));
    assert!(!fortune.told, "it had not failed for long enough");
}

#[test]
fn one_timeout_is_enough_until_there_is_an_answer() {
    let mut fortune = Fortune::default();
    fortune.failed(request(Ask::First, 0, 15_000), AT, true, &policy("{}"));
    assert_eq!((fortune.room(10), fortune.struggling_since()), (1, Some(AT)));
    assert_eq!(fortune.not_before(Ask::Retry), Duration::ZERO);
    fortune.failed(request(Ask::Retry, 15_000, 15_010), AT, false, &policy("{}"));
    assert_eq!((fortune.room(10), fortune.failures), (10, 2));
}

#[test]
fn retries_are_never_put_off_and_first_attempts_by_no_more_than_the_interval() {
    for (json, gaps) in [
        (r#"{"interval":"100ms"}"#, [10, 20, 40, 80, 100, 100]),
        (r#"{"interval":"3ms"}"#, [3, 3, 3, 3, 3, 3]),
        (r#"{"immediate":9,"interval":"1h"}"#, [10, 20, 40, 80, 160, 320]),
    ] {
        let mut fortune = fared(&[(0, 1, true), (1, 2, true), (2, 3, true), (3, 4, true)]);
        for (more, gap) in (0..).zip(gaps) {
            let now = 1_000 * (more + 1);
            fortune.failed(request(Ask::First, now, now), AT, false, &policy(json));
            assert_eq!(fortune.not_before(Ask::First), millis(now + gap), "{json}");
            assert_eq!(fortune.not_before(Ask::Retry), Duration::ZERO, "{json}");
        }
        for more in 0..20 {
            fortune.failed(request(Ask::First, 9_000 + more, 9_000 + more), AT, false, &policy(json));
        }
        let longest = longest_gap(&policy(json));
        assert!(longest <= LONGEST_GAP);
        assert_eq!(fortune.not_before(Ask::First), millis(9_019) + longest, "{json}");
    }
}

#[test]
fn documents_that_always_fail_do_not_keep_others_from_being_tried() {
    let mut fortune = fared(&[(0, 1, true), (1, 2, true), (2, 3, true), (3, 4, true), (4, 5, true)]);
    let first_at = fortune.not_before(Ask::First);
    for at in 6..500 {
        fortune.failed(request(Ask::Retry, at, at), AT, false, &policy("{}"));
        assert_eq!(fortune.not_before(Ask::First), first_at);
    }
    fortune.try_now();
    assert_eq!(fortune.not_before(Ask::First), Duration::ZERO);
}

#[test]
fn the_next_request_is_the_retry_that_is_due_or_what_was_not_tried() {
    let mut fortune = fared(&[(0, 1, true), (1, 2, true), (2, 3, true), (3, 4, true), (4, 5, true)]);
    assert_eq!(fortune.next(None, false), None);
    assert_eq!(fortune.next(Some(millis(900)), false), Some(millis(900)));
    assert_eq!(fortune.next(Some(millis(900)), true), Some(millis(15)));
    assert_eq!(fortune.next(Some(millis(7)), true), Some(millis(7)));
    fortune.throttled(request(Ask::Retry, 6, 8), 0, millis(100));
    assert_eq!(fortune.next(Some(millis(7)), true), Some(millis(108)));
}

#[test]
fn a_client_that_says_too_much_is_asked_half_and_then_a_little_more_with_each_success() {
    let mut fortune = Fortune::default();
    fortune.throttled(request(Ask::First, 0, 1_000), 15, millis(2_000));
    assert_eq!((fortune.room(20), fortune.rest_until()), (8, millis(3_000)));
    // Those that were open with it say the same, and count once.
    for open in (0..15).rev() {
        fortune.throttled(request(Ask::First, 999, 1_001), open, millis(2_000));
    }
    assert_eq!((fortune.room(20), fortune.rest_until()), (8, millis(3_001)));
    fortune.throttled(request(Ask::First, 3_001, 3_002), 7, Duration::ZERO);
    assert_eq!(fortune.room(20), 4);
    for _ in 0..4 {
        fortune.succeeded(20);
    }
    assert_eq!(fortune.room(20), 4);
    for _ in 0..400 {
        fortune.succeeded(20);
    }
    assert_eq!(fortune.room(20), 20);
}

#[test]
fn since_when_it_struggles_moves_with_the_clock() {
    let mut fortune = fared(&[(0, 1, true), (1, 2, true), (2, 3, true), (3, 4, true), (4, 5, true)]);
    fortune.clock_moved(1_000);
    let moved = Some(Timestamp::from_millis(1_000));
    assert_eq!((fortune.struggling_since(), fortune.failing_since), (moved, moved));
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
enum How {
    Success,
    Failure,
    Timeout,
}

fn history() -> impl Strategy<Value = Vec<(u64, u64, bool, How)>> {
    let how = prop_oneof![1 => Just(How::Success), 8 => Just(How::Failure), 1 => Just(How::Timeout)];
    // How long after the one before it ended, and how long it lasted.
    prop::collection::vec((0_u64..20, 0_u64..60, any::<bool>(), how), 0..80)
}

proptest! {
    /// A model that keeps everything: failures are the most that were apart, by taking each that began after the last one
    /// taken had ended; one at a time is asked from the fifth on or after a timeout; retries are put off by nothing.
    #[test]
    fn it_fares_as_one_who_keeps_every_request_says(
        history in history(),
        interval in 1_u64..20_000,
        concurrency in 1_u32..100,
    ) {
        let policy = policy(&format!(r#"{{"interval":"{interval}ms"}}"#));
        let mut fortune = Fortune::default();
        let mut since_success: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for (after, lasted, first, how) in history {
            now += after;
            let (began, ended) = (now.saturating_sub(lasted), now);
            let ask = if first { Ask::First } else { Ask::Retry };
            match how {
                How::Success => {
                    fortune.succeeded(concurrency);
                    since_success.clear();
                }
                How::Failure | How::Timeout => {
                    let hangs = matches!(how, How::Timeout);
                    fortune.failed(request(ask, began, ended), AT, hangs, &policy);
                    since_success.push((began, ended));
                }
            }
            let mut failures = 0;
            let mut last = 0;
            for (began, ended) in &since_success {
                if failures == 0 || *began >= last {
                    failures += 1;
                    last = *ended;
                }
            }
            prop_assert_eq!(fortune.failures, failures);
            prop_assert_eq!(fortune.failing_since.is_some(), failures > 0);
            let struggles = failures >= STRUGGLING || matches!(how, How::Timeout);
            prop_assert_eq!(fortune.struggling(), struggles);
            prop_assert_eq!(fortune.room(concurrency), if struggles { 1 } else { concurrency });
            prop_assert_eq!(fortune.not_before(Ask::Retry), Duration::ZERO);
            let first_at = fortune.not_before(Ask::First);
            let most = if struggles { millis(now) + longest_gap(&policy) } else { Duration::ZERO };
            prop_assert!(first_at <= most, "{:?} is later than {:?}", first_at, most);
            // With one document, which was tried, the next request is when its retry is due.
            let due = millis(now + interval);
            prop_assert_eq!(fortune.next(Some(due), false), Some(due));
            let next = fortune.next(Some(due), true);
            prop_assert!(next <= Some(due), "a retry that is due finds whether the client is back");
        }
    }
}
