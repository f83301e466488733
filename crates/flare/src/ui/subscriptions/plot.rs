//! Small plots: numbers come in, rectangles of an SVG of 100 by 100 go out, which a style sheet stretches and colours.
//! Labels stand beside it as text, so that they can be read at any width.

use std::time::Duration;

use flare_core::observe::{AttemptView, Outcome, Timing};
use flare_model::retry::Plan;

use crate::ui::text;

/// A rectangle.
pub struct Bar {
    /// Its left edge.
    pub x: String,
    /// Its upper edge.
    pub y: String,
    /// Its width.
    pub width: String,
    /// Its height.
    pub height: String,
    /// Its colour, by what it stands for.
    pub class: &'static str,
    /// What it says when pointed at.
    pub title: String,
}

/// How long the last attempts took, the oldest on the left.
pub struct Latency {
    /// One bar for each.
    pub bars: Vec<Bar>,
    /// What stands at the upper end.
    pub top: String,
    /// Half were faster.
    pub median: String,
    /// All but a twentieth were faster.
    pub p95: String,
    /// In words, for who cannot see it.
    pub label: String,
}

/// A logarithmic height from 4 to 100: what took a thousand times as long must not hide the rest. From a tenth of the
/// longest on, or from the shortest where that is less, so that what differs also looks different.
fn height_between(least: f64, value: f64, most: f64) -> f64 {
    let from = least.min(most / 10.0).max(f64::MIN_POSITIVE);
    4.0 + 96.0 * (value.max(from) / from).ln() / (most / from).ln().max(f64::MIN_POSITIVE)
}

/// A logarithmic height from 4 to 100, from nothing on.
fn height(value: f64, most: f64) -> f64 {
    4.0 + 96.0 * (1.0 + value).ln() / (1.0 + most).ln().max(f64::MIN_POSITIVE)
}

fn standing(at: usize, of: usize, height: f64, class: &'static str, title: String) -> Bar {
    let slot = 100.0 / of as f64;
    Bar {
        x: format!("{:.3}", at as f64 * slot + slot * 0.1),
        y: format!("{:.3}", 100.0 - height),
        width: format!("{:.3}", slot * 0.8),
        height: format!("{height:.3}"),
        class,
        title,
    }
}

/// A duration to three digits.
pub fn short(span: Duration) -> String {
    let micros = span.as_micros() as f64;
    let tenths = |value: f64| format!("{value:.1}").trim_end_matches(".0").to_owned();
    match micros {
        ..1000.0 => format!("{micros:.0} µs"),
        ..10_000.0 => format!("{} ms", tenths(micros / 1e3)),
        ..1_000_000.0 => format!("{:.0} ms", micros / 1e3),
        ..10_000_000.0 => format!("{} s", tenths(micros / 1e6)),
        _ => text::fine(span),
    }
}

impl Latency {
    /// Of these attempts, the newest first; nothing where there are none.
    pub fn of(attempts: &[AttemptView]) -> Option<Latency> {
        /// Room for so many, so that few of them do not become slabs.
        const SLOTS: usize = 40;
        let mut sorted: Vec<Duration> = attempts.iter().map(|attempt| attempt.timing.total.0).collect();
        sorted.sort_unstable();
        let (most, count) = (*sorted.last()?, sorted.len());
        let at = |share: f64| sorted[((count as f64 * share).ceil() as usize).clamp(1, count) - 1];
        let slots = count.max(SLOTS);
        let micros = |span: Duration| span.as_micros() as f64;
        let bars = attempts.iter().enumerate().map(|(age, attempt)| {
            let span = attempt.timing.total.0;
            let class = class(attempt.outcome);
            let title = format!("{}: {} after {}", text::utc(attempt.began_at), class, short(span));
            let height = height_between(micros(sorted[0]), micros(span), micros(most));
            standing(slots - 1 - age, slots, height, class, title)
        });
        let failed = attempts.iter().filter(|attempt| attempt.outcome == Outcome::Failed).count();
        let (median, p95) = (short(at(0.5)), short(at(0.95)));
        Some(Latency {
            bars: bars.collect(),
            top: format!("longest {}", short(most)),
            label: format!(
                "How long the last {count} attempts took: half of them up to {median}, 95 % up to {p95}, the longest {}; {failed} failed",
                short(most)
            ),
            median,
            p95,
        })
    }
}

/// How an attempt ended, in a word that is also the name of its colour.
pub fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Discarded => "discarded",
        Outcome::Failed => "failed",
    }
}

/// The waits that a retry policy plans: a bar for each attempt after the first.
pub fn waits(plan: &Plan) -> Vec<Bar> {
    let waits: Vec<Duration> =
        plan.attempts.windows(2).map(|pair| pair[1].after.0.saturating_sub(pair[0].after.0)).collect();
    let most = waits.iter().max().copied().unwrap_or_default().as_secs_f64();
    let bar = |(at, wait): (usize, &Duration)| {
        let planned = &plan.attempts[at + 1];
        let class = if planned.certain { "planned" } else { "uncertain" };
        let title = format!(
            "attempt {}: {} after the first, a wait of {}",
            planned.attempt,
            planned.after,
            short(*wait)
        );
        standing(at, waits.len().max(12), height(wait.as_secs_f64(), most), class, title)
    };
    waits.iter().enumerate().map(bar).collect()
}

/// A part of an attempt.
pub struct Phase {
    /// Where it is in the whole.
    pub bar: Bar,
    /// What it is.
    pub name: &'static str,
    /// How long it took.
    pub took: String,
}

/// The parts of an attempt, one after the other. An attempt without an answer waited for one to its end.
pub fn phases(timing: &Timing) -> Vec<Phase> {
    let total = timing.total.0;
    let connect = timing.connect.map_or(Duration::ZERO, |connect| connect.0).min(total);
    let first = timing.first_byte.map_or(total, |first| first.0).clamp(connect, total);
    let parts = [
        ("Connecting", "connect", Duration::ZERO, connect),
        ("Waiting for the answer", "wait", connect, first),
        ("Reading the answer", "read", first, total),
    ];
    let share = |span: Duration| 100.0 * span.as_secs_f64() / total.as_secs_f64().max(1e-9);
    parts
        .into_iter()
        .filter(|(_, _, from, to)| to > from)
        .map(|(name, class, from, to)| {
            let took = short(to - from);
            let (x, width) = (format!("{:.3}", share(from)), format!("{:.3}", share(to - from)));
            let title = format!("{name}: {took}");
            Phase { bar: Bar { x, y: "0".into(), width, height: "100".into(), class, title }, name, took }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::duration::HumanDuration;
    use flare_model::retry::RetryPolicy;

    fn timing(connect: Option<u64>, first: Option<u64>, total: u64) -> Timing {
        let span = |millis| HumanDuration(Duration::from_millis(millis));
        Timing { queued: None, connect: connect.map(span), first_byte: first.map(span), total: span(total) }
    }

    #[test]
    fn phases_fill_the_whole_one_after_the_other() {
        let names = |timing| {
            phases(&timing).iter().map(|p| (p.name, p.bar.x.clone(), p.bar.width.clone())).collect::<Vec<_>>()
        };
        let whole = names(timing(Some(10), Some(60), 100));
        assert_eq!(whole[0], ("Connecting", "0.000".into(), "10.000".into()));
        assert_eq!(whole[1], ("Waiting for the answer", "10.000".into(), "50.000".into()));
        assert_eq!(whole[2], ("Reading the answer", "60.000".into(), "40.000".into()));
        assert_eq!(names(timing(None, None, 50)).len(), 1, "one without an answer only waited");
    }

    #[test]
    fn what_took_longer_is_higher_and_what_took_as_long_is_as_high() {
        assert_eq!(height_between(500.0, 500.0, 500.0), 100.0);
        assert!((height_between(1.0, 1.0, 1000.0) - 4.0).abs() < 1e-9);
        assert!((height_between(1.0, 1000.0, 1000.0) - 100.0).abs() < 1e-9);
        // Three times as long can be seen, also where nothing is much longer.
        assert!(height_between(300.0, 900.0, 900.0) - height_between(300.0, 300.0, 900.0) > 30.0);
    }

    #[test]
    fn waits_grow_as_the_policy_says() {
        let policy: RetryPolicy =
            serde_json::from_str(r#"{"quantity":4,"interval":"1s","ratio":10}"#).unwrap();
        let bars = waits(&policy.plan(60));
        assert_eq!(bars.len(), 3);
        let heights: Vec<f64> = bars.iter().map(|bar| bar.height.parse().unwrap()).collect();
        assert!(heights[0] < heights[1] && heights[1] < heights[2] && heights[2] == 100.0, "{heights:?}");
        assert!(
            waits(&serde_json::from_str::<RetryPolicy>(r#"{"quantity":1}"#).unwrap().plan(60)).is_empty()
        );
    }

    #[test]
    fn durations_have_three_digits() {
        for (micros, text) in [
            (12, "12 µs"),
            (1500, "1.5 ms"),
            (15_000, "15 ms"),
            (5_000_000, "5 s"),
            (61_000_000, "1 min 1 s"),
        ] {
            assert_eq!(short(Duration::from_micros(micros)).replace('\u{a0}', " "), text);
        }
    }
}
