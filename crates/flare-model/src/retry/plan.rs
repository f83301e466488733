//! A policy comes in; when its attempts are planned, and when and why it gives up, goes out: what a user wants to
//! see before saving it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Reason, RetryPolicy, SPREAD, scaled};
use crate::duration::HumanDuration;
use crate::pace::{self, STRUGGLING};

/// Attempts looked at beyond those shown, to find the end. When there are more, the end is not told.
const LOOKED_AT: u32 = 100_000;

/// The attempts of a notification that fails each time, counted from the first, with answers that take no time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The first ones.
    pub attempts: Vec<Planned>,
    /// Whether there are more than are shown.
    pub more: bool,
    /// How it ends; nothing when that is too far away to look for.
    pub gives_up: Option<End>,
    /// What happens to the plan where the client fails again and again.
    pub throttle: PlannedThrottle,
}

/// A client that fails again and again is asked one thing at a time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedThrottle {
    /// From which attempt on, where this document alone is tried; nothing when there are fewer. A timeout begins it at once.
    pub from_attempt: Option<u32>,
    /// The longest time between two documents that were not tried before.
    pub longest_gap: HumanDuration,
    /// In words.
    pub detail: String,
}

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Planned {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it is planned, after the first.
    pub after: HumanDuration,
    /// With the least jitter each time.
    pub earliest: HumanDuration,
    /// With the most.
    pub latest: HumanDuration,
    /// False when jitter decides whether it comes within `ttl`.
    pub certain: bool,
}

/// The end of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct End {
    /// The last attempt; it is given up when that fails.
    pub attempt: u32,
    /// When that is, after the first.
    pub after: HumanDuration,
    /// Which limit it was.
    pub reason: &'static str,
    /// In words.
    pub detail: String,
}

impl RetryPolicy {
    /// The first `shown` attempts of this policy, and its end.
    pub fn plan(&self, shown: usize) -> Plan {
        let throttle = self.throttle();
        let mut plan = Plan { attempts: Vec::new(), more: false, gives_up: None, throttle };
        let all = self.attempts();
        let [mut after, mut earliest, mut latest] = [Duration::ZERO; 3];
        let mut last = (1, Duration::ZERO);
        for retry in 0..all {
            if retry > LOOKED_AT {
                return plan;
            }
            let delay = self.planned(retry);
            earliest = earliest.saturating_add(scaled(delay, 1.0 - SPREAD));
            if earliest > self.ttl.0 {
                plan.gives_up = Some(self.end(last, Reason::Ttl));
                return plan;
            }
            after = after.saturating_add(delay);
            latest = latest.saturating_add(scaled(delay, 1.0 + SPREAD));
            last = (retry + 1, after.min(self.ttl.0));
            if plan.attempts.len() == shown {
                plan.more = true;
                continue;
            }
            plan.attempts.push(Planned {
                attempt: retry + 1,
                after: rounded(after),
                earliest: rounded(earliest),
                latest: rounded(latest),
                certain: latest <= self.ttl.0,
            });
        }
        plan.gives_up = Some(self.end(last, Reason::Quantity));
        plan
    }

    fn throttle(&self) -> PlannedThrottle {
        let longest_gap = HumanDuration(pace::longest_gap(self));
        let detail = format!(
            "after {STRUGGLING} failures in a row (those of requests that were open at the same time count once), or one \
             timeout, the client gets one request at a time until one succeeds. The plan is kept: a retry is sent when it \
             is due, and where several documents wait, the one that is due first; it may have to wait for the request \
             before it to end. Documents that were not tried yet come one by one, at most {longest_gap} apart"
        );
        let from_attempt = Some(STRUGGLING + 1).filter(|attempt| *attempt <= self.attempts());
        PlannedThrottle { from_attempt, longest_gap, detail }
    }

    fn end(&self, (attempt, after): (u32, Duration), reason: Reason) -> End {
        let (reason, detail) = match reason {
            Reason::Ttl => {
                let ttl = self.ttl;
                ("ttl", format!("the attempt after it would begin later than {ttl} after the first (ttl)"))
            }
            Reason::Quantity if attempt < self.quantity => {
                ("postBackoff", "the phases end with the retries of postBackoff".to_owned())
            }
            Reason::Quantity => {
                ("quantity", format!("there are {} attempts at most (quantity)", self.quantity))
            }
        };
        End { attempt, after: rounded(after), reason, detail }
    }
}

/// Floats are not exact, and nobody plans by nanoseconds.
fn rounded(time: Duration) -> HumanDuration {
    let nanos = time.as_nanos();
    let unit = if nanos >= 10_000_000 { 1_000_000 } else { 1 };
    let rounded = (nanos + unit / 2) / unit * unit;
    HumanDuration(Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str, shown: usize) -> Plan {
        serde_json::from_str::<RetryPolicy>(json).unwrap().plan(shown)
    }

    fn seconds(plan: &Plan) -> Vec<u64> {
        plan.attempts.iter().map(|planned| planned.after.0.as_secs()).collect()
    }

    #[test]
    fn the_plan_follows_the_phases_and_ends_with_the_quantity() {
        let plan = plan(r#"{"quantity":6,"interval":"10s","immediate":1,"preBackoff":1}"#, 100);
        assert_eq!(seconds(&plan), [0, 0, 10, 20, 40, 80]);
        let last = plan.attempts[5];
        assert_eq!((last.attempt, last.earliest.0.as_secs(), last.latest.0.as_secs()), (6, 72, 88));
        assert!(last.certain && !plan.more);
        let end = plan.gives_up.unwrap();
        assert_eq!((end.attempt, end.reason, end.after.0.as_secs()), (6, "quantity", 80));
    }

    #[test]
    fn the_time_to_live_ends_it_where_jitter_may_decide() {
        let plan = plan(r#"{"interval":"10s","maxInterval":"10s","ttl":"31s"}"#, 100);
        assert_eq!(seconds(&plan), [0, 10, 20, 30]);
        let certain: Vec<bool> = plan.attempts.iter().map(|planned| planned.certain).collect();
        assert_eq!(certain, [true, true, true, false], "the fourth comes between 27s and 33s");
        let end = plan.gives_up.unwrap();
        assert_eq!((end.attempt, end.reason), (4, "ttl"));
        assert!(end.detail.contains("31s"), "{}", end.detail);
    }

    #[test]
    fn the_end_of_the_phases_is_named() {
        let plan = plan(r#"{"interval":"1s","maxInterval":"2s","postBackoff":1}"#, 100);
        assert_eq!(seconds(&plan), [0, 1, 3, 5]);
        assert_eq!(plan.gives_up.unwrap().reason, "postBackoff");
    }

    #[test]
    fn a_long_plan_is_cut_and_its_end_told_and_an_endless_one_has_none() {
        let cut = plan(r#"{"quantity":50}"#, 3);
        assert_eq!((cut.attempts.len(), cut.more), (3, true));
        assert_eq!(cut.gives_up.unwrap().attempt, 50);
        let endless = plan(r#"{"quantity":4000000000,"interval":"1ns","maxInterval":"1ns"}"#, 10);
        assert_eq!((endless.attempts.len(), endless.more, endless.gives_up), (10, true, None));
        let once = plan(r#"{"quantity":1}"#, 10);
        assert_eq!((once.attempts.len(), once.gives_up.unwrap().attempt), (1, 1));
    }

    #[test]
    fn what_a_client_that_fails_gets_is_told_with_the_plan() {
        for (json, from_attempt, longest_gap) in [
            ("{}", Some(6), "5s"),
            (r#"{"quantity":5}"#, None, "5s"),
            (r#"{"quantity":6,"interval":"100ms"}"#, Some(6), "100ms"),
            (r#"{"interval":"1h"}"#, Some(6), "10s"),
        ] {
            let throttle = plan(json, 1).throttle;
            assert_eq!(
                (throttle.from_attempt, &*throttle.longest_gap.to_string()),
                (from_attempt, longest_gap)
            );
            assert!(
                throttle.detail.contains("one request at a time") && throttle.detail.contains(longest_gap)
            );
        }
    }
}
