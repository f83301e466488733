//! In: the pieces of a layout and a value. Out: the parts of the date that the value gives, or the piece that
//! failed and why.
//!
//! The rules are those of Go's `time.Parse`. Values are read as bytes: a value is never cut, so a character
//! of several bytes cannot be split, only fail to match.

use super::verb::{Case, Fraction, Kind, Name, Pad, Piece, Verb};
use super::zone::{self, Abbreviation, Numeric};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// What a value said about a date. A part that the layout lacks keeps its default.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) year: i64,
    pub(super) month: Option<u32>,
    pub(super) day: Option<u32>,
    pub(super) day_of_year: Option<u32>,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) nanos: u32,
    pub(super) half: Option<Half>,
    pub(super) zone: Zone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Am,
    Pm,
}

/// The zones of a value; it may give several, as `-0800 PST` does.
#[derive(Debug, Default)]
pub(super) struct Zone {
    pub(super) utc: bool,
    pub(super) offset: Option<i64>,
    pub(super) named: Option<i64>,
}

/// Where reading stopped, in terms of the layout and of the value that is left.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop<'v> {
    Mismatch { piece: usize, rest: &'v [u8] },
    OutOfRange(&'static str),
    ExtraText(&'v [u8]),
}

/// Why one verb did not take its part of the value.
enum Miss {
    Mismatch,
    OutOfRange(&'static str),
}

/// Reads the whole value by the pieces of `layout`.
pub(super) fn parts<'v>(layout: &str, pieces: &[Piece], value: &'v [u8]) -> Result<Parts, Stop<'v>> {
    let mut parts = Parts::default();
    let mut rest = value;
    for (index, piece) in pieces.iter().enumerate() {
        let before = rest;
        match piece.kind {
            Kind::Literal => skip_literal(&mut rest, &layout.as_bytes()[piece.at.clone()])
                .map_err(|_| Stop::Mismatch { piece: index, rest })?,
            Kind::Verb(verb) => {
                read_verb(verb, &mut rest, &mut parts).map_err(|miss| match miss {
                    Miss::Mismatch => Stop::Mismatch { piece: index, rest: before },
                    Miss::OutOfRange(part) => Stop::OutOfRange(part),
                })?;
                // A value may have a fraction right after its seconds though the layout shows none.
                if matches!(verb, Verb::Second(_)) && !next_verb_is_fraction(&pieces[index + 1..]) {
                    parts.nanos = any_fraction(&mut rest).unwrap_or(parts.nanos);
                }
            }
        }
    }
    if rest.is_empty() { Ok(parts) } else { Err(Stop::ExtraText(rest)) }
}

fn next_verb_is_fraction(pieces: &[Piece]) -> bool {
    pieces.iter().find_map(|piece| match piece.kind {
        Kind::Literal => None,
        Kind::Verb(verb) => Some(matches!(verb, Verb::Fraction(_))),
    }) == Some(true)
}

/// A run of spaces in the layout takes any run of spaces, or the end of the value; the rest is taken as it
/// is.
fn skip_literal(rest: &mut &[u8], literal: &[u8]) -> Result<(), Miss> {
    let mut literal = literal;
    while let Some(&byte) = literal.first() {
        if byte == b' ' {
            if rest.first().is_some_and(|byte| *byte != b' ') {
                return Err(Miss::Mismatch);
            }
            literal = without_spaces(literal);
            *rest = without_spaces(rest);
        } else {
            *rest = rest.strip_prefix(&[byte]).ok_or(Miss::Mismatch)?;
            literal = &literal[1..];
        }
    }
    Ok(())
}

fn without_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    &text[spaces..]
}

fn read_verb(verb: Verb, rest: &mut &[u8], parts: &mut Parts) -> Result<(), Miss> {
    match verb {
        Verb::Year4 => parts.year = i64::from(digits(rest, 4, 4)?),
        Verb::Year2 => {
            let year = i64::from(digits(rest, 2, 2)?);
            parts.year = if year >= 69 { 1900 + year } else { 2000 + year };
        }
        Verb::MonthName(name) => parts.month = Some(1 + one_of(rest, &MONTHS, name)?),
        Verb::Month(pad) => parts.month = Some(in_range(number(rest, pad)?, 1, 12, "month")?),
        // The weekday must be one, but need not be the right one.
        Verb::WeekdayName(name) => drop(one_of(rest, &WEEKDAYS, name)?),
        // Whether the month has that day is known only at the end.
        Verb::Day(pad) => parts.day = Some(number(rest, pad)?),
        Verb::DayOfYear(pad) => {
            if pad == Pad::Space {
                skip_space(rest);
                skip_space(rest);
            }
            parts.day_of_year = Some(digits(rest, if pad == Pad::Zero { 3 } else { 1 }, 3)?);
        }
        Verb::Hour24 => parts.hour = in_range(number(rest, Pad::None)?, 0, 23, "hour")?,
        Verb::Hour12(pad) => parts.hour = in_range(number(rest, pad)?, 0, 12, "hour")?,
        Verb::Minute(pad) => parts.minute = in_range(number(rest, pad)?, 0, 59, "minute")?,
        Verb::Second(pad) => parts.second = in_range(number(rest, pad)?, 0, 59, "second")?,
        Verb::Fraction(Fraction::Exact(count)) => parts.nanos = exact_fraction(rest, count)?,
        Verb::Fraction(Fraction::Any) => parts.nanos = any_fraction(rest).unwrap_or(parts.nanos),
        Verb::HalfDay(case) => parts.half = Some(half(rest, case)?),
        Verb::ZoneName => {
            let (zone, length) = zone::abbreviation(rest).ok_or(Miss::Mismatch)?;
            *rest = &rest[length..];
            match zone {
                Abbreviation::Utc => parts.zone.utc = true,
                Abbreviation::Gmt(offset) => parts.zone.named = Some(offset),
                Abbreviation::Unknown => parts.zone.named = Some(0),
            }
        }
        Verb::Offset(offset) => {
            let (zone, length) = zone::numeric(rest, offset).ok_or(Miss::Mismatch)?;
            *rest = &rest[length..];
            match zone {
                Numeric::Zulu => parts.zone.utc = true,
                Numeric::Seconds(seconds) => parts.zone.offset = Some(seconds),
                Numeric::OutOfRange(part) => return Err(Miss::OutOfRange(part)),
            }
        }
    }
    Ok(())
}

/// A number of two digits at most; padded with zeros it has exactly two.
fn number(rest: &mut &[u8], pad: Pad) -> Result<u32, Miss> {
    if pad == Pad::Space {
        skip_space(rest);
    }
    digits(rest, if pad == Pad::Zero { 2 } else { 1 }, 2)
}

fn skip_space(rest: &mut &[u8]) {
    *rest = rest.strip_prefix(b" ").unwrap_or(rest);
}

/// As many digits as there are, but at least `least` and at most `most`.
fn digits(rest: &mut &[u8], least: usize, most: usize) -> Result<u32, Miss> {
    let count = rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    if count < least {
        return Err(Miss::Mismatch);
    }
    let (digits, after) = rest.split_at(count);
    *rest = after;
    Ok(digits.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

fn in_range(value: u32, least: u32, most: u32, part: &'static str) -> Result<u32, Miss> {
    if (least..=most).contains(&value) { Ok(value) } else { Err(Miss::OutOfRange(part)) }
}

/// The place in `names` of the name that the value begins with, in any case.
fn one_of(rest: &mut &[u8], names: &[&str], name: Name) -> Result<u32, Miss> {
    for (place, long) in (0..).zip(names) {
        let text = match name {
            Name::Long => long,
            Name::Short => &long[..3],
        };
        if rest.get(..text.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(text.as_bytes())) {
            *rest = &rest[text.len()..];
            return Ok(place);
        }
    }
    Err(Miss::Mismatch)
}

fn half(rest: &mut &[u8], case: Case) -> Result<Half, Miss> {
    let half = match (rest.get(..2), case) {
        (Some(b"AM"), Case::Upper) | (Some(b"am"), Case::Lower) => Half::Am,
        (Some(b"PM"), Case::Upper) | (Some(b"pm"), Case::Lower) => Half::Pm,
        _ => return Err(Miss::Mismatch),
    };
    *rest = &rest[2..];
    Ok(half)
}

/// A point or a comma and exactly `count` digits, in nanoseconds.
fn exact_fraction(rest: &mut &[u8], count: usize) -> Result<u32, Miss> {
    let digits = rest.get(1..1 + count).filter(|digits| digits.iter().all(u8::is_ascii_digit));
    match (rest.first(), digits) {
        (Some(b'.' | b','), Some(digits)) => {
            *rest = &rest[1 + count..];
            Ok(nanos(digits))
        }
        _ => Err(Miss::Mismatch),
    }
}

/// A point or a comma and all digits after it, in nanoseconds; nothing is taken where there are none.
fn any_fraction(rest: &mut &[u8]) -> Option<u32> {
    rest.first().filter(|byte| matches!(byte, b'.' | b','))?;
    let count = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let nanos = nanos(&rest[1..=count]);
    *rest = &rest[1 + count..];
    Some(nanos)
}

/// The digits of a fraction in nanoseconds; what is finer is cut off.
pub(super) fn nanos(digits: &[u8]) -> u32 {
    let padded = digits.iter().chain(std::iter::repeat(&b'0'));
    padded.take(9).fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'))
}
