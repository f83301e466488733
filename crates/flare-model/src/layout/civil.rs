//! In: a day counted from 1970-01-01, or a year, month and day. Out: the other of the two.
//!
//! The proleptic Gregorian calendar, with a year 0, as Go and ISO 8601 count. Years are taken to begin in
//! March, so that the leap day is the last day of a year and needs no case of its own. Nothing here
//! overflows: what lies outside the i64 range of days saturates.

/// Days in 400 years, after which the calendar repeats itself.
const DAYS_IN_ERA: i64 = 146_097;
/// Days from 0000-03-01, where the first era begins, to 1970-01-01.
const EPOCH: i64 = 719_468;

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is the year before 1.
    pub year: i64,
    /// The month, 1 to 12.
    pub month: u32,
    /// The day of the month, 1 to 31.
    pub day: u32,
}

/// The number of days from 1970-01-01 to this day. The month must be 1 to 12; a day past the end of the month
/// counts on into the next.
pub fn days_from_civil(Civil { year, month, day }: Civil) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let day_of_year = (153 * i64::from(month) + 2) / 5 + i64::from(day) - 1;
    let year_of_era = year.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = i128::from(year.div_euclid(400)) * i128::from(DAYS_IN_ERA) + i128::from(day_of_era - EPOCH);
    days.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The day that lies this many days after 1970-01-01.
pub fn civil_from_days(days: i64) -> Civil {
    // The epoch is added after the division, so that no number of days can overflow.
    let shifted = days.rem_euclid(DAYS_IN_ERA) + EPOCH;
    let era = days.div_euclid(DAYS_IN_ERA) + shifted.div_euclid(DAYS_IN_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_IN_ERA);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Civil { year: era * 400 + year_of_era + carry, month: month as u32, day: day as u32 }
}

/// Whether the year has a 29 February.
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// How many days the month (1 to 12) has in that year.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn day(year: i64, month: u32, day: u32) -> i64 {
        days_from_civil(Civil { year, month, day })
    }

    #[test]
    fn well_known_days_have_their_number() {
        assert_eq!(day(1970, 1, 1), 0);
        assert_eq!(day(1969, 12, 31), -1);
        assert_eq!(day(2000, 2, 29), 11_016);
        assert_eq!(day(2000, 3, 1), 11_017);
        assert_eq!(day(0, 1, 1), -719_528);
        assert_eq!(day(9999, 12, 31), 2_932_896);
    }

    #[test]
    fn every_day_follows_the_day_before_over_a_whole_era() {
        let mut expected = Civil { year: 1600, month: 1, day: 1 };
        let first = days_from_civil(expected);
        for days in first..first + DAYS_IN_ERA + 366 {
            assert_eq!(civil_from_days(days), expected);
            assert_eq!(days_from_civil(expected), days);
            expected.day += 1;
            if expected.day > days_in_month(expected.year, expected.month) {
                expected.day = 1;
                expected.month += 1;
            }
            if expected.month > 12 {
                expected.month = 1;
                expected.year += 1;
            }
        }
    }

    #[test]
    fn the_extremes_saturate_and_do_not_panic() {
        assert_eq!(day(i64::MAX, 12, 31), i64::MAX);
        assert_eq!(day(i64::MIN, 1, 1), i64::MIN);
        let last = civil_from_days(i64::MAX);
        assert_eq!(days_from_civil(last), i64::MAX);
        civil_from_days(i64::MIN);
    }

    proptest! {
        #[test]
        fn any_day_comes_back_from_its_date(days in -1_000_000_000_000_i64..1_000_000_000_000) {
            let civil = civil_from_days(days);
            prop_assert!((1..=12).contains(&civil.month));
            prop_assert!((1..=days_in_month(civil.year, civil.month)).contains(&civil.day));
            prop_assert_eq!(days_from_civil(civil), days);
        }
    }
}
