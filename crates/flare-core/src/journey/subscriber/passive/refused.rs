//! Why a passive subscription refuses what it is asked for.

/// Why an ask is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskRefused {
    /// There is no such subscription on this thread any more.
    Gone,
    /// It is served without being asked.
    Active,
    /// It stands still.
    Standing,
    /// Another delivery on request is under way.
    Driving,
    /// As many wait as may.
    Full,
}
