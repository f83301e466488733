//! The rules of a feed that can be taken away, one at a time, to show that the checks see what each is for.
//! Outside of tests all of them hold, and asking costs nothing.

/// One rule, in the words of what it keeps from happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rule {
    /// What was settled beyond the recorded cursor is not sent again by the next life.
    Ahead,
    /// What a retry settled beyond the reader is not sent again when the reader comes to it.
    Outrun,
    /// A row that reaches the feed after a newer one of its document was sent is passed by.
    OutdatedRead,
    /// The same for a retry.
    OutdatedRetry,
    /// A create or delete with an unknown outcome leaves doubt.
    Doubt,
    /// An update with an unknown outcome leaves none.
    UpdateIsSafe,
    /// A discard leaves doubt as it is.
    DiscardKeepsDoubt,
    /// After a crash the changes beyond the cursor are judged.
    JudgeChanges,
    /// After a crash the documents that wait for a retry are judged.
    JudgeStandings,
    /// Each document is judged once in a life.
    JudgeOnce,
    /// A delete between two lives of a document counts when a change is judged.
    BeforeChange,
    /// The same when a standing is judged.
    BeforeStanding,
    /// Judging goes on until the reader has reached the tail and all it had read by then is settled.
    JudgeToTheTail,
    /// Once the reader has reached the tail nothing more is judged.
    JudgeNoFurther,
    /// The recorded cursor rests while there is something to judge.
    CursorRests,
    /// A stop while there is something to judge leaves it to the next life.
    StopKeepsJudging,
    /// What was judged before a stop, or came to stand since the crash, is not judged after it.
    StandingsOnce,
    /// The same for a change.
    ChangesOnce,
    /// A stop after the reader has reached the tail leaves no change to judge.
    TailOnce,
    /// A stop with nothing to judge leaves nothing to judge.
    StopIsClean,
    /// So does a pause, for as long as it lasts.
    PauseIsClean,
    /// A record that was taken before the mark was taken back does not raise it again.
    TakenBackStays,
    /// A record that is durable never lowers the mark.
    MarkGrows,
    /// What changed after a crash was not sent before it.
    NotBeyondHead,
    /// A tombstone is needed until nothing in the ledger tells of its document any more.
    NeededUntilDurable,
    /// Nothing is sent beyond the durable mark.
    Issued,
    /// An open attempt holds the cursor, even after the document moved on.
    OpenHolds,
    /// Even one that is ahead of the reader.
    OpenAheadHolds,
    /// A failed attempt leaves a standing even if the document moved on meanwhile.
    StandsWhenChanged,
    /// A hole that is pushed out of the window becomes a standing.
    DisplacedStands,
    /// That standing says what the open attempt may have done.
    DisplacedDoubt,
    /// What is given up is the newest revision or nothing.
    GiveUpNewest,
    /// A sweep waits for documents in flight.
    SweepWaits,
    /// A sweep takes what is settled ahead of the reader too.
    SweepAhead,
    /// A replay is sent once it is durable that it is owed.
    ReplayDurable,
    /// A change has one identity, whether a replay is pending or not.
    ReplayOwnId,
    /// A lease is still out after a crash.
    LeaseSurvives,
    /// What was leased is sent again once the end of the lease is durable.
    LeaseEndDurable,
    /// A lease stands for itself, also when a newer change is pushed out of the window.
    LeaseStands,
    /// Numbers of another log mean nothing.
    OtherLog,
    /// Neither do the numbers of its documents.
    OtherDocuments,
    /// A feed that begins again forgets what the ledger has, and not only what it has itself.
    ForgetUnrecorded,
    /// A live document that is none of the client's is as good as deleted.
    Membership,
    /// Not telling leaves doubt as it is.
    UntoldKeepsDoubt,
    /// Where there is a filter, a change judged after a crash may hide that the document had left.
    SelectiveChange,
    /// The same for a standing.
    SelectiveStanding,
    /// A changed filter has everything decided again.
    SweepFilter,
    /// Even if another sweep is under way: then after it.
    FilterQueues,
    /// What a changed filter has handed over, and the next one takes back, is not told again.
    TransitionOnly,
    /// Where every revision is sent, the next one waits until the outcome of the one before is durable.
    OutcomeDurable,
    /// The same if there was nothing to send for the one before.
    NothingDurable,
    /// A newer revision that is met while one is in flight is owed by a standing for both.
    StandsForAll,
    /// What follows a revision that waited is owed when that one is settled.
    OwedToTheEnd,
    /// A revision that was settled before a crash does not make its document known: the next one is judged.
    JudgeNextRevision,
    /// A document of which nothing is owed any more keeps its doubt.
    PassedKeepsDoubt,
    /// A revision that was tried, and then removed from the history, leaves its doubt.
    JudgeRemoved,
    /// A feed that changes to every revision does not go back to what it has left out.
    SinceNow,
    /// A sweep for a changed filter waits until it is known whether more of a document is owed.
    FilterWaits,
}

#[cfg(test)]
impl Rule {
    pub(super) const ALL: [Rule; 58] = [
        Rule::Ahead,
        Rule::Outrun,
        Rule::OutdatedRead,
        Rule::OutdatedRetry,
        Rule::Doubt,
        Rule::UpdateIsSafe,
        Rule::DiscardKeepsDoubt,
        Rule::JudgeChanges,
        Rule::JudgeStandings,
        Rule::JudgeOnce,
        Rule::BeforeChange,
        Rule::BeforeStanding,
        Rule::JudgeToTheTail,
        Rule::JudgeNoFurther,
        Rule::CursorRests,
        Rule::StopKeepsJudging,
        Rule::StandingsOnce,
        Rule::ChangesOnce,
        Rule::TailOnce,
        Rule::StopIsClean,
        Rule::PauseIsClean,
        Rule::TakenBackStays,
        Rule::MarkGrows,
        Rule::NotBeyondHead,
        Rule::NeededUntilDurable,
        Rule::Issued,
        Rule::OpenHolds,
        Rule::OpenAheadHolds,
        Rule::StandsWhenChanged,
        Rule::DisplacedStands,
        Rule::DisplacedDoubt,
        Rule::GiveUpNewest,
        Rule::SweepWaits,
        Rule::SweepAhead,
        Rule::ReplayDurable,
        Rule::ReplayOwnId,
        Rule::LeaseSurvives,
        Rule::LeaseEndDurable,
        Rule::LeaseStands,
        Rule::OtherLog,
        Rule::OtherDocuments,
        Rule::ForgetUnrecorded,
        Rule::Membership,
        Rule::UntoldKeepsDoubt,
        Rule::SelectiveChange,
        Rule::SelectiveStanding,
        Rule::SweepFilter,
        Rule::FilterQueues,
        Rule::TransitionOnly,
        Rule::OutcomeDurable,
        Rule::NothingDurable,
        Rule::StandsForAll,
        Rule::OwedToTheEnd,
        Rule::JudgeNextRevision,
        Rule::PassedKeepsDoubt,
        Rule::JudgeRemoved,
        Rule::SinceNow,
        Rule::FilterWaits,
    ];
}

/// Which rules hold: all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    #[cfg(test)]
    removed: Option<Rule>,
}

impl Rules {
    /// All but one.
    #[cfg(test)]
    pub(super) fn without(removed: Option<Rule>) -> Rules {
        Rules { removed }
    }

    #[cfg(test)]
    pub(super) fn keeps(self, rule: Rule) -> bool {
        self.removed != Some(rule)
    }

    #[cfg(all(not(test), not(feature = "planted")))]
    #[inline]
    pub(super) fn keeps(self, _: Rule) -> bool {
        true
    }

    /// All but the one that keeps a planted bug from happening.
    #[cfg(all(not(test), feature = "planted"))]
    pub(super) fn keeps(self, rule: Rule) -> bool {
        use crate::planted::Bug;
        let bug = match rule {
            Rule::MarkGrows => Bug::MarkFalls,
            Rule::OpenHolds => Bug::CursorBeforeRecord,
            Rule::Issued => Bug::MarkNotDurable,
            Rule::SweepWaits => Bug::SweepLosesChanges,
            Rule::FilterQueues => Bug::FilterForgotten,
            _ => return true,
        };
        !bug.is_planted()
    }
}
