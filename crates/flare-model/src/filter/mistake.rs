//! What is wrong with an expression, and where: so that a user finds it without counting.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// A place in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Position {
    /// Bytes before it.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The character within the line, from 1.
    pub column: usize,
}

impl Position {
    fn of(source: &str, offset: usize) -> Position {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            offset: before.len(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub position: Position,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl Mistake {
    pub(super) fn at(source: &str, offset: usize, problem: impl Into<String>) -> Mistake {
        Mistake { position: Position::of(source, offset), problem: problem.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column, .. } = self.position;
        write!(f, "line {line}, column {column}: {}", self.problem)
    }
}

impl std::error::Error for Mistake {}
