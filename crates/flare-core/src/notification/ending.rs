//! How an attempt ended: with an answer of the client, or without one.

use flare_model::judge::Heard;
use flare_wire::Fields;

/// How an attempt ended.
#[derive(Debug)]
pub enum Ending {
    /// With an answer.
    Answered(Answer),
    /// A sink has it.
    Taken,
    /// A sink will never take it, for this reason.
    Refused(String),
    /// Without one, or without the end of one.
    Failed {
        /// The status of an answer that began.
        status: Option<u16>,
        /// What went wrong, in words.
        error: String,
        /// Whether at least one byte of the request was written, so that the client may have processed it.
        sent: bool,
        /// Whether time ran out.
        timed_out: bool,
    },
}

impl Ending {
    /// The status of the answer, whole or not.
    pub fn status(&self) -> Option<u16> {
        match self {
            Ending::Answered(answer) => Some(answer.status),
            Ending::Failed { status, .. } => *status,
            Ending::Taken | Ending::Refused(_) => None,
        }
    }

    /// As it is judged.
    pub fn heard(&self) -> Heard<'_> {
        match self {
            Ending::Answered(answer) => Heard::Answer {
                status: answer.status,
                retry_after: answer
                    .fields
                    .get("retry-after")
                    .and_then(|value| std::str::from_utf8(value).ok()),
                excerpt: &answer.excerpt,
                second: answer.second,
            },
            Ending::Taken => Heard::Taken,
            Ending::Refused(error) => Heard::Refused { error },
            Ending::Failed { status, error, sent, .. } => {
                Heard::Nothing { status: *status, error, sent: *sent }
            }
        }
    }
}

/// An answer, read up to a limit.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub fields: Fields,
    /// The beginning of its body.
    pub excerpt: Vec<u8>,
    /// It answers a second request, because the connection of the first broke, which may have arrived.
    pub second: bool,
}

impl Answer {
    /// The answer to a request, which may be the second one.
    pub fn new(answer: flare_wire::Answer, second: bool) -> Answer {
        let flare_wire::Answer { status, fields, excerpt } = answer;
        Answer { status, fields, excerpt, second }
    }

    /// It is done with; its room can be used again.
    pub fn into_room(self) -> flare_wire::Answer {
        let Answer { status, fields, excerpt, .. } = self;
        flare_wire::Answer { status, fields, excerpt }
    }
}
