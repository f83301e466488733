//! What is watched while a world runs.

use super::super::{Attempt, Feed, Saved};
use super::print::Print;
use super::step::Answer;
use crate::document::Row;
use crate::ids::Seq;

/// How the life before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Crash,
    /// It was paused, and that was durable: nothing was sent since. What it did else may be forgotten.
    Pause,
    /// It stopped cleanly: all that it knew is durable.
    Stop,
}

/// Someone who hears of everything that happens in a world, and says when a promise is broken.
pub trait Watch: Clone {
    /// The feed was created on a log that has these rows. Here and everywhere else a live row that is none of
    /// the client's comes as deleted: to the client it is.
    fn starts(&mut self, rows: &[Row], beginning: bool);
    /// The feed was handed a row and decided on it.
    fn meets(&mut self, row: &Row);
    /// A request begins.
    fn begins(&mut self, row: &Row, attempt: &Attempt) -> Result<(), String>;
    /// An attempt that begins may be told as a difference to the state of this change.
    fn builds_on(&self, _attempt: &Attempt, _state: Seq) -> Result<(), String> {
        Ok(())
    }
    /// A request ended; `Lost` also for one that was open when the process died.
    fn ends(&mut self, attempt: &Attempt, answer: Answer);
    /// The reader sends nothing for a row. `stands`: because it waits for later.
    fn passes(&mut self, row: &Row, stands: bool) -> Result<(), String>;
    /// A retry or a replay finds nothing to send for a row.
    fn passes_by(&mut self, row: &Row, stands: bool) -> Result<(), String>;
    /// The client is left as it is about a row, whatever it has: it is not to be told, or nobody can tell.
    fn leaves(&mut self, row: &Row);
    /// The filter has changed: all is decided again, and what is the client's now or no longer is told.
    fn refilters(&mut self);
    /// Whether the client is still owed this row.
    fn owes(&self, row: &Row) -> bool;
    /// A replay of everything is promised.
    fn sweeps(&mut self, rows: &[Row], replay: u64);
    /// A document is to be sent again.
    fn asks(&mut self, row: &Row, replay: u64);
    /// A dead letter is dropped.
    fn drops(&mut self, doc: usize);
    fn reaches_tail(&mut self, read: Seq);
    /// A record is taken, with this mark.
    fn takes(&mut self, issued: Seq);
    fn commits(&mut self);
    /// A new life begins with what the ledger has, when the newest change is `head`.
    fn opens(&mut self, saved: &Saved, head: Seq, life: Life);
    /// A lease is out in the new life. `answered`: it had been settled, and that was lost.
    fn reopens(&mut self, attempt: &Attempt, answered: bool);
    /// The feed forgets the client: all there is is owed again, and in doubt.
    fn begins_again(&mut self, rows: &[Row], head: Seq);
    /// The log is another one.
    fn restores(&mut self, rows: &[Row]);
    /// A quiet run is at its end.
    fn rests(&self, rows: &[Row], feed: &Feed, saved: &Saved) -> Result<(), String>;
    fn print(&self, print: &mut Print);
}
