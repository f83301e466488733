//! In: an integer, or a moment and the text it was read from. Out: a revision that compares as the origin
//! means it and is shown as the origin wrote it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::ser::{Serialize, Serializer};

use crate::layout::Instant;

/// How new a state of a document is. A document keeps to one kind; any integer is below any date.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// A number.
    Integer(i64),
    /// A date, with the text the origin wrote.
    Date(Date),
}

impl Revision {
    /// Whether both are integers or both are dates.
    pub fn is_of_kind(&self, other: &Revision) -> bool {
        matches!(self, Revision::Integer(_)) == matches!(other, Revision::Integer(_))
    }

    /// The revision in the columns a store keeps: the integer or the seconds, the nanoseconds, and the text
    /// of a date. No text means an integer.
    pub fn to_parts(&self) -> (i64, u32, Option<&str>) {
        match self {
            Revision::Integer(value) => (*value, 0, None),
            Revision::Date(date) => (date.instant.seconds, date.instant.nanos, Some(&date.text)),
        }
    }

    /// The revision that `to_parts` took apart.
    pub fn from_parts(value: i64, nanos: u32, text: Option<&str>) -> Revision {
        match text {
            None => Revision::Integer(value),
            Some(text) => Revision::Date(Date::new(Instant { seconds: value, nanos }, text)),
        }
    }
}

/// As the origin wrote it.
impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Revision::Integer(value) => value.fmt(f),
            Revision::Date(date) => f.write_str(&date.text),
        }
    }
}

/// A JSON number or a JSON string. There is no way back: only the resource's `change` says what a string
/// means.
impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Revision::Integer(value) => serializer.serialize_i64(*value),
            Revision::Date(date) => serializer.serialize_str(&date.text),
        }
    }
}

/// A date that is a revision. Two dates are equal when they are the same moment, however they are written.
#[derive(Clone, Debug)]
pub struct Date {
    instant: Instant,
    text: Arc<str>,
}

impl Date {
    /// The moment, and the text it was read from.
    pub fn new(instant: Instant, text: impl Into<Arc<str>>) -> Date {
        Date { instant, text: text.into() }
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub fn seconds(&self) -> i64 {
        self.instant.seconds
    }

    /// Nanoseconds after that second.
    pub fn nanos(&self) -> u32 {
        self.instant.nanos
    }

    /// The date as the origin wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

// Written by hand, all four, since the text must count in none of them.
impl PartialEq for Date {
    fn eq(&self, other: &Date) -> bool {
        self.instant == other.instant
    }
}

impl Eq for Date {}

impl PartialOrd for Date {
    fn partial_cmp(&self, other: &Date) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Date {
    fn cmp(&self, other: &Date) -> Ordering {
        self.instant.cmp(&other.instant)
    }
}

impl Hash for Date {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.instant.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hash::DefaultHasher;

    fn date(seconds: i64, nanos: u32, text: &str) -> Revision {
        Revision::from_parts(seconds, nanos, Some(text))
    }

    #[test]
    fn integers_compare_by_value_and_stand_below_dates() {
        let ascending = [
            Revision::Integer(i64::MIN),
            Revision::Integer(-1),
            Revision::Integer(9),
            Revision::Integer(10),
            Revision::Integer(i64::MAX),
            date(-5, 0, "z"),
            date(0, 0, "y"),
            date(0, 1, "x"),
            date(1, 0, "a"),
        ];
        assert!(ascending.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn the_same_moment_written_differently_is_the_same_revision() {
        let (left, right) = (date(0, 5, "1970-01-01T01:00:00+01:00"), date(0, 5, "1970-01-01T00:00:00Z"));
        assert_eq!(left, right);
        assert_eq!(left.cmp(&right), Ordering::Equal);
        let hash = |revision: &Revision| {
            let mut hasher = DefaultHasher::new();
            revision.hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(&left), hash(&right));
    }

    #[test]
    fn a_revision_is_shown_as_the_origin_wrote_it() {
        assert_eq!(Revision::Integer(-7).to_string(), "-7");
        assert_eq!(date(0, 0, "Jan 1 \"70\"").to_string(), "Jan 1 \"70\"");
        let json = |revision: &Revision| serde_json::to_string(revision).unwrap();
        assert_eq!(json(&Revision::Integer(i64::MIN)), "-9223372036854775808");
        assert_eq!(json(&date(0, 0, "Jan 1 \"70\"")), r#""Jan 1 \"70\"""#);
    }

    proptest! {
        #[test]
        fn a_revision_comes_back_from_its_parts(value: i64, nanos in 0..1_000_000_000_u32, text: Option<String>) {
            let nanos = if text.is_some() { nanos } else { 0 };
            let revision = Revision::from_parts(value, nanos, text.as_deref());
            prop_assert_eq!(revision.to_parts(), (value, nanos, text.as_deref()));
        }
    }
}
