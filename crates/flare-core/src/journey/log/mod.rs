//! Where feeds read changes. In: what was committed, in order, and what the store has. Out: the changes beyond a
//! position: the newest from the tail in memory (`tail`), older ones from pages of the store (`pages`); and how
//! many documents they are (`rows`).

pub mod pages;
pub mod rows;
pub mod tail;
