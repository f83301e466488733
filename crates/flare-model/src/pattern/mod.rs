//! In: the endpoint of a resource, such as `http://api.company.com/users/{id}`. Out: a [`Pattern`] that says which
//! document urls belong to the resource and what its wildcards stand for, or a [`PatternError`].
//!
//! Literal segments are normalised exactly as in [`DocumentUrl`], so that matching is comparing.

mod error;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use error::PatternError;

use crate::url::{DocumentUrl, MAX_SEGMENTS, UrlError, authority, check_length, push_segment};

/// The name that a template uses for the document's revision, and that no wildcard may have.
pub const REVISION: &str = "revision";

/// The most wildcards of one endpoint: the router counts them by letters.
pub const MAX_WILDCARDS: usize = 25;

/// One path segment of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Segment {
    /// Matches itself.
    Literal(Box<str>),
    /// Matches any one segment.
    Wildcard,
}

/// The endpoint of a resource: an origin and a path with at least one wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    normalised: String,
    /// The length of `http://host:port` in `normalised`.
    origin: usize,
    segments: Vec<Segment>,
    wildcards: Vec<String>,
}

impl Pattern {
    /// Reads and normalises an endpoint. Blanks around it come from copying, and are taken off.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        check_length(text.len())?;
        if authority::cut(text)?.1.contains(['{', '}']) {
            return Err(PatternError::WildcardInHost);
        }
        let (authority, path) = authority::split(text)?;
        let mut normalised = String::with_capacity(text.len());
        authority.write_origin(&mut normalised);
        let mut pattern =
            Self { origin: normalised.len(), normalised, segments: Vec::new(), wildcards: Vec::new() };
        match path.as_bytes().first() {
            Some(b'?') => return Err(UrlError::Query.into()),
            Some(b'#') => return Err(UrlError::Fragment.into()),
            _ => {}
        }
        for segment in path.strip_suffix('/').unwrap_or(path).split('/').skip(1) {
            pattern.push(segment)?;
        }
        if pattern.wildcards.is_empty() {
            return Err(PatternError::NoWildcard);
        }
        if pattern.wildcards.len() > MAX_WILDCARDS {
            return Err(PatternError::TooManyWildcards);
        }
        check_length(pattern.normalised.len())?;
        Ok(pattern)
    }

    /// The endpoint as it is shown to users.
    pub fn normalised(&self) -> &str {
        &self.normalised
    }

    /// Scheme, host and port: `http://api.company.com`.
    pub fn origin(&self) -> &str {
        &self.normalised[..self.origin]
    }

    /// The endpoint with the names of its wildcards left out: `http://api.company.com/users/{}`. Two resources with
    /// the same shape would track the same documents.
    pub fn shape(&self) -> String {
        let mut shape = String::with_capacity(self.normalised.len());
        shape.push_str(self.origin());
        for segment in &self.segments {
            shape.push('/');
            match segment {
                Segment::Literal(text) => shape.push_str(text),
                Segment::Wildcard => shape.push_str("{}"),
            }
        }
        shape
    }

    /// The names of the wildcards, left to right.
    pub fn wildcards(&self) -> &[String] {
        &self.wildcards
    }

    /// Whether the url is of this shape. Which resource it belongs to is for [`crate::router::Router`] to say.
    pub fn matches(&self, url: &DocumentUrl) -> bool {
        let mut segments = url.segments();
        url.origin() == self.origin()
            && self.segments.iter().all(|own| match (own, segments.next()) {
                (Segment::Literal(text), Some(segment)) => **text == *segment,
                (Segment::Wildcard, Some(_)) => true,
                (_, None) => false,
            })
            && segments.next().is_none()
    }

    /// What the wildcards stand for in the url, in the order of [`Self::wildcards`], percent-encoded as they are
    /// there. Nothing when the url does not match.
    pub fn values<'u>(&self, url: &'u DocumentUrl) -> Option<Vec<&'u str>> {
        if !self.matches(url) {
            return None;
        }
        let mut values = Vec::with_capacity(self.wildcards.len());
        let wild = self.segments.iter().zip(url.segments()).filter(|(own, _)| **own == Segment::Wildcard);
        values.extend(wild.map(|(_, value)| value));
        Some(values)
    }

    /// Whether some url is of both shapes.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        self.origin() == other.origin()
            && self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(|pair| match pair {
                (Segment::Literal(own), Segment::Literal(others)) => own == others,
                _ => true,
            })
    }

    /// Whether a url of both shapes would go to this pattern: literal before wildcard, left to right. A new resource
    /// with documents of `existing` among its urls would take them away, and is refused.
    pub fn captures(&self, existing: &Pattern) -> bool {
        let mut pairs = self.segments.iter().zip(&existing.segments);
        let first_difference = pairs.find(|(own, others)| own != others);
        self.overlaps(existing) && matches!(first_difference, Some((Segment::Literal(_), Segment::Wildcard)))
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn push(&mut self, segment: &str) -> Result<(), PatternError> {
        if self.segments.len() == MAX_SEGMENTS {
            return Err(UrlError::TooManySegments.into());
        }
        self.normalised.push('/');
        let start = self.normalised.len();
        let Some(name) = wildcard_name(segment)? else {
            push_segment(segment, &mut self.normalised)?;
            self.segments.push(Segment::Literal(self.normalised[start..].into()));
            return Ok(());
        };
        if self.wildcards.iter().any(|other| other == name) {
            return Err(PatternError::DuplicateName { name: name.to_owned() });
        }
        self.normalised.extend(["{", name, "}"]);
        self.wildcards.push(name.to_owned());
        self.segments.push(Segment::Wildcard);
        Ok(())
    }
}

/// The trimmed name of a segment that is a wildcard; nothing for a literal one.
fn wildcard_name(segment: &str) -> Result<Option<&str>, PatternError> {
    let inside = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match inside.map(str::trim) {
        Some(name) if !name.contains(['{', '}']) => return check_name(name).map(Some),
        _ => {}
    }
    // A name may hold any character, so `?` and `#` begin something else only outside of braces.
    let mut depth = 0_usize;
    for character in segment.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Err(PatternError::Unbalanced { segment: segment.to_owned() }),
            '}' => depth -= 1,
            '?' if depth == 0 => return Err(UrlError::Query.into()),
            '#' if depth == 0 => return Err(UrlError::Fragment.into()),
            _ => {}
        }
    }
    if depth > 0 {
        return Err(PatternError::Unbalanced { segment: segment.to_owned() });
    }
    if segment.contains('{') {
        return Err(PatternError::PartOfSegment { segment: segment.to_owned() });
    }
    Ok(None)
}

fn check_name(name: &str) -> Result<&str, PatternError> {
    match name {
        "" => Err(PatternError::EmptyName),
        REVISION => Err(PatternError::ReservedName),
        name if name.contains(char::is_control) => Err(PatternError::ControlInName),
        name => Ok(name),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.normalised)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;
    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.normalised
    }
}
