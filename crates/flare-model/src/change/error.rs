//! In: what is wrong with a `change` object, a document or a revision. Out: a sentence for the origin.

use std::fmt;

use crate::layout::{Fault, LayoutError};

use super::{MAX_DATE_TEXT, MAX_NESTING, MAX_SEGMENTS};

/// Why a `change` object is refused, or why a document has no revision. Every one of them is the sender's to
/// correct. Texts from outside are repeated only in part.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The path is empty, begins or ends with a dot, or has two dots in a row.
    #[error(
        "the change field {field:?} has an empty part; it is a path such as \"updatedAt\" or \"meta.version\""
    )]
    EmptySegment {
        /// The path.
        field: String,
    },
    /// The path is too long.
    #[error("the change field {field:?} has more than {MAX_SEGMENTS} parts")]
    TooManySegments {
        /// The path.
        field: String,
    },
    /// The layout has a character that no header can carry.
    #[error("the change format {format:?} has a control character")]
    ControlInFormat {
        /// The layout.
        format: String,
    },
    /// The layout is none.
    #[error(transparent)]
    Format(#[from] LayoutError),
    /// The name of a layout stands where the layout itself belongs.
    #[error("the change format {format:?} is the name of a layout; write the layout itself, {layout:?}")]
    NameOfFormat {
        /// As it was given.
        format: String,
        /// What it names.
        layout: &'static str,
    },
    /// The layout leaves out the year, the month or the day.
    #[error(
        "the change format {format:?} is no whole date: it needs a year, a month and a day, as in \
         \"2006-01-02T15:04:05Z07:00\"; without a format dates are RFC 3339"
    )]
    NotWholeDate {
        /// The beginning of the layout.
        format: String,
    },
    /// The document has integers for revisions, and this is a date, or the other way round.
    #[error(
        "the revision is of another kind than the document's: one that began with integers keeps to integers, and one \
         that began with dates to dates"
    )]
    OtherKind,
    /// The body has bytes that are no text.
    #[error("the document is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Where the first such byte is.
        at: usize,
    },
    /// The body does not begin as a JSON object does.
    #[error("the document must be a JSON object, and begins with {body:?}")]
    NotAnObject {
        /// The beginning of the body.
        body: String,
    },
    /// Objects and lists stand inside each other too deep.
    #[error("the document is nested more than {MAX_NESTING} deep")]
    TooDeep,
    /// The body is not JSON, or more than one JSON value.
    #[error("the document is not valid JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The path leads nowhere in this document.
    #[error("the document has no field {field:?}, which holds its revision")]
    Missing {
        /// The path.
        field: String,
    },
    /// There is a value, but it is no revision.
    #[error("{0}")]
    Value(Box<BadValue>),
}

/// A value that is no revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// What has the value, such as `the field "updatedAt"`.
    pub subject: String,
    /// The value as it was written.
    pub value: String,
    /// The layout a date must have, or the name of the standard.
    pub format: String,
    /// Whether only dates are revisions: the resource has a format.
    pub only_dates: bool,
    /// What is wrong with it.
    pub fault: ValueFault,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueFault {
    /// Neither a number nor a string.
    WrongType(&'static str),
    /// A number with a fraction or an exponent. It is refused even where its value is whole, since it would
    /// have to go through a float.
    NotWhole,
    /// A number, where a format makes only dates revisions.
    Integer,
    /// An integer that has no room in 64 bits.
    TooLarge,
    /// A text that the layout does not fit.
    NotADate(Fault),
    /// A date of more than `MAX_DATE_TEXT` bytes.
    TooLong,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadValue { subject, value, format, only_dates, fault } = self;
        write!(f, "{subject} is {value}, ")?;
        match fault {
            ValueFault::WrongType(kind) => write!(f, "{kind}")?,
            ValueFault::NotWhole => f.write_str("a number with a fraction or an exponent")?,
            ValueFault::Integer => f.write_str("a number")?,
            ValueFault::TooLarge => f.write_str("an integer of more than 64 bits")?,
            ValueFault::TooLong => write!(f, "longer than {MAX_DATE_TEXT} bytes")?,
            ValueFault::NotADate(fault) => {
                return write!(f, "which is no date in the format {format:?}: {fault}");
            }
        }
        let integer = if *only_dates { "" } else { "an integer or " };
        write!(f, "; a revision is {integer}a date in the format {format:?}")
    }
}
