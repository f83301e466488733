//! What can be done to a store, as values: chance comes in, lists of operations go out.
//!
//! Entities are named by slots. A slot keeps the number of its last entity even when that is deleted, so that
//! operations also meet what is gone. The ranges are small, so that operations meet each other.

use std::sync::Arc;

use flare_model::feed::{Ahead, Failure, Health, Kept, Record, Standing, State, Sweep, SweepKind, Tally};
use flare_model::ids::{Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use crate::catalog::{EntityKind, Start};

/// One call, or a crash.
#[derive(Clone, Debug)]
pub enum Operation {
    CreateResource { slot: u8, lanes: u16, keys: Vec<u8> },
    CreateSubscription { slot: u8, resource: u8, keys: Vec<u8>, start: Start },
    Replace { kind: EntityKind, slot: u8, keys: Vec<u8>, late: bool },
    Delete { kind: EntityKind, slot: u8 },
    List { kind: EntityKind, limit: usize },
    Commit(Vec<Change>),
    Get { at: Place, url: u8 },
    Fetch { at: Place, ordinals: Vec<u64> },
    Scan { at: Place, after: u64, upto: u64, rows: usize, bytes: usize },
    Lanes,
    RemoveTombstones { at: Place, upto: u64, before: i64, keep: Vec<u64>, limit: usize },
    TakeOver { slot: u8 },
    OpenLate { slot: u8 },
    Write { slot: u8, lane: u8, late: bool, record: Box<Record> },
    Standings { slot: u8, dead: bool, offset: u64, limit: u64 },
    Standing { slot: u8, lane: u8, ordinal: u64 },
    State { slot: u8, lane: u8, life: u64, ordinal: u64 },
    Crash,
}

/// A lane of the resource in a slot, there or not.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub slot: u8,
    pub lane: u8,
}

/// One write of a batch. Without a revision it is a delete that takes the current one.
#[derive(Clone, Debug)]
pub struct Change {
    pub at: Place,
    pub url: u8,
    pub delete: bool,
    pub revision: Option<i64>,
    pub moment: i64,
    pub size: usize,
}

/// Lists of operations, which begin with something to work on.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    vec(operation(), 100..250).prop_map(|mut operations| {
        let start = Start::Now;
        operations.splice(
            0..0,
            [
                Operation::CreateResource { slot: 0, lanes: 2, keys: vec![] },
                Operation::CreateSubscription { slot: 0, resource: 0, keys: vec![], start },
                Operation::TakeOver { slot: 0 },
            ],
        );
        operations
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => catalog(),
        3 => vec(change(), 1..8).prop_map(Operation::Commit),
        3 => reading(),
        4 => ledger(),
        1 => Just(Operation::TakeOver { slot: 0 }),
    ]
}

fn catalog() -> impl Strategy<Value = Operation> {
    let kind = || prop_oneof![Just(EntityKind::Resource), Just(EntityKind::Subscription)];
    let keys = || vec(0..6_u8, 0..3);
    let start = prop_oneof![Just(Start::Now), Just(Start::Beginning)];
    prop_oneof![
        2 => (0..2_u8, 1..4_u16, keys())
            .prop_map(|(slot, lanes, keys)| Operation::CreateResource { slot, lanes, keys }),
        4 => (0..3_u8, 0..2_u8, keys(), start).prop_map(|(slot, resource, keys, start)| {
            Operation::CreateSubscription { slot, resource, keys, start }
        }),
        3 => (kind(), 0..3_u8, keys(), any::<bool>())
            .prop_map(|(kind, slot, keys, late)| Operation::Replace { kind, slot, keys, late }),
        2 => (kind(), 0..3_u8).prop_map(|(kind, slot)| Operation::Delete { kind, slot }),
        2 => (kind(), 0..4_usize).prop_map(|(kind, limit)| Operation::List { kind, limit }),
        1 => Just(Operation::Crash),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    (prop_oneof![4 => Just(0), 1 => Just(1)], 0..3_u8).prop_map(|(slot, lane)| Place { slot, lane })
}

fn change() -> impl Strategy<Value = Change> {
    let write = (any::<bool>(), any::<bool>(), 0..12_i64).prop_map(|(delete, given, revision)| {
        // A put has its revision; of the deletes, half have one.
        (delete, (!delete || given).then_some(revision))
    });
    (place(), 0..6_u8, write, 0..4_i64, 0..40_usize).prop_map(
        |(at, url, (delete, revision), moment, size)| Change { at, url, delete, revision, moment, size },
    )
}

fn reading() -> impl Strategy<Value = Operation> {
    let ordinals = || vec(0..10_u64, 0..5);
    let upto = || prop_oneof![0..60_u64, Just(u64::MAX)];
    prop_oneof![
        (place(), 0..6_u8).prop_map(|(at, url)| Operation::Get { at, url }),
        (place(), ordinals()).prop_map(|(at, ordinals)| Operation::Fetch { at, ordinals }),
        (place(), 0..60_u64, upto(), 1..9_usize, 0..200_usize)
            .prop_map(|(at, after, upto, rows, bytes)| { Operation::Scan { at, after, upto, rows, bytes } }),
        Just(Operation::Lanes),
        (place(), upto(), 0..5_i64, ordinals(), 0..5_usize).prop_map(|(at, upto, before, keep, limit)| {
            Operation::RemoveTombstones { at, upto, before, keep, limit }
        }),
    ]
}

fn ledger() -> impl Strategy<Value = Operation> {
    let slot = || prop_oneof![3 => Just(0), 1 => 1..3_u8];
    let late = || prop_oneof![5 => Just(false), 1 => Just(true)];
    prop_oneof![
        1 => slot().prop_map(|slot| Operation::TakeOver { slot }),
        1 => slot().prop_map(|slot| Operation::OpenLate { slot }),
        6 => (slot(), 0..3_u8, late(), record())
            .prop_map(|(slot, lane, late, record)| Operation::Write { slot, lane, late, record }),
        2 => (slot(), any::<bool>(), 0..6_u64, 0..6_u64)
            .prop_map(|(slot, dead, offset, limit)| Operation::Standings { slot, dead, offset, limit }),
        1 => (slot(), 0..3_u8, 0..8_u64)
            .prop_map(|(slot, lane, ordinal)| Operation::Standing { slot, lane, ordinal }),
        2 => (slot(), 0..3_u8, 0..2_u64, 0..5_u64)
            .prop_map(|(slot, lane, life, ordinal)| Operation::State { slot, lane, life, ordinal }),
    ]
}

fn record() -> impl Strategy<Value = Box<Record>> {
    let seqs = || btree_set(0..99_u64, 0..4).prop_map(|seqs| seqs.into_iter().map(Seq).collect());
    let ahead = (0..99_u64, seqs(), seqs()).prop_map(|(horizon, holes, extras)| Ahead {
        horizon: Seq(horizon),
        holes,
        extras,
    });
    let sweep = (0..3_u64, option::of(-3..3_i64), 0..9_u64).prop_map(|(replay, since, position)| {
        let replayed = |since| SweepKind::Replay { since: Timestamp::from_millis(since) };
        let unasked = if position % 2 == 0 { SweepKind::Beginning } else { SweepKind::Filter };
        let kind = since.map_or(unasked, replayed);
        Sweep { replay, kind, position: Seq(position), end: Seq(position + 5), met: position }
    });
    let marks = (0..99_u64, 0..999_u64, 0..2_u64, btree_map(0..5_u64, option::of(0..9_i64), 0..3));
    (marks, ahead, btree_map(0..60_u64, any::<bool>(), 0..9), standings(), option::of(sweep), tally())
        .prop_map(|((cursor, issued, life, states), ahead, bits, standings, sweep, tally)| {
            let mut record = Record {
                cursor: Seq(cursor),
                issued: Seq(issued),
                judging: Seq(issued / 2),
                unjudged: (0..cursor % 3).collect(),
                judged: (0..cursor % 5).collect(),
                ahead,
                sweep,
                tally,
                life,
                ..Record::default()
            };
            for (ordinal, state) in states {
                match state {
                    Some(n) => record.kept.push((Ordinal(ordinal), Arc::new(kept(n)))),
                    None => record.forgotten.push(Ordinal(ordinal)),
                }
            }
            record.since = (cursor % 2 == 1).then_some(Seq(issued));
            for (ordinal, has) in bits {
                if has { record.held.push(Ordinal(ordinal)) } else { record.dropped.push(Ordinal(ordinal)) }
            }
            for (ordinal, standing) in standings {
                match standing {
                    Some(standing) => {
                        record.standings.push(Standing { ordinal: Ordinal(ordinal), ..standing })
                    }
                    None => record.cleared.push(Ordinal(ordinal)),
                }
            }
            Box::new(record)
        })
}

fn kept(number: i64) -> Kept {
    Kept { revision: Revision::Integer(number), content: vec![b'x'; number as usize].into() }
}

/// What happens to the standings of some documents: each is written, or cleared.
fn standings() -> impl Strategy<Value = std::collections::BTreeMap<u64, Option<Standing>>> {
    let state = prop_oneof![
        (-9..9_i64).prop_map(|due| State::Waiting { due: Timestamp::from_millis(due) }),
        (-9..9_i64).prop_map(|until| State::Leased { until: Timestamp::from_millis(until) }),
        Just(State::GaveUp),
        Just(State::Doubtful),
        Just(State::Passed),
    ];
    let standing = (state, 0..99_u64, any::<bool>(), 0..3_u64).prop_map(|(state, seq, doubt, replay)| {
        Standing { ordinal: Ordinal(0), seq: Seq(seq), doubt, state, replay, trouble: None }
    });
    btree_map(0..8_u64, option::of(standing), 0..4)
}

fn tally() -> impl Strategy<Value = Tally> {
    let failure = (-9..9_i64, option::of(100..600_u16), ".{0,8}").prop_map(|(at, status, error)| Failure {
        at: Timestamp::from_millis(at),
        status,
        error,
    });
    let moment = || option::of((-9..9_i64).prop_map(Timestamp::from_millis));
    let health = (moment(), moment(), moment(), moment()).prop_map(
        |(failing_since, last_discard_at, recovered_at, prepared_at)| Health {
            failing_since,
            last_discard_at,
            recovered_at,
            prepared_at,
        },
    );
    (0..9_u64, 0..9_u64, option::of(-9..9_i64), option::of(failure), option::of(health)).prop_map(
        |(delivered, failed, success, last_failure, health)| Tally {
            delivered,
            discarded: delivered / 2,
            failed,
            skipped: failed / 2,
            last_success_at: success.map(Timestamp::from_millis),
            last_failure: last_failure.map(Box::new),
            health: health.filter(|health| *health != Health::default()).map(Box::new),
        },
    )
}
