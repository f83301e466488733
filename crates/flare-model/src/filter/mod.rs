//! Filters: in comes an expression in CEL, once, and then documents; out comes whether a client is to have a
//! document (`filter`), or to be told of a change (`when`).
//!
//! Expressions come from strangers and run on the threads that deliver, so what they can do is bounded before
//! they run: their length, their depth, their variables and functions, and no loops. What is left, work in
//! proportion to the document, is paid for out of a budget. Nothing here panics, whatever comes in; a fuzz
//! target holds it to that. [Why this is not a library](../../../docs/adr/0006-filters-are-our-own-cel.md).

mod functions;
mod json;
mod lex;
mod mistake;
mod parse;
mod pattern;
mod re2;
mod read;
mod run;
mod seen;
mod tree;
mod value;

#[cfg(test)]
mod others_tests;
#[cfg(test)]
mod tests;

pub use json::{Json, MAX_VALUES, Unreadable};
pub use mistake::{Mistake, Position};

use crate::feed::Action;
use crate::revision::Revision;

/// Bytes an expression may have.
pub const MAX_SOURCE: usize = 2048;

/// How many operations may stand inside each other. Chains of `&&` or `||` count once, however long.
pub const MAX_NESTING: usize = 64;

/// What an expression is for, which says what it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `filter`: which documents a client is to have.
    Membership,
    /// `when`: whether to tell. Sees the action, and the document as the client last got it.
    Telling,
}

impl Purpose {
    /// The names an expression can use.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Purpose::Membership => &["document", "revision", "wildcards"],
            Purpose::Telling => &["document", "revision", "wildcards", "action", "state"],
        }
    }
}

/// A compiled expression. Two with the same text are equal.
#[derive(Clone, Debug)]
pub struct Filter {
    source: Box<str>,
    expr: tree::Expr,
    mentions_state: bool,
    mentions_wildcards: bool,
}

/// What an expression sees.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The document; [`Json::nothing`] when it is gone.
    pub document: &'a Json,
    /// Its revision.
    pub revision: &'a Revision,
    /// The wildcards of the resource, in order, with their values. May be empty if the expression does not
    /// [mention](Filter::mentions_wildcards) them.
    pub wildcards: &'a [(&'a str, &'a str)],
    /// What would be told; for `when`.
    pub action: Option<Action>,
    /// The document as the client last got it; for `when`.
    pub state: Option<&'a Json>,
}

/// Why an expression has no result for a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluationError(pub String);

impl From<Unreadable> for EvaluationError {
    fn from(unreadable: Unreadable) -> EvaluationError {
        EvaluationError(unreadable.to_string())
    }
}

impl Filter {
    /// Checks and compiles an expression. With the names of a resource's wildcards they are checked too.
    pub fn compile(source: &str, purpose: Purpose, wildcards: Option<&[String]>) -> Result<Filter, Mistake> {
        let parse::Parsed { expr, mentions_state, mentions_wildcards } =
            parse::parse(source, purpose, wildcards)?;
        Ok(Filter { source: source.into(), expr, mentions_state, mentions_wildcards })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it needs the document as the client last got it.
    pub fn mentions_state(&self) -> bool {
        self.mentions_state
    }

    /// Whether it needs the values of the wildcards.
    pub fn mentions_wildcards(&self) -> bool {
        self.mentions_wildcards
    }

    /// The result for a document.
    pub fn decide(&self, inputs: &Inputs<'_>) -> Result<bool, EvaluationError> {
        run::decide(&self.expr, inputs).map_err(|fault| EvaluationError(fault.to_string()))
    }

    /// The values that it mentions, each with how it is written there: for people who ask why it decided so.
    pub fn seen(&self, inputs: &Inputs<'_>) -> Vec<(String, String)> {
        seen::seen(&self.expr, inputs)
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.source == other.source
    }
}
