//! In: the value of a `Retry-After` header and the time now. Out: how long the client asks to be left alone, or
//! nothing when the value is neither a number of seconds nor a date of RFC 9110 (section 5.6.7, all three forms).

use std::time::Duration;

/// More seconds than anyone means; keeps sums of the result far from overflowing. Some 136 years.
const MOST_SECONDS: u64 = u32::MAX as u64;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads a `Retry-After`. `now_seconds` are seconds since 1970-01-01T00:00:00Z, for dates; a date in the past is no
/// delay.
pub fn parse_retry_after(header: &str, now_seconds: i64) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = header.parse().unwrap_or(MOST_SECONDS).min(MOST_SECONDS);
        return Some(Duration::from_secs(seconds));
    }
    let wait = parse_date(header, now_seconds)?.saturating_sub(now_seconds).max(0);
    Some(Duration::from_secs(wait.unsigned_abs().min(MOST_SECONDS)))
}

/// Seconds since 1970. The name of the day is not compared with the date: a client that gets it wrong still means the
/// date.
fn parse_date(text: &str, now_seconds: i64) -> Option<i64> {
    let (day_name, rest) = match text.split_once(", ") {
        Some(parts) => parts,
        None => return parse_asctime(text),
    };
    if day_name.is_empty() || !day_name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let rest = rest.strip_suffix(" GMT")?;
    if rest.contains('-') {
        // Sunday, 06-Nov-94 08:49:37 GMT
        let (date, time) = rest.split_once(' ')?;
        let mut parts = date.split('-');
        let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
        let year = full_year(number(year, 2)?, now_seconds);
        return parts.next().is_none().then(|| seconds(year, month, day, time))?;
    }
    // Sun, 06 Nov 1994 08:49:37 GMT
    let mut parts = rest.split(' ');
    let (day, month, year, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then(|| seconds(number(year, 4)?, month, day, time))?
}

/// `Sun Nov  6 08:49:37 1994`: a day below ten has a blank before it.
fn parse_asctime(text: &str) -> Option<i64> {
    let mut parts = text.split(' ').filter(|part| !part.is_empty());
    let (_, month, day, time, year) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let padded = format!("{day:0>2}");
    parts.next().is_none().then(|| seconds(number(year, 4)?, month, &padded, time))?
}

/// A year of two digits that seems to be more than 50 years ahead is the last one in the past that ends so.
fn full_year(two_digits: i64, now_seconds: i64) -> i64 {
    let this_year = 1970 + now_seconds.div_euclid(31_556_952);
    let year = this_year - this_year.rem_euclid(100) + two_digits;
    if year > this_year + 50 { year - 100 } else { year }
}

fn number(text: &str, width: usize) -> Option<i64> {
    let digits = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn seconds(year: i64, month: &str, day: &str, time: &str) -> Option<i64> {
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as i64;
    let day = number(day, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let mut parts = time.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    // 60 is a leap second.
    if parts.next().is_some() || !(1..=last).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are taken to begin in March, so that the leap day is the
/// last of a year and the months before it follow a line.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1994-11-06T08:49:37Z, the date of the examples in RFC 9110.
    const EXAMPLE: i64 = 784_111_777;

    fn after(header: &str, now: i64) -> Option<u64> {
        parse_retry_after(header, now).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_are_taken_as_they_are() {
        assert_eq!(after("120", 0), Some(120));
        assert_eq!(after(" 0 ", 0), Some(0));
        assert_eq!(after("99999999999999999999999", 0), Some(MOST_SECONDS));
    }

    #[test]
    fn the_three_forms_of_a_date_mean_the_same() {
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(after(date, EXAMPLE - 30), Some(30), "{date}");
            assert_eq!(after(date, EXAMPLE + 30), Some(0), "{date}");
        }
        assert_eq!(after("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800 - 1), Some(1));
        assert_eq!(after("Fri Dec 31 23:59:60 1999", 946_684_799), Some(1));
    }

    #[test]
    fn a_year_of_two_digits_is_near() {
        let in_2026 = 1_780_000_000;
        assert_eq!(full_year(26, in_2026), 2026);
        assert_eq!(full_year(76, in_2026), 2076);
        assert_eq!(full_year(77, in_2026), 1977);
    }

    #[test]
    fn anything_else_is_ignored() {
        for header in [
            "",
            "soon",
            "-5",
            "1.5",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Wed, 29 Feb 2023 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37 1 GMT",
            "Sunday, 06-Nov-94-1 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994 x",
        ] {
            assert_eq!(after(header, 0), None, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_parsing_panic(text in ".*", near in "[A-Z][a-z]{2}, [0-9]{2}[ -][A-Z][a-z]{2}[ -][0-9]{2,4} [0-9:]{8} GMT", now: i64) {
            let _ = parse_retry_after(&text, now);
            let _ = parse_retry_after(&near, now);
        }
    }
}
