//! From one engine to another: everything that a store has, as rows of tables that both know by the same names and columns. The
//! numbers stay what they are, so that clients notice nothing.

use crate::error::Result;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A number; also yes (1) and no (0).
    Number(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Where rows go.
pub trait Rows {
    /// From now on rows are of this table, with these columns.
    fn table(&mut self, name: &'static str, columns: &'static str) -> Result<()>;

    /// A row, cell by cell.
    fn row(&mut self, cells: &[Cell]) -> Result<()>;
}
