//! In: the beginning of a text. Out: the zone it begins with, and how many bytes that takes.
//!
//! Abbreviations are Go's: three to five upper-case letters by rules of thumb, since there is no full list of
//! them. They carry no offset (`PST` and `+03` are read as UTC, as Go does far from those places), except
//! `GMT+3`.

use super::verb::{Offset, Shape};

const HOUR: i64 = 3_600;
/// An hour that a signed abbreviation can have at most.
const LAST_HOUR: i64 = 23;

/// A numeric zone in seconds east of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numeric {
    /// A `Z` was written.
    Zulu,
    Seconds(i64),
    /// It has the shape of an offset, but this part of it is too large.
    OutOfRange(&'static str),
}

/// Reads a numeric zone in the given shape.
pub(super) fn numeric(text: &[u8], offset: Offset) -> Option<(Numeric, usize)> {
    let sign = match text.first()? {
        b'Z' if offset.zulu => return Some((Numeric::Zulu, 1)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (parts, colon) = match offset.shape {
        Shape::Hours => (1, false),
        Shape::HoursMinutes { colon } => (2, colon),
        Shape::HoursMinutesSeconds { colon } => (3, colon),
    };
    let mut length = 1;
    let mut values = [0; 3];
    for (index, value) in values.iter_mut().take(parts).enumerate() {
        if colon && index > 0 {
            text.get(length).filter(|byte| **byte == b':')?;
            length += 1;
        }
        *value = two_digits(text.get(length..length + 2)?)?;
        length += 2;
    }
    let [hours, minutes, seconds] = values;
    // The limits are one too wide on purpose: offsets of 24 hours or 60 minutes are met in the wild.
    let zone = match () {
        () if hours > 24 => Numeric::OutOfRange("time zone offset hour"),
        () if minutes > 60 => Numeric::OutOfRange("time zone offset minute"),
        () if seconds > 60 => Numeric::OutOfRange("time zone offset second"),
        () => Numeric::Seconds(sign * (hours * HOUR + minutes * 60 + seconds)),
    };
    Some((zone, length))
}

/// A zone abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abbreviation {
    Utc,
    /// `GMT+3`, in seconds east of UTC.
    Gmt(i64),
    /// A name that says nothing about its offset.
    Unknown,
}

/// Reads a zone abbreviation.
pub(super) fn abbreviation(text: &[u8]) -> Option<(Abbreviation, usize)> {
    if text.starts_with(b"UTC") {
        return Some((Abbreviation::Utc, 3));
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some((Abbreviation::Unknown, 4));
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        let (hours, length) = signed_hours(rest).unwrap_or((0, 0));
        return Some((Abbreviation::Gmt(hours * HOUR), 3 + length));
    }
    if matches!(text.first()?, b'+' | b'-') {
        // A place whose zone has no letters, such as "+03". Shorter than three bytes it is no zone in Go.
        let (_, length) = signed_hours(text).filter(|_| text.len() >= 3)?;
        return Some((Abbreviation::Unknown, length));
    }
    let letters = text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    let known = match letters {
        3 => true,
        4 => text[3] == b'T' || text.starts_with(b"WITA"),
        5 => text[4] == b'T',
        _ => false,
    };
    known.then_some((Abbreviation::Unknown, letters))
}

/// A sign and a number of hours of any width, at most 23.
fn signed_hours(text: &[u8]) -> Option<(i64, usize)> {
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit());
    let (hours, length) = digits.fold((0_i64, 0), |(hours, length), digit| {
        (hours.saturating_mul(10).saturating_add(i64::from(digit - b'0')), length + 1)
    });
    (length > 0 && hours <= LAST_HOUR).then_some((sign * hours, 1 + length))
}

fn two_digits(text: &[u8]) -> Option<i64> {
    match *text {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_as_long_as_in_go() {
        for (text, expected) in [
            ("gmt hi there", None),
            ("GMT hi there", Some(3)),
            ("GMT+12 hi there", Some(6)),
            ("GMT+00 hi there", Some(6)),
            ("GMT+", Some(3)),
            ("GMT+3", Some(5)),
            ("GMT+a", Some(3)),
            ("GMT+3a", Some(5)),
            ("GMT-5 hi there", Some(5)),
            ("GMT-51 hi there", Some(3)),
            ("ChST hi there", Some(4)),
            ("MeST hi there", Some(4)),
            ("MSDx", Some(3)),
            ("MSDY", None),
            ("ESAST hi", Some(5)),
            ("ESASTT hi", None),
            ("ESATY hi", None),
            ("WITA hi", Some(4)),
            ("+03 hi", Some(3)),
            ("-04 hi", Some(3)),
            ("+00", Some(3)),
            ("-23", Some(3)),
            ("-24", None),
            ("+24", None),
            ("+3", None),
            ("+", None),
            ("", None),
            ("UT", None),
            ("UTC", Some(3)),
            ("+99999999999999999999999999", None),
        ] {
            let length = abbreviation(text.as_bytes()).map(|(_, length)| length);
            assert_eq!(length, expected, "{text:?}");
        }
    }

    #[test]
    fn a_numeric_zone_is_read_in_its_own_shape_only() {
        let colon = Offset { zulu: true, shape: Shape::HoursMinutes { colon: true } };
        assert_eq!(numeric(b"Zulu", colon), Some((Numeric::Zulu, 1)));
        assert_eq!(numeric(b"-08:30x", colon), Some((Numeric::Seconds(-30_600), 6)));
        assert_eq!(numeric(b"+25:00", colon), Some((Numeric::OutOfRange("time zone offset hour"), 6)));
        assert_eq!(numeric(b"-0830", colon), None);
        let plain = Offset { zulu: false, shape: Shape::HoursMinutesSeconds { colon: false } };
        assert_eq!(numeric(b"-003408", plain), Some((Numeric::Seconds(-2_048), 7)));
        assert_eq!(numeric(b"Z", plain), None);
        assert_eq!(numeric(b"+0034", plain), None);
    }
}
