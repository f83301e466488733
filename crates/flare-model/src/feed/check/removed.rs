//! Each rule, removed on purpose, breaks a promise: so none is superfluous, and the search is not blind.
//!
//! What is checked directly on records and marks is left out here, see [`World`](super::world::World): what counts
//! is that a client gets something wrong, or does not get it at all.

use super::search::search;
use super::step::{Answer, Left, Look, Records, SMALL, Scope, Step};
use crate::feed::rule::Rule;

const NOTHING_FAILS: &[Answer] = &[Answer::Success];
const ANSWERS_GET_LOST: &[Answer] = &[Answer::Success, Answer::Lost];

const SOME_ARE_REFUSED: &[Answer] = &[Answer::Success, Answer::Refused];

const CRASH: Scope = Scope { answers: ANSWERS_GET_LOST, block: 2, ..SMALL };
const REFUSED: Scope = Scope { answers: SOME_ARE_REFUSED, ..CRASH };
const MORE_EVENTS: Scope = Scope { left: Left { events: 4, ..SMALL.left }, ..CRASH };
const TWO_CRASHES: Scope = Scope { left: Left { crashes: 2, ..SMALL.left }, block: 4, ..CRASH };
const STOPS: Scope =
    Scope { left: Left { events: 2, stops: 1, ..SMALL.left }, answers: &Answer::ALL, ..CRASH };
const NO_CRASH: Scope = Scope { left: Left { crashes: 0, ..SMALL.left }, answers: &Answer::ALL, ..CRASH };
const TWO_DOCUMENTS: Scope = Scope { docs: 2, ..CRASH };
const DISCARDED: Scope = Scope { answers: &[Answer::Success, Answer::Discard], ..TWO_DOCUMENTS };
const PAUSED: Scope = Scope { left: Left { pauses: 1, ..SMALL.left }, ..TWO_DOCUMENTS };
const HANDED_OVER: Scope =
    Scope { left: Left { events: 2, stops: 1, crashes: 0, ..SMALL.left }, records: Records::Apart, ..CRASH };
const RECORDS_OF_NOTHING: Scope = Scope { asked: true, ..TWO_DOCUMENTS };
const OUTDATED: Scope = Scope { outdated: true, ..NO_CRASH };
const WINDOW: Scope = Scope { docs: 2, window: Some(1), ..CRASH };
const MORE_IN_WINDOW: Scope = Scope { left: MORE_EVENTS.left, answers: NOTHING_FAILS, ..WINDOW };
const GIVING_UP: Scope = Scope { answers: &[Answer::Success, Answer::LostAtLast], ..WINDOW };
const REPLAY: Scope = Scope { left: Left { events: 2, replays: 1, ..SMALL.left }, sweeps: true, ..CRASH };
const BEGIN_AGAIN: Scope = Scope { left: Left { beginnings: 1, ..SMALL.left }, ..CRASH };
const LEASE: Scope = Scope { left: Left { leases: 1, ..SMALL.left }, ..CRASH };
const LEASE_IN_WINDOW: Scope = Scope { left: LEASE.left, ..WINDOW };
const RESTORE: Scope = Scope { left: Left { restores: 1, crashes: 0, ..SMALL.left }, ..CRASH };
const FILTER: Scope = Scope { looks: &[Look::Out], ..CRASH };
const FILTERED_AND_REFUSED: Scope = Scope { looks: &[Look::Out], ..REFUSED };
const UNTOLD: Scope = Scope { looks: &[Look::Untold], ..NO_CRASH };
const REPLAYED_THEN_STOPPED: Scope =
    Scope { left: Left { events: 1, stops: 1, replays: 1, ..SMALL.left }, ..FILTER };
const FILTERED_THEN_STOPPED: Scope = Scope { left: Left { stops: 1, ..SMALL.left }, ..FILTER };
const CHANGED_THEN_STOPPED: Scope = Scope {
    left: Left { stops: 1, ..SMALL.left },
    before: &[Step::Put(0)],
    answers: NOTHING_FAILS,
    ..TWO_DOCUMENTS
};
const REFILTER: Scope = Scope {
    left: Left { events: 2, crashes: 0, refilters: 1, replays: 1, ..SMALL.left },
    sweeps: true,
    ..FILTER
};

const REFILTER_TWICE: Scope = Scope { left: Left { refilters: 2, replays: 0, ..REFILTER.left }, ..REFILTER };

const EVERY: Scope = Scope { all: true, answers: &Answer::ALL, ..CRASH };
const EVERY_FAR: Scope = Scope { block: 4, ..EVERY };
const EVERY_TWICE: Scope = Scope {
    left: Left { crashes: 2, ..SMALL.left },
    answers: &[Answer::Success, Answer::Discard],
    ..EVERY_FAR
};
const TRIMMED: Scope = Scope { left: Left { trims: 1, ..SMALL.left }, ..EVERY };
const EVERY_REFILTERED: Scope = Scope {
    left: Left { events: 2, crashes: 0, refilters: 1, ..SMALL.left },
    looks: &[Look::Out],
    answers: NOTHING_FAILS,
    ..EVERY
};
const CHANGED: Scope = Scope { left: Left { changes: 1, ..SMALL.left }, ..CRASH };

fn breaks(rule: Rule, scope: Scope) {
    match search(&scope, Some(rule)) {
        Ok(seen) => panic!("without {rule:?} nothing breaks: {seen:?}"),
        Err(violation) => println!("without {rule:?}:\n{violation}"),
    }
}

macro_rules! removed {
    ($($sentence:ident: $rule:ident, $scope:ident;)*) => {
        const TRIED: &[Rule] = &[$(Rule::$rule),*];
        $(
            #[test]
            fn $sentence() {
                breaks(Rule::$rule, $scope);
            }
        )*
    };
}

removed! {
    what_is_settled_ahead_must_be_remembered_over_a_crash: Ahead, CRASH;
    what_a_retry_settles_ahead_of_the_reader_must_be_remembered: Outrun, NO_CRASH;
    a_row_that_is_outdated_when_read_must_be_passed_by: OutdatedRead, OUTDATED;
    a_row_that_is_outdated_when_retried_must_be_passed_by: OutdatedRetry, OUTDATED;
    an_unknown_outcome_must_leave_doubt: Doubt, NO_CRASH;
    an_update_must_leave_no_doubt: UpdateIsSafe, NO_CRASH;
    a_discard_must_keep_doubt: DiscardKeepsDoubt, NO_CRASH;
    changes_beyond_the_cursor_must_be_judged_after_a_crash: JudgeChanges, CRASH;
    standings_must_be_judged_after_a_crash: JudgeStandings, REFUSED;
    a_document_must_be_judged_once_in_a_life: JudgeOnce, CRASH;
    a_delete_before_this_life_of_a_document_must_count: BeforeChange, CRASH;
    a_delete_before_this_life_must_count_for_a_standing_too: BeforeStanding, REFUSED;
    judging_must_go_on_to_the_tail: JudgeToTheTail, CRASH;
    judging_must_not_go_beyond_the_tail: JudgeNoFurther, DISCARDED;
    the_recorded_cursor_must_rest_during_judging: CursorRests, TWO_CRASHES;
    a_stop_must_leave_what_is_to_be_judged_to_the_next_life: StopKeepsJudging, STOPS;
    what_stands_since_a_crash_must_not_be_judged_after_a_stop: StandingsOnce, REPLAYED_THEN_STOPPED;
    what_was_judged_after_a_crash_must_not_be_judged_after_a_stop: ChangesOnce, FILTERED_THEN_STOPPED;
    a_stop_after_the_tail_must_leave_no_change_to_judge: TailOnce, CHANGED_THEN_STOPPED;
    a_stop_with_nothing_to_judge_must_leave_no_doubt: StopIsClean, STOPS;
    a_pause_must_leave_no_doubt: PauseIsClean, PAUSED;
    a_record_under_way_must_not_raise_a_mark_that_was_taken_back: TakenBackStays, HANDED_OVER;
    a_record_of_nothing_must_leave_the_mark: MarkGrows, RECORDS_OF_NOTHING;
    what_changes_after_a_crash_must_not_be_doubted: NotBeyondHead, TWO_DOCUMENTS;
    a_tombstone_must_stay_until_the_ledger_tells_nothing_of_it: NeededUntilDurable, CRASH;
    nothing_must_be_sent_beyond_the_mark: Issued, CRASH;
    an_open_attempt_must_hold_the_cursor: OpenHolds, CRASH;
    an_open_attempt_ahead_of_the_reader_must_hold_the_cursor: OpenAheadHolds, MORE_EVENTS;
    a_failure_must_leave_a_standing_even_if_the_document_changed: StandsWhenChanged, CRASH;
    what_is_pushed_out_of_the_window_must_stand: DisplacedStands, WINDOW;
    what_is_pushed_out_of_the_window_must_carry_its_doubt: DisplacedDoubt, MORE_IN_WINDOW;
    only_the_newest_revision_must_be_given_up: GiveUpNewest, GIVING_UP;
    a_sweep_must_wait_for_documents_in_flight: SweepWaits, REPLAY;
    a_sweep_must_take_what_is_settled_ahead_of_the_reader: SweepAhead, REPLAY;
    a_replay_must_be_durable_before_it_is_sent: ReplayDurable, REPLAY;
    a_change_must_keep_its_identity_when_a_replay_is_pending: ReplayOwnId, REPLAY;
    a_lease_must_outlive_a_crash: LeaseSurvives, LEASE;
    the_end_of_a_lease_must_be_durable_before_more_is_sent: LeaseEndDurable, LEASE;
    a_lease_must_stand_for_itself_in_a_full_window: LeaseStands, LEASE_IN_WINDOW;
    the_numbers_of_another_log_must_mean_nothing: OtherLog, RESTORE;
    the_documents_of_another_log_must_mean_nothing: OtherDocuments, RESTORE;
    a_feed_that_begins_again_must_forget_what_the_ledger_has: ForgetUnrecorded, BEGIN_AGAIN;
    a_document_that_is_none_of_the_clients_must_not_be_sent: Membership, FILTER;
    not_telling_must_keep_doubt: UntoldKeepsDoubt, UNTOLD;
    a_change_must_be_judged_as_one_that_may_hide_another: SelectiveChange, FILTER;
    a_standing_must_be_judged_as_one_that_may_hide_another: SelectiveStanding, FILTERED_AND_REFUSED;
    a_changed_filter_must_be_swept_for: SweepFilter, REFILTER;
    a_changed_filter_must_wait_for_the_sweep_under_way: FilterQueues, REFILTER;
    two_changes_of_a_filter_that_amount_to_none_must_tell_nothing: TransitionOnly, REFILTER_TWICE;
    the_next_revision_must_wait_for_the_outcome_of_the_one_before: OutcomeDurable, EVERY;
    the_next_revision_must_wait_even_if_nothing_was_sent_before: NothingDurable, EVERY_FAR;
    a_revision_met_while_one_is_in_flight_must_be_owed_with_that_one: StandsForAll, EVERY;
    what_follows_a_revision_that_waited_must_be_owed: OwedToTheEnd, EVERY;
    the_revision_after_one_that_was_settled_must_be_judged: JudgeNextRevision, EVERY_TWICE;
    a_document_of_which_nothing_is_owed_must_keep_its_doubt: PassedKeepsDoubt, EVERY;
    a_revision_that_was_tried_and_removed_must_leave_its_doubt: JudgeRemoved, TRIMMED;
    a_feed_must_not_go_back_to_what_it_has_left_out: SinceNow, CHANGED;
    a_changed_filter_must_wait_until_it_is_known_what_is_owed: FilterWaits, EVERY_REFILTERED;
}

#[test]
fn every_rule_is_removed_once() {
    assert_eq!(TRIED, Rule::ALL);
    assert_eq!(Rule::ALL.map(|rule| rule as usize).to_vec(), (0..Rule::ALL.len()).collect::<Vec<_>>());
}
