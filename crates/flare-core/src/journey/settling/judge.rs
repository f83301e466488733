//! How an attempt ended → what follows from it. Pure.

use std::time::Duration;

use flare_model::feed::{Attempt, Trouble, Verdict};
use flare_model::retry::{Next, parse_retry_after};
use flare_model::subscription::Spec;
use flare_model::time::Timestamp;
use http::header::RETRY_AFTER;

use crate::notification::ending::Ending;

/// What the answer or its absence means.
#[derive(Debug, PartialEq)]
pub struct Judgement {
    /// For the feed.
    pub verdict: Verdict,
    /// The client says that nobody lives there any more.
    pub gone: bool,
    /// The client says that it is too much, and for how long it wants to be left alone.
    pub throttled: Option<Duration>,
}

/// When an attempt began and when it ended.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When it began.
    pub began: Timestamp,
    /// When it ended: later by what passed, however the wall clock was set meanwhile.
    pub ended: Timestamp,
    /// When it ended by the wall clock, for dates that the client writes.
    pub by_the_wall: Timestamp,
}

/// Judges by the settings under which the attempt began. `jitter` is from 0 to below 1, and asked for only where it
/// matters.
pub fn judge(
    spec: &Spec,
    attempt: &Attempt,
    ending: &Ending,
    times: Times,
    jitter: impl FnOnce() -> f64,
) -> Judgement {
    let (status, error, response, sent) = match ending {
        Ending::Answered(answer) => {
            if spec.is_success(answer.status) {
                return Judgement { verdict: Verdict::Delivered, gone: false, throttled: None };
            }
            if spec.is_discard(answer.status) {
                return Judgement { verdict: Verdict::Discarded, gone: false, throttled: None };
            }
            let excerpt = String::from_utf8_lossy(&answer.excerpt).into_owned();
            (Some(answer.status), None, Some(excerpt).filter(|text| !text.is_empty()), true)
        }
        Ending::Failed { error, sent, .. } => (None, Some(error.clone()), None, *sent),
    };
    let first_attempt_at = attempt.first_attempt_at.unwrap_or(times.began);
    let trouble = Box::new(Trouble {
        attempts: attempt.attempts.saturating_add(1),
        first_attempt_at,
        last_attempt_at: times.began,
        action: attempt.action,
        status,
        error,
        response,
    });
    let gone = status == Some(410)
        && attempt.action != flare_model::feed::Action::Delete
        && spec.target(attempt.action).url.is_static();
    if gone {
        // Owed until someone resumes the subscription; nothing is sent before.
        let verdict = Verdict::Retry { due: times.ended, doubtful: sent, trouble };
        return Judgement { verdict, gone, throttled: None };
    }
    let since_first = times.ended.since(first_attempt_at);
    let asked = asked_to_wait(ending, times.by_the_wall);
    let verdict = match spec.retry.next_after(trouble.attempts, since_first, jitter(), asked) {
        Next::Retry(delay) => {
            Verdict::Retry { due: times.ended.saturating_add(delay), doubtful: sent, trouble }
        }
        Next::GiveUp(_) => Verdict::GiveUp { doubtful: sent, trouble },
    };
    let throttled = (status == Some(429) || !asked.is_zero()).then(|| asked.min(spec.retry.longest()));
    Judgement { verdict, gone, throttled }
}

/// `Retry-After`, where it means something.
fn asked_to_wait(ending: &Ending, now: Timestamp) -> Duration {
    let Ending::Answered(answer) = ending else { return Duration::ZERO };
    if !matches!(answer.status, 429 | 503) {
        return Duration::ZERO;
    }
    let header = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    header.and_then(|text| parse_retry_after(text, now.millis().div_euclid(1000))).unwrap_or(Duration::ZERO)
}
