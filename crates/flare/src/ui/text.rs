//! Numbers, times and JSON as people read them.

use flare_core::operations::FeedView;
use std::fmt::Display;
use std::time::Duration;

use flare_core::registry::Subscription;
use flare_model::subscription::Way;
use flare_model::subscription::credentials::redacted_url;
use flare_model::time::Timestamp;

/// A whole number with its thousands apart; templates hand it over behind any number of references.
pub fn number(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// One, or several, of something: `1 document`, `2 documents`.
pub fn count(quantity: impl Display, one: &str, several: &str) -> String {
    let quantity = number(quantity);
    format!("{quantity} {}", if quantity == "1" { one } else { several })
}

/// How many documents a client is going to be told of. A number that is a bound says so.
pub fn lagging(feed: &FeedView) -> String {
    match feed.lagging_is_bound {
        true => format!("at most {}", number(feed.lagging)),
        false => number(feed.lagging),
    }
}

/// The same with a word for them.
pub fn count_lagging(feed: &FeedView, one: &str, several: &str) -> String {
    format!("{} {}", lagging(feed), if feed.lagging == 1 { one } else { several })
}

/// How long ago, or how soon, in the largest unit that fits.
pub fn ago(now: Timestamp, at: Timestamp) -> String {
    let (span, later) = if at > now { (at.since(now), true) } else { (now.since(at), false) };
    match (span.as_millis(), later) {
        (..1000, false) => "just now".to_owned(),
        (_, false) => format!("{} ago", rough(span)),
        (_, true) => format!("in {}", rough(span)),
    }
}

/// A duration in its largest unit.
pub fn rough(span: Duration) -> String {
    let seconds = span.as_secs();
    let (quantity, unit) = match seconds {
        0 => return format!("{} ms", span.as_millis()),
        1..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "min"),
        3600..172_800 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{quantity} {unit}")
}

/// A duration in its two largest units.
pub fn fine(span: Duration) -> String {
    let seconds = span.as_secs();
    let (large, small) = match seconds {
        ..60 => return rough(span),
        60..3600 => ((60, "min"), (1, "s")),
        3600..172_800 => ((3600, "h"), (60, "min")),
        _ => ((86_400, "days"), (3600, "h")),
    };
    match seconds % large.0 / small.0 {
        0 => rough(span),
        // A number stays with its unit.
        rest => format!("{}\u{a0}{} {rest}\u{a0}{}", seconds / large.0, large.1, small.1),
    }
}

/// A moment to the second, in UTC.
pub fn utc(at: Timestamp) -> String {
    let text = at.to_string();
    match text.get(..19) {
        Some(date) => format!("{} UTC", date.replace('T', " ")),
        None => text,
    }
}

/// What a subscription is called: where its notifications go.
pub fn client(subscription: &Subscription) -> String {
    if let Way::Sink(sink) = &subscription.compiled.spec.way {
        return sink.to_string();
    }
    let endpoint = &subscription.stored.draft.endpoint;
    let own = [&endpoint.actions.create, &endpoint.actions.update, &endpoint.actions.delete];
    let urls = std::iter::once(&endpoint.url).chain(own.into_iter().flatten().map(|action| &action.url));
    let url = urls.flatten().next().map(|url| redacted_url(url).into_owned());
    url.unwrap_or_else(|| subscription.id().to_string())
}

/// JSON with one value a line, every character of a value as it was written; what is not JSON stays as it is.
pub fn pretty(json: &[u8]) -> String {
    let text = String::from_utf8_lossy(json).into_owned();
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
        return text;
    }
    let mut pretty = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            _ if in_string => {
                pretty.push(c);
                in_string = escaped || c != '"';
                escaped = !escaped && c == '\\';
            }
            '"' => {
                pretty.push(c);
                in_string = true;
            }
            '{' | '[' => {
                pretty.push(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                match rest.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => pretty.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut pretty, depth);
                    }
                }
            }
            '}' | ']' => {
                depth -= 1;
                new_line(&mut pretty, depth);
                pretty.push(c);
            }
            ',' => {
                pretty.push(c);
                new_line(&mut pretty, depth);
            }
            ':' => pretty.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => pretty.push(c),
        }
    }
    pretty
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

/// A part of a text.
pub struct Piece<'a> {
    /// The words.
    pub text: &'a str,
    /// Whether they stood between backticks.
    pub is_code: bool,
}

/// A text with `code` in it, in parts.
pub fn marked(text: &str) -> Vec<Piece<'_>> {
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, text)| Piece { text, is_code: at % 2 == 1 })
        .filter(|piece| !piece.text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        for (given, text) in
            [(0, "0"), (999, "999"), (1000, "1\u{202f}000"), (1_234_567, "1\u{202f}234\u{202f}567")]
        {
            assert_eq!(number(given), text);
        }
    }

    #[test]
    fn times_are_told_in_the_largest_unit() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        for (at, text) in [
            ("2026-01-01T11:59:59.500Z", "just now"),
            ("2026-01-01T11:59:18Z", "42 s ago"),
            ("2026-01-01T11:00:00Z", "1 h ago"),
            ("2025-12-25T12:00:00Z", "7 days ago"),
            ("2026-01-01T12:05:00Z", "in 5 min"),
        ] {
            assert_eq!(ago(now, at.parse().unwrap()), text);
        }
        assert_eq!(utc(now), "2026-01-01 12:00:00 UTC");
    }

    #[test]
    fn durations_are_told_in_two_units_where_one_would_hide_something() {
        for (seconds, text) in [
            (35, "35 s"),
            (60, "1 min"),
            (75, "1 min 15 s"),
            (3600, "1 h"),
            (8100, "2 h 15 min"),
            (172_800, "2 days"),
            (190_000, "2 days 4 h"),
        ] {
            assert_eq!(fine(Duration::from_secs(seconds)).replace('\u{a0}', " "), text);
        }
    }

    #[test]
    fn json_is_spread_out_and_otherwise_as_it_was_written() {
        let given = br#" {"z":1e400,"a":[1 , 2,[]], "s":"a\\\"{,:}","o":{},"n":12345678901234567890} "#;
        let expected = r#"{
  "z": 1e400,
  "a": [
    1,
    2,
    []
  ],
  "s": "a\\\"{,:}",
  "o": {},
  "n": 12345678901234567890
}"#;
        assert_eq!(pretty(given), expected);
        assert_eq!(pretty(b"{not json"), "{not json");
    }
}
