//! The numbers at the top of the dashboard: what happened over the time that is shown, not in its last second.

use std::time::Duration;

use flare_core::observe::{Percentiles, Point, Series};

use crate::ui::plot::Unit;
use crate::ui::text;

/// The numbers, in words.
pub struct Tiles {
    /// How long it is that they are about.
    pub over: String,
    /// Documents that changed something.
    pub accepted: String,
    /// How many in a second, in the mean and at most.
    pub accepted_rate: String,
    /// Notifications that arrived.
    pub delivered: String,
    /// How many in a second, in the mean and at most.
    pub delivered_rate: String,
    /// Attempts that failed.
    pub failed: String,
    /// The longest backlog.
    pub backlog: String,
    /// How soon 95 of 100 clients had a change.
    pub latency: String,
}

impl Tiles {
    /// Of these points, which are shown as `span`.
    pub fn of(series: &Series, span: Duration) -> Tiles {
        let points = &series.points;
        // From nothing on: the sum of no numbers is -0.
        let sum =
            |read: fn(&Point) -> f64| points.iter().fold(0.0, |sum, point| sum + read(point) * point.seconds);
        let seconds: f64 = points.iter().map(|point| point.seconds).sum();
        let rate = |read: fn(&Point) -> f64| {
            let most = points.iter().map(read).fold(0.0, f64::max);
            let mean = sum(read) / seconds.max(1.0);
            let say = |rate| Unit::PerSecond.say_fully(rate);
            format!("{} on average, up to {}", say(mean), say(most))
        };
        let count = |read: fn(&Point) -> f64| text::number(sum(read).round() as u64);
        let backlog = points.iter().map(|point| point.gauges.backlog).max().unwrap_or(0);
        let latency = within(points, 0.95);
        Tiles {
            over: text::fine(span),
            accepted: count(|point| point.accepted),
            accepted_rate: rate(|point| point.accepted),
            delivered: count(|point| point.delivered),
            delivered_rate: rate(|point| point.delivered),
            failed: count(|point| point.failed),
            backlog: text::number(backlog),
            latency: latency.map_or_else(|| "none".to_owned(), |latency| Unit::Time.say(latency)),
        }
    }
}

/// A time within which this part of all deliveries was done. Of each point three percentiles are known; of what lies
/// between two of them the later is taken, so it is never less than the truth.
fn within(points: &[Point], part: f64) -> Option<f64> {
    let told = |point: &Point| Some((point.latency?, (point.delivered * point.seconds).max(1.0)));
    let told: Vec<(Percentiles, f64)> = points.iter().filter_map(told).collect();
    let all: f64 = told.iter().map(|(_, weight)| weight).sum();
    let mut steps: Vec<(f64, f64)> = told
        .iter()
        .flat_map(|(p, weight)| [(p.p50, 0.5 * weight), (p.p95, 0.45 * weight), (p.p99, 0.04 * weight)])
        .collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut done = 0.0;
    let reached = steps.iter().find(|(_, weight)| {
        done += weight;
        done >= part * all * 0.999_999
    });
    reached.or(steps.last()).map(|(time, _)| *time)
}

#[cfg(test)]
mod tests {
    use flare_core::observe::Gauges;
    use flare_model::time::Timestamp;

    use super::*;

    fn point(rate: f64, p95: f64) -> Point {
        Point {
            at: Timestamp::from_millis(0),
            seconds: 1.0,
            accepted: rate,
            unchanged: 0.0,
            refused: 0.0,
            delivered: rate,
            discarded: 0.0,
            failed: 0.0,
            given_up: 0.0,
            latency: (p95 > 0.0).then_some(Percentiles { p50: p95 / 2.0, p95, p99: p95 * 2.0 }),
            attempt: None,
            commit: None,
            gauges: Gauges { backlog: rate as u64, ..Gauges::default() },
        }
    }

    #[test]
    fn tiles_are_about_all_of_the_time_and_not_its_last_second() {
        let mut points: Vec<Point> = (0..59).map(|_| point(10.0, 0.01)).collect();
        points.push(point(0.0, 0.0));
        let tiles = Tiles::of(&Series { step: Duration::from_secs(1), points }, Duration::from_secs(60));
        assert_eq!((tiles.accepted.as_str(), tiles.over.as_str()), ("590", "1 min"));
        assert_eq!(tiles.accepted_rate, "9.83/s on average, up to 10/s");
        assert_eq!((tiles.backlog.as_str(), tiles.latency.as_str()), ("10", "10 ms"));
        let none =
            Tiles::of(&Series { step: Duration::from_secs(1), points: vec![] }, Duration::from_secs(60));
        assert_eq!(none.accepted_rate, "0/s on average, up to 0/s");
    }

    #[test]
    fn a_bad_second_does_not_stand_for_all_of_them() {
        let mut points: Vec<Point> = (0..99).map(|_| point(10.0, 0.01)).collect();
        points.push(point(10.0, 5.0));
        // At least 95 of 100 took no longer than the 99th percentile of the calm ones.
        assert_eq!(within(&points, 0.95), Some(0.02));
        assert_eq!(within(&[], 0.95), None);
    }
}
