//! Plots: numbers over time come in, an SVG with its axes goes out. Pure, drawn on the server, without a style or a
//! script of its own: colours are classes, and what is text is HTML beside the drawing, so that it is never stretched.

use std::fmt::Write as _;
use std::time::Duration;

use askama::Template;
use flare_model::time::Timestamp;

/// The drawing's own units. It is stretched to the room it has.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;
/// Values of a line, at most: more than there are pixels would be work in vain.
const VALUES: i64 = 180;

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

/// What becomes of several values that fall on one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Their mean: for rates.
    Mean,
    /// The highest: for times and what piles up.
    Highest,
}

/// One line.
pub struct Line {
    label: &'static str,
    class: &'static str,
    values: Vec<(Timestamp, f64)>,
}

impl Line {
    /// A line with a name, a colour (`a` to `d`, or `bad`) and its values, the oldest first.
    pub fn new(
        label: &'static str,
        class: &'static str,
        values: impl Iterator<Item = (Timestamp, Option<f64>)>,
    ) -> Line {
        let values = values.filter_map(|(at, value)| Some((at, value?))).collect();
        Line { label, class, values }
    }
}

/// A plot to be drawn.
pub struct Plot {
    /// Its name, also as an id.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What its numbers are.
    pub unit: Unit,
    /// How values are joined.
    pub join: Join,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// The time that a plot shows.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its end.
    pub now: Timestamp,
    /// How long it is.
    pub span: Duration,
    /// How far apart values are.
    pub step: Duration,
}

/// A plot as it is drawn.
#[derive(Template)]
#[template(path = "plot.html")]
pub struct Drawing {
    id: &'static str,
    title: &'static str,
    lines: Vec<Drawn>,
    /// From the top to the bottom.
    scale: Vec<String>,
    /// From the left to the right.
    times: Vec<String>,
    summary: String,
    is_empty: bool,
}

struct Drawn {
    label: &'static str,
    class: &'static str,
    path: String,
    area: String,
    now: String,
}

impl Plot {
    /// Draws it.
    pub fn draw(self, window: &Window) -> Drawing {
        let joined: Vec<_> = self.lines.iter().map(|line| joined(line, window, self.join)).collect();
        let highest = joined.iter().flatten().map(|(_, value)| *value).fold(0.0, f64::max);
        let top = nice_top(highest, self.unit);
        let gap = gap(window) * 2.5;
        let lines: Vec<Drawn> = self
            .lines
            .iter()
            .zip(&joined)
            .map(|(line, values)| {
                let now =
                    line.values.last().map_or_else(|| "none".to_owned(), |(_, value)| self.unit.say(*value));
                let (path, area) = trace(values, window, top, gap);
                Drawn { label: line.label, class: line.class, path, area, now }
            })
            .collect();
        let said = lines.iter().zip(&joined).map(|(line, values)| {
            let most = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
            format!("{}: {} now, {} at most", line.label, line.now, self.unit.say(most))
        });
        Drawing {
            id: self.id,
            title: self.title,
            summary: format!(
                "{} over the last {}. {}",
                self.title,
                super::text::rough(window.span),
                said.collect::<Vec<_>>().join("; ")
            ),
            is_empty: joined.iter().all(|values| values.is_empty()),
            scale: (0..=4).rev().map(|quarter| self.unit.say(top * f64::from(quarter) / 4.0)).collect(),
            times: times(window),
            lines,
        }
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
            Unit::Time => format!("{} min", short(value / 60.0)),
            Unit::Count | Unit::PerSecond => match value {
                0.0..10_000.0 => short(value),
                10_000.0..1e6 => format!("{} k", short(value / 1e3)),
                _ => format!("{} M", short(value / 1e6)),
            },
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
    let least = match unit {
        Unit::Count | Unit::PerSecond => 4.0,
        Unit::Time => 0.004,
    };
    let wanted = highest.max(least) / 4.0;
    let power = 10f64.powf(wanted.log10().floor());
    let mut steps = [1.0, 2.0, 2.5, 5.0].into_iter().map(|factor| factor * power);
    steps.find(|step| *step >= wanted * 0.999_999).unwrap_or(10.0 * power) * 4.0
}

/// The values of a line, few enough to draw. Places are those of the clock and not of the window, so that a line
/// moves along without changing its shape.
fn joined(line: &Line, window: &Window, join: Join) -> Vec<(i64, f64)> {
    let place = place(window);
    let from = window.now.millis() - window.span.as_millis() as i64;
    let mut joined: Vec<(i64, f64, f64)> = Vec::new();
    for (at, value) in line.values.iter().filter(|(at, _)| at.millis() >= from) {
        let at = at.millis().div_euclid(place) * place + place / 2;
        match joined.last_mut() {
            Some((last, sum, count)) if *last == at => match join {
                Join::Mean => (*sum, *count) = (*sum + value, *count + 1.0),
                Join::Highest => *sum = sum.max(*value),
            },
            _ => joined.push((at, *value, 1.0)),
        }
    }
    joined.into_iter().map(|(at, sum, count)| (at, sum / count)).collect()
}

/// How many milliseconds one drawn value stands for.
fn place(window: &Window) -> i64 {
    let step = window.step.as_millis().max(1) as i64;
    let steps = (window.span.as_millis() as i64 / step / VALUES).max(1);
    steps * step
}

fn gap(window: &Window) -> f64 {
    place(window) as f64
}

/// The path of a line and of the area below it. Where values are missing for a while the line is broken.
fn trace(values: &[(i64, f64)], window: &Window, top: f64, gap: f64) -> (String, String) {
    let span = window.span.as_millis() as f64;
    let from = window.now.millis() as f64 - span;
    let x = |at: i64| ((at as f64 - from) / span * WIDTH).clamp(0.0, WIDTH);
    let y = |value: f64| HEIGHT - (value / top * HEIGHT).clamp(0.0, HEIGHT);
    let (mut path, mut area) = (String::new(), String::new());
    for piece in values.chunk_by(|a, b| ((b.0 - a.0) as f64) <= gap) {
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
        for (index, (at, value)) in piece.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            write!(path, "{letter}{:.1} {:.1}", x(*at), y(*value)).expect("writing to a string cannot fail");
        }
        let outline = &path[path.rfind('M').unwrap_or(0)..];
        write!(area, "{outline}L{:.1} {HEIGHT}L{:.1} {HEIGHT}Z", x(last.0), x(first.0))
            .expect("writing to a string cannot fail");
    }
    (path, area)
}

/// Four quarters of the window, as times in UTC.
fn times(window: &Window) -> Vec<String> {
    let quarter = window.span.as_millis() as i64 / 4;
    let at = |index: i64| Timestamp::from_millis(window.now.millis() - quarter * (4 - index)).to_string();
    // Seconds where they matter, and the date where the time of day is not enough.
    let part = match window.span.as_secs() {
        ..1800 => 11..19,
        1800..=86_400 => 11..16,
        _ => 5..16,
    };
    (0..=4).map(|index| at(index).get(part.clone()).unwrap_or_default().replace('T', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window {
            now: "2026-01-01T12:05:00Z".parse().unwrap(),
            span: Duration::from_secs(300),
            step: Duration::from_secs(1),
        }
    }

    fn line(values: &[(i64, f64)]) -> Line {
        let now = window().now.millis();
        let at = |seconds: i64| Timestamp::from_millis(now - 300_000 + seconds * 1000);
        Line::new(
            "x",
            "a",
            values
                .iter()
                .map(|(seconds, value)| (at(*seconds), Some(*value)))
                .collect::<Vec<_>>()
                .into_iter(),
        )
    }

    #[test]
    fn the_scale_ends_at_a_round_number_above_the_highest_value() {
        for (highest, top) in
            [(0.0, 4.0), (3.9, 4.0), (4.1, 8.0), (95.0, 100.0), (101.0, 200.0), (12_345.0, 20_000.0)]
        {
            assert_eq!(nice_top(highest, Unit::Count), top, "{highest}");
        }
        assert!((nice_top(0.0031, Unit::Time) - 0.004).abs() < 1e-9);
    }

    #[test]
    fn a_line_is_drawn_from_left_to_right_and_broken_where_values_are_missing() {
        let plot = Plot {
            id: "x",
            title: "X",
            unit: Unit::Count,
            join: Join::Mean,
            lines: vec![line(&[(0, 0.0), (1, 4.0), (2, 2.0), (200, 4.0), (201, 4.0)])],
        };
        let drawing = plot.draw(&window());
        assert_eq!(drawing.lines[0].path.matches('M').count(), 2);
        assert!(
            drawing.lines[0].path.starts_with("M1.7 200.0L5.0 0.0L8.3 100.0M"),
            "{}",
            drawing.lines[0].path
        );
        assert_eq!(drawing.scale, ["4", "3", "2", "1", "0"]);
        assert_eq!(drawing.times, ["12:00:00", "12:01:15", "12:02:30", "12:03:45", "12:05:00"]);
        assert!(drawing.summary.contains("4 now, 4 at most"), "{}", drawing.summary);
    }

    #[test]
    fn more_values_than_can_be_seen_are_joined() {
        let hour = Window { span: Duration::from_secs(3600), ..window() };
        let values: Vec<_> = (-3000..300).map(|second| (second, f64::from(second == 100))).collect();
        for (join, most) in [(Join::Mean, 0.05), (Join::Highest, 1.0)] {
            let joined = joined(&line(&values), &hour, join);
            assert!(joined.len() <= 181, "{}", joined.len());
            let highest = joined.iter().map(|(_, value)| *value).fold(0.0, f64::max);
            assert!((highest - most).abs() < 1e-9, "{highest}");
        }
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
        ] {
            assert_eq!(unit.say(value), text);
        }
    }
}
