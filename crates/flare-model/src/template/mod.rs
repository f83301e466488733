//! In: a text with slots, such as `/wishlist/{id}?r={revision}`, and the wildcards of its resource. Out: a compiled
//! [`Template`] of literal pieces and numbered slots, or a [`TemplateError`].
//!
//! Two kinds are built on it: [`UrlTemplate`] (where a client is notified, values percent-encoded) and
//! [`TextTemplate`] (strings of `data`, values as plain text). There is no way to write a literal brace.

mod error;
mod text;
mod url;

pub use error::TemplateError;
pub use text::TextTemplate;
pub use url::UrlTemplate;

use crate::pattern::REVISION;

/// The most slots in one template. Each may stand for kilobytes, so this bounds what rendering makes of a short text.
pub const MAX_SLOTS: usize = 64;

/// A literal piece or a place for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// The wildcard with this position among those of the resource.
    Wildcard(usize),
    Revision,
}

/// A text cut into literal pieces and slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub(crate) pieces: Vec<Piece>,
}

impl Template {
    /// Cuts a text at its slots. Every name must be one of the wildcards or `revision`; blanks around it don't count.
    pub fn compile<S: AsRef<str>>(text: &str, wildcards: &[S]) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut slots = 0;
        let mut at = 0;
        while let Some(found) = text[at..].find(['{', '}']) {
            let open = at + found;
            let stray = || TemplateError::Unbalanced { position: text[..open].chars().count() + 1 };
            if text[open..].starts_with('}') {
                return Err(stray());
            }
            let inside = &text[open + 1..];
            let length = inside.find(['{', '}']).ok_or_else(stray)?;
            if inside[length..].starts_with('{') {
                return Err(stray());
            }
            if open > at {
                pieces.push(Piece::Text(text[at..open].to_owned()));
            }
            pieces.push(slot(inside[..length].trim(), wildcards)?);
            slots += 1;
            at = open + 1 + length + 1;
        }
        if slots > MAX_SLOTS {
            return Err(TemplateError::TooManySlots);
        }
        if at < text.len() {
            pieces.push(Piece::Text(text[at..].to_owned()));
        }
        Ok(Self { pieces })
    }

    /// Whether there are no slots: the same text for every document.
    pub fn is_static(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }
}

fn slot<S: AsRef<str>>(name: &str, wildcards: &[S]) -> Result<Piece, TemplateError> {
    match name {
        "" => return Err(TemplateError::EmptySlot),
        REVISION => return Ok(Piece::Revision),
        _ => {}
    }
    match wildcards.iter().position(|wildcard| wildcard.as_ref() == name) {
        Some(position) => Ok(Piece::Wildcard(position)),
        None => {
            let known = wildcards.iter().map(AsRef::as_ref).chain([REVISION]);
            let known = known.map(|name| format!("`{{{name}}}`")).collect::<Vec<_>>().join(", ");
            Err(TemplateError::Unknown { name: name.to_owned(), known })
        }
    }
}

/// The value of a wildcard. Values come from the pattern whose wildcards the template was compiled with, so there is
/// one for each; should a caller ever mix two resources up, an empty value in one request is better than no delivery.
pub(crate) fn value<V: AsRef<str>>(values: &[V], position: usize) -> &str {
    debug_assert!(position < values.len(), "values of another resource");
    values.get(position).map(AsRef::as_ref).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &str) -> Vec<Piece> {
        Template::compile(text, &["id", "*", "user id"]).unwrap().pieces
    }

    #[test]
    fn a_text_is_cut_at_its_slots() {
        let text = |text: &str| Piece::Text(text.into());
        assert_eq!(pieces(""), []);
        assert_eq!(pieces("plain"), [text("plain")]);
        assert_eq!(pieces("a-{ id }.json"), [text("a-"), Piece::Wildcard(0), text(".json")]);
        assert_eq!(
            pieces("{*}{user id}{revision}"),
            [Piece::Wildcard(1), Piece::Wildcard(2), Piece::Revision]
        );
        assert!(!Template::compile("{revision}", &[""; 0]).unwrap().is_static());
    }

    #[test]
    fn an_unknown_wildcard_is_named_with_the_known_ones() {
        let error = Template::compile("/{name}", &["id", "x"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the wildcard `{name}` is unknown here; use one of `{id}`, `{x}`, `{revision}`"
        );
    }

    #[test]
    fn braces_must_come_in_pairs_around_a_name() {
        for (text, position) in [("a{id", 2), ("\u{e9}}", 2), ("{a{id}}", 1), ("{id}}", 5)] {
            assert_eq!(
                Template::compile(text, &["id"]),
                Err(TemplateError::Unbalanced { position }),
                "{text}"
            );
        }
        assert_eq!(Template::compile("{ }", &["id"]), Err(TemplateError::EmptySlot));
    }

    #[test]
    fn the_number_of_slots_is_capped() {
        assert!(Template::compile(&"{id}".repeat(MAX_SLOTS), &["id"]).is_ok());
        assert_eq!(
            Template::compile(&"{id}".repeat(MAX_SLOTS + 1), &["id"]),
            Err(TemplateError::TooManySlots)
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_compiling_panic(text in "(\\PC|[{}]|\\{id\\}){0,30}") {
            let _ = Template::compile(&text, &["id"]);
            let _ = TextTemplate::parse(&text, &["id"]).map(|template| template.render(&["a%2Fb"], "1"));
            let _ = UrlTemplate::parse(&text, &["id"]);
            let _ = UrlTemplate::parse(&format!("http://{text}"), &["id"]);
        }
    }
}
