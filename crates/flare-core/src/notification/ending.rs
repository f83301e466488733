//! How an attempt ended: with an answer of the client, or without one.

use http::HeaderMap;

/// How an attempt ended.
#[derive(Debug)]
pub enum Ending {
    /// With an answer.
    Answered(Answer),
    /// Without one.
    Failed {
        /// What went wrong, in words.
        error: String,
        /// Whether at least one byte of the request was written, so that the client may have processed it.
        sent: bool,
        /// Whether time ran out.
        timed_out: bool,
    },
}

/// An answer, read up to a limit.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its body.
    pub excerpt: Vec<u8>,
}
