//! Bugs that a test plants, one at a time, to show that it would find them: a test names one, and the code that keeps it
//! from happening asks here. Not part of the product: this is compiled only with the feature `planted`, which nothing but
//! the tests of `flare-sim` has.

use std::cell::Cell;

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A lane that has nothing to record, and is asked to, takes its mark from that nothing.
    MarkFalls,
    /// A sweep that waits for a record is not woken when that is durable.
    SweepStandsStill,
    /// The cursor passes an open attempt before anything is recorded that stands for it.
    CursorBeforeRecord,
    /// Something is sent beyond the mark before the higher mark is durable.
    MarkNotDurable,
    /// A sweep passes by what is in flight, or changes, while it comes to it.
    SweepLosesChanges,
    /// A filter that is changed during a sweep counts as swept for.
    FilterForgotten,
    /// The word about a lease that has ended settles the next one of its document.
    LateAnswerSettles,
    /// A lane that goes to another thread loses what waits in it.
    ShardsDropStanding,
    /// The ledger takes records under any epoch.
    FencingRemoved,
    /// A node whose lease is over keeps what it had until a renewal is refused.
    RenewedAfterExpiry,
    /// The coordinator renews whatever session there is of the name.
    RenewedByName,
    /// Epochs are given out by the coordinator.
    EpochFromCoordinator,
    /// A node looks at nothing that it was not rung for.
    NoPoll,
    /// What another node changed about a subscription is not taken over.
    CatalogChangeMissed,
    /// The store lets anybody remove what nobody needs, under any epoch.
    StaleSweeper,
    /// An attempt goes on though its unit was cut.
    AttemptNotCut,
    /// A change of the node's own is put behind what it knows of a lane, whatever others wrote between.
    TailOverGap,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 17] = [
        Bug::MarkFalls,
        Bug::SweepStandsStill,
        Bug::CursorBeforeRecord,
        Bug::MarkNotDurable,
        Bug::SweepLosesChanges,
        Bug::FilterForgotten,
        Bug::LateAnswerSettles,
        Bug::ShardsDropStanding,
        Bug::FencingRemoved,
        Bug::RenewedAfterExpiry,
        Bug::RenewedByName,
        Bug::EpochFromCoordinator,
        Bug::NoPoll,
        Bug::CatalogChangeMissed,
        Bug::StaleSweeper,
        Bug::AttemptNotCut,
        Bug::TailOverGap,
    ];

    /// Whether it is planted on this thread.
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

thread_local! {
    /// Of each thread for itself: schedules that run side by side have each their own.
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a bug on this thread, or pulls up the one that is there.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}
