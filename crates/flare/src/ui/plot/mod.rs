//! Plots: numbers over time come in, an SVG with its axes goes out. Pure, drawn on the server, without a style or a
//! script of its own: colours are classes, and what is text is HTML beside the drawing, so that it is never stretched.

mod scale;
mod ticks;

use std::fmt::Write as _;
use std::time::Duration;

use askama::Template;
use flare_model::time::Timestamp;

use scale::Scale;
pub use scale::Unit;
use ticks::{Tick, step, ticks};

/// The drawing's own units. It is stretched to the room it has.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;
/// Values of a line, at most: more than there are pixels would be work in vain.
const VALUES: i64 = 180;

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

    /// What rates come to: each is that of the time since the one before it.
    fn sum(&self, step: Duration) -> f64 {
        let mut before = None;
        let each = self.values.iter().map(|(at, rate)| {
            let since = before.replace(*at).map_or(step, |before| at.since(before));
            rate * since.as_secs_f64()
        });
        each.sum()
    }

    /// What it came to over the time that is shown.
    fn sum_up(&self, join: Join, unit: Unit, step: Duration) -> String {
        let Some((_, last)) = self.values.last() else { return "none".to_owned() };
        let most = self.values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        match join {
            Join::Mean => {
                let sum = self.sum(step).round();
                match sum > 0.0 {
                    true => format!("{}, up to {}", Unit::Count.say(sum), unit.say_fully(most)),
                    false => "0".to_owned(),
                }
            }
            Join::Highest => format!("up to {}, now {}", unit.say_fully(most), unit.say_fully(*last)),
        }
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

/// How peaks are shown.
#[derive(Clone, Debug)]
pub struct Peaks {
    /// Whether the scale reaches up to them.
    pub whole: bool,
    /// The page that has it the other way.
    pub other: String,
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
    ticks: Vec<Tick>,
    /// What a script needs to say which values are under the pointer, in milliseconds.
    from: i64,
    span: u128,
    step: u128,
    place: i64,
    first: i64,
    summary: String,
    /// Where values are cut off.
    cuts: String,
    /// What there is to say about that, and the page that has it otherwise.
    peaks: Option<(String, &'static str, String)>,
    is_empty: bool,
}

struct Drawn {
    label: &'static str,
    class: &'static str,
    path: String,
    area: String,
    sum: String,
    /// What it was at each place, in words.
    said: String,
}

impl Plot {
    /// Draws it.
    pub fn draw(self, window: &Window, peaks: &Peaks) -> Drawing {
        let joined: Vec<_> = self.lines.iter().map(|line| joined(line, window, self.join)).collect();
        let values = || joined.iter().flatten();
        let scale = Scale::of(values().map(|(_, value)| *value), self.unit, peaks.whole);
        let first = values().map(|(at, _)| *at).min().unwrap_or(window.now.millis());
        let lines: Vec<Drawn> = self
            .lines
            .iter()
            .zip(&joined)
            .map(|(line, values)| {
                let (path, area) = trace(values, window, scale.top);
                let (sum, said) =
                    (line.sum_up(self.join, self.unit, window.step), said(values, first, window, self.unit));
                Drawn { label: line.label, class: line.class, path, area, sum, said }
            })
            .collect();
        let told = lines.iter().map(|line| format!("{}: {}", line.label, line.sum));
        let over = super::text::rough(window.span);
        Drawing {
            id: self.id,
            title: self.title,
            summary: format!("{} over the last {over}. {}", self.title, told.collect::<Vec<_>>().join("; ")),
            is_empty: joined.iter().all(|values| values.is_empty()),
            scale: (0..=4).rev().map(|quarter| self.unit.say(scale.top * f64::from(quarter) / 4.0)).collect(),
            ticks: ticks(window.now, window.span),
            from: window.now.millis().saturating_sub(window.span.as_millis() as i64),
            span: window.span.as_millis(),
            step: step(window.span).as_millis(),
            place: place(window),
            first,
            cuts: cuts(values(), window, scale.top),
            peaks: peaks.said(&scale, self.unit),
            lines,
        }
    }
}

impl Peaks {
    fn said(&self, scale: &Scale, unit: Unit) -> Option<(String, &'static str, String)> {
        let (top, highest) = (unit.say_fully(scale.top), unit.say_fully(scale.highest));
        let (words, link) = match (scale.has_peaks, scale.cuts()) {
            (true, true) => (format!("Cut off at {top}; the highest is {highest}."), "Show all of it"),
            (true, false) => (format!("Up to the highest, {highest}."), "Cut peaks off"),
            (false, _) => return None,
        };
        Some((words, link, self.other.clone()))
    }
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

/// What a line was at each place, in words, from the first place on.
fn said(values: &[(i64, f64)], first: i64, window: &Window, unit: Unit) -> String {
    let (place, mut said, mut at) = (place(window), String::new(), first);
    for (when, value) in values {
        while at < *when {
            said.push(';');
            at += place;
        }
        said.push_str(&unit.say_fully(*value));
    }
    said
}

/// Marks along the upper edge where values are above it.
fn cuts<'a>(values: impl Iterator<Item = &'a (i64, f64)>, window: &Window, top: f64) -> String {
    let span = window.span.as_millis() as f64;
    let half = place(window) as f64 / span * WIDTH / 2.0;
    let mut places: Vec<i64> = values.filter(|(_, value)| *value > top).map(|(at, _)| *at).collect();
    places.sort_unstable();
    places.dedup();
    let mut path = String::new();
    for at in places {
        let x = (at as f64 - (window.now.millis() as f64 - span)) / span * WIDTH;
        let (from, to) = ((x - half.max(3.0)).max(0.0), (x + half.max(3.0)).min(WIDTH));
        write!(path, "M{from:.1} 0H{to:.1}").expect("writing to a string cannot fail");
    }
    path
}

/// The path of a line and of the area below it. Where values are missing for a while the line is broken.
fn trace(values: &[(i64, f64)], window: &Window, top: f64) -> (String, String) {
    let gap = place(window) as f64 * 2.5;
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
    fn a_line_is_drawn_from_left_to_right_and_broken_where_values_are_missing() {
        let plot = Plot {
            id: "x",
            title: "X",
            unit: Unit::Count,
            join: Join::Mean,
            lines: vec![line(&[(0, 0.0), (1, 4.0), (2, 2.0), (200, 4.0), (201, 4.0)])],
        };
        let drawing = plot.draw(&window(), &Peaks { whole: false, other: String::new() });
        assert_eq!(drawing.lines[0].path.matches('M').count(), 2);
        assert!(
            drawing.lines[0].path.starts_with("M1.7 200.0L5.0 0.0L8.3 100.0M"),
            "{}",
            drawing.lines[0].path
        );
        assert_eq!(drawing.scale, ["4", "3", "2", "1", "0"]);
        assert!(drawing.summary.contains("X over the last 5 min. x: 802, up to 4"), "{}", drawing.summary);
        let said: Vec<&str> = drawing.lines[0].said.split(';').collect();
        assert_eq!((said.len(), &said[..4], said[200], said[201]), (202, &["0", "4", "2", ""][..], "4", "4"));
        assert_eq!((drawing.place, drawing.cuts.as_str()), (1000, ""));
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
}
