//! What the checks cannot see, because it decides nothing about what a client gets: counts, times, and the
//! shape of records.

use super::check::ledger;
use super::{
    Action, Ahead, Attempt, Everything, Feed, Filled, Filtering, Met, Next, Receipt, Record, Saved, Settled,
    Standing, State, SweepKind, Taken, Trouble, Verdict,
};
use crate::document::Row;
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn row(ordinal: u64, seq: u64) -> Row {
    Row { ordinal: Ordinal(ordinal), seq: Seq(seq), born: Seq(1), before: Seq(0), deleted: false }
}

fn failure(attempts: u32) -> Verdict {
    let trouble = Trouble {
        attempts,
        first_attempt_at: NOW,
        last_attempt_at: NOW,
        action: Action::Create,
        status: Some(503),
        error: None,
        response: None,
        unheard: false,
        has: None,
        lent: None,
    };
    Verdict::Retry { due: NOW, doubtful: true, trouble: Box::new(trouble) }
}

/// A feed that may send whatever the test says.
fn feed() -> Feed {
    Feed::open(Saved { issued: Seq(100), ..Saved::default() }, Seq(100))
}

fn read(feed: &mut Feed, row: &Row) -> Attempt {
    match feed.read(row, &mut Everything) {
        Met::Send(attempt) => attempt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_retry_of_the_same_revision_counts_its_attempts() {
    let mut feed = feed();
    read(&mut feed, &row(1, 1));
    feed.settle(Ordinal(1), failure(3));
    let attempt = feed.retry(&row(1, 1), &mut Everything).expect("it is owed");
    assert_eq!((attempt.attempts, attempt.first_attempt_at), (3, Some(NOW)));
}

#[test]
fn a_newer_revision_starts_to_count_anew() {
    let mut feed = feed();
    read(&mut feed, &row(1, 1));
    feed.settle(Ordinal(1), failure(3));
    let attempt = read(&mut feed, &row(1, 2));
    assert_eq!((attempt.attempts, attempt.first_attempt_at), (0, None));
}

#[test]
fn a_newer_revision_that_was_pushed_out_of_the_window_starts_to_count_anew() {
    let mut feed = feed();
    read(&mut feed, &row(1, 1));
    assert_eq!(feed.read(&row(1, 2), &mut Everything), Met::Busy);
    read(&mut feed, &row(2, 3));
    feed.displace(1, NOW);
    feed.settle(Ordinal(1), failure(3));
    assert_eq!(feed.waiting()[&Ordinal(1)].seq, Seq(2));
    assert_eq!(feed.retry(&row(1, 2), &mut Everything).expect("it is owed").attempts, 0);
}

#[test]
fn a_record_written_twice_is_the_same_as_once() {
    let mut feed = feed();
    read(&mut feed, &row(1, 1));
    read(&mut feed, &row(2, 2));
    read(&mut feed, &row(3, 3));
    feed.settle(Ordinal(2), Verdict::Delivered);
    feed.settle(Ordinal(3), failure(1));
    let Taken { record, receipt } = feed.take_record().expect("much has changed");
    assert!(feed.take_record().is_none(), "one at a time");
    let mut saved = Saved::default();
    ledger::write(&mut saved, &record);
    let once = saved.clone();
    ledger::write(&mut saved, &record);
    assert_eq!(saved, once);
    feed.recorded(receipt);
    assert!(feed.take_record().is_none(), "nothing has changed since");
}

#[test]
fn settled_changes_beyond_the_tail_belong_to_another_log() {
    let ahead = Ahead { horizon: Seq(5), holes: vec![Seq(4)], extras: vec![Seq(9)] };
    let standing = Standing {
        ordinal: Ordinal(7),
        seq: Seq(4),
        doubt: false,
        state: State::Waiting { due: NOW },
        replay: 0,
        trouble: None,
    };
    let dead = [8].into_iter().collect();
    let held = [3, 4].into_iter().collect();
    let saved = Saved {
        cursor: Seq(3),
        issued: Seq(9),
        ahead,
        held,
        standings: vec![standing],
        dead,
        ..Saved::default()
    };
    assert_eq!(Feed::open(saved.clone(), Seq(9)).position(), Seq(3));
    let mut feed = Feed::open(saved, Seq(8));
    assert_eq!(feed.position(), Seq(0));
    assert!(!feed.may_issue(Seq(1)), "not before it is recorded that everything is in doubt");
    let Taken { record, .. } = feed.take_record().expect("the ledger is to forget");
    assert_eq!((record.cursor, record.issued), (Seq(0), Seq(8)));
    assert_eq!(record.dropped, [Ordinal(3), Ordinal(4)]);
    assert_eq!(record.cleared, [Ordinal(7), Ordinal(8)]);
}

#[test]
fn a_sweep_leaves_what_changed_after_its_end_to_the_reader() {
    let mut feed = feed();
    read(&mut feed, &row(1, 1));
    feed.settle(Ordinal(1), Verdict::Delivered);
    assert!(feed.start_sweep(SweepKind::Replay { since: NOW }, 6));
    assert!(!feed.start_sweep(SweepKind::Replay { since: NOW }, 7), "one at a time");
    assert_eq!(feed.sweep(&row(2, 2), NOW, NOW, &mut Everything), Filled::Passed);
    assert!(feed.sweep_to(Seq(2)), "the page is through, and so is the sweep");
    assert_eq!(feed.sweeping(), None);
}

#[test]
fn a_replay_since_a_time_passes_what_is_older() {
    let mut feed = feed();
    for number in 1..=2 {
        read(&mut feed, &row(number, number));
        feed.settle(Ordinal(number), Verdict::Delivered);
    }
    assert!(feed.start_sweep(SweepKind::Replay { since: NOW }, 6));
    assert_eq!(feed.sweep(&row(1, 1), Timestamp::from_millis(999), NOW, &mut Everything), Filled::Passed);
    assert_eq!(feed.sweep(&row(2, 2), NOW, NOW, &mut Everything), Filled::Taken);
    assert_eq!(feed.waiting().keys().copied().collect::<Vec<_>>(), [Ordinal(2)]);
    assert_eq!(feed.retry(&row(2, 2), &mut Everything), None, "not before it is durable that it is owed");
    record(&mut feed);
    assert_eq!(feed.retry(&row(2, 2), &mut Everything).map(|attempt| attempt.replay), Some(6));
}

/// A feed whose one document is out on a lease.
fn leased() -> (Feed, Attempt) {
    // One that was just created: after a crash there would be doubt from the start.
    let mut feed = Feed::open(Saved::default(), Seq(0));
    feed.want_issue(Seq(100));
    record(&mut feed);
    let attempt = read(&mut feed, &row(1, 1));
    let Verdict::Retry { trouble, .. } = failure(attempt.attempts + 1) else { unreachable!() };
    feed.lease(attempt.ordinal, Timestamp::from_millis(5_000), trouble);
    (feed, attempt)
}

fn reopened(feed: &mut Feed) -> Feed {
    let mut saved = Saved::default();
    let Taken { record, receipt } = feed.take_record().expect("there is something to record");
    ledger::write(&mut saved, &record);
    feed.recorded(receipt);
    Feed::open(saved, Seq(10))
}

#[test]
fn a_lease_is_in_flight_and_stands() {
    let (mut feed, attempt) = leased();
    assert_eq!((feed.in_flight(), feed.unsettled(), feed.cursor()), (1, 0, Seq(1)), "the cursor goes on");
    assert_eq!(feed.leases().count(), 1);
    assert!(!feed.request(&row(1, 1), 3, NOW), "it is in flight");
    assert_eq!(feed.read(&row(1, 2), &mut Everything), Met::Busy);
    let again = reopened(&mut feed);
    assert_eq!(again.leased(attempt.ordinal), feed.leased(attempt.ordinal), "in the next life too");
    assert_eq!(again.in_flight(), 1);
}

#[test]
fn what_was_leased_is_decided_again_once_its_end_is_durable() {
    let (mut feed, attempt) = leased();
    let taken = feed.take_record().expect("a lease is out");
    assert_eq!(feed.settle(attempt.ordinal, Verdict::Delivered), super::Settled::Done);
    feed.recorded(taken.receipt);
    assert!(feed.is_unrecorded(attempt.ordinal), "that record was taken before");
    assert_eq!(feed.read(&row(1, 2), &mut Everything), Met::Busy);
    assert_eq!(feed.retry(&row(1, 2), &mut Everything), None);
    record(&mut feed);
    let next = feed.retry(&row(1, 2), &mut Everything).expect("it is due");
    assert_eq!((next.seq, next.action, next.attempts), (Seq(2), super::Action::Update, 0));
}

#[test]
fn a_lease_taken_back_was_no_attempt_and_leaves_no_doubt() {
    let (mut feed, attempt) = leased();
    feed.take_back(attempt.ordinal, NOW);
    let feed = reopened(&mut feed);
    let standing = &feed.waiting()[&attempt.ordinal];
    assert_eq!((standing.state, standing.doubt), (State::Waiting { due: NOW }, false));
    assert_eq!(standing.trouble.as_ref().unwrap().attempts, 0);
}

#[test]
fn a_stop_leaves_a_lease_out_with_nothing_to_judge() {
    let (mut feed, attempt) = leased();
    feed.close();
    let mut feed = reopened(&mut feed);
    assert_eq!((feed.issued(), feed.doubt().len()), (Seq(0), 0));
    assert_eq!(
        feed.settle(attempt.ordinal, Verdict::Discarded { doubtful: false, story: None }),
        super::Settled::Done
    );
    assert_eq!((feed.held().len(), feed.doubt().len(), feed.waiting().len()), (0, 0, 0));
}

#[test]
fn a_discard_leaves_doubt_where_an_earlier_request_of_the_attempt_may_have_arrived() {
    for (doubtful, next) in [(false, Action::Update), (true, Action::Create)] {
        let mut feed = feed();
        read(&mut feed, &row(1, 1));
        feed.settle(Ordinal(1), Verdict::Delivered);
        assert_eq!(read(&mut feed, &Row { deleted: true, ..row(1, 2) }).action, Action::Delete);
        feed.settle(Ordinal(1), Verdict::Discarded { doubtful, story: None });
        let again = Row { born: Seq(3), before: Seq(2), ..row(1, 3) };
        assert_eq!(read(&mut feed, &again).action, next, "the client has it, unless the delete arrived");
    }
}

/// A feed that sends every revision from the first change on.
fn every() -> Feed {
    Feed::open(Saved { issued: Seq(100), since: Some(Seq(0)), ..Saved::default() }, Seq(100))
}

/// Everything that the feed has to say is durable.
fn record(feed: &mut Feed) {
    let taken = feed.take_record().expect("there is something to record");
    feed.recorded(taken.receipt);
}

#[test]
fn revisions_that_the_reader_does_not_find_are_counted_once() {
    let mut feed = every();
    read(&mut feed, &row(1, 3));
    assert_eq!(feed.tally().skipped, 2);
    feed.skip_to(Seq(5));
    assert_eq!(feed.tally().skipped, 4);
    read(&mut feed, &row(2, 6));
    assert_eq!(feed.tally().skipped, 4);
    let mut newest = self::feed();
    newest.skip_to(Seq(50));
    assert_eq!(newest.tally().skipped, 0, "what moved on is not missing where only the newest is sent");
}

#[test]
fn what_was_left_out_before_every_revision_was_wanted_is_not_missing() {
    let mut feed = feed();
    feed.every_revision(Seq(10));
    feed.skip_to(Seq(9));
    assert_eq!(feed.tally().skipped, 0);
    feed.skip_to(Seq(12));
    assert_eq!(feed.tally().skipped, 2);
}

#[test]
fn revisions_that_a_standing_owes_are_counted_before_they_are_removed() {
    let mut feed = every();
    read(&mut feed, &row(1, 1));
    feed.settle(Ordinal(1), failure(1));
    assert_eq!(feed.read(&row(1, 2), &mut Everything), Met::Settled);
    assert_eq!(feed.read(&row(1, 3), &mut Everything), Met::Settled);
    let gone = [(Ordinal(1), Seq(1)), (Ordinal(1), Seq(2)), (Ordinal(2), Seq(2)), (Ordinal(1), Seq(4))];
    assert_eq!(feed.lose(&gone), 2, "not another document's, nor what the reader has yet to miss");
    assert_eq!(feed.tally().skipped, 2);
    assert_eq!(feed.owed_from(Ordinal(1)), Some(Seq(1)));
}

#[test]
fn a_revision_that_is_given_up_is_counted_when_another_follows_and_a_dead_letter_when_none_does() {
    let give_up = || match failure(3) {
        Verdict::Retry { doubtful, trouble, .. } => Verdict::GiveUp { doubtful, trouble },
        other => other,
    };
    let mut feed = every();
    read(&mut feed, &row(1, 1));
    assert_eq!(feed.read(&row(1, 2), &mut Everything), Met::Busy);
    assert_eq!(feed.settle(Ordinal(1), give_up()), Settled::Next);
    assert_eq!(
        feed.next_revision(Ordinal(1), Some(&row(1, 2)), &mut Everything),
        Next::Wait,
        "not before it is durable"
    );
    record(&mut feed);
    assert!(matches!(feed.next_revision(Ordinal(1), Some(&row(1, 2)), &mut Everything), Next::Send(_)));
    assert_eq!(feed.settle(Ordinal(1), give_up()), Settled::Next, "more may have come meanwhile");
    assert_eq!((feed.tally().skipped, feed.dead().len()), (1, 0));
    record(&mut feed);
    assert_eq!(feed.next_revision(Ordinal(1), None, &mut Everything), Next::Done);
    assert_eq!((feed.tally().skipped, feed.dead().len()), (1, 1));
}

#[test]
fn asking_for_a_record_when_nothing_has_changed_leaves_the_mark() {
    let mut feed = Feed::open(Saved::default(), Seq(0));
    feed.want_issue(Seq(10));
    record(&mut feed);
    assert!(feed.take_record().is_none());
    assert_eq!(feed.issued(), Seq(10));
    feed.recorded(Receipt::forged());
    assert_eq!(feed.issued(), Seq(10), "not even if it is said that there was one");
}

#[test]
fn a_mark_that_is_taken_back_while_a_record_is_under_way_stays_taken_back() {
    let mut feed = Feed::open(Saved::default(), Seq(0));
    feed.want_issue(Seq(10));
    let taken = feed.take_record().expect("a mark is asked for");
    feed.close();
    feed.recorded(taken.receipt);
    assert_eq!(feed.take_record().expect("the mark has changed").record.issued, Seq(0));
}

#[test]
fn a_pause_takes_the_mark_back_with_the_last_outcomes_and_once() {
    let mut feed = Feed::open(Saved::default(), Seq(0));
    feed.want_issue(Seq(10));
    record(&mut feed);
    read(&mut feed, &row(1, 1));
    feed.settle(Ordinal(1), Verdict::Delivered);
    feed.pause();
    let Taken { record, receipt } = feed.take_record().expect("there is an outcome");
    assert_eq!((record.held, record.cursor, record.issued), (vec![Ordinal(1)], Seq(1), Seq(0)));
    feed.recorded(receipt);
    feed.pause();
    assert!(!feed.is_changed(), "it is paused already");
    assert!(!feed.may_issue(Seq(2)), "a mark has to be asked for again");
}

#[test]
fn what_comes_after_a_crash_is_not_taken_for_sent_before_it() {
    let saved = Saved { cursor: Seq(5), issued: Seq(100), ..Saved::default() };
    let mut feed = Feed::open(saved, Seq(6));
    let gone = |ordinal, seq| Row { born: Seq(seq - 1), deleted: true, ..row(ordinal, seq) };
    assert_eq!(feed.read(&gone(2, 8), &mut Everything), Met::Settled, "it was created after the crash");
    let mut feed = Feed::open(Saved { cursor: Seq(5), issued: Seq(100), ..Saved::default() }, Seq(7));
    assert!(matches!(feed.read(&gone(2, 8), &mut Everything), Met::Send(_)), "the create may have been sent");
}

#[test]
fn a_tombstone_is_needed_until_the_end_of_its_document_is_durable() {
    let mut feed = feed();
    let deleted = Row { deleted: true, ..row(1, 2) };
    read(&mut feed, &row(1, 1));
    feed.settle(Ordinal(1), Verdict::Delivered);
    record(&mut feed);
    read(&mut feed, &deleted);
    assert!(feed.needed().contains(1), "the client has it");
    feed.settle(Ordinal(1), Verdict::Delivered);
    assert!(feed.needed().contains(1), "the ledger says that the client has it");
    let taken = feed.take_record().expect("there is an outcome");
    assert!(feed.needed().contains(1), "it still does");
    feed.recorded(taken.receipt);
    assert!(feed.needed().is_empty());
}

#[test]
fn a_feed_that_begins_again_twice_does_so_once() {
    let begun = |times| {
        let mut feed = feed();
        read(&mut feed, &row(1, 1));
        feed.settle(Ordinal(1), Verdict::Delivered);
        record(&mut feed);
        read(&mut feed, &row(2, 2));
        feed.settle(Ordinal(2), failure(1));
        (0..times).for_each(|_| feed.begin_again(Seq(2)));
        let Taken { record, .. } = feed.take_record().expect("all is to be decided again");
        Record { life: 0, ..record }
    };
    assert_eq!(begun(1).dropped, [Ordinal(1)]);
    assert_eq!(begun(2), begun(1));
}

#[test]
fn a_document_that_is_gone_is_owed_no_more() {
    let mut feed = feed();
    read(&mut feed, &row(1, 1));
    feed.settle(Ordinal(1), Verdict::Delivered);
    read(&mut feed, &Row { deleted: true, ..row(1, 5) });
    assert!(!feed.gone(Ordinal(1), Seq(9)), "an attempt that is open ends first");
    feed.settle(Ordinal(1), failure(1));
    record(&mut feed);
    assert!(!feed.gone(Ordinal(1), Seq(4)), "a log that is seen only so far does not know it yet");
    assert!(feed.waiting().contains_key(&Ordinal(1)));
    assert!(feed.gone(Ordinal(1), Seq(5)));
    assert!(feed.waiting().is_empty() && feed.held().is_empty() && feed.doubt().is_empty());
    assert!(!feed.gone(Ordinal(1), Seq(5)), "nothing is owed");
    let Taken { record, .. } = feed.take_record().expect("there is something to record");
    assert_eq!((record.cleared, record.dropped), (vec![Ordinal(1)], vec![Ordinal(1)]));
    assert_eq!(record.cursor, Seq(0), "the recorded cursor rests until all is judged");
}

#[test]
fn a_document_that_is_gone_while_it_was_to_be_decided_again_holds_nothing_back() {
    let mut feed = feed();
    read(&mut feed, &row(1, 1));
    assert_eq!(feed.read(&Row { deleted: true, ..row(1, 2) }, &mut Everything), Met::Busy);
    assert_eq!(feed.settle(Ordinal(1), Verdict::Delivered), Settled::Again);
    assert!(feed.may_be_retried(Ordinal(1)));
    assert!(feed.gone(Ordinal(1), Seq(2)));
    assert_eq!((feed.cursor(), feed.may_be_retried(Ordinal(1))), (Seq(2), false));
}

#[test]
fn a_stop_before_all_is_judged_leaves_that_to_the_next_life_and_no_more() {
    let (ordinal, state) = (Ordinal(2), State::Waiting { due: NOW });
    let waited = Standing { ordinal, seq: Seq(1), doubt: false, state, replay: 0, trouble: None };
    let mut saved =
        Saved { cursor: Seq(1), issued: Seq(100), standings: vec![waited], life: 7, ..Saved::default() };
    let mut feed = Feed::open(saved.clone(), Seq(9));
    read(&mut feed, &row(1, 3));
    feed.settle(Ordinal(1), Verdict::Delivered);
    assert!(feed.request(&row(1, 3), 1, NOW));
    feed.close();
    let Taken { record, .. } = feed.take_record().expect("there is something to record");
    assert_eq!((record.cursor, record.issued, record.judging), (Seq(1), Seq(0), Seq(9)));
    assert_eq!(record.unjudged, [2].into_iter().collect(), "what was asked for since is known");
    ledger::write(&mut saved, &record);
    let feed = Feed::open(saved, Seq(9));
    assert_eq!((feed.issued(), feed.life()), (Seq(0), 9), "a retry needs a mark, and states are believed");
    assert_eq!(feed.few.unjudged, record.unjudged);
    assert_eq!(feed.few.judge.as_ref().map(|judge| judge.issued), Some(Seq(9)));
}

#[test]
fn what_was_judged_before_a_stop_is_not_judged_after_it() {
    let filtering = Some(Box::new(Filtering { selective: true, ..Filtering::default() }));
    let mut saved = Saved { cursor: Seq(1), issued: Seq(100), filtering, ..Saved::default() };
    saved.held.extend([1, 2]);
    let changed = |ordinal, seq| Row { born: Seq(1), ..row(ordinal, seq) };
    let mut feed = Feed::open(saved.clone(), Seq(9));
    let met = read(&mut feed, &changed(1, 3));
    assert_eq!(met.action, Action::Create, "it may have left and come back");
    feed.settle(Ordinal(1), Verdict::Delivered);
    let record = feed.take_record().expect("there is an outcome").record;
    assert!(record.judged.is_empty(), "a crash has everything judged again");
    ledger::write(&mut saved, &record);
    let mut feed = Feed::open(saved.clone(), Seq(9));
    assert_eq!(feed.read(&changed(1, 3), &mut Everything), Met::Settled);
    feed.close();
    let record = feed.take_record().expect("the mark has changed").record;
    assert_eq!(record.judged, [1].into_iter().collect());
    ledger::write(&mut saved, &record);
    let mut feed = Feed::open(saved, Seq(9));
    let actions = [changed(1, 10), changed(2, 11)].map(|row| read(&mut feed, &row).action);
    assert_eq!(actions, [Action::Update, Action::Create], "the other was not judged yet");
}
