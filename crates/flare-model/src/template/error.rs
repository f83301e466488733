//! In: nothing. Out: [`TemplateError`], every way in which a template can be refused.

use super::MAX_SLOTS;
use crate::url::UrlError;

/// Why a template was refused. The message is shown to API users as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// What is wrong would be wrong with any url.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A name that is not of the resource.
    #[error("the wildcard `{{{name}}}` is unknown here; use one of {known}")]
    Unknown {
        /// Without its braces.
        name: String,
        /// What could stand there, with braces.
        known: String,
    },
    /// `{}`.
    #[error("there is a wildcard without a name (`{{}}`); name it, as in `{{id}}`")]
    EmptySlot,
    /// A brace without its partner.
    #[error("the brace at character {position} has no partner; write a wildcard as `{{name}}`")]
    Unbalanced {
        /// Counted in characters, from 1.
        position: usize,
    },
    /// More than [`MAX_SLOTS`] slots.
    #[error("there are more than {MAX_SLOTS} wildcards in one text; use fewer")]
    TooManySlots,
    /// A slot before the path.
    #[error(
        "a wildcard cannot stand in the scheme, host or port of a url; use it in the path or the query string"
    )]
    BeforePath,
}
