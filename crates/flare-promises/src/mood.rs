//! How a client behaves: a mood, which operations change, and for each request a reply, drawn in the order in which
//! requests come.

use std::time::Duration;

use crate::beliefs::Ending;
use crate::dice::Dice;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mood {
    Healthy,
    /// Processes everything at once, and takes its time to say so: a kill finds requests open that have been processed.
    Slow,
    /// A little of everything.
    Flaky,
    /// 500 to everything.
    Failing,
    Hanging,
    /// 410 to everything.
    Gone,
    /// 429 to most.
    Throttling,
}

impl Mood {
    pub fn draw(dice: &mut Dice) -> Mood {
        dice.weighted(&[
            (Mood::Healthy, 4),
            (Mood::Slow, 6),
            (Mood::Flaky, 8),
            (Mood::Failing, 2),
            (Mood::Hanging, 1),
            (Mood::Gone, 1),
            (Mood::Throttling, 1),
        ])
    }
}

/// What is answered to one request.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    pub kind: Kind,
    /// Whether the client processes it, whatever it answers.
    pub processes: bool,
    /// It takes so long to answer.
    pub after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Status {
        status: u16,
        retry_after: Option<u32>,
    },
    /// Success, and the connection is closed.
    Close,
    /// Success that promises to keep the connection, and closes it.
    CloseSilently,
    /// No answer, and the connection is reset.
    Drop,
    /// No answer for as long as the sender waits. `late`: it is processed after that.
    Hang {
        late: bool,
    },
    /// Something that is not HTTP.
    Garbage,
    /// The beginning of a good answer.
    Half,
}

impl Kind {
    /// What the sender makes of it, if it gets it.
    pub fn ending(self) -> Ending {
        match self {
            Kind::Status { status: 200..=299, .. } | Kind::Close | Kind::CloseSilently => Ending::Delivered,
            Kind::Status { status: 422, .. } => Ending::Discarded,
            _ => Ending::Failed,
        }
    }
}

fn status(status: u16, retry_after: Option<u32>) -> Kind {
    Kind::Status { status, retry_after }
}

impl Reply {
    pub fn draw(mood: Mood, dice: &mut Dice) -> Reply {
        // The same number of draws in every mood, so that a mood that comes earlier or later changes nothing else.
        let (roll, kind, processes, slow) =
            (dice.below(100), dice.below(14), dice.percent(50), dice.below(100));
        let fault = match kind {
            0 | 1 => status(500, None),
            2 => status(503, Some(1)),
            3 => status(429, Some(1)),
            4 => status(429, None),
            5 => Kind::Drop,
            6 => Kind::Drop,
            7 => Kind::Hang { late: processes },
            8 => Kind::Garbage,
            9 => Kind::Half,
            10 => status(422, None),
            11 => status(302, None),
            12 => Kind::Close,
            _ => Kind::CloseSilently,
        };
        let kind = match mood {
            Mood::Flaky if roll < 45 => fault,
            Mood::Failing => status(500, None),
            Mood::Hanging => Kind::Hang { late: processes },
            Mood::Gone => status(410, None),
            Mood::Throttling if roll < 70 => status(429, Some(1)),
            _ => status(if roll % 2 == 0 { 200 } else { 204 }, None),
        };
        let after = match mood {
            Mood::Slow => 20 + slow * 3 / 2,
            _ if slow < 10 => slow,
            _ => 0,
        };
        let processes = match kind.ending() {
            Ending::Delivered => true,
            // What is dropped on purpose is not processed.
            Ending::Discarded => false,
            Ending::Failed => processes && !matches!(kind, Kind::Hang { .. }),
        };
        Reply { kind, processes, after: Duration::from_millis(after) }
    }
}
