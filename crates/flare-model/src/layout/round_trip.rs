//! In: a moment and a layout. Out: the moment written in UTC, to see that reading it gives the moment again.
//!
//! Only tests write dates in a layout; Flare itself repeats the text the origin wrote.

use super::civil::{Civil, civil_from_days, days_from_civil};
use super::known::*;
use super::parse::{MONTHS, WEEKDAYS};
use super::verb::{Case, Fraction, Kind, Name, Pad, Piece, Shape, Verb};
use super::{Instant, Layout, SECONDS_PER_DAY, rfc3339};
use proptest::prelude::*;

fn format(layout: &Layout, instant: Instant) -> String {
    layout.pieces.iter().map(|piece| write(layout, piece, instant)).collect()
}

fn write(layout: &Layout, piece: &Piece, Instant { seconds, nanos }: Instant) -> String {
    let text = &layout.text[piece.at.clone()];
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    let clock = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    let Civil { year, month, day } = civil_from_days(days);
    let fraction = || format!("{}{nanos:09}", &text[..1]);
    let Kind::Verb(verb) = piece.kind else { return text.to_owned() };
    match verb {
        Verb::Year4 => format!("{year:04}"),
        Verb::Year2 => format!("{:02}", year % 100),
        Verb::MonthName(name) => named(MONTHS[month as usize - 1], name),
        Verb::Month(pad) => padded(month.into(), pad, 2),
        Verb::WeekdayName(name) => named(WEEKDAYS[(days + 4).rem_euclid(7) as usize], name),
        Verb::Day(pad) => padded(day.into(), pad, 2),
        Verb::DayOfYear(pad) => padded(days - days_from_civil(Civil { year, month: 1, day: 1 }) + 1, pad, 3),
        Verb::Hour24 => format!("{hour:02}"),
        Verb::Hour12(pad) => padded((hour + 11) % 12 + 1, pad, 2),
        Verb::Minute(pad) => padded(minute, pad, 2),
        Verb::Second(pad) => padded(second, pad, 2),
        Verb::Fraction(Fraction::Exact(digits)) => fraction()[..=digits].to_owned(),
        Verb::Fraction(Fraction::Any) => {
            fraction()[..text.len()].trim_end_matches('0').trim_end_matches(['.', ',']).to_owned()
        }
        Verb::HalfDay(Case::Upper) => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        Verb::HalfDay(Case::Lower) => if hour < 12 { "am" } else { "pm" }.to_owned(),
        Verb::ZoneName => "UTC".to_owned(),
        Verb::Offset(offset) if offset.zulu => "Z".to_owned(),
        Verb::Offset(offset) => match offset.shape {
            Shape::Hours => "+00".to_owned(),
            Shape::HoursMinutes { colon } => if colon { "+00:00" } else { "+0000" }.to_owned(),
            Shape::HoursMinutesSeconds { colon } => if colon { "+00:00:00" } else { "+000000" }.to_owned(),
        },
    }
}

fn named(name: &str, style: Name) -> String {
    match style {
        Name::Long => name.to_owned(),
        Name::Short => name[..3].to_owned(),
    }
}

fn padded(value: i64, pad: Pad, width: usize) -> String {
    match pad {
        Pad::None => value.to_string(),
        Pad::Space => format!("{value:width$}"),
        Pad::Zero => format!("{value:0width$}"),
    }
}

/// Layouts that say everything down to the second, and the nanoseconds they can tell apart.
const COMPLETE: &[(&str, u32)] = &[
    (ANSIC, 1_000_000_000),
    (UNIX_DATE, 1_000_000_000),
    (RUBY_DATE, 1_000_000_000),
    (RFC1123, 1_000_000_000),
    (RFC1123Z, 1_000_000_000),
    (RFC3339, 1_000_000_000),
    (RFC3339_NANO, 1),
    (DATE_TIME, 1_000_000_000),
    ("2006-002T15:04:05.000", 1_000_000),
    ("__2 2006 3:4:5pm,000000", 1_000),
    ("Monday, January 2 2006 03:04:05.999 PM -07:00", 1_000_000),
    ("20060102150405.000000000Z0700", 1),
    ("02/01/2006 15:04:05 -070000", 1_000_000_000),
    ("1/_2/2006 15:4:5,99 Z07:00:00", 10_000_000),
    ("05 04 15 02 01 2006 -07", 1_000_000_000),
    ("Z07 -07:00:00 Z070000 15h04m05.000000000s 2006年1月2日", 1),
];

/// Seconds of the years 0 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

proptest! {
    #[test]
    fn a_moment_comes_back_through_every_complete_layout(seconds in SECONDS, nanos in 0..1_000_000_000_u32) {
        for (text, step) in COMPLETE {
            let layout = Layout::compile(text).expect("a layout with verbs");
            let instant = Instant { seconds, nanos: nanos - nanos % step };
            let written = format(&layout, instant);
            prop_assert_eq!(layout.parse(&written), Ok(instant), "{} as {}", written, text);
        }
    }

    #[test]
    fn what_the_nano_layout_writes_is_rfc_3339(seconds in SECONDS, nanos in 0..1_000_000_000_u32) {
        let layout = Layout::compile(RFC3339_NANO).expect("a layout with verbs");
        let instant = Instant { seconds, nanos };
        prop_assert_eq!(rfc3339::parse(&format(&layout, instant)), Ok(instant));
    }

    #[test]
    fn two_digits_of_a_year_come_back_from_1969_to_2068(seconds in -31_536_000..3_124_224_000_i64) {
        let layout = Layout::compile(RFC850).expect("a layout with verbs");
        let instant = Instant { seconds, nanos: 0 };
        prop_assert_eq!(layout.parse(&format(&layout, instant)), Ok(instant));
    }
}
