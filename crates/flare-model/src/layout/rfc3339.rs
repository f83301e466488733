//! In: a text. Out: the moment it names, where the text is RFC 3339.
//!
//! This is the standard itself, not Go's layout of that name: `t` and `z` may be lower-case, a space may
//! stand for the `T`, and 60 is a second (a leap second is taken for the second after it, since Unix time has
//! none).

use super::civil::{Civil, days_from_civil, days_in_month};
use super::error::{Fault, ParseError, excerpt};
use super::parse::nanos;
use super::{Instant, SECONDS_PER_DAY};

/// What an error calls the layout.
pub(crate) const NAME: &str = "RFC 3339";

/// Reads an RFC 3339 date and time, of the years 0 to 9999.
pub fn parse(text: &str) -> Result<Instant, ParseError> {
    let mut reader = Reader { rest: text.as_bytes() };
    let read = reader.number(4, "year").and_then(|year| reader.after_year(i64::from(year)));
    read.map_err(|fault| error(text, fault))
}

/// Reads a date whose year has a sign and up to nine digits: what a `Timestamp` far from our time is written
/// as.
pub(crate) fn parse_expanded(text: &str) -> Result<Instant, ParseError> {
    let digits = text.bytes().skip(1).take(9).take_while(u8::is_ascii_digit).count();
    let mut reader = Reader { rest: text.as_bytes().get(1..).unwrap_or_default() };
    let read = reader.number(digits.max(4), "year").and_then(|year| {
        let year = i64::from(year);
        reader.after_year(if text.starts_with('-') { -year } else { year })
    });
    read.map_err(|fault| error(text, fault))
}

fn error(text: &str, fault: Fault) -> ParseError {
    ParseError { value: excerpt(text), layout: NAME.to_owned(), fault }
}

struct Reader<'v> {
    rest: &'v [u8],
}

impl Reader<'_> {
    fn after_year(&mut self, year: i64) -> Result<Instant, Fault> {
        self.one_of(b"-", "-")?;
        let month = self.in_range(1, 12, "month")?;
        self.one_of(b"-", "-")?;
        let day = self.in_range(1, days_in_month(year, month), "day")?;
        self.one_of(b"Tt ", "T")?;
        let hour = self.in_range(0, 23, "hour")?;
        self.one_of(b":", ":")?;
        let minute = self.in_range(0, 59, "minute")?;
        self.one_of(b":", ":")?;
        let second = self.in_range(0, 60, "second")?;
        let nanos = self.fraction()?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(Fault::ExtraText(self.excerpt()));
        }
        let days = days_from_civil(Civil { year, month, day });
        let clock = i64::from(hour * 3_600 + minute * 60 + second);
        Ok(Instant { seconds: days * SECONDS_PER_DAY + clock - offset, nanos })
    }

    fn fraction(&mut self) -> Result<u32, Fault> {
        if self.rest.first() != Some(&b'.') {
            return Ok(0);
        }
        let count = self.rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.mismatch("fraction"));
        }
        let nanos = nanos(&self.rest[1..=count]);
        self.rest = &self.rest[1 + count..];
        Ok(nanos)
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i64, Fault> {
        let sign = match self.one_of(b"Zz+-", "Z or an offset such as +01:00")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Ok(0),
        };
        let hours = self.in_range(0, 23, "time zone offset hour")?;
        self.one_of(b":", ":")?;
        let minutes = self.in_range(0, 59, "time zone offset minute")?;
        Ok(sign * i64::from(hours * 3_600 + minutes * 60))
    }

    fn one_of(&mut self, accepted: &[u8], piece: &str) -> Result<u8, Fault> {
        match self.rest.split_first() {
            Some((byte, rest)) if accepted.contains(byte) => {
                self.rest = rest;
                Ok(*byte)
            }
            _ => Err(self.mismatch(piece)),
        }
    }

    fn in_range(&mut self, least: u32, most: u32, part: &'static str) -> Result<u32, Fault> {
        let value = self.number(2, part)?;
        if (least..=most).contains(&value) { Ok(value) } else { Err(Fault::OutOfRange(part)) }
    }

    /// A number of exactly `count` digits, nine at most.
    fn number(&mut self, count: usize, piece: &str) -> Result<u32, Fault> {
        match self.rest.split_at_checked(count) {
            Some((digits, rest)) if digits.iter().all(u8::is_ascii_digit) => {
                self.rest = rest;
                Ok(digits.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
            }
            _ => Err(self.mismatch(piece)),
        }
    }

    fn mismatch(&self, piece: &str) -> Fault {
        Fault::Mismatch { piece: piece.to_owned(), rest: self.excerpt() }
    }

    fn excerpt(&self) -> String {
        excerpt(&String::from_utf8_lossy(self.rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (text, seconds, nanos) in [
            ("1985-04-12T23:20:50.52Z", 482_196_050, 520_000_000),
            ("1996-12-19T16:39:57-08:00", 851_042_397, 0),
            ("1990-12-31T23:59:60Z", 662_688_000, 0),
            ("1990-12-31T15:59:60-08:00", 662_688_000, 0),
            ("1937-01-01T12:00:27.87+00:20", -1_041_337_173, 870_000_000),
            ("2010-02-04t21:00:57z", 1_265_317_257, 0),
            ("2010-02-04 21:00:57.0123456789-00:00", 1_265_317_257, 12_345_678),
            ("0000-01-01T00:00:00Z", -62_167_219_200, 0),
            ("9999-12-31T23:59:59.999999999Z", 253_402_300_799, 999_999_999),
        ] {
            assert_eq!(parse(text), Ok(Instant { seconds, nanos }), "{text}");
        }
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused_with_the_piece_that_failed() {
        for (text, expected) in [
            ("", r#"cannot read "" as "RFC 3339": "" does not fit "year""#),
            ("10-02-04T21:00:57Z", r#""10-02-04T21:00:57Z" does not fit "year""#),
            ("2010-2-04T21:00:57Z", r#""2-04T21:00:57Z" does not fit "month""#),
            ("2010-13-04T21:00:57Z", "month out of range"),
            ("2010-02-29T21:00:57Z", "day out of range"),
            ("2010-02-04T24:00:57Z", "hour out of range"),
            ("2010-02-04T21:60:57Z", "minute out of range"),
            ("2010-02-04T21:00:61Z", "second out of range"),
            ("2010-02-04T21:00:57.Z", r#"".Z" does not fit "fraction""#),
            ("2010-02-04T21:00:57,5Z", r#"",5Z" does not fit "Z or"#),
            ("2010-02-04T21:00:57", r#""" does not fit "Z or"#),
            ("2010-02-04T21:00:57+24:00", "time zone offset hour out of range"),
            ("2010-02-04T21:00:57+0100", r#""00" does not fit ":""#),
            ("2010-02-04T21:00:57Z ", r#"extra text " ""#),
            ("2010-02-04é21:00:57Z", r#""é21:00:57Z" does not fit "T""#),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
