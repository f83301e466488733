//! A node may come to allow less than its subscriptions were given. In: a draft that was right when it was stored, and
//! the limits of today. Out: the draft as it can be served, and what was lowered for it. What the user said stays as it
//! is, and holds again once the limits allow it.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Draft, Limits};
use crate::duration::HumanDuration;

/// A value that the configuration does not allow any more, and what holds instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "LoweredValue")]
pub struct Lowered {
    /// The field.
    pub field: LoweredField,
    /// What it says.
    pub given: Amount,
    /// What holds.
    pub effective: Amount,
}

/// A field that the configuration bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum LoweredField {
    /// By `delivery.maximum-timeout`.
    #[serde(rename = "delivery.timeout")]
    Timeout,
    /// By `delivery.maximum-concurrency`.
    #[serde(rename = "delivery.concurrency")]
    Concurrency,
    /// By the concurrency that is left.
    #[serde(rename = "shards")]
    Shards,
    /// By `domain.maximum-ttl`.
    #[serde(rename = "ttl")]
    Ttl,
}

/// A number or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Amount {
    /// A number.
    Number(u32),
    /// A time.
    Time(HumanDuration),
}

impl fmt::Display for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.field {
            LoweredField::Timeout => "delivery.timeout",
            LoweredField::Concurrency => "delivery.concurrency",
            LoweredField::Shards => "shards",
            LoweredField::Ttl => "ttl",
        };
        write!(f, "{field} {} instead of {}", self.effective, self.given)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Number(number) => number.fmt(f),
            Amount::Time(time) => time.fmt(f),
        }
    }
}

/// What of a stored draft is beyond the limits. A draft that a user gives now is checked as it is.
pub fn lowered(draft: &Draft, limits: &Limits) -> Vec<Lowered> {
    let mut lowered = Vec::new();
    let longest = HumanDuration(limits.maximum_timeout);
    if let Some(given) = draft.delivery.timeout.filter(|given| given.0 > longest.0) {
        let (given, effective) = (Amount::Time(given), Amount::Time(longest));
        lowered.push(Lowered { field: LoweredField::Timeout, given, effective });
    }
    let oldest = HumanDuration(limits.maximum_ttl);
    if let Some(given) = draft.ttl.filter(|given| given.0 > oldest.0) {
        let (given, effective) = (Amount::Time(given), Amount::Time(oldest));
        lowered.push(Lowered { field: LoweredField::Ttl, given, effective });
    }
    let mut lower = |field, given, most| {
        let (given, effective) = (Amount::Number(given), Amount::Number(most));
        lowered.push(Lowered { field, given, effective });
    };
    let most = limits.maximum_concurrency;
    let given = draft.delivery.concurrency;
    let concurrency = given.unwrap_or(limits.default_concurrency).min(most);
    if let Some(given) = given.filter(|given| *given > most) {
        lower(LoweredField::Concurrency, given, most);
    }
    // A concurrency of the user's own that is too low for the shards is the user's own mistake.
    let ours = given.is_none_or(|given| given > most);
    if let Some(given) = draft.shards.filter(|given| ours && *given > concurrency) {
        lower(LoweredField::Shards, given, concurrency);
    }
    lowered
}

/// A draft with some of its values lowered.
pub fn fitting<'a>(draft: &'a Draft, lowered: &[Lowered]) -> Cow<'a, Draft> {
    let mut fits = Cow::Borrowed(draft);
    for value in lowered {
        match (value.field, value.effective) {
            (LoweredField::Timeout, Amount::Time(time)) => fits.to_mut().delivery.timeout = Some(time),
            (LoweredField::Ttl, Amount::Time(time)) => fits.to_mut().ttl = Some(time),
            (LoweredField::Concurrency, Amount::Number(most)) => {
                fits.to_mut().delivery.concurrency = Some(most)
            }
            (LoweredField::Shards, Amount::Number(most)) => fits.to_mut().shards = Some(most),
            (LoweredField::Timeout | LoweredField::Ttl, Amount::Number(_)) | (_, Amount::Time(_)) => {
                unreachable!("a timeout and a ttl are times, and the others are numbers")
            }
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn fit(draft: Value, limits: &Limits) -> (Value, Vec<String>) {
        let draft: Draft = serde_json::from_value(draft).unwrap();
        let lowered = lowered(&draft, limits);
        let fits = serde_json::to_value(fitting(&draft, &lowered).as_ref()).unwrap();
        (fits, lowered.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_beyond_the_limits_is_lowered_to_them_and_named() {
        let secs = Duration::from_secs;
        let limits = Limits {
            default_timeout: secs(5),
            maximum_timeout: secs(10),
            default_concurrency: 2,
            maximum_concurrency: 4,
            maximum_ttl: Duration::from_secs(3600),
        };
        let draft = |timeout: Value, concurrency: Value, shards: Value| {
            json!({"endpoint": {"url": "http://h/"}, "shards": shards,
                "delivery": {"timeout": timeout, "concurrency": concurrency}})
        };
        for (given, fits, words) in [
            ([json!("10s"), json!(4), json!(4)], [json!("10s"), json!(4), json!(4)], vec![]),
            (
                [json!("1m"), json!(60), json!(8)],
                [json!("10s"), json!(4), json!(4)],
                vec![
                    "delivery.timeout 10s instead of 1m",
                    "delivery.concurrency 4 instead of 60",
                    "shards 4 instead of 8",
                ],
            ),
            // The default has come down.
            (
                [Value::Null, Value::Null, json!(8)],
                [Value::Null, Value::Null, json!(2)],
                vec!["shards 2 instead of 8"],
            ),
            // Not for the sake of a limit.
            ([Value::Null, json!(3), json!(8)], [Value::Null, json!(3), json!(8)], vec![]),
        ] {
            let [timeout, concurrency, shards] = given;
            let (found, named) = fit(draft(timeout, concurrency, shards), &limits);
            let delivery = &found["delivery"];
            let found =
                [delivery["timeout"].clone(), delivery["concurrency"].clone(), found["shards"].clone()];
            assert_eq!((found, named), (fits, words.into_iter().map(String::from).collect()));
        }
    }
}
