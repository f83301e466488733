//! In: a string of a subscription's `data`, and the values of a document. Out: the string with the values in it, as
//! plain text; the caller escapes it for JSON.

use super::{Piece, Template, TemplateError, value};
use crate::url::decode_segment;

/// A compiled string of `data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    template: Template,
}

impl TextTemplate {
    /// Compiles a string that may use the wildcards and `{revision}`.
    pub fn parse<S: AsRef<str>>(text: &str, wildcards: &[S]) -> Result<Self, TemplateError> {
        Ok(Self { template: Template::compile(text, wildcards)? })
    }

    /// Whether the string is the same for every document.
    pub fn is_static(&self) -> bool {
        self.template.is_static()
    }

    /// The string for one document. `values` are raw segments of its url, in the order of the wildcards; they are
    /// inserted decoded (`a%20b` as `a b`), the revision as it is.
    pub fn render<V: AsRef<str>>(&self, values: &[V], revision: &str) -> String {
        let mut out = String::new();
        for piece in &self.template.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Wildcard(position) => out.push_str(&decode_segment(value(values, *position))),
                Piece::Revision => out.push_str(revision),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_inserted_as_plain_text() {
        let template = TextTemplate::parse("user {id} ({x}) at {revision}", &["id", "x"]).unwrap();
        assert_eq!(
            template.render(&["a%2Fb%20c", "caf%C3%A9"], "100%25"),
            "user a/b c (caf\u{e9}) at 100%25"
        );
        assert!(!template.is_static());
    }

    #[test]
    fn a_value_that_is_no_text_stays_as_it_is_in_the_url() {
        let template = TextTemplate::parse("{id}", &["id"]).unwrap();
        assert_eq!(template.render(&["%FF%2F"], ""), "%FF%2F");
    }

    #[test]
    fn values_are_not_read_as_templates() {
        let template = TextTemplate::parse("{id}", &["id"]).unwrap();
        assert_eq!(template.render(&["%7Brevision%7D"], "1"), "{revision}");
    }

    #[test]
    fn a_string_without_slots_is_itself() {
        let template = TextTemplate::parse("service", &["id"]).unwrap();
        assert!(template.is_static());
        assert_eq!(template.render(&["1"], "1"), "service");
    }
}
