//! What can happen in a world, and how much of it a scope allows.

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Put(usize),
    /// The document changes so that the client's interest in it is another.
    PutAs(usize, Look),
    Delete(usize),
    /// The reader meets the next row, or asks for the mark it needs.
    Read,
    /// The reader meets a row that is not the newest of its document any more.
    ReadStale(usize),
    /// The reader learns that there is nothing before the next row.
    Skip,
    Tail,
    Retry(usize),
    /// A retry with a row that is not the newest any more.
    RetryStale(usize),
    Answer(usize, Answer),
    /// The attempt that is open is handed to a client that pulls.
    Lease(usize),
    Displace,
    Take,
    Commit,
    /// Somebody asks for a record of a feed that has nothing to record, and takes the silence for one that is durable.
    RecordNothing,
    Crash,
    /// A clean stop, or a hand-over to another owner; a record may be under way.
    Stop,
    /// Nothing is sent from now on, and nothing is in flight.
    Pause,
    Resume,
    Replay,
    Sweep,
    Ask(usize),
    Drop(usize),
    /// The filter is turned around: what was the client's is not, and the other way.
    Refilter,
    /// The feed hears of it.
    Hear,
    /// The feed forgets the client and begins again.
    BeginAgain,
    /// The client wants every revision from now on, or only the newest.
    Change,
    /// The oldest revision of the history goes, whoever needs it.
    Trim,
    Backup,
    Restore {
        /// The ledger too is what it was.
        ledger: bool,
    },
}

/// How a client's expressions see a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// It is the client's.
    In,
    /// It is not.
    Out,
    /// It is the client's, and the client is not to be told.
    Untold,
    /// Nobody can tell.
    Error,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Success,
    Discard,
    /// A timeout, a break, an error: the client has processed it, or will, or never does.
    Lost,
    /// Not a byte was written.
    Refused,
    /// Lost, and the policy gives it up.
    LostAtLast,
    /// Refused, and the policy gives it up.
    RefusedAtLast,
}

impl Answer {
    pub const ALL: [Answer; 6] = [
        Answer::Success,
        Answer::Discard,
        Answer::Lost,
        Answer::Refused,
        Answer::LostAtLast,
        Answer::RefusedAtLast,
    ];
}

/// How records are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Things happen between taking a record and its being durable.
    Apart,
    /// In one step. If the feed keeps well apart what changed before and after a record was taken, nothing is
    /// lost by this: a record that is not durable at the crash was never taken, and one that is might have
    /// been written at once, since until it is durable the feed may do less, not more.
    AtOnce,
}

/// How often the steps that could go on for ever may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    pub events: u8,
    pub crashes: u8,
    pub stops: u8,
    pub pauses: u8,
    pub replays: u8,
    pub drops: u8,
    pub restores: u8,
    pub beginnings: u8,
    pub leases: u8,
    pub refilters: u8,
    pub changes: u8,
    pub trims: u8,
}

/// What a search covers.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub name: &'static str,
    pub docs: usize,
    pub left: Left,
    pub answers: &'static [Answer],
    /// How documents may look beside `In`; with any, the feed has a filter.
    pub looks: &'static [Look],
    pub records: Records,
    /// The mark grows by this.
    pub block: u64,
    pub window: Option<u64>,
    /// What the log has when the feed is created.
    pub before: &'static [Step],
    /// The feed starts at the beginning.
    pub beginning: bool,
    /// Whole replays, beside those of one document.
    pub sweeps: bool,
    pub skips: bool,
    /// Deletes of what is deleted or was never there.
    pub again: bool,
    /// Rows may be outdated when they reach the feed.
    pub outdated: bool,
    /// Records are asked for also when there is nothing to record.
    pub asked: bool,
    /// The client wants every revision.
    pub all: bool,
    /// The documents are kept as the client last got them.
    pub states: bool,
    /// More worlds than this are a mistake.
    pub most: usize,
}

pub const SMALL: Scope = Scope {
    name: "small",
    docs: 1,
    left: Left {
        events: 3,
        crashes: 1,
        stops: 0,
        pauses: 0,
        replays: 0,
        drops: 0,
        restores: 0,
        beginnings: 0,
        leases: 0,
        refilters: 0,
        changes: 0,
        trims: 0,
    },
    answers: &Answer::ALL,
    looks: &[],
    records: Records::AtOnce,
    block: 1,
    window: None,
    before: &[],
    beginning: false,
    sweeps: false,
    skips: false,
    again: false,
    outdated: false,
    asked: false,
    all: false,
    states: false,
    most: 5_000_000,
};
