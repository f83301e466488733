//! How an attempt ended: with an answer of the client, or without one.

use flare_model::judge::Heard;
use http::HeaderMap;
use http::header::RETRY_AFTER;

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

impl Ending {
    /// As it is judged.
    pub fn heard(&self) -> Heard<'_> {
        match self {
            Ending::Answered(answer) => Heard::Answer {
                status: answer.status,
                retry_after: answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()),
                excerpt: &answer.excerpt,
                second: answer.second,
            },
            Ending::Failed { error, sent, .. } => Heard::Nothing { error, sent: *sent },
        }
    }
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
    /// It answers a second request, because the connection of the first broke, which may have arrived.
    pub second: bool,
}
