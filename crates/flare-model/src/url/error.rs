//! In: nothing. Out: [`UrlError`], every way in which a url can be refused, in words for the users of the API.

use super::{MAX_SEGMENTS, MAX_URL_LENGTH};

/// Why a url was refused. The message names the cause and the remedy, and is shown to API users as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// More than [`MAX_URL_LENGTH`] bytes.
    #[error("the url is longer than {MAX_URL_LENGTH} bytes; use a shorter one")]
    TooLong,
    /// Another scheme, or none.
    #[error("the url must be absolute: begin it with http:// or https://")]
    Scheme,
    /// `user:password@`.
    #[error("the url has user info before the host (`user@`); remove it")]
    UserInfo,
    /// Nothing between `://` and the path.
    #[error("the url has no host; write one after `://`")]
    EmptyHost,
    /// A host that is not ASCII, and no international name either.
    #[error("the host `{host}` is no international name; write it in its xn-- form")]
    NonAsciiHost {
        /// As it was given.
        host: String,
    },
    /// A host that is neither a name nor an address.
    #[error(
        "the host `{host}` is not valid; use letters, digits, `-`, `_` and single dots, or an IPv6 address in brackets"
    )]
    Host {
        /// As it was given.
        host: String,
    },
    /// A port that is no port.
    #[error("the port `{port}` is not valid; use a number from 1 to 65535, or leave it and its colon out")]
    Port {
        /// As it was given.
        port: String,
    },
    /// A query string where none is allowed.
    #[error("the url has a query string (`?`); remove it, or write a `?` that belongs to the path as %3F")]
    Query,
    /// A fragment.
    #[error("the url has a fragment (`#`); remove it, or write a `#` that belongs to the path as %23")]
    Fragment,
    /// `.` or `..`, percent-encoded or not.
    #[error("the path has the dot segment `{segment}`; write the path without `.` and `..` segments")]
    DotSegment {
        /// As it was given.
        segment: String,
    },
    /// `//` within the path.
    #[error("the path has an empty segment (`//`); write a single slash")]
    EmptySegment,
    /// More than [`MAX_SEGMENTS`] segments.
    #[error("the path has more than {MAX_SEGMENTS} segments; use a shorter one")]
    TooManySegments,
    /// A space.
    #[error("the url has a blank in it; remove it, or write it as %20")]
    Blank,
    /// A tab, a line end, or another control character.
    #[error("the url has a control character in it; remove it")]
    Control,
    /// `%` without two hex digits.
    #[error("`{escape}` is not a percent-encoding; write a literal percent sign as %25")]
    Escape {
        /// The percent sign and what follows.
        escape: String,
    },
    /// Percent-encodings of a request path that are no text.
    #[error("the percent-encoded url is not UTF-8; encode the UTF-8 bytes of the url")]
    NotUtf8,
    /// `{` or `}` where a real url is expected.
    #[error(
        "the url has a brace in it; give the url of one document, and write a literal brace as %7B or %7D"
    )]
    Brace,
}
