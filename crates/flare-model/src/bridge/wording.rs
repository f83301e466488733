//! A name in which `{id}` and `{revision}` stand for those of a document: `orders.{id}`.

use std::fmt;

/// A name, parsed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Wording {
    written: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Text(String),
    Id,
    Revision,
}

impl Wording {
    /// Reads one. Braces with anything but `id` or `revision` between them, or without an end, are refused, in words.
    pub fn parse(written: &str) -> Result<Wording, String> {
        let mut parts = Vec::new();
        let mut rest = written;
        while let Some(open) = rest.find(['{', '}']) {
            if open > 0 {
                parts.push(Part::Text(rest[..open].to_owned()));
            }
            let inside = rest[open..].strip_prefix('{').and_then(|after| after.split_once('}'));
            let Some((name, after)) = inside else {
                return Err(format!(
                    "a brace stands alone in \"{written}\"; {{id}} and {{revision}} may be used"
                ));
            };
            parts.push(match name.trim() {
                "id" => Part::Id,
                "revision" => Part::Revision,
                other => {
                    return Err(format!("{{{other}}} is not known; {{id}} and {{revision}} may be used"));
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Wording { written: written.to_owned(), parts })
    }

    /// As the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether it is the same for every document.
    pub fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// With the values in their places, each as `escape` writes it.
    pub fn render(&self, id: &str, revision: &str, escape: impl Fn(&str, &mut String)) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Id => escape(id, &mut out),
                Part::Revision => escape(revision, &mut out),
            }
        }
        out
    }
}

/// Writes a value so that it is one word wherever names have parts and patterns: letters, digits, `-` and `_` stay, every other byte
/// is `%` and two digits. Two values are never written alike.
pub fn escape(value: &str, out: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

impl fmt::Debug for Wording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_they_are_named() {
        let plain = |value: &str, out: &mut String| out.push_str(value);
        let rendered = |written: &str| Wording::parse(written).expect("a wording").render("a/1", "7", plain);
        assert_eq!(rendered("orders"), "orders");
        assert_eq!(rendered("orders.{id}.{revision}"), "orders.a/1.7");
        assert_eq!(rendered("{ id }"), "a/1");
        assert!(Wording::parse("x").is_ok_and(|wording| wording.is_fixed()));
        assert!(!Wording::parse("{id}").is_ok_and(|wording| wording.is_fixed()));
    }

    #[test]
    fn what_is_escaped_is_one_word_and_tells_values_apart() {
        let escaped = |value: &str| {
            let mut out = String::new();
            escape(value, &mut out);
            out
        };
        assert_eq!(escaped("a-B_9"), "a-B_9");
        assert_eq!(escaped("a.b/c d*>#$"), "a%2Eb%2Fc%20d%2A%3E%23%24");
        assert_eq!(escaped("\u{e9}"), "%C3%A9");
        assert_ne!(escaped("a.b"), escaped("a%2Eb"));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (written, word) in [("{name}", "{name}"), ("a{", "alone"), ("a}b", "alone"), ("{id", "alone")] {
            let problem = Wording::parse(written).expect_err(written);
            assert!(problem.contains(word), "{written}: {problem}");
        }
    }
}
