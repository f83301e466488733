//! Random patterns with texts to look at, and random layouts with moments to write in them: pieces that mean
//! something, glued together, get much further than noise would.

use serde_json::{Value, json};

use flare_promises::dice::Dice;

const PATTERN: [&str; 83] = [
    "a",
    "b",
    "ä",
    "K",
    "ſ",
    "1",
    "٣",
    "_",
    "-",
    " ",
    ".",
    "^",
    "$",
    "|",
    "(",
    ")",
    "(?:",
    "(?i)",
    "(?i:",
    "(?s)",
    "(?m)",
    "(?-i)",
    "(?U)",
    "(?P<n>",
    "(?<o>",
    "(?x)",
    "(?=",
    "(?)",
    "*",
    "+",
    "?",
    "??",
    "*?",
    "{2}",
    "{1,}",
    "{0,1}",
    "{,2}",
    "{1001}",
    "{01}",
    "{",
    "}",
    "[",
    "]",
    "[^",
    "[a",
    "a-b",
    "[a&&b]",
    "[[:alpha:]]",
    "[[:^digit:]_]",
    "[[:foo:]]",
    "[^\\W]",
    "[\\d-z]",
    "[]a]",
    "[^]]",
    "[-a]",
    "&&",
    "--",
    "~~",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "\\b",
    "\\B",
    "\\A",
    "\\z",
    "\\Z",
    "\\Q",
    "\\E",
    "\\pL",
    "\\p{Greek}",
    "\\p{^L}",
    "\\PN",
    "\\101",
    "\\1",
    "\\x41",
    "\\x{e4}",
    "\\_",
    "\\-",
    "\\v",
    "\\<",
];

const TEXT: [&str; 24] = [
    "a", "b", "ab", "A", "ä", "Ä", "K", "k", "ſ", "s", "1", "٣", "_", "-", " ", "\n", "\t", "\u{b}",
    "\u{a0}", "&", "~", "]", "{,2}", "α",
];

const LAYOUT: [&str; 46] = [
    "2006",
    "06",
    "01",
    "1",
    "Jan",
    "January",
    "02",
    "2",
    "_2",
    "002",
    "__2",
    "15",
    "03",
    "3",
    "04",
    "4",
    "05",
    "5",
    "PM",
    "pm",
    "Mon",
    "Monday",
    "MST",
    "Z0700",
    "Z07:00",
    "-0700",
    "-07:00",
    "-07",
    "Z07",
    ".000",
    ".999",
    ",000",
    ".000000000",
    ".999999999",
    "-",
    "/",
    ":",
    " ",
    "T",
    ", ",
    "Z",
    "at",
    "05.00",
    "15:04:05",
    "2006-01-02",
    "Z07:00:00",
];

fn glue(dice: &mut Dice, pieces: &[&'static str], most: u64) -> String {
    (0..dice.between(1, most)).map(|_| dice.word(pieces)).collect()
}

/// A pattern and texts to look at.
pub fn pattern(dice: &mut Dice) -> Value {
    let texts: Vec<String> = (0..8).map(|_| glue(dice, &TEXT, 4)).chain([String::new()]).collect();
    json!({"pattern": glue(dice, &PATTERN, 6), "texts": texts})
}

/// A layout, a moment to write in it, and places to spoil what was written.
pub fn layout(dice: &mut Dice) -> Value {
    let layout = glue(dice, &LAYOUT, 9);
    // The years 1 to 9999.
    let seconds = dice.below(315_537_897_600) as i64 - 62_135_596_800;
    let cuts = [dice.below(64), dice.below(64)];
    json!({"layout": layout, "seconds": seconds, "nanos": dice.below(1_000_000_000), "cuts": cuts})
}
