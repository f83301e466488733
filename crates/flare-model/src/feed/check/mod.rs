//! An exhaustive check of the rules in small scopes, over the very code of [`Feed`](super::Feed): every
//! interleaving of an origin, a reader, retries, answers, lost answers, records, crashes, stops, pauses, replays
//! and restores, each as far as its scope goes.
//!
//! A step goes from world to world ([`world`], [`steps`], [`act`], [`records`]); all worlds of a scope are visited,
//! the nearest first ([`search`]); someone who remembers everything says at each step whether a promise is broken ([`ghost`],
//! [`excuses`]). The rules are removed one by one in [`removed`].
//!
//! `FLARE_CHECK_DEEP=1` goes deeper: minutes and gigabytes instead of seconds.

mod act;
pub mod excuses;
mod ghost;
pub mod ledger;
pub mod print;
mod records;
mod removed;
pub mod search;
pub mod states;
pub mod step;
mod steps;
pub mod watch;
pub mod world;

use step::{Answer, Left, Look, Records, SMALL, Scope, Step};

const LOST_OR_REFUSED: &[Answer] = &[Answer::Success, Answer::Lost, Answer::Refused];
const NOTHING_GIVEN_UP: &[Answer] = &[Answer::Success, Answer::Lost, Answer::Refused, Answer::Discard];

fn holds(scope: Scope) {
    match search::search(&scope, None) {
        Ok(seen) => println!("{scope:?}\n{seen:?}"),
        Err(violation) => panic!("{scope:?}\n{violation}"),
    }
}

/// Looks further, if that is asked for.
fn holds_deeply(scope: Scope) {
    if std::env::var_os("FLARE_CHECK_DEEP").is_some() {
        holds(scope);
    }
}

#[test]
fn one_document_survives_a_crash() {
    holds(SMALL);
    let scope =
        Scope { left: Left { events: 4, ..SMALL.left }, answers: NOTHING_GIVEN_UP, block: 2, ..SMALL };
    holds(scope);
    holds_deeply(Scope { left: Left { events: 5, ..SMALL.left }, answers: &Answer::ALL, ..scope });
}

#[test]
fn one_document_survives_two_crashes() {
    let left = Left { crashes: 2, ..SMALL.left };
    let scope = Scope { left, answers: NOTHING_GIVEN_UP, block: 2, ..SMALL };
    holds(scope);
    holds(Scope { answers: LOST_OR_REFUSED, block: 4, ..scope });
    holds_deeply(Scope { left: Left { events: 4, ..left }, answers: &Answer::ALL, ..scope });
}

#[test]
fn two_documents_survive_a_crash() {
    let scope = Scope { docs: 2, answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    holds_deeply(Scope { left: Left { events: 4, ..SMALL.left }, ..scope });
    holds_deeply(Scope { left: Left { crashes: 2, ..SMALL.left }, ..scope });
}

#[test]
fn a_full_window_loses_nothing() {
    let scope = Scope { docs: 2, answers: LOST_OR_REFUSED, block: 2, window: Some(1), ..SMALL };
    holds(scope);
    holds(Scope { answers: &[Answer::Success, Answer::LostAtLast], ..scope });
    let four = Left { events: 4, ..SMALL.left };
    holds(Scope { left: four, answers: &[Answer::Success], ..scope });
    holds_deeply(Scope { left: four, answers: &[Answer::Success, Answer::Lost], ..scope });
    holds_deeply(Scope { left: four, answers: &[Answer::Success, Answer::Lost], window: Some(2), ..scope });
}

#[test]
fn a_clean_stop_leaves_no_doubt() {
    let left = Left { stops: 1, ..SMALL.left };
    let scope = Scope { left, answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    let replayed = Left { events: 2, replays: 1, ..left };
    holds(Scope { left: replayed, answers: NOTHING_GIVEN_UP, ..scope });
    holds(Scope {
        left: replayed,
        looks: &[Look::Out],
        answers: &[Answer::Success, Answer::Refused],
        ..scope
    });
    holds(Scope { left: Left { events: 2, stops: 2, crashes: 2, ..left }, ..scope });
    holds_deeply(Scope { left: Left { stops: 2, ..left }, answers: &Answer::ALL, ..scope });
}

#[test]
fn a_lane_is_handed_over_while_a_record_is_under_way() {
    let left = Left { events: 2, stops: 1, ..SMALL.left };
    let scope = Scope { left, answers: LOST_OR_REFUSED, records: Records::Apart, ..SMALL };
    holds(scope);
    holds(Scope { looks: &[Look::Out], answers: &[Answer::Success, Answer::Lost], ..scope });
    let refilter = Left { refilters: 1, crashes: 0, ..left };
    holds(Scope { left: refilter, looks: &[Look::Out], answers: &[Answer::Success], block: 2, ..scope });
    holds_deeply(Scope { left: Left { events: 3, stops: 2, ..left }, block: 2, ..scope });
}

#[test]
fn a_pause_leaves_no_doubt_whatever_ends_it() {
    let left = Left { pauses: 1, ..SMALL.left };
    let scope = Scope { left, answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    holds(Scope { docs: 2, answers: &[Answer::Success, Answer::Lost], ..scope });
    holds(Scope { left: Left { events: 2, pauses: 2, crashes: 2, ..left }, ..scope });
    holds(Scope { left: Left { events: 2, ..left }, records: Records::Apart, ..scope });
    let filtered = Scope { looks: &[Look::Out], answers: &[Answer::Success, Answer::Lost], ..scope };
    holds(Scope { left: Left { events: 2, refilters: 1, ..left }, ..filtered });
    holds_deeply(Scope { left: Left { pauses: 2, crashes: 2, ..left }, ..scope });
    holds_deeply(Scope { left: Left { pauses: 2, stops: 1, ..left }, answers: &Answer::ALL, ..scope });
    holds_deeply(Scope { docs: 2, left: Left { crashes: 2, ..left }, ..scope });
}

#[test]
fn a_pause_goes_with_leases_replays_new_beginnings_and_every_revision() {
    let left = Left { events: 2, pauses: 1, ..SMALL.left };
    let few = &[Answer::Success, Answer::Lost];
    for all in [false, true] {
        let scope = Scope { all, left, answers: few, block: 2, ..SMALL };
        holds(Scope { left: Left { leases: 1, ..left }, answers: NOTHING_GIVEN_UP, ..scope });
        holds(Scope { left: Left { replays: 1, ..left }, sweeps: true, ..scope });
        let again = Scope { left: Left { beginnings: 1, ..left }, ..scope };
        holds(again);
        holds_deeply(Scope { records: Records::Apart, ..again });
        holds(Scope { left: Left { restores: 1, crashes: 0, ..left }, ..scope });
        holds(Scope { left: Left { changes: 1, ..left }, ..scope });
        holds(Scope { states: true, answers: NOTHING_GIVEN_UP, ..scope });
        holds_deeply(Scope { left: Left { leases: 1, crashes: 2, ..left }, ..scope });
    }
}

#[test]
fn records_of_nothing_do_no_harm() {
    let scope = Scope { asked: true, answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    holds(Scope { docs: 2, answers: &[Answer::Success, Answer::Lost], ..scope });
    holds(Scope { left: Left { events: 2, leases: 1, pauses: 1, ..SMALL.left }, all: true, ..scope });
}

#[test]
fn replays_send_everything_again_once() {
    let left = Left { events: 2, replays: 1, ..SMALL.left };
    let scope = Scope { docs: 2, left, answers: LOST_OR_REFUSED, block: 2, sweeps: true, ..SMALL };
    holds(scope);
    let twice = Scope { docs: 1, left: Left { replays: 2, ..left }, ..scope };
    holds(twice);
    holds_deeply(Scope { left: Left { replays: 2, drops: 1, ..left }, answers: &Answer::ALL, ..twice });
    holds_deeply(Scope { left: Left { crashes: 2, ..left }, answers: NOTHING_GIVEN_UP, ..twice });
}

#[test]
fn dead_letters_can_be_dropped_and_replayed() {
    let left = Left { events: 2, replays: 1, drops: 1, ..SMALL.left };
    holds(Scope { left, block: 2, ..SMALL });
}

#[test]
fn a_feed_that_starts_at_the_beginning_gets_everything() {
    let left = Left { events: 1, ..SMALL.left };
    let before = &[Step::Put(0), Step::Put(1)];
    let scope = Scope { docs: 2, left, answers: LOST_OR_REFUSED, block: 3, before, beginning: true, ..SMALL };
    holds(scope);
    let before = &[Step::Put(0), Step::Put(1), Step::Delete(0)];
    holds_deeply(Scope { left: Left { events: 2, ..left }, before, answers: NOTHING_GIVEN_UP, ..scope });
}

#[test]
fn a_feed_that_starts_now_gets_only_what_changes() {
    let left = Left { events: 2, ..SMALL.left };
    let before = &[Step::Put(0), Step::Put(1), Step::Delete(1)];
    holds(Scope { docs: 2, left, answers: LOST_OR_REFUSED, block: 2, before, ..SMALL });
}

#[test]
fn rows_that_are_outdated_do_no_harm() {
    let scope = Scope { answers: LOST_OR_REFUSED, block: 2, outdated: true, skips: true, ..SMALL };
    holds(scope);
    holds_deeply(Scope { left: Left { events: 4, ..SMALL.left }, ..scope });
}

#[test]
fn deletes_may_repeat_and_the_log_may_have_gaps() {
    let scope = Scope { answers: LOST_OR_REFUSED, block: 2, again: true, skips: true, ..SMALL };
    holds(scope);
    holds_deeply(Scope { docs: 2, ..scope });
}

#[test]
fn things_happen_while_a_record_is_written() {
    let left = Left { events: 2, ..SMALL.left };
    let scope = Scope { left, records: Records::Apart, ..SMALL };
    holds(scope);
    let replay = Scope { left: Left { replays: 1, ..left }, answers: LOST_OR_REFUSED, block: 2, ..scope };
    holds(replay);
    holds_deeply(Scope { records: Records::Apart, ..SMALL });
    holds_deeply(Scope { docs: 2, answers: LOST_OR_REFUSED, block: 2, ..scope });
}

#[test]
fn a_feed_that_begins_again_sends_everything_again() {
    let left = Left { events: 2, beginnings: 1, ..SMALL.left };
    let scope = Scope { left, answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    holds(Scope { records: Records::Apart, answers: &[Answer::Success, Answer::Lost], ..scope });
    let before = &[Step::Put(0), Step::Delete(0)];
    holds(Scope { left: Left { events: 1, ..left }, before, ..scope });
    holds_deeply(Scope { left: Left { events: 3, ..left }, answers: NOTHING_GIVEN_UP, ..scope });
}

#[test]
fn leases_outlive_crashes_and_stops() {
    let left = Left { leases: 1, ..SMALL.left };
    let scope = Scope { left, answers: NOTHING_GIVEN_UP, block: 2, ..SMALL };
    holds(scope);
    holds(Scope { left: Left { leases: 2, stops: 1, events: 2, ..left }, ..scope });
    holds(Scope { left: Left { replays: 1, events: 2, ..left }, answers: LOST_OR_REFUSED, ..scope });
    holds(Scope { left: Left { crashes: 2, ..left }, answers: &[Answer::Success, Answer::Lost], ..scope });
    holds_deeply(Scope { left: Left { crashes: 2, leases: 2, ..left }, answers: &Answer::ALL, ..scope });
}

#[test]
fn leases_end_while_a_record_is_written_and_the_window_is_full() {
    let left = Left { events: 2, leases: 2, ..SMALL.left };
    let scope = Scope { left, answers: NOTHING_GIVEN_UP, records: Records::Apart, ..SMALL };
    holds(scope);
    let window = Left { events: 3, leases: 1, ..SMALL.left };
    let answers = &[Answer::Success, Answer::Lost];
    holds(Scope { docs: 2, left: window, answers, block: 2, window: Some(1), ..SMALL });
}

#[test]
fn a_restore_puts_everything_in_doubt() {
    let left = Left { crashes: 0, restores: 1, ..SMALL.left };
    let scope = Scope { left, answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    let crash = Left { events: 2, crashes: 1, ..left };
    holds(Scope { left: crash, ..scope });
    holds_deeply(Scope { left: Left { events: 3, ..crash }, ..scope });
    holds_deeply(Scope { docs: 2, ..scope });
}

#[test]
fn documents_enter_and_leave_across_a_crash() {
    let scope = Scope { looks: &[Look::Out], answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    holds(Scope { looks: &[Look::Error], ..scope });
    holds(Scope { looks: &[Look::Untold], answers: NOTHING_GIVEN_UP, ..scope });
    holds_deeply(Scope { left: Left { events: 4, ..SMALL.left }, answers: NOTHING_GIVEN_UP, ..scope });
    holds_deeply(Scope { left: Left { crashes: 2, ..SMALL.left }, ..scope });
    holds_deeply(Scope { docs: 2, looks: &[Look::Out, Look::Untold, Look::Error], ..scope });
}

#[test]
fn a_filter_sees_outdated_rows_full_windows_and_stops() {
    let looks = &[Look::Out];
    let scope = Scope { looks, answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(Scope { outdated: true, left: Left { crashes: 0, ..SMALL.left }, ..scope });
    let stopped = Left { stops: 1, ..SMALL.left };
    let few = &[Answer::Success, Answer::Lost];
    holds(Scope { left: stopped, answers: few, ..scope });
    holds(Scope { left: stopped, docs: 2, before: &[Step::Put(0)], answers: &[Answer::Success], ..scope });
    holds_deeply(Scope { left: stopped, ..scope });
    holds_deeply(Scope { left: Left { leases: 1, ..stopped }, answers: few, ..scope });
    holds_deeply(Scope { left: Left { events: 2, pauses: 1, crashes: 2, ..stopped }, ..scope });
    holds_deeply(Scope { left: Left { stops: 2, crashes: 2, ..stopped }, ..scope });
    let window = Scope { docs: 2, window: Some(1), answers: &[Answer::Success, Answer::Lost], ..scope };
    holds(Scope { left: Left { crashes: 0, ..SMALL.left }, ..window });
    holds_deeply(window);
}

#[test]
fn a_changed_filter_is_decided_again_everywhere() {
    let left = Left { events: 2, refilters: 1, ..SMALL.left };
    let scope = Scope { left, looks: &[Look::Out], answers: LOST_OR_REFUSED, block: 2, ..SMALL };
    holds(scope);
    holds(Scope { docs: 2, answers: &[Answer::Success], ..scope });
    holds(Scope { left: Left { crashes: 0, refilters: 2, ..left }, ..scope });
    let replay = Scope { left: Left { replays: 1, crashes: 0, ..left }, sweeps: true, ..scope };
    holds(replay);
    let before = &[Step::Put(0), Step::PutAs(1, Look::Out)];
    holds(Scope {
        docs: 2,
        left: Left { events: 1, crashes: 0, ..left },
        before,
        beginning: true,
        answers: &[Answer::Success, Answer::Lost],
        ..scope
    });
    let give_up = &[Answer::Success, Answer::LostAtLast, Answer::RefusedAtLast, Answer::Discard];
    holds(Scope { left: Left { crashes: 0, ..left }, answers: give_up, ..scope });
    holds_deeply(Scope { left: Left { refilters: 2, ..left }, answers: &Answer::ALL, ..scope });
    holds_deeply(Scope { left: Left { crashes: 1, ..replay.left }, answers: NOTHING_GIVEN_UP, ..replay });
    holds_deeply(Scope { left: Left { events: 3, ..left }, ..scope });
}

const EVERY: Scope = Scope { all: true, answers: LOST_OR_REFUSED, block: 2, ..SMALL };

#[test]
fn every_revision_arrives_in_order() {
    holds(Scope { answers: &Answer::ALL, ..EVERY });
    holds(Scope { left: Left { events: 4, ..SMALL.left }, ..EVERY });
    holds(Scope { left: Left { crashes: 2, ..SMALL.left }, answers: NOTHING_GIVEN_UP, ..EVERY });
    holds_deeply(Scope { left: Left { events: 5, ..SMALL.left }, answers: NOTHING_GIVEN_UP, ..EVERY });
    holds_deeply(Scope { left: Left { events: 4, crashes: 2, ..SMALL.left }, ..EVERY });
}

#[test]
fn every_revision_of_two_documents_arrives() {
    holds(Scope { docs: 2, answers: &[Answer::Success, Answer::Lost], ..EVERY });
    holds(Scope { docs: 2, answers: &[Answer::Success, Answer::Lost], window: Some(1), ..EVERY });
    holds_deeply(Scope { docs: 2, left: Left { events: 4, ..SMALL.left }, ..EVERY });
}

#[test]
fn every_revision_survives_stops_and_records_apart() {
    holds(Scope { left: Left { stops: 1, ..SMALL.left }, ..EVERY });
    holds(Scope { left: Left { events: 2, ..SMALL.left }, records: Records::Apart, ..EVERY });
    holds_deeply(Scope { records: Records::Apart, ..EVERY });
}

#[test]
fn every_revision_and_replays() {
    let left = Left { events: 2, replays: 1, ..SMALL.left };
    holds(Scope { left, sweeps: true, ..EVERY });
    let before = &[Step::Put(0), Step::Put(1)];
    let left = Left { events: 2, ..SMALL.left };
    holds(Scope {
        docs: 2,
        left,
        answers: &[Answer::Success, Answer::Lost],
        before,
        beginning: true,
        ..EVERY
    });
    holds(Scope { left: Left { events: 2, beginnings: 1, ..SMALL.left }, ..EVERY });
    holds(Scope { left: Left { crashes: 0, restores: 1, ..SMALL.left }, ..EVERY });
    holds_deeply(Scope { left: Left { replays: 1, drops: 1, ..SMALL.left }, sweeps: true, ..EVERY });
}

#[test]
fn a_client_may_change_to_every_revision_and_back() {
    let left = Left { changes: 1, ..SMALL.left };
    holds(Scope { left, answers: NOTHING_GIVEN_UP, ..EVERY });
    holds(Scope { left, answers: NOTHING_GIVEN_UP, all: false, ..EVERY });
    holds(Scope { left: Left { changes: 2, ..left }, ..EVERY });
    holds(Scope { docs: 2, left, answers: &[Answer::Success], all: false, window: Some(1), ..EVERY });
    holds_deeply(Scope { left: Left { changes: 2, events: 4, ..left }, ..EVERY });
    holds_deeply(Scope { left: Left { changes: 3, ..left }, all: false, ..EVERY });
    holds_deeply(Scope { docs: 2, left, answers: &[Answer::Success, Answer::Lost], all: false, ..EVERY });
}

#[test]
fn a_change_between_the_modes_survives_crashes_stops_and_leases() {
    let left = Left { changes: 1, ..SMALL.left };
    let few = &[Answer::Success, Answer::Lost];
    for all in [false, true] {
        let scope = Scope { all, answers: few, ..EVERY };
        holds(Scope { left: Left { crashes: 2, ..left }, block: 4, ..scope });
        holds(Scope { left: Left { events: 2, leases: 1, crashes: 2, ..left }, ..scope });
        holds(Scope { left: Left { events: 2, stops: 1, ..left }, answers: LOST_OR_REFUSED, ..scope });
        holds(Scope { left: Left { events: 2, replays: 1, ..left }, sweeps: true, ..scope });
        holds_deeply(Scope { left: Left { events: 4, crashes: 2, ..left }, ..scope });
        holds_deeply(Scope { left: Left { changes: 2, crashes: 2, leases: 1, ..left }, ..scope });
        holds_deeply(Scope { docs: 2, left: Left { crashes: 2, ..left }, ..scope });
    }
}

#[test]
fn every_revision_on_leases() {
    let left = Left { leases: 1, ..SMALL.left };
    holds(Scope { left, answers: NOTHING_GIVEN_UP, ..EVERY });
    let few = &[Answer::Success, Answer::Lost];
    holds(Scope { left: Left { leases: 2, crashes: 2, ..left }, answers: few, ..EVERY });
    holds(Scope { left: Left { stops: 1, ..left }, answers: few, ..EVERY });
    holds_deeply(Scope { left: Left { leases: 2, crashes: 2, ..left }, answers: &Answer::ALL, ..EVERY });
}

#[test]
fn every_revision_is_judged_by_the_filter() {
    let few = &[Answer::Success, Answer::Lost];
    let scope = Scope { looks: &[Look::Out], ..EVERY };
    holds(scope);
    holds(Scope { looks: &[Look::Error], ..scope });
    holds(Scope { looks: &[Look::Untold], answers: NOTHING_GIVEN_UP, ..scope });
    holds(Scope { left: Left { events: 2, crashes: 2, ..SMALL.left }, answers: few, ..scope });
    holds(Scope { left: Left { events: 2, refilters: 1, ..SMALL.left }, ..scope });
    holds(Scope { left: Left { events: 2, changes: 1, ..SMALL.left }, answers: few, ..scope });
    holds(Scope { left: Left { trims: 1, ..SMALL.left }, answers: few, ..scope });
    holds_deeply(Scope { left: Left { crashes: 2, ..SMALL.left }, ..scope });
    holds_deeply(Scope { left: Left { refilters: 1, changes: 1, ..SMALL.left }, answers: few, ..scope });
    holds_deeply(Scope { docs: 2, looks: &[Look::Out, Look::Untold], answers: few, ..scope });
}

#[test]
fn a_state_that_is_kept_is_what_the_client_has() {
    for all in [false, true] {
        let scope = Scope { all, states: true, answers: NOTHING_GIVEN_UP, ..EVERY };
        holds(scope);
        let few = &[Answer::Success, Answer::Lost];
        holds(Scope { left: Left { leases: 1, ..SMALL.left }, answers: few, ..scope });
        holds(Scope { left: Left { events: 2, stops: 1, ..SMALL.left }, ..scope });
        holds(Scope { left: Left { events: 2, ..SMALL.left }, records: Records::Apart, ..scope });
        holds_deeply(Scope { left: Left { crashes: 2, ..SMALL.left }, ..scope });
    }
}

#[test]
fn a_history_that_is_cut_short_reorders_nothing() {
    holds(Scope { left: Left { trims: 1, ..SMALL.left }, ..EVERY });
    holds(Scope {
        left: Left { events: 4, trims: 2, ..SMALL.left },
        answers: &[Answer::Success, Answer::Lost],
        ..EVERY
    });
    holds_deeply(Scope { left: Left { events: 4, trims: 2, crashes: 2, ..SMALL.left }, ..EVERY });
}
