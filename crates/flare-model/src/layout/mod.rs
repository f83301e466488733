//! In: a layout as Go's `time` package understands it, once, and then values. Out: the moment a value names.
//!
//! A layout is the moment `Mon Jan 2 15:04:05 MST 2006` written the way the values are written. The rules are
//! those of Go's `time.Parse` far from any local zone: parts that a layout lacks are 0 (or 1 for month and
//! day), a weekday is checked for being one only, and a zone abbreviation has no offset. Where this differs
//! from Go, on purpose: `GMT+3` moves the moment (Go only labels it), digits never have a sign, an offset of
//! minus one second counts, and a layout without a single verb is refused.

pub mod civil;
mod error;
pub mod known;
mod parse;
pub mod rfc3339;
mod verb;
mod zone;

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use error::excerpt;
pub use error::{Fault, LayoutError, ParseError};

use civil::{Civil, civil_from_days, days_from_civil, days_in_month, is_leap};
use parse::{Half, Parts, Stop};
use verb::{Kind, Piece, Verb};

pub(crate) const SECONDS_PER_DAY: i64 = 86_400;

/// A moment, to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// Whole seconds since the Unix epoch, rounded down.
    pub seconds: i64,
    /// Nanoseconds after that second, below 1,000,000,000.
    pub nanos: u32,
}

/// A layout, compiled.
#[derive(Clone, PartialEq, Eq)]
pub struct Layout {
    text: Box<str>,
    pieces: Box<[Piece]>,
}

impl Layout {
    /// Compiles a layout. Any text that has at least one verb is one.
    pub fn compile(text: &str) -> Result<Layout, LayoutError> {
        let pieces = verb::pieces(text);
        if !pieces.iter().any(|piece| matches!(piece.kind, Kind::Verb(_))) {
            return Err(LayoutError::NoVerb { layout: excerpt(text) });
        }
        Ok(Layout { text: text.into(), pieces: pieces.into() })
    }

    /// Whether its values name a day: a year, and a month and day or the day of the year. Without that revisions would
    /// begin anew each day or each year.
    pub fn is_whole_date(&self) -> bool {
        let has = |wanted: fn(&Verb) -> bool| {
            self.pieces.iter().any(|piece| matches!(&piece.kind, Kind::Verb(verb) if wanted(verb)))
        };
        let year = has(|verb| matches!(verb, Verb::Year4 | Verb::Year2));
        let month = has(|verb| matches!(verb, Verb::MonthName(_) | Verb::Month(_)));
        let day = has(|verb| matches!(verb, Verb::Day(_)));
        year && (month && day || has(|verb| matches!(verb, Verb::DayOfYear(_))))
    }

    /// The layout as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The moment that the value names. The whole value must fit the layout.
    pub fn parse(&self, value: &str) -> Result<Instant, ParseError> {
        let fault = match parse::parts(&self.text, &self.pieces, value.as_bytes()) {
            Ok(parts) => match moment(&parts) {
                Ok(instant) => return Ok(instant),
                Err(fault) => fault,
            },
            Err(Stop::Mismatch { piece, rest }) => Fault::Mismatch {
                piece: excerpt(&self.text[self.pieces[piece].at.clone()]),
                rest: excerpt(&String::from_utf8_lossy(rest)),
            },
            Err(Stop::OutOfRange(part)) => Fault::OutOfRange(part),
            Err(Stop::ExtraText(rest)) => Fault::ExtraText(excerpt(&String::from_utf8_lossy(rest))),
        };
        Err(ParseError { value: excerpt(value), layout: excerpt(&self.text), fault })
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Layout").field(&self.text).finish()
    }
}

/// Puts the parts together, once all of them are known.
fn moment(parts: &Parts) -> Result<Instant, Fault> {
    let days = match parts.day_of_year {
        Some(day_of_year) => days_of_day_of_year(parts, day_of_year)?,
        None => {
            let (month, day) = (parts.month.unwrap_or(1), parts.day.unwrap_or(1));
            if !(1..=days_in_month(parts.year, month)).contains(&day) {
                return Err(Fault::OutOfRange("day"));
            }
            days_from_civil(Civil { year: parts.year, month, day })
        }
    };
    let hour = match parts.half {
        Some(Half::Pm) if parts.hour < 12 => parts.hour + 12,
        Some(Half::Am) if parts.hour == 12 => 0,
        _ => parts.hour,
    };
    let clock = i64::from(hour * 3_600 + parts.minute * 60 + parts.second);
    // An explicit UTC wins over an offset, and an offset over a name.
    let zone = &parts.zone;
    let offset = if zone.utc { 0 } else { zone.offset.or(zone.named).unwrap_or(0) };
    Ok(Instant { seconds: days * SECONDS_PER_DAY + clock - offset, nanos: parts.nanos })
}

/// The day that a day of the year falls on. A month or a day that the value gives as well must agree.
fn days_of_day_of_year(parts: &Parts, day_of_year: u32) -> Result<i64, Fault> {
    if !(1..=365 + u32::from(is_leap(parts.year))).contains(&day_of_year) {
        return Err(Fault::OutOfRange("day of year"));
    }
    let new_year = days_from_civil(Civil { year: parts.year, month: 1, day: 1 });
    let days = new_year + i64::from(day_of_year) - 1;
    let civil = civil_from_days(days);
    if parts.month.is_some_and(|month| month != civil.month) {
        return Err(Fault::DayOfYear("month"));
    }
    if parts.day.is_some_and(|day| day != civil.day) {
        return Err(Fault::DayOfYear("day"));
    }
    Ok(days)
}
