//! In: what a layout or a value failed on. Out: a sentence that names the value, the layout and the piece.

use std::fmt;

/// How many characters of a text from outside are repeated in an error.
const EXCERPT_CHARS: usize = 80;

/// The text, or its beginning and an ellipsis where it is long: a message must not grow with the input.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Why a text is not a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Nothing in the layout stands for a part of a date: no two values would ever differ.
    #[error(
        "the format {layout:?} has no part of a date in it; write how the moment \
         Mon Jan 2 15:04:05 MST 2006 looks in your dates, for example \"2006-01-02 15:04:05\""
    )]
    NoVerb {
        /// The beginning of the layout.
        layout: String,
    },
}

/// Why a value is not a date in a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The beginning of the value.
    pub value: String,
    /// The beginning of the layout, or the name of the standard.
    pub layout: String,
    /// What did not fit.
    pub fault: Fault,
}

/// The piece of a value that did not fit its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The rest of the value does not begin with what the piece of the layout asks for.
    Mismatch {
        /// The piece of the layout.
        piece: String,
        /// The beginning of the rest of the value.
        rest: String,
    },
    /// A number that its part of the date cannot have.
    OutOfRange(&'static str),
    /// The day of the year is not the day that this part of the date says it is.
    DayOfYear(&'static str),
    /// The layout ended before the value.
    ExtraText(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Mismatch { piece, rest } => write!(f, "{rest:?} does not fit {piece:?}"),
            Fault::OutOfRange(part) => write!(f, "{part} out of range"),
            Fault::DayOfYear(part) => write!(f, "day of year does not match {part}"),
            Fault::ExtraText(rest) => write!(f, "extra text {rest:?}"),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {:?} as {:?}: {}", self.value, self.layout, self.fault)
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(excerpt("short"), "short");
        let long = "é".repeat(200);
        assert_eq!(excerpt(&long), format!("{}...", "é".repeat(EXCERPT_CHARS)));
    }

    #[test]
    fn an_error_names_value_layout_and_piece() {
        let error = ParseError {
            value: "2006-1".into(),
            layout: "2006-01".into(),
            fault: Fault::Mismatch { piece: "01".into(), rest: "1".into() },
        };
        assert_eq!(error.to_string(), r#"cannot read "2006-1" as "2006-01": "1" does not fit "01""#);
    }
}
