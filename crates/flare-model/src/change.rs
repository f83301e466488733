//! In: a resource's `change` object, once, and then the bytes of documents. Out: the revision of each
//! document.
//!
//! The body is read in one validating pass that builds no tree. What is allocated is the text of a date, and
//! the parser's own small stack where it skips nested values.

mod error;
mod find;
mod nesting;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layout::{Layout, excerpt, known, rfc3339};
use crate::revision::{Date, Revision};

pub use error::{BadValue, ChangeError, ValueFault};
pub use nesting::MAX_NESTING;

/// Parts a dotted path can have at most. Well below `MAX_NESTING`, since the way along the path is recursive.
pub const MAX_SEGMENTS: usize = 32;
/// Bytes a date can have at most. A revision travels in headers and urls, and a layout alone does not bound
/// it: fractions and runs of spaces may be of any length.
pub const MAX_DATE_TEXT: usize = 256;

/// Where the revision of a document is found and how it is written: a resource's `change`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ChangeDraft")]
pub struct ChangeSpec {
    /// The dotted path of the field, such as `updatedAt` or `meta.version`.
    #[schemars(regex(pattern = r"^[^.]+(\.[^.]+){0,31}$"))]
    pub field: String,
    /// The Go layout of its dates; RFC 3339 where there is none.
    #[schemars(extend("format" = "go-layout"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// The way to a field of a document: `meta.version`.
#[derive(Clone, Debug)]
pub struct Path {
    written: Box<str>,
    segments: Box<[Box<str>]>,
}

impl Path {
    /// Reads a dotted path.
    pub fn parse(field: &str) -> Result<Path, ChangeError> {
        let segments: Box<[Box<str>]> = field.split('.').map(Box::from).collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            return Err(ChangeError::EmptySegment { field: excerpt(field) });
        }
        if segments.len() > MAX_SEGMENTS {
            return Err(ChangeError::TooManySegments { field: excerpt(field) });
        }
        Ok(Path { written: field.into(), segments })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The JSON text of what a document has there, or nothing where the path leads nowhere. The body must be one JSON object
    /// in UTF-8, nested at most `MAX_NESTING` deep; all of it is checked. Of a key that occurs twice the last value counts.
    pub fn find<'b>(&self, body: &'b [u8]) -> Result<Option<&'b str>, ChangeError> {
        // First of all, since the JSON parser does not look at the bytes of strings it skips.
        let text =
            std::str::from_utf8(body).map_err(|error| ChangeError::NotUtf8 { at: error.valid_up_to() })?;
        if !text.trim_ascii_start().starts_with('{') {
            return Err(ChangeError::NotAnObject { body: excerpt(text) });
        }
        if nesting::is_too_deep(body) {
            return Err(ChangeError::TooDeep);
        }
        find::value_at(text, &self.segments).map_err(ChangeError::Json)
    }
}

impl ChangeSpec {
    /// Checks the path and compiles the layout.
    pub fn compile(&self) -> Result<ChangeReader, ChangeError> {
        let path = Path::parse(&self.field)?;
        let layout = match &self.format {
            None => None,
            // Its literal text would reach the `Flare-Revision` header of notifications.
            Some(format) if format.contains(|c: char| c.is_ascii_control()) => {
                return Err(ChangeError::ControlInFormat { format: excerpt(format) });
            }
            Some(format) => Some(Layout::compile(format)?),
        };
        Ok(ChangeReader { path, layout })
    }
}

impl ChangeSpec {
    /// Checks what is asked of a new resource only: those from before keep what they have.
    pub fn check(&self) -> Result<(), ChangeError> {
        if let Some(format) = &self.format
            && let Some(layout) = known::named(format)
        {
            return Err(ChangeError::NameOfFormat { format: excerpt(format), layout });
        }
        match self.compile()?.layout {
            Some(layout) if !layout.is_whole_date() => {
                Err(ChangeError::NotWholeDate { format: excerpt(layout.as_str()) })
            }
            _ => Ok(()),
        }
    }
}

/// Reads revisions by one `ChangeSpec`.
#[derive(Clone, Debug)]
pub struct ChangeReader {
    path: Path,
    layout: Option<Layout>,
}

impl ChangeReader {
    /// The dotted path of the field.
    pub fn field(&self) -> &str {
        self.path.as_str()
    }

    /// The layout of its dates, or None for RFC 3339.
    pub fn format(&self) -> Option<&str> {
        self.layout.as_ref().map(Layout::as_str)
    }

    /// The revision of a document. The body must be one JSON object in UTF-8, nested at most `MAX_NESTING`
    /// deep; all of it is checked. Of a key that occurs twice the last value counts.
    pub fn read(&self, body: &[u8]) -> Result<Revision, ChangeError> {
        let found = self.path.find(body)?;
        let value = found.ok_or_else(|| ChangeError::Missing { field: excerpt(self.field()) })?;
        self.read_json(value)
    }

    /// The revision that a header carries: an integer or a date, without quotes. With a layout only dates are
    /// revisions, those of digits alone included.
    pub fn read_revision_text(&self, text: &str) -> Result<Revision, ChangeError> {
        let bad = |fault| self.bad_value("the revision".to_owned(), text, fault);
        match self.read_date(text) {
            Ok(date) => Ok(Revision::Date(date)),
            Err(_) if self.layout.is_some() && is_integer(text) => Err(bad(ValueFault::Integer)),
            Err(_) if is_integer(text) => {
                text.parse().map(Revision::Integer).map_err(|_| bad(ValueFault::TooLarge))
            }
            Err(fault) => Err(bad(fault)),
        }
    }

    /// The revision that a JSON value, known to be valid, stands for.
    fn read_json(&self, value: &str) -> Result<Revision, ChangeError> {
        let bad = |fault| self.bad_value(format!("the field {:?}", excerpt(self.field())), value, fault);
        match value.as_bytes() {
            [b'"', ..] => {
                let text = unquote(value).map_err(ChangeError::Json)?;
                self.read_date(&text).map(Revision::Date).map_err(bad)
            }
            [b'-' | b'0'..=b'9', ..] if self.layout.is_some() => Err(bad(ValueFault::Integer)),
            [b'-' | b'0'..=b'9', ..] if value.contains(['.', 'e', 'E']) => Err(bad(ValueFault::NotWhole)),
            [b'-' | b'0'..=b'9', ..] => {
                value.parse().map(Revision::Integer).map_err(|_| bad(ValueFault::TooLarge))
            }
            [b'{', ..] => Err(bad(ValueFault::WrongType("an object"))),
            [b'[', ..] => Err(bad(ValueFault::WrongType("a list"))),
            [b'n', ..] => Err(bad(ValueFault::WrongType("null"))),
            _ => Err(bad(ValueFault::WrongType("a boolean"))),
        }
    }

    fn read_date(&self, text: &str) -> Result<Date, ValueFault> {
        if text.len() > MAX_DATE_TEXT {
            return Err(ValueFault::TooLong);
        }
        let read = match &self.layout {
            Some(layout) => layout.parse(text),
            None => rfc3339::parse(text),
        };
        match read {
            Ok(instant) => Ok(Date::new(instant, text)),
            Err(error) => Err(ValueFault::NotADate(error.fault)),
        }
    }

    fn bad_value(&self, subject: String, value: &str, fault: ValueFault) -> ChangeError {
        let (format, only_dates) = match self.format() {
            Some(format) => (excerpt(format), true),
            None => (rfc3339::NAME.to_owned(), false),
        };
        ChangeError::Value(Box::new(BadValue { subject, value: excerpt(value), format, only_dates, fault }))
    }
}

/// What is between the quotes of a JSON string.
fn unquote(string: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    if string.contains('\\') {
        serde_json::from_str(string).map(Cow::Owned)
    } else {
        Ok(Cow::Borrowed(&string[1..string.len() - 1]))
    }
}

/// Whether JSON would take the text for an integer: no plus sign, no leading zeros.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
