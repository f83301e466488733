//! In: milliseconds since the Unix epoch, or RFC 3339 text. Out: a `Timestamp`, which is written as RFC 3339
//! in UTC with milliseconds.
//!
//! There is no clock here: whoever needs the time is handed a `Timestamp`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::layout::civil::{Civil, civil_from_days};
use crate::layout::{Fault, ParseError, excerpt, rfc3339};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment this many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The moment `duration` later; what is finer than a millisecond is cut off. None where no `Timestamp`
    /// reaches.
    pub fn checked_add(self, duration: Duration) -> Option<Timestamp> {
        let millis = i128::try_from(duration.as_millis()).ok()? + i128::from(self.0);
        i64::try_from(millis).ok().map(Timestamp)
    }

    /// The moment `duration` later, or the last moment there is.
    pub fn saturating_add(self, duration: Duration) -> Timestamp {
        self.checked_add(duration).unwrap_or(Timestamp(i64::MAX))
    }

    /// The moment so many milliseconds later, or earlier where they are negative; the last or first one where no
    /// `Timestamp` reaches.
    pub const fn moved(self, millis: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(millis))
    }

    /// How long after `earlier` this is; nothing where it is not after it, as when a clock was set back.
    pub fn since(self, earlier: Timestamp) -> Duration {
        if self > earlier { Duration::from_millis(self.0.abs_diff(earlier.0)) } else { Duration::ZERO }
    }
}

/// RFC 3339. A year that needs more than four digits, or is negative, is written with its sign as ISO 8601
/// has it; `FromStr` reads that too.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day } = civil_from_days(self.0.div_euclid(MILLIS_PER_DAY));
        let clock = self.0.rem_euclid(MILLIS_PER_DAY);
        let (hour, minute) = (clock / 3_600_000, clock / 60_000 % 60);
        let (second, milli) = (clock / 1_000 % 60, clock % 1_000);
        match year {
            0..=9999 => write!(f, "{year:04}")?,
            _ => write!(f, "{year:+07}")?,
        }
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Any RFC 3339 date and time, in any zone; what is finer than a millisecond is cut off.
impl FromStr for Timestamp {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Timestamp, ParseError> {
        let instant =
            if text.starts_with(['+', '-']) { rfc3339::parse_expanded(text)? } else { rfc3339::parse(text)? };
        // The sum is wider than the result: the first second of all begins before the first millisecond.
        let millis = i128::from(instant.seconds) * 1_000 + i128::from(instant.nanos / 1_000_000);
        i64::try_from(millis).map(Timestamp).map_err(|_| ParseError {
            value: excerpt(text),
            layout: rfc3339::NAME.to_owned(),
            fault: Fault::OutOfRange("year"),
        })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        struct Rfc3339;

        impl Visitor<'_> for Rfc3339 {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 date and time")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Rfc3339)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_timestamp_is_written_as_rfc_3339_with_milliseconds() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_767_323_045_678, "2026-01-02T03:04:05.678Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "-000001-12-31T23:59:59.999Z"),
            (i64::MAX, "+292278994-08-17T07:12:55.807Z"),
        ] {
            let timestamp = Timestamp::from_millis(millis);
            assert_eq!(timestamp.to_string(), expected);
            assert_eq!(expected.parse(), Ok(timestamp));
        }
    }

    #[test]
    fn other_zones_and_other_precisions_are_read() {
        let parse = |text: &str| text.parse::<Timestamp>().map(Timestamp::millis);
        assert_eq!(parse("2026-01-02T03:04:05Z"), Ok(1_767_323_045_000));
        assert_eq!(parse("2026-01-02t05:04:05.6789+02:00"), Ok(1_767_323_045_678));
        assert_eq!(parse("1969-12-31T23:59:59.9999Z"), Ok(-1));
    }

    #[test]
    fn an_unreadable_text_is_refused_with_what_is_wrong() {
        let error = |text: &str| text.parse::<Timestamp>().expect_err(text).to_string();
        assert_eq!(error("today"), r#"cannot read "today" as "RFC 3339": "today" does not fit "year""#);
        assert!(error("2026-01-02").contains("does not fit"));
        assert!(error("+999999999-01-01T00:00:00Z").contains("year out of range"));
        assert!(error("-").contains("does not fit"));
        assert!(error("+1-01-01T00:00:00Z").contains("does not fit"));
    }

    #[test]
    fn adding_stops_at_the_end_of_time() {
        let day = Duration::from_secs(86_400);
        assert_eq!(Timestamp(5).checked_add(day), Some(Timestamp(86_400_005)));
        assert_eq!(Timestamp(i64::MAX).checked_add(Duration::from_micros(999)), Some(Timestamp(i64::MAX)));
        assert_eq!(Timestamp(i64::MAX).checked_add(day), None);
        assert_eq!(Timestamp(0).saturating_add(Duration::MAX), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MIN).saturating_add(Duration::from_millis(u64::MAX)), Timestamp(i64::MAX));
    }

    #[test]
    fn the_time_since_a_later_moment_is_nothing() {
        assert_eq!(Timestamp(5_000).since(Timestamp(2_000)), Duration::from_secs(3));
        assert_eq!(Timestamp(2_000).since(Timestamp(5_000)), Duration::ZERO);
        assert_eq!(Timestamp(i64::MAX).since(Timestamp(i64::MIN)), Duration::from_millis(u64::MAX));
    }

    #[test]
    fn json_has_it_as_a_string() {
        let timestamp = Timestamp::from_millis(1_767_323_045_678);
        assert_eq!(serde_json::to_string(&timestamp).unwrap(), r#""2026-01-02T03:04:05.678Z""#);
        let escaped = r#""2026-01-02\u005403:04:05.678Z""#;
        assert_eq!(serde_json::from_str::<Timestamp>(escaped).unwrap(), timestamp);
        assert!(serde_json::from_str::<Timestamp>("1767323045678").is_err());
    }

    proptest! {
        #[test]
        fn any_timestamp_comes_back_from_its_text(millis: i64) {
            let timestamp = Timestamp::from_millis(millis);
            prop_assert_eq!(timestamp.to_string().parse(), Ok(timestamp));
        }

        #[test]
        fn no_text_panics(text in ".*", signed in "[+-][0-9]{0,12}-[0-9T:.Z+-]{0,20}") {
            let _ = text.parse::<Timestamp>();
            let _ = signed.parse::<Timestamp>();
        }
    }
}
