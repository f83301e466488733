//! What follows from how an attempt ended. In: the settings of the subscription, the attempt, what was heard of it, when, and
//! chance. Out: delivered, discarded, retry at a time, or give up; and what the client said of itself.

use std::time::Duration;

use crate::feed::{Action, Attempt, Trouble, Verdict};
use crate::retry::{Next, parse_retry_after};
use crate::subscription::Spec;
use crate::time::Timestamp;

/// What was heard of an attempt.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// An answer.
    Answer {
        /// Its status.
        status: u16,
        /// Its header `Retry-After`, where it has one that is text.
        retry_after: Option<&'a str>,
        /// The beginning of its body.
        excerpt: &'a [u8],
        /// It answers a second request, because the connection of the first broke: that one may have been processed, too.
        second: bool,
    },
    /// Nothing: no answer came, or not a whole one.
    Nothing {
        /// The status of an answer that began and did not end; it decides nothing.
        status: Option<u16>,
        /// What went wrong, in words.
        error: &'a str,
        /// Whether at least one byte of the request was written, so that the client may have processed it.
        sent: bool,
    },
    /// A sink has it.
    Taken,
    /// A sink will never take it.
    Refused {
        /// Why, in words.
        error: &'a str,
    },
}

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
    heard: &Heard<'_>,
    times: Times,
    jitter: impl FnOnce() -> f64,
) -> Judgement {
    let (status, error, response, sent, unheard) = match *heard {
        Heard::Answer { status, .. } if spec.is_success(status) => return settled(Verdict::Delivered),
        Heard::Answer { status, second, .. } if spec.is_discard(status) => {
            let story = Box::new(trouble(attempt, times, Some(status), None, None, second));
            return settled(Verdict::Discarded { doubtful: second, story: Some(story) });
        }
        Heard::Answer { status, excerpt, second, .. } => {
            let excerpt = String::from_utf8_lossy(excerpt).into_owned();
            (Some(status), None, Some(excerpt).filter(|text| !text.is_empty()), true, second)
        }
        Heard::Nothing { status, error, sent } => (status, Some(error.to_owned()), None, sent, sent),
        Heard::Taken => return settled(Verdict::Delivered),
        Heard::Refused { error } => {
            // Trying again would change nothing; whoever mends it can have it replayed.
            let trouble = Box::new(trouble(attempt, times, None, Some(error.to_owned()), None, false));
            return settled(Verdict::GiveUp { doubtful: false, trouble });
        }
    };
    let trouble = Box::new(trouble(attempt, times, status, error, response, unheard));
    let first_attempt_at = trouble.first_attempt_at;
    // What an answer says is heard once it is there as a whole.
    let status = status.filter(|_| matches!(heard, Heard::Answer { .. }));
    if is_gone(spec, attempt, status) {
        // Owed until someone resumes the subscription; nothing is sent before.
        let verdict = Verdict::Retry { due: times.ended, doubtful: sent, trouble };
        return Judgement { verdict, gone: true, throttled: None };
    }
    let since_first = times.ended.since(first_attempt_at);
    let asked = asked_to_wait(heard, times.by_the_wall);
    let verdict = match spec.retry.next_after(trouble.attempts, since_first, jitter(), asked) {
        Next::Retry(delay) => {
            Verdict::Retry { due: times.ended.saturating_add(delay), doubtful: sent, trouble }
        }
        Next::GiveUp(_) => Verdict::GiveUp { doubtful: sent, trouble },
    };
    let throttled = (status == Some(429) || !asked.is_zero()).then(|| asked.min(spec.retry.longest()));
    Judgement { verdict, gone: false, throttled }
}

/// The word for what was given up because of its age.
pub const TOO_OLD: &str = "ttl";

/// What became too old before its turn came is given up untried. What somebody asked for again is not: they know its age.
pub fn too_old(spec: &Spec, attempt: &Attempt, accepted_at: Timestamp, now: Timestamp) -> Option<Verdict> {
    let is_over = spec.ttl.is_some_and(|ttl| now.since(accepted_at) > ttl);
    if !is_over || attempt.replay != 0 {
        return None;
    }
    let trouble = Trouble {
        attempts: attempt.attempts,
        first_attempt_at: attempt.first_attempt_at.unwrap_or(now),
        last_attempt_at: now,
        action: attempt.action,
        status: None,
        error: Some(TOO_OLD.to_owned()),
        response: None,
        unheard: attempt.unheard,
        has: None,
        lent: None,
    };
    Some(Verdict::GiveUp { doubtful: false, trouble: Box::new(trouble) })
}

/// What is remembered of an attempt that the client did not take. `unheard`: it was sent, or was sent first, and no answer
/// says so.
fn trouble(
    attempt: &Attempt,
    times: Times,
    status: Option<u16>,
    error: Option<String>,
    response: Option<String>,
    unheard: bool,
) -> Trouble {
    Trouble {
        attempts: attempt.attempts.saturating_add(1),
        first_attempt_at: attempt.first_attempt_at.unwrap_or(times.began),
        last_attempt_at: times.began,
        action: attempt.action,
        status,
        error,
        response,
        unheard: attempt.unheard || unheard,
        has: None,
        lent: None,
    }
}

fn settled(verdict: Verdict) -> Judgement {
    Judgement { verdict, gone: false, throttled: None }
}

/// A 410 speaks of the client as a whole only where its url has nothing of the document in it, and where it was not told
/// of an end.
fn is_gone(spec: &Spec, attempt: &Attempt, status: Option<u16>) -> bool {
    status == Some(410)
        && attempt.action != Action::Delete
        && spec.target(attempt.action).is_some_and(|target| target.url.is_static())
}

/// `Retry-After`, where it means something.
fn asked_to_wait(heard: &Heard<'_>, now: Timestamp) -> Duration {
    let Heard::Answer { status: 429 | 503, retry_after: Some(text), .. } = heard else {
        return Duration::ZERO;
    };
    parse_retry_after(text, now.millis().div_euclid(1000)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Ordinal, ResourceNumber, Seq};
    use crate::resource::Resource;
    use crate::subscription::{Limits, check};
    use serde_json::{Value, json};

    const BEGAN: Timestamp = Timestamp::from_millis(100_000);
    const ENDED: Timestamp = Timestamp::from_millis(101_000);

    fn spec(endpoint: Value) -> Spec {
        let view = json!({
            "id": "users", "endpoint": "http://origin.test/users/{id}", "change": {"field": "rev"}, "lanes": 1,
            "createdAt": "2026-01-01T00:00:00Z",
        });
        let resource = Resource::compile(serde_json::from_value(view).unwrap(), ResourceNumber(1)).unwrap();
        let delivery = json!({
            "success": [200], "discard": [422],
            "retry": {"quantity": 3, "ttl": "1h", "interval": "10s", "maxInterval": "1m"},
        });
        let draft = serde_json::from_value(json!({"endpoint": endpoint, "delivery": delivery})).unwrap();
        let limits = Limits {
            default_timeout: Duration::from_secs(15),
            maximum_timeout: Duration::from_secs(60),
            default_concurrency: 10,
            maximum_concurrency: 100,
            maximum_ttl: Duration::from_secs(3600),
        };
        check(&draft, &resource, &limits).unwrap()
    }

    fn attempt(action: Action, attempts: u32) -> Attempt {
        let first_attempt_at = (attempts > 0).then_some(Timestamp::from_millis(50_000));
        Attempt {
            ordinal: Ordinal(1),
            seq: Seq(1),
            action,
            replay: 0,
            attempts,
            first_attempt_at,
            unheard: false,
        }
    }

    fn answer(status: u16) -> Heard<'static> {
        Heard::Answer { status, retry_after: None, excerpt: b"no", second: false }
    }

    fn later(status: u16, retry_after: &'static str) -> Heard<'static> {
        Heard::Answer { status, retry_after: Some(retry_after), excerpt: b"", second: false }
    }

    /// In a word: the verdict, in doubt or not, and the seconds until the next attempt.
    fn word(verdict: &Verdict) -> String {
        let doubt = |doubtful: &bool| if *doubtful { " in doubt" } else { "" };
        match verdict {
            Verdict::Delivered => "delivered".to_owned(),
            Verdict::Discarded { doubtful, .. } => format!("discarded{}", doubt(doubtful)),
            Verdict::Retry { due, doubtful, .. } => {
                format!("retry in {}s{}", due.since(ENDED).as_secs_f64(), doubt(doubtful))
            }
            Verdict::GiveUp { doubtful, .. } => format!("give up{}", doubt(doubtful)),
        }
    }

    #[test]
    fn every_ending_has_its_verdict() {
        use Action::{Create, Delete, Update};
        let told = spec(json!({"url": "http://client.test/hook"}));
        let each = spec(json!({"url": "http://client.test/users/{id}"}));
        let refused = Heard::Nothing { status: None, error: "connection refused", sent: false };
        let silent = Heard::Nothing { status: None, error: "no answer in time", sent: true };
        let second = |status| Heard::Answer { status, retry_after: None, excerpt: b"no", second: true };
        let cut = |status| Heard::Nothing { status: Some(status), error: "no end of the body", sent: true };
        let throttled = |seconds| Some(Duration::from_secs(seconds));
        // Settings, action, attempts so far, what was heard: the verdict, whether it is gone, how long it is left alone.
        let table = [
            (&told, Create, 0, answer(200), "delivered", false, None),
            (&told, Create, 2, answer(200), "delivered", false, None),
            (&told, Update, 0, answer(422), "discarded", false, None),
            (&told, Update, 0, second(200), "delivered", false, None),
            (&told, Update, 0, second(422), "discarded in doubt", false, None),
            (&told, Update, 0, answer(201), "retry in 10s in doubt", false, None),
            (&told, Update, 0, answer(302), "retry in 10s in doubt", false, None),
            (&told, Update, 0, answer(500), "retry in 10s in doubt", false, None),
            (&told, Update, 1, answer(500), "retry in 20s in doubt", false, None),
            (&told, Update, 2, answer(500), "give up in doubt", false, None),
            (&told, Update, 0, refused, "retry in 10s", false, None),
            (&told, Update, 2, refused, "give up", false, None),
            (&told, Update, 0, silent, "retry in 10s in doubt", false, None),
            (&told, Update, 2, silent, "give up in doubt", false, None),
            (&told, Create, 0, cut(200), "retry in 10s in doubt", false, None),
            (&told, Create, 0, cut(410), "retry in 10s in doubt", false, None),
            (&told, Create, 0, cut(422), "retry in 10s in doubt", false, None),
            (&told, Create, 0, cut(429), "retry in 10s in doubt", false, None),
            // Gone is who says so of itself, not of a document, and not when told of the end of one.
            (&told, Create, 0, answer(410), "retry in 0s in doubt", true, None),
            (&told, Update, 2, answer(410), "retry in 0s in doubt", true, None),
            (&told, Delete, 0, answer(410), "retry in 10s in doubt", false, None),
            (&each, Update, 0, answer(410), "retry in 10s in doubt", false, None),
            // To wait longer than planned is heeded, up to the longest interval, and from two statuses alone.
            (&told, Update, 0, answer(429), "retry in 10s in doubt", false, throttled(0)),
            (&told, Update, 0, later(429, "5"), "retry in 10s in doubt", false, throttled(5)),
            (&told, Update, 0, later(503, "30"), "retry in 31.5s in doubt", false, throttled(30)),
            (&told, Update, 0, later(503, "600"), "retry in 63s in doubt", false, throttled(66)),
            (&told, Update, 0, later(500, "30"), "retry in 10s in doubt", false, None),
            (&told, Update, 0, later(503, "soon"), "retry in 10s in doubt", false, None),
            (&told, Update, 2, later(429, "30"), "give up in doubt", false, throttled(30)),
            // What a sink says: it has it, or never takes it, however often it is tried.
            (&told, Create, 0, Heard::Taken, "delivered", false, None),
            (&told, Update, 2, Heard::Taken, "delivered", false, None),
            (&told, Create, 0, Heard::Refused { error: "too large" }, "give up", false, None),
            (&told, Update, 1, Heard::Refused { error: "nothing is bound" }, "give up", false, None),
        ];
        for (spec, action, attempts, heard, verdict, gone, throttled) in table {
            let times = Times { began: BEGAN, ended: ENDED, by_the_wall: ENDED };
            let judged = judge(spec, &attempt(action, attempts), &heard, times, || 0.5);
            let case = format!("{action:?} {attempts} {heard:?}");
            assert_eq!(word(&judged.verdict), verdict, "{case}");
            assert_eq!((judged.gone, judged.throttled), (gone, throttled), "{case}");
        }
    }

    #[test]
    fn dates_that_a_client_writes_are_held_against_the_clock_on_the_wall() {
        let spec = spec(json!({"url": "http://client.test/hook"}));
        let times =
            Times { began: BEGAN, ended: ENDED, by_the_wall: Timestamp::from_millis(784_111_757_000) };
        let heard = later(503, "Sun, 06 Nov 1994 08:49:37 GMT");
        let judged = judge(&spec, &attempt(Action::Update, 0), &heard, times, || 0.0);
        assert_eq!(word(&judged.verdict), "retry in 20s in doubt");
    }

    #[test]
    fn what_is_remembered_is_the_first_time_the_last_and_what_was_heard() {
        let spec = spec(json!({"url": "http://client.test/hook"}));
        let times = Times { began: BEGAN, ended: ENDED, by_the_wall: ENDED };
        let remembered =
            |attempts, heard| match judge(&spec, &attempt(Action::Update, attempts), &heard, times, || 0.5)
                .verdict
            {
                Verdict::Retry { trouble, .. } => *trouble,
                other => panic!("{other:?}"),
            };
        let first = remembered(0, answer(500));
        assert_eq!((first.attempts, first.first_attempt_at, first.last_attempt_at), (1, BEGAN, BEGAN));
        assert_eq!((first.status, first.error, first.response.as_deref()), (Some(500), None, Some("no")));
        let second = remembered(1, Heard::Nothing { status: None, error: "reset", sent: true });
        assert_eq!(
            (second.attempts, second.first_attempt_at.millis(), second.last_attempt_at),
            (2, 50_000, BEGAN)
        );
        assert_eq!((second.status, second.error.as_deref(), second.response), (None, Some("reset"), None));
        let cut = remembered(0, Heard::Nothing { status: Some(200), error: "no end", sent: true });
        assert_eq!((cut.status, cut.error.as_deref(), cut.unheard), (Some(200), Some("no end"), true));
    }

    #[test]
    fn what_was_sent_and_not_answered_may_be_with_the_client_whatever_a_second_request_was_answered() {
        let spec = spec(json!({"url": "http://client.test/hook"}));
        let times = Times { began: BEGAN, ended: ENDED, by_the_wall: ENDED };
        let second = |status| Heard::Answer { status, retry_after: None, excerpt: b"no", second: true };
        // What was heard, whether an attempt before was not answered, and whether the client may have it.
        for (heard, before, unheard) in [
            (answer(500), false, false),
            (answer(500), true, true),
            (second(500), false, true),
            (second(422), false, true),
            (answer(422), false, false),
            (Heard::Nothing { status: None, error: "reset", sent: true }, false, true),
            (Heard::Nothing { status: None, error: "connection refused", sent: false }, false, false),
            (Heard::Nothing { status: None, error: "connection refused", sent: false }, true, true),
        ] {
            let attempt = Attempt { unheard: before, ..attempt(Action::Update, 0) };
            let judged = judge(&spec, &attempt, &heard, times, || 0.5);
            let story = match judged.verdict {
                Verdict::Retry { trouble, .. } | Verdict::GiveUp { trouble, .. } => trouble,
                Verdict::Discarded { story: Some(story), .. } => story,
                other => panic!("{other:?}"),
            };
            assert_eq!(story.unheard, unheard, "{heard:?} {before}");
        }
    }

    #[test]
    fn what_is_too_old_when_its_turn_comes_is_given_up_untried_unless_somebody_asked_for_it() {
        let accepted = Timestamp::from_millis(0);
        let within = |ttl: Option<u64>| Spec {
            ttl: ttl.map(Duration::from_millis),
            ..spec(json!({"url": "http://client.test/hook"}))
        };
        let at = |ttl, replay, now| {
            let attempt = Attempt { replay, ..attempt(Action::Create, 0) };
            too_old(&within(ttl), &attempt, accepted, Timestamp::from_millis(now))
        };
        assert_eq!(at(None, 0, i64::MAX), None);
        assert_eq!(at(Some(100), 0, 100), None);
        assert_eq!(at(Some(100), 7, 101), None, "a replay");
        let Some(Verdict::GiveUp { doubtful: false, trouble }) = at(Some(100), 0, 101) else {
            panic!("it is too old")
        };
        assert_eq!((trouble.attempts, trouble.error.as_deref()), (0, Some("ttl")));
    }

    #[test]
    fn a_time_to_live_is_counted_from_the_first_attempt() {
        let spec = spec(json!({"url": "http://client.test/hook"}));
        let late = Timestamp::from_millis(50_000 + 3_600_000);
        let times = Times { began: late, ended: late, by_the_wall: late };
        let judged = judge(&spec, &attempt(Action::Update, 1), &answer(500), times, || 0.5);
        assert_eq!(word(&judged.verdict), "give up in doubt");
    }
}
