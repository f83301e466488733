//! In: a duration as people write it (`300ms`, `1m30s`, `1.5h`, `72h`, `1d`), the notation of Go's `time` package plus
//! days. Out: a [`HumanDuration`], or a [`DurationError`] that shows how it is written.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest duration taken: 2^63 - 1 nanoseconds, some 292 years, as in Go. Sums of a few never overflow.
const MAX_NANOS: u64 = i64::MAX as u64;

const SECOND: u64 = 1_000_000_000;

/// The units and their nanoseconds. Both signs for micro are in use.
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
    ("d", 86_400 * SECOND),
];

/// A duration that is written as a string in JSON and in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct HumanDuration(pub Duration);

/// Why a text is no duration. The message is shown to API users as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number alone.
    #[error("`{value}` has no unit; write a duration such as \"15s\", \"300ms\" or \"1m30s\"")]
    NoUnit {
        /// As it was given.
        value: String,
    },
    /// Another unit than ns, us, ms, s, m, h, d.
    #[error("`{value}` has the unknown unit `{unit}`; use ns, us, ms, s, m, h or d, as in \"1m30s\"")]
    Unit {
        /// As it was given.
        value: String,
        /// What stands where a unit should.
        unit: String,
    },
    /// A sign.
    #[error("`{value}` has a sign; a duration is written without one, as in \"15s\"")]
    Sign {
        /// As it was given.
        value: String,
    },
    /// More than 292 years.
    #[error("`{value}` is too long; the longest duration is 106751d")]
    TooLong {
        /// As it was given.
        value: String,
    },
    /// Not of this notation at all.
    #[error("`{value}` is not a duration; write one such as \"15s\", \"300ms\" or \"1m30s\"")]
    Malformed {
        /// As it was given.
        value: String,
    },
}

impl HumanDuration {
    /// Reads one or more decimal numbers, each with a unit; they add up. Below a nanosecond digits are cut off.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let value = || text.to_owned();
        if text.starts_with(['-', '+']) {
            return Err(DurationError::Sign { value: value() });
        }
        let mut total = 0_u64;
        let mut rest = text;
        loop {
            let (whole, after) = digits(rest);
            let (fraction, after) = match after.strip_prefix('.') {
                Some(after) => digits(after),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(DurationError::Malformed { value: value() });
            }
            let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, after) = after.split_at(end);
            if unit.is_empty() {
                return Err(DurationError::NoUnit { value: value() });
            }
            let known = UNITS.iter().find(|(name, _)| *name == unit);
            let (_, nanos) =
                known.ok_or_else(|| DurationError::Unit { value: value(), unit: unit.to_owned() })?;
            let part = amount(whole, fraction, *nanos).and_then(|part| total.checked_add(part));
            total = part
                .filter(|total| *total <= MAX_NANOS)
                .ok_or_else(|| DurationError::TooLong { value: value() })?;
            rest = after;
            if rest.is_empty() {
                return Ok(Self(Duration::from_nanos(total)));
            }
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Exact, unlike a float: `0.1s` is a hundred million nanoseconds.
fn amount(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (mut digits, mut scale) = (0, 1);
    // A day has 14 digits of nanoseconds, so later ones stand for nothing; 20 fit the arithmetic.
    for digit in fraction.bytes().take(20) {
        digits = digits * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    // Less than one unit, so it fits.
    let part = (digits * u128::from(unit) / scale) as u64;
    whole.checked_mul(unit)?.checked_add(part)
}

/// The shortest exact form without days, in the way of Go but without its zeros: `1h30m`, `72h`, `1.5s`, `300ms`, `0s`.
impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        if seconds == 0 {
            return match nanos {
                0 => f.write_str("0s"),
                1..1_000 => write!(f, "{nanos}ns"),
                1_000..1_000_000 => write_decimal(f, u64::from(nanos / 1_000), nanos % 1_000, 3, "us"),
                _ => write_decimal(f, u64::from(nanos / 1_000_000), nanos % 1_000_000, 6, "ms"),
            };
        }
        let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if rest > 0 || nanos > 0 { write_decimal(f, rest, nanos, 9, "s") } else { Ok(()) }
    }
}

fn write_decimal(
    f: &mut fmt::Formatter<'_>,
    whole: u64,
    fraction: u32,
    width: usize,
    unit: &str,
) -> fmt::Result {
    if fraction == 0 {
        return write!(f, "{whole}{unit}");
    }
    let digits = format!("{fraction:0width$}");
    write!(f, "{whole}.{}{unit}", digits.trim_end_matches('0'))
}

impl FromStr for HumanDuration {
    type Err = DurationError;
    fn from_str(text: &str) -> Result<Self, DurationError> {
        Self::parse(text)
    }
}

impl From<Duration> for HumanDuration {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

/// Takes a string; takes a number only to say that it has no unit.
struct Written;

impl Written {
    fn number<E: de::Error>(value: impl fmt::Display) -> Result<HumanDuration, E> {
        Err(E::custom(DurationError::NoUnit { value: value.to_string() }))
    }
}

impl Visitor<'_> for Written {
    type Value = HumanDuration;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"15s\"")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<HumanDuration, E> {
        HumanDuration::parse(text).map_err(E::custom)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<HumanDuration, E> {
        Self::number(value)
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<HumanDuration, E> {
        Self::number(value)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<HumanDuration, E> {
        Self::number(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nanos(text: &str) -> u128 {
        HumanDuration::parse(text).unwrap_or_else(|error| panic!("{error}")).0.as_nanos()
    }

    #[test]
    fn numbers_with_units_add_up() {
        for (text, expected) in [
            ("0s", 0),
            ("1ns", 1),
            ("2us", 2_000),
            ("2\u{b5}s", 2_000),
            ("2\u{3bc}s", 2_000),
            ("300ms", 300_000_000),
            ("15s", 15_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("0.1s", 100_000_000),
            ("1.0000000019s", 1_000_000_001),
            ("0.00000000000000000000000000001h", 0),
            ("72h", 259_200_000_000_000),
            ("1d", 86_400_000_000_000),
            ("1d1h1m1s1ms1us1ns", 90_061_001_001_001),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn every_refusal_names_the_value() {
        for (text, expected) in [
            ("15", DurationError::NoUnit { value: "15".into() }),
            ("0", DurationError::NoUnit { value: "0".into() }),
            ("1m30", DurationError::NoUnit { value: "1m30".into() }),
            ("15 s", DurationError::Unit { value: "15 s".into(), unit: " s".into() }),
            ("15sec", DurationError::Unit { value: "15sec".into(), unit: "sec".into() }),
            ("-5s", DurationError::Sign { value: "-5s".into() }),
            ("106752d", DurationError::TooLong { value: "106752d".into() }),
            ("99999999999999999999s", DurationError::TooLong { value: "99999999999999999999s".into() }),
            ("", DurationError::Malformed { value: "".into() }),
            (".s", DurationError::Malformed { value: ".s".into() }),
            ("soon", DurationError::Malformed { value: "soon".into() }),
        ] {
            assert_eq!(HumanDuration::parse(text), Err(expected), "{text}");
        }
        assert_eq!(nanos("106751d"), 106_751 * 86_400_000_000_000);
    }

    #[test]
    fn durations_are_shown_short() {
        for (given, expected) in [
            ("0s", "0s"),
            ("72h", "72h"),
            ("1d", "24h"),
            ("90s", "1m30s"),
            ("1.5h", "1h30m"),
            ("1500ms", "1.5s"),
            ("1h500ms", "1h0.5s"),
            ("300ms", "300ms"),
            ("1500us", "1.5ms"),
            ("1500ns", "1.5us"),
            ("7ns", "7ns"),
        ] {
            assert_eq!(HumanDuration::parse(given).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn json_holds_a_string_and_a_number_is_told_to_take_a_unit() {
        let duration: HumanDuration = serde_json::from_str("\"1m30s\"").unwrap();
        assert_eq!(serde_json::to_string(&duration).unwrap(), "\"1m30s\"");
        let error = serde_json::from_str::<HumanDuration>("15").unwrap_err().to_string();
        assert!(error.contains("`15` has no unit; write a duration such as \"15s\""), "{error}");
        assert!(
            serde_json::from_str::<HumanDuration>("true")
                .unwrap_err()
                .to_string()
                .contains("such as \"15s\"")
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_exactly(nanos in 0..=MAX_NANOS, shift in 0_u32..63) {
            let duration = HumanDuration(Duration::from_nanos(nanos >> shift));
            prop_assert_eq!(HumanDuration::parse(&duration.to_string()), Ok(duration));
        }

        #[test]
        fn no_text_makes_parsing_panic(text in ".*", near in "([0-9]{0,25}\\.?[0-9]{0,25}(ns|us|ms|s|m|h|d|\u{b5}s)?){0,4}") {
            let _ = HumanDuration::parse(&text);
            let _ = HumanDuration::parse(&near);
        }
    }
}
