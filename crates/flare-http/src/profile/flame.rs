//! In: a profile. Out: a flamegraph as SVG: the width of a box is the time in a function and in what it called, or the
//! memory that both hold, threads at the bottom. It has no script, so a browser shows it under any policy; a box says its numbers on hover.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Profile, Stack, Unit};

const WIDTH: f64 = 1200.0;
const HEIGHT: usize = 17;
/// A box narrower than this is not drawn, and neither is what is above it.
const NARROWEST: f64 = 0.3;
/// The room that a letter takes, and the least that is worth a word.
const LETTER: f64 = 6.6;
const SHORTEST_WORD: usize = 3;

/// A function, below what called it.
#[derive(Default)]
struct Node<'a> {
    count: u64,
    amount: u64,
    above: BTreeMap<&'a str, Node<'a>>,
}

impl Node<'_> {
    fn add(&mut self, stack: &Stack) {
        self.count += stack.count;
        self.amount += stack.amount;
    }

    fn words(&self, unit: Unit) -> String {
        match unit {
            Unit::Cpu { .. } => format!("{} samples", self.count),
            Unit::Heap { .. } => {
                format!("{:.1} KB in {} pieces", self.amount as f64 / 1e3, self.count)
            }
        }
    }
}

/// Draws a profile.
pub fn svg(profile: &Profile) -> String {
    let mut root = Node::default();
    for stack in &profile.stacks {
        root.add(stack);
        let mut node = &mut root;
        for name in std::iter::once(&stack.thread).chain(&stack.frames) {
            node = node.above.entry(name).or_default();
            node.add(stack);
        }
    }
    let unit = profile.unit;
    let mut canvas = Canvas { unit, total: root.amount.max(1), deepest: 0, boxes: String::new() };
    let title = match unit {
        Unit::Cpu { .. } => format!("all: {} in {:.1} s", root.words(unit), profile.took_nanos as f64 / 1e9),
        Unit::Heap { .. } => format!("all that is held: {}", root.words(unit)),
    };
    canvas.draw(&title, &root, 0.0, 0);
    let height = (canvas.deepest + 1) * HEIGHT;
    // Levels are counted from below.
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fffdf5\"/>\n\
         <g transform=\"translate(0 {})\">\n{}</g>\n</svg>\n",
        canvas.deepest * HEIGHT,
        canvas.boxes
    )
}

struct Canvas {
    unit: Unit,
    total: u64,
    deepest: usize,
    boxes: String,
}

impl Canvas {
    fn draw(&mut self, name: &str, node: &Node<'_>, left: f64, level: usize) {
        let share = node.amount as f64 / self.total as f64;
        let width = share * WIDTH;
        if width < NARROWEST && level > 0 {
            return;
        }
        self.deepest = self.deepest.max(level);
        let top = -((level * HEIGHT) as f64);
        let (escaped, percent) = (escaped(name), share * 100.0);
        let _ = write!(
            self.boxes,
            "<g><title>{escaped} ({}, {percent:.2}%)</title>\
             <rect x=\"{left:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{}\" fill=\"{}\"/>",
            node.words(self.unit),
            (width - 0.2).max(0.1),
            HEIGHT - 1,
            colour(name),
        );
        let letters = ((width - 4.0) / LETTER) as usize;
        if letters >= SHORTEST_WORD {
            let word: String = name.chars().take(letters).collect();
            let word = if word.len() < name.len() { format!("{}…", cut(&word)) } else { word };
            let (x, y) = (left + 2.0, top + 12.0);
            let _ = write!(self.boxes, "<text x=\"{x:.2}\" y=\"{y}\">{}</text>", self::escaped(&word));
        }
        self.boxes.push_str("</g>\n");
        let mut left = left;
        for (name, above) in &node.above {
            self.draw(name, above, left, level + 1);
            left += above.amount as f64 / self.total as f64 * WIDTH;
        }
    }
}

/// Without its last letter, which makes room for the dots.
fn cut(word: &str) -> &str {
    word.char_indices().next_back().map_or(word, |(at, _)| &word[..at])
}

/// Warm, and the same for the same name, so that two pictures can be compared.
fn colour(name: &str) -> String {
    let hash =
        name.bytes().fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    format!("rgb({},{},{})", 205 + hash % 50, 100 + (hash >> 8) % 120, 40 + (hash >> 16) % 50)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(stacks: &[(&str, &[&str], u64)]) -> Profile {
        let stack = |(thread, frames, samples): &(&str, &[&str], u64)| Stack {
            thread: (*thread).into(),
            frames: frames.iter().map(|frame| (*frame).into()).collect(),
            count: *samples,
            amount: *samples,
        };
        let stacks = stacks.iter().map(stack).collect();
        Profile { unit: Unit::Cpu { period: 1 }, began_nanos: 0, took_nanos: 2_500_000_000, stacks }
    }

    #[test]
    fn a_box_is_as_wide_as_its_share_and_stands_on_what_called_it() {
        let svg = svg(&profile(&[("t", &["main", "a"], 1), ("t", &["main", "b"], 3)]));
        assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.contains("<title>all: 4 samples in 2.5 s (4 samples, 100.00%)</title>"), "{svg}");
        assert!(
            svg.contains(
                "<title>main (4 samples, 100.00%)</title><rect x=\"0.00\" y=\"-34\" width=\"1199.80\""
            ),
            "{svg}"
        );
        assert!(
            svg.contains("<title>b (3 samples, 75.00%)</title><rect x=\"300.00\" y=\"-51\" width=\"899.80\""),
            "{svg}"
        );
        assert!(svg.contains("height=\"68\""), "four levels: {svg}");
    }

    #[test]
    fn names_are_escaped_and_cut_and_what_is_too_narrow_is_left_out() {
        let long = "core::iter::traits::iterator::Iterator::for_each::<&str>".repeat(5);
        let drawn = svg(&profile(&[("<t & t>", &[&long], 100_000), ("<t & t>", &["narrow"], 1)]));
        assert!(drawn.contains("&lt;t &amp; t&gt;") && !drawn.contains("<t & t>"), "{drawn}");
        assert!(drawn.contains('…') && !drawn.contains("narrow"), "{drawn}");
        assert!(svg(&profile(&[])).contains("all: 0 samples"), "nothing at all is a picture, too");
    }

    #[test]
    fn of_a_heap_a_box_is_as_wide_as_its_bytes() {
        let mut heap = profile(&[("t", &["many"], 100), ("t", &["large"], 1)]);
        heap.unit = Unit::Heap { period: 1 };
        heap.stacks[1].amount = 300;
        let svg = svg(&heap);
        assert!(svg.contains("<title>all that is held: 0.4 KB in 101 pieces"), "{svg}");
        assert!(svg.contains("<title>large (0.3 KB in 1 pieces, 75.00%)</title>"), "{svg}");
        assert!(svg.contains("<title>many (0.1 KB in 100 pieces, 25.00%)</title>"), "{svg}");
    }
}
