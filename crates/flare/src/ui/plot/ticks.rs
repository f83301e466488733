//! The times below a plot: a span of time comes in, round moments go out. In UTC; ui-assets/moving.js places them anew
//! where the clock of the reader's zone has other round moments.

use std::time::Duration;

use flare_model::time::Timestamp;

/// Seconds between moments that clocks call round.
const STEPS: [u64; 20] = [
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    14_400,
    21_600,
    43_200,
    DAY,
    2 * DAY,
    5 * DAY,
];
const DAY: u64 = 86_400;
/// Moments below a plot, at most: a phone has no room for more.
const MOST: u64 = 7;
/// Nearer to an end, in percent of the width, a moment would stick out.
const MARGIN: f64 = 4.0;

/// A moment below a plot.
pub struct Tick {
    /// Where, in percent of the width.
    pub x: String,
    /// What it says.
    pub text: String,
}

/// How far apart moments are.
pub fn step(span: Duration) -> Duration {
    let least = if span.as_secs() > DAY { DAY } else { 1 };
    let fits = |step: &u64| *step >= least && span.as_secs() / step <= MOST;
    Duration::from_secs(STEPS.into_iter().find(fits).unwrap_or(10 * DAY))
}

/// The round moments of the last `span` before `now`.
pub fn ticks(now: Timestamp, span: Duration) -> Vec<Tick> {
    let step = step(span);
    let (step_millis, span_millis) = (step.as_millis() as i64, span.as_millis() as i64);
    let from = now.millis().saturating_sub(span_millis);
    let first = from.div_euclid(step_millis).saturating_add(1).saturating_mul(step_millis);
    // Seconds where they matter, and the date where the time of day is always the same.
    let part = match step.as_secs() {
        ..60 => 11..19,
        60..DAY => 11..16,
        _ => 5..10,
    };
    let mut ticks = Vec::new();
    for at in (0..=MOST as i64).map(|index| first.saturating_add(index * step_millis)) {
        let x = (at.saturating_sub(from)) as f64 / span_millis.max(1) as f64 * 100.0;
        if (MARGIN..=100.0 - MARGIN).contains(&x) {
            let text = Timestamp::from_millis(at).to_string();
            ticks.push(Tick {
                x: format!("{x:.2}"),
                text: text.get(part.clone()).unwrap_or_default().to_owned(),
            });
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(now: &str, seconds: u64) -> Vec<String> {
        let ticks = ticks(now.parse().unwrap(), Duration::from_secs(seconds));
        ticks.into_iter().map(|tick| format!("{} {}", tick.x, tick.text)).collect()
    }

    #[test]
    fn moments_are_round_whatever_the_time_is() {
        assert_eq!(
            said("2026-01-01T12:05:30Z", 300),
            ["10.00 12:01", "30.00 12:02", "50.00 12:03", "70.00 12:04", "90.00 12:05"]
        );
        assert_eq!(said("2026-01-01T12:05:07Z", 60)[0], "5.00 12:04:10");
        assert_eq!(
            said("2026-01-01T13:07:00Z", 86_400),
            ["12.01 16:00", "28.68 20:00", "45.35 00:00", "62.01 04:00", "78.68 08:00", "95.35 12:00"]
        );
        assert_eq!(said("2026-01-08T12:00:00Z", 7 * 86_400)[0], "7.14 01-02");
    }

    #[test]
    fn there_are_neither_too_many_nor_none() {
        for minutes in [1, 2, 5, 10, 30, 60, 120, 360, 720, 1440, 4320, 10_080, 43_200] {
            let count = said("2026-03-04T05:06:07.890Z", minutes * 60).len();
            assert!((2..=7).contains(&count), "{minutes} minutes: {count}");
        }
    }
}
