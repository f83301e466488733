//! What a user got wrong: the field, and what to do about it.

use std::fmt;

/// A field of a request and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The path of the field, like `delivery.retry.ratio`.
    pub field: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl Invalid {
    /// Names the field and the problem.
    pub fn new(field: impl Into<String>, problem: impl fmt::Display) -> Invalid {
        Invalid { field: field.into(), problem: problem.to_string() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The problem may name the field itself already.
        let rest = self.problem.strip_prefix(&self.field);
        if rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric())) {
            f.write_str(&self.problem)
        } else {
            write!(f, "{}: {}", self.field, self.problem)
        }
    }
}

impl std::error::Error for Invalid {}

/// What a parser of JSON says, in words for people: types of JSON for types of Rust. What was given is not repeated where
/// it has the wrong type, since it may be a secret that belongs elsewhere.
pub fn plain(problem: &dyn fmt::Display) -> String {
    let problem = problem.to_string();
    let (what, place) = match problem.find(" at line ") {
        Some(at) => problem.split_at(at),
        None => (problem.as_str(), ""),
    };
    let parts = |start: &str| what.strip_prefix(start).and_then(|rest| rest.rsplit_once(", expected "));
    if let Some((given, expected)) = parts("invalid type: ") {
        return format!("{} stands where {} is expected{place}", kind(given), wanted(expected));
    }
    if let Some((given, expected)) = parts("unknown variant ") {
        let choice =
            if expected.starts_with("one of ") || !expected.contains(" or ") { "" } else { "either " };
        return format!("{given} is not possible here; it is {choice}{expected}{place}");
    }
    if what == "expected ident" || what == "expected value" {
        return format!("this is not JSON: a value is expected{place}");
    }
    if let Some((given, expected)) = parts("invalid value: ") {
        let given = given.split_once(' ').map_or(given, |(_, value)| value);
        return format!("{given} stands where {} is expected{place}", wanted(expected));
    }
    problem
}

/// What was given, by its kind.
fn kind(given: &str) -> &'static str {
    match given.split(' ').next().unwrap_or_default() {
        "string" => "a string",
        "integer" | "floating" | "number" => "a number",
        "boolean" => "a boolean",
        "sequence" => "a list",
        "map" => "an object",
        "null" | "unit" => "null",
        _ => "something else",
    }
}

/// What was expected.
fn wanted(expected: &str) -> String {
    let words = match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" => "an integer that is not negative",
        "i32" | "i64" => "an integer",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        "unit" => "null",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_named_once() {
        assert_eq!(
            Invalid::new("filter", "filtering is not there").to_string(),
            "filter: filtering is not there"
        );
        assert_eq!(Invalid::new("a.b", "a.b must be 1").to_string(), "a.b must be 1");
        assert_eq!(Invalid::new("a", "a.b must be 1").to_string(), "a.b must be 1");
    }

    #[test]
    fn what_a_parser_says_becomes_words_for_people() {
        for (said, expected) in [
            (
                "invalid type: string \"Basic a, expected b\", expected a sequence at line 1 column 2",
                "a string stands where a list is expected at line 1 column 2",
            ),
            (
                "invalid type: string \"x\", expected struct RetryDraft",
                "a string stands where an object is expected",
            ),
            ("invalid type: null, expected u16", "null stands where an integer from 0 to 65535 is expected"),
            (
                "invalid value: integer `70000`, expected u16",
                "`70000` stands where an integer from 0 to 65535 is expected",
            ),
            (
                "invalid type: floating point `1.5`, expected u32",
                "a number stands where an integer from 0 to 4294967295 is expected",
            ),
            (
                "unknown variant `x`, expected `now` or `beginning` at line 1 column 3",
                "`x` is not possible here; it is either `now` or `beginning` at line 1 column 3",
            ),
            (
                "unknown variant `x`, expected one of `a`, `b`, `c`",
                "`x` is not possible here; it is one of `a`, `b`, `c`",
            ),
            ("expected ident at line 1 column 2", "this is not JSON: a value is expected at line 1 column 2"),
            ("unknown field `x`, expected `a` or `b`", "unknown field `x`, expected `a` or `b`"),
            ("must be `merge`, `json`, true or false", "must be `merge`, `json`, true or false"),
        ] {
            assert_eq!(plain(&said), expected);
        }
    }
}
