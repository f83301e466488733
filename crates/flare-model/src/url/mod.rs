//! In: the url of a document, as an origin writes it. Out: a [`DocumentUrl`], the one spelling under which that
//! document is known, or a [`UrlError`] that names what is wrong with it.
//!
//! What is normalised: scheme and host in lower case, international names in their `xn--` form, IPv6 addresses in their shortest form, the default port and one
//! trailing slash dropped, hex digits of percent-encodings in upper case, unreserved characters (letters, digits,
//! `-._~`) never percent-encoded, characters that a url cannot carry as they are (non-ASCII, `"<>\^|` and the
//! backtick) always. So two spellings that every server takes for the same url are the same document. `%2F` stays.
//!
//! What is absent: relative urls, query strings, and any resolving of dot segments (they are refused, because
//! resolving them would let `/users/../admins/1` be a document of another resource than it seems).

pub(crate) mod authority;
mod error;
pub(crate) mod percent;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use authority::Scheme;
pub(crate) use authority::with_ascii_host;
pub use error::UrlError;
pub use percent::decode_segment;

/// The longest url taken, in bytes, before and after normalising.
pub const MAX_URL_LENGTH: usize = 8 * 1024;

/// The most path segments taken: matching walks them one by one.
pub const MAX_SEGMENTS: usize = 64;

/// The normalised url of one document. Cheap to clone; two are equal exactly when their texts are.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DocumentUrl {
    text: Arc<str>,
    scheme: Scheme,
    /// Where the path begins in `text`; its length when there is no path.
    path: usize,
}

impl DocumentUrl {
    /// Reads and normalises an absolute http or https url.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        check_length(text.len())?;
        let (authority, rest) = authority::split(text)?;
        let mut out = String::with_capacity(text.len());
        authority.write_origin(&mut out);
        let path = out.len();
        push_path(rest, &mut out)?;
        check_length(out.len())?;
        Ok(Self { text: out.into(), scheme: authority.scheme, path })
    }

    /// Reads what follows `/documents/` in a request path. Three forms give the same url: raw
    /// (`http://host/users/1`), percent-encoded as a whole (`http%3A%2F%2Fhost%2Fusers%2F1`), and raw with the `//`
    /// folded into `/` by a proxy. The encoded form is decoded exactly once, so `%252F` there is `%2F` here; in the
    /// raw form `%2F` already is what the origin meant.
    pub fn from_request_path(rest: &str) -> Result<Self, UrlError> {
        check_length(rest.len() / 3)?;
        // Whoever encodes the colon or the first slashes has encoded the percent signs as well.
        if after_scheme(rest).is_some_and(|rest| rest.starts_with('/')) {
            return Self::parse(&unfold(rest));
        }
        Self::parse(&unfold(&percent::decode(rest)?))
    }

    /// The whole url.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// http or https.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Host and, where it is not the default one, port: `api.company.com:8080`.
    pub fn authority(&self) -> &str {
        &self.origin()[self.scheme.as_str().len() + "://".len()..]
    }

    /// Scheme and authority: `http://api.company.com:8080`.
    pub fn origin(&self) -> &str {
        &self.text[..self.path]
    }

    /// The path, from its first slash; empty for the root.
    pub fn path(&self) -> &str {
        &self.text[self.path..]
    }

    /// The path's segments, still percent-encoded.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.path().split('/').skip(1)
    }
}

impl fmt::Display for DocumentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for DocumentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocumentUrl({})", self.text)
    }
}

impl FromStr for DocumentUrl {
    type Err = UrlError;
    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for DocumentUrl {
    type Error = UrlError;
    fn try_from(text: String) -> Result<Self, UrlError> {
        Self::parse(&text)
    }
}

impl From<DocumentUrl> for String {
    fn from(url: DocumentUrl) -> Self {
        url.text.as_ref().to_owned()
    }
}

/// Refuses more than [`MAX_URL_LENGTH`] bytes.
pub(crate) fn check_length(length: usize) -> Result<(), UrlError> {
    if length > MAX_URL_LENGTH { Err(UrlError::TooLong) } else { Ok(()) }
}

/// Appends one literal segment in its normalised form.
pub(crate) fn push_segment(segment: &str, out: &mut String) -> Result<(), UrlError> {
    if segment.is_empty() {
        return Err(UrlError::EmptySegment);
    }
    let start = out.len();
    percent::normalise(segment, out)?;
    // Compared after normalising, so `%2e%2E` is seen for what it is.
    if matches!(&out[start..], "." | "..") {
        return Err(UrlError::DotSegment { segment: segment.to_owned() });
    }
    Ok(())
}

fn push_path(rest: &str, out: &mut String) -> Result<(), UrlError> {
    match rest.bytes().find(|byte| matches!(byte, b'?' | b'#')) {
        Some(b'?') => return Err(UrlError::Query),
        Some(_) => return Err(UrlError::Fragment),
        None => {}
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (index, segment) in rest.split('/').skip(1).enumerate() {
        if index == MAX_SEGMENTS {
            return Err(UrlError::TooManySegments);
        }
        out.push('/');
        push_segment(segment, out)?;
    }
    Ok(())
}

/// What follows `http:` or `https:`, whatever the case.
fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    Scheme::read(scheme).map(|_| rest)
}

/// Gives `http:/host` its second slash back.
fn unfold(text: &str) -> String {
    match after_scheme(text) {
        Some(rest) if rest.starts_with('/') && !rest.starts_with("//") => {
            format!("{}/{rest}", &text[..text.len() - rest.len()])
        }
        _ => text.to_owned(),
    }
}
