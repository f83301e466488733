//! The height of a plot: values come in, and the number at its upper end goes out, with round numbers below it. A few
//! values far above the others are cut off, so that the others can be seen; then it says so.

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// So many.
    Count,
    /// So many in a second.
    PerSecond,
    /// Seconds.
    Time,
}

/// Where a plot ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The number at the upper end.
    pub top: f64,
    /// The highest value.
    pub highest: f64,
    /// Whether some values are above the upper end, or would be if that were wanted.
    pub has_peaks: bool,
}

/// Values that are not nothing, below which none is cut off: of a few, none stands for the others.
const FEWEST: usize = 20;
/// So many of a hundred are below what is cut off.
const BULK: f64 = 0.9;
/// How much higher the highest has to be for it to matter.
const MUCH: f64 = 3.0;

impl Scale {
    /// The scale for these values; `whole` shows all of them, however high.
    pub fn of(values: impl Iterator<Item = f64>, unit: Unit, whole: bool) -> Scale {
        let mut values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        values.sort_by(f64::total_cmp);
        let highest = values.last().copied().unwrap_or(0.0);
        let all = nice_top(highest, unit);
        let most = match values.len() {
            ..FEWEST => all,
            count => nice_top(values[(count as f64 * BULK) as usize - 1], unit),
        };
        let has_peaks = all >= most * MUCH;
        Scale { top: if has_peaks && !whole { most } else { all }, highest, has_peaks }
    }

    /// Whether something is above the upper end.
    pub fn cuts(&self) -> bool {
        self.highest > self.top
    }
}

impl Unit {
    /// A number as people read it.
    pub fn say(self, value: f64) -> String {
        match self {
            Unit::Time if value == 0.0 => "0".to_owned(),
            Unit::Time if value < 0.001 => format!("{} µs", short(value * 1e6)),
            Unit::Time if value < 1.0 => format!("{} ms", short(value * 1e3)),
            Unit::Time if value < 120.0 => format!("{} s", short(value)),
            Unit::Time if value < 7200.0 => format!("{} min", short(value / 60.0)),
            Unit::Time => format!("{} h", short(value / 3600.0)),
            Unit::Count | Unit::PerSecond => match value {
                0.0..10_000.0 => short(value),
                10_000.0..1e6 => format!("{} k", short(value / 1e3)),
                _ => format!("{} M", short(value / 1e6)),
            },
        }
    }

    /// The same where it stands by itself.
    pub fn say_fully(self, value: f64) -> String {
        match self {
            Unit::PerSecond => format!("{}/s", self.say(value)),
            Unit::Count | Unit::Time => self.say(value),
        }
    }
}

/// Three digits, and none that say nothing.
fn short(value: f64) -> String {
    let text = match value {
        ..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The end of the scale: a number whose quarters are round, and no lower than the highest value.
fn nice_top(highest: f64, unit: Unit) -> f64 {
    /// Round numbers of seconds, minutes and hours, in seconds.
    const CLOCK: [f64; 14] = [
        15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0,
        86_400.0,
    ];
    let (least, factors): (f64, &[f64]) = match unit {
        Unit::Count => (4.0, &[1.0, 2.0, 5.0]),
        Unit::PerSecond => (4.0, &[1.0, 2.0, 2.5, 5.0]),
        Unit::Time => (0.004, &[1.0, 2.0, 5.0]),
    };
    let wanted = highest.max(least) / 4.0 * 0.999_999;
    if unit == Unit::Time && wanted > 10.0 {
        return 4.0 * CLOCK.into_iter().find(|step| *step >= wanted).unwrap_or(wanted);
    }
    let power = 10f64.powf((wanted * 1.000_001).log10().floor());
    let mut steps = factors.iter().map(|factor| factor * power);
    steps.find(|step| *step >= wanted).unwrap_or(10.0 * power) * 4.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_at_a_round_number_above_the_highest_value() {
        for (highest, top) in
            [(0.0, 4.0), (3.9, 4.0), (4.1, 8.0), (95.0, 200.0), (201.0, 400.0), (12_345.0, 20_000.0)]
        {
            assert_eq!(nice_top(highest, Unit::Count), top, "{highest}");
        }
        assert_eq!(nice_top(95.0, Unit::PerSecond), 100.0);
        assert!((nice_top(0.0031, Unit::Time) - 0.004).abs() < 1e-9);
    }

    #[test]
    fn times_are_divided_as_clocks_are() {
        for (highest, marks) in [
            (7.0, ["8 s", "6 s", "4 s", "2 s"]),
            (45.0, ["60 s", "45 s", "30 s", "15 s"]),
            (130.0, ["4 min", "3 min", "2 min", "60 s"]),
            (2000.0, ["40 min", "30 min", "20 min", "10 min"]),
            (13_000.0, ["4 h", "3 h", "2 h", "60 min"]),
        ] {
            let top = nice_top(highest, Unit::Time);
            let said = [4.0, 3.0, 2.0, 1.0].map(|quarter| Unit::Time.say(top * quarter / 4.0));
            assert_eq!(said, marks, "{highest}");
        }
    }

    #[test]
    fn a_peak_is_cut_off_where_it_would_flatten_the_rest() {
        let calm = || (0..100).map(|at| 20.0 + f64::from(at % 7));
        let of = |peak: f64, whole| Scale::of(calm().chain([peak]), Unit::PerSecond, whole);
        assert_eq!((of(30.0, false).top, of(30.0, false).cuts()), (40.0, false));
        let peaked = of(5000.0, false);
        assert_eq!((peaked.top, peaked.cuts(), peaked.highest), (40.0, true, 5000.0));
        let whole = of(5000.0, true);
        assert_eq!((whole.top, whole.cuts(), whole.has_peaks), (8000.0, false, true));
        // Of a few, none is a peak: what happened in one second of a quiet minute is all there is to see.
        let few = Scale::of([1.0, 2.0, 500.0].into_iter(), Unit::Count, false);
        assert!(!few.cuts() && !few.has_peaks);
    }

    #[test]
    fn numbers_are_said_with_three_digits() {
        for (unit, value, text) in [
            (Unit::Count, 0.0, "0"),
            (Unit::PerSecond, 1.5, "1.5"),
            (Unit::Count, 1234.4, "1234"),
            (Unit::Count, 25_000.0, "25 k"),
            (Unit::Time, 0.000_25, "250 µs"),
            (Unit::Time, 0.0125, "12.5 ms"),
            (Unit::Time, 90.0, "90 s"),
            (Unit::Time, 600.0, "10 min"),
            (Unit::Time, 9000.0, "2.5 h"),
        ] {
            assert_eq!(unit.say(value), text);
        }
    }
}
