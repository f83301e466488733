//! In: the text of a layout. Out: its pieces, each a verb (a part of a date) or literal text.
//!
//! A verb is recognised wherever its text stands, also inside words, as Go does; the longest verb that fits
//! at a place wins, and whatever is no verb is literal.

use std::ops::Range;

/// One piece of a layout and the place in the layout it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Literal,
    Verb(Verb),
}

/// A part of a date, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Year4,
    Year2,
    MonthName(Name),
    Month(Pad),
    WeekdayName(Name),
    Day(Pad),
    DayOfYear(Pad),
    Hour24,
    Hour12(Pad),
    Minute(Pad),
    Second(Pad),
    Fraction(Fraction),
    HalfDay(Case),
    ZoneName,
    Offset(Offset),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Long,
    Short,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pad {
    None,
    Space,
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
}

/// A fraction of a second after a point or a comma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fraction {
    /// Exactly as many digits as the layout has zeros.
    Exact(usize),
    /// Any number of digits, none included. How many nines there were only matters to a writer.
    Any,
}

/// A numeric zone: a sign, and then what `shape` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// Whether a `Z` may stand for no offset.
    pub(super) zulu: bool,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Hours,
    HoursMinutes { colon: bool },
    HoursMinutesSeconds { colon: bool },
}

/// Among verbs that begin alike the longer stands first.
const VERBS: &[(&str, Verb)] = &[
    ("January", Verb::MonthName(Name::Long)),
    ("Jan", Verb::MonthName(Name::Short)),
    ("Monday", Verb::WeekdayName(Name::Long)),
    ("Mon", Verb::WeekdayName(Name::Short)),
    ("MST", Verb::ZoneName),
    ("01", Verb::Month(Pad::Zero)),
    ("02", Verb::Day(Pad::Zero)),
    ("03", Verb::Hour12(Pad::Zero)),
    ("04", Verb::Minute(Pad::Zero)),
    ("05", Verb::Second(Pad::Zero)),
    ("06", Verb::Year2),
    ("002", Verb::DayOfYear(Pad::Zero)),
    ("15", Verb::Hour24),
    ("1", Verb::Month(Pad::None)),
    ("2006", Verb::Year4),
    ("2", Verb::Day(Pad::None)),
    ("__2", Verb::DayOfYear(Pad::Space)),
    ("_2", Verb::Day(Pad::Space)),
    ("3", Verb::Hour12(Pad::None)),
    ("4", Verb::Minute(Pad::None)),
    ("5", Verb::Second(Pad::None)),
    ("PM", Verb::HalfDay(Case::Upper)),
    ("pm", Verb::HalfDay(Case::Lower)),
];

/// What follows the `-` or the `Z` of a numeric zone; the longer first.
const SHAPES: &[(&str, Shape)] = &[
    ("07:00:00", Shape::HoursMinutesSeconds { colon: true }),
    ("070000", Shape::HoursMinutesSeconds { colon: false }),
    ("07:00", Shape::HoursMinutes { colon: true }),
    ("0700", Shape::HoursMinutes { colon: false }),
    ("07", Shape::Hours),
];

/// Cuts a layout into its pieces.
pub(super) fn pieces(layout: &str) -> Vec<Piece> {
    let bytes = layout.as_bytes();
    let mut pieces = Vec::new();
    let mut literal = 0;
    let mut place = 0;
    while place < bytes.len() {
        let Some((verb, length)) = verb_at(&bytes[place..]) else {
            place += 1;
            continue;
        };
        if literal < place {
            pieces.push(Piece { kind: Kind::Literal, at: literal..place });
        }
        pieces.push(Piece { kind: Kind::Verb(verb), at: place..place + length });
        place += length;
        literal = place;
    }
    if literal < place {
        pieces.push(Piece { kind: Kind::Literal, at: literal..place });
    }
    pieces
}

/// The verb that begins here, and the length of its text.
fn verb_at(rest: &[u8]) -> Option<(Verb, usize)> {
    match rest.first()? {
        sign @ (b'-' | b'Z') => offset_at(&rest[1..], *sign == b'Z'),
        b'.' | b',' => fraction_at(rest),
        _ => VERBS
            .iter()
            .find(|(text, _)| rest.starts_with(text.as_bytes()) && !is_part_of_more(text, rest))
            .map(|&(text, verb)| (verb, text.len())),
    }
}

/// `Month` and `Janet` are words, and the underscore of `_2006` only separates.
fn is_part_of_more(text: &str, rest: &[u8]) -> bool {
    match text {
        "Jan" | "Mon" => rest.get(3).is_some_and(u8::is_ascii_lowercase),
        "_2" => rest.starts_with(b"_2006"),
        _ => false,
    }
}

fn offset_at(after_sign: &[u8], zulu: bool) -> Option<(Verb, usize)> {
    let (text, shape) = SHAPES.iter().find(|(text, _)| after_sign.starts_with(text.as_bytes()))?;
    Some((Verb::Offset(Offset { zulu, shape: *shape }), 1 + text.len()))
}

/// A fraction is a run of one digit, all zeros or all nines, that no other digit follows: `.01` is a point
/// and a month.
fn fraction_at(rest: &[u8]) -> Option<(Verb, usize)> {
    let digit = *rest.get(1).filter(|digit| matches!(digit, b'0' | b'9'))?;
    let digits = rest[1..].iter().take_while(|byte| **byte == digit).count();
    if rest.get(1 + digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let fraction = if digit == b'0' { Fraction::Exact(digits) } else { Fraction::Any };
    Some((Verb::Fraction(fraction), 1 + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout with its verbs in parentheses.
    fn marked(layout: &str) -> String {
        let mut out = String::new();
        for piece in pieces(layout) {
            let text = &layout[piece.at];
            match piece.kind {
                Kind::Literal => out.push_str(text),
                Kind::Verb(_) => out.push_str(&format!("({text})")),
            }
        }
        out
    }

    #[test]
    fn verbs_are_found_where_go_finds_them() {
        for expected in [
            "(2006)-(01)-(02)T(15):(04):(05)(Z07:00)",
            "(2006)-(01)-(02) (002) (15):(04):(05)",
            "(2006)(002)(01) (15):(04):(05)",
            "(2006)(002)(04) (15):(04):(05)",
            "(15):(04)_(2006)(01)(02)",
            "(__2)0(06)",
            "(2006).(01).(02).(15).(04).(05)(.00)",
            "(05)(,000)(-07)",
            "(05)(.999999999)(-07:00:00)",
            "(05).(01)(05).90",
            "Hi Janet, the Month is (January): (Jan) (_2)",
            "(Mon)DAY (Monday) (MST) MS",
            "(1)(2)(3)(4)(5)(06)(-0700)",
            "(3)(pm)(PM) Pm (-070000)(Z070000)(Z07)(Z0700)(Z07:00:00)Z0",
            "yyyy-MM-dd",
            "é(2)é",
        ] {
            let layout: String = expected.chars().filter(|c| !matches!(c, '(' | ')')).collect();
            assert_eq!(marked(&layout), expected);
        }
    }
}
