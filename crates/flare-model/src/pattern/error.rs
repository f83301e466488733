//! In: nothing. Out: [`PatternError`], every way in which an endpoint can be refused beyond those of any url.

use super::MAX_WILDCARDS;
use crate::url::UrlError;

/// Why the endpoint of a resource was refused. The message is shown to API users as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// What is wrong with the endpoint would be wrong with any url.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A path without wildcards tracks one document at most.
    #[error("the endpoint has no wildcard; give its path at least one segment like `{{id}}`")]
    NoWildcard,
    /// More than can be told apart.
    #[error("the endpoint has more than {MAX_WILDCARDS} wildcards; use fewer")]
    TooManyWildcards,
    /// Braces before the path.
    #[error("the endpoint has a brace in its host or port; wildcards belong in the path")]
    WildcardInHost,
    /// `{}`.
    #[error("the endpoint has a wildcard without a name (`{{}}`); name it, as in `{{id}}`")]
    EmptyName,
    /// `{revision}`.
    #[error("the wildcard name `revision` is reserved for the revision of the document; choose another")]
    ReservedName,
    /// The same name twice.
    #[error("the endpoint has the wildcard `{{{name}}}` more than once; give each a name of its own")]
    DuplicateName {
        /// Without its braces.
        name: String,
    },
    /// A line end or the like in a name.
    #[error("the endpoint has a wildcard with a control character in its name; remove it")]
    ControlInName,
    /// `a{b}`.
    #[error(
        "the segment `{segment}` mixes a wildcard with other text; make the wildcard the whole segment, or write literal braces as %7B and %7D"
    )]
    PartOfSegment {
        /// As it was given.
        segment: String,
    },
    /// `{id` or `id}`.
    #[error("the segment `{segment}` has a brace without its partner; write a wildcard as `{{name}}`")]
    Unbalanced {
        /// As it was given.
        segment: String,
    },
}
