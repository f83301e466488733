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
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 8] = [
        Bug::MarkFalls,
        Bug::SweepStandsStill,
        Bug::CursorBeforeRecord,
        Bug::MarkNotDurable,
        Bug::SweepLosesChanges,
        Bug::FilterForgotten,
        Bug::LateAnswerSettles,
        Bug::ShardsDropStanding,
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
