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
}
