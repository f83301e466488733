//! The desk: what the writer's jobs work with inside a transaction. It gathers what the transaction does to the
//! memory of the engine, to be done there once the transaction is durable, and not before.

use std::collections::BTreeSet;

use flare_provider::Changed;
use rusqlite::Connection;

use crate::lanes::Lanes;
use crate::leavings::Leaving;
use crate::ledger::Deltas;
use crate::recent::{Change, Recent};

/// One transaction.
pub(crate) struct Desk<'a> {
    /// Where it is written.
    pub connection: &'a Connection,
    /// The numbers that lanes give out.
    pub lanes: &'a mut Lanes,
    /// How much of each feed's bitmap is not folded.
    pub deltas: &'a mut Deltas,
    /// What earlier commits did.
    pub recent: &'a Recent,
    /// The last row of the journal before this transaction.
    pub journal: i64,
    /// The id of the last document.
    pub last_document: &'a mut i64,
    /// Which log this is.
    pub incarnation: u64,
    /// The version of the catalog that last gave urls to another resource, before this transaction.
    pub routing: u64,
    /// What is done in this transaction.
    pub done: Done,
}

/// What a transaction did, so far as the engine's memory is concerned.
#[derive(Default)]
pub(crate) struct Done {
    /// What to put into the journal.
    pub changes: Vec<Change>,
    /// Hash and id of documents that are born in this transaction.
    pub born: BTreeSet<(i64, i64)>,
    /// What the witness is to hear.
    pub documents: Vec<Changed>,
    /// What is to be removed slice by slice.
    pub leavings: Vec<Leaving>,
    /// Whether pages were freed that could be given back.
    pub freed: bool,
    /// The version of the catalog by which this transaction gave urls to another resource.
    pub routing: Option<u64>,
}
