//! How far back the plots go: a name in the address comes in, a span of time goes out.

use std::time::Duration;

/// How far back the plots go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// Five minutes.
    Minutes,
    /// Half an hour.
    HalfHour,
    /// Two hours.
    Hours,
    /// A day.
    Day,
    /// Seven days.
    Week,
    /// Thirty days.
    Month,
}

impl Range {
    const ALL: [Range; 6] =
        [Range::Minutes, Range::HalfHour, Range::Hours, Range::Day, Range::Week, Range::Month];

    /// Those that a history which goes back so far has something for.
    pub fn offered(longest: Duration) -> Vec<Range> {
        let within = |range: &Range| *range == Range::Minutes || range.span() <= longest;
        Range::ALL.into_iter().filter(within).collect()
    }

    /// The one of that name in the address; five minutes where there is none.
    pub fn of(text: Option<&str>) -> Range {
        Range::ALL.into_iter().find(|range| Some(range.name()) == text).unwrap_or(Range::Minutes)
    }

    /// Its name in the address.
    pub fn name(self) -> &'static str {
        match self {
            Range::Minutes => "5m",
            Range::HalfHour => "30m",
            Range::Hours => "2h",
            Range::Day => "24h",
            Range::Week => "7d",
            Range::Month => "30d",
        }
    }

    /// Whether it is this one.
    pub fn is(&self, other: &Range) -> bool {
        self == other
    }

    /// Its name to people.
    pub fn label(self) -> &'static str {
        match self {
            Range::Minutes => "5 min",
            Range::HalfHour => "30 min",
            Range::Hours => "2 h",
            Range::Day => "24 h",
            Range::Week => "7 days",
            Range::Month => "30 days",
        }
    }

    /// How long it is.
    pub fn span(self) -> Duration {
        Duration::from_secs(match self {
            Range::Minutes => 300,
            Range::HalfHour => 1800,
            Range::Hours => 7200,
            Range::Day => 86_400,
            Range::Week => 7 * 86_400,
            Range::Month => 30 * 86_400,
        })
    }
}

/// How much of a range is shown while the process is younger than that: a plot of five minutes of which all but ten
/// seconds are empty shows nothing. Round, so that the plot does not change its scale all the time.
pub fn shown(range: Range, age: Duration) -> Duration {
    const MINUTES: [u64; 11] = [1, 2, 5, 10, 30, 60, 120, 360, 720, 1440, 4320];
    let round =
        MINUTES.map(|minutes| Duration::from_secs(minutes * 60)).into_iter().find(|round| *round >= age);
    round.map_or(range.span(), |round| round.min(range.span()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_process_shows_as_much_as_it_has() {
        for (range, age, seconds) in [
            (Range::Minutes, 3, 60),
            (Range::Minutes, 61, 120),
            (Range::Minutes, 299, 300),
            (Range::Minutes, 100_000, 300),
            (Range::Day, 61, 120),
            (Range::Day, 86_399, 86_400),
            (Range::Month, 86_401, 3 * 86_400),
            (Range::Month, 10_000_000, 30 * 86_400),
        ] {
            let shown = shown(range, Duration::from_secs(age));
            assert_eq!(shown, Duration::from_secs(seconds), "{range:?} after {age} s");
        }
    }

    #[test]
    fn only_ranges_that_the_history_reaches_are_offered() {
        let offered = |hours: u64| Range::offered(Duration::from_secs(hours * 3600)).len();
        assert_eq!([offered(0), offered(1), offered(24), offered(168), offered(8784)], [1, 2, 4, 5, 6]);
    }
}
