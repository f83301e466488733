//! Ours beside hyper's client: a few hundred answers, good and twisted, in pieces of every size, to both. What comes of
//! them has to be the same: status, fields, body, whether the connection may be used again, the kind of failure. Where
//! it may differ is in `compare.rs`.

mod cases;
mod compare;
mod mutated;
mod players;
mod script;

use std::collections::BTreeMap;

use compare::excuse;
use players::{Outcome, ours, theirs};
use script::{End, Script};

/// An answer in pieces of one size.
fn pieces(answer: &[u8], size: usize) -> Vec<Vec<u8>> {
    answer.chunks(size).map(<[u8]>::to_vec).collect()
}

/// Plays one answer to both. Returns the reason where they may differ.
fn compare(answer: &[u8], pieces: Vec<Vec<u8>>, end: End) -> Option<&'static str> {
    let says = || Script::new([pieces.clone()], end);
    let (mut ours, mut theirs) = (ours(says(), 1), theirs(says(), 1));
    let (ours, theirs) = (ours.remove(0), theirs.remove(0));
    if ours == theirs {
        return None;
    }
    let excuse = excuse(answer, &ours, &theirs);
    let sizes: Vec<_> = pieces.iter().map(Vec::len).take(20).collect();
    let shown = &answer[..answer.len().min(400)];
    assert!(
        excuse.is_some(),
        "{} in {} pieces {sizes:?}, then {end:?}:\n ours   {ours:?}\n hyper's {theirs:?}",
        shown.escape_ascii(),
        pieces.len()
    );
    excuse
}

/// Plays answers to both, each in pieces of some sizes and with every end.
fn compare_all(answers: &[Vec<u8>], sizes: impl Fn(usize) -> Vec<usize>) {
    let (mut played, mut excused) = (0, BTreeMap::<_, usize>::new());
    for answer in answers {
        for size in sizes(answer.len()) {
            for end in [End::Eof, End::Open, End::Reset] {
                played += 1;
                if let Some(reason) = compare(answer, pieces(answer, size), end) {
                    *excused.entry(reason).or_default() += 1;
                }
            }
        }
    }
    println!("{} answers, played {played} times; different for a reason: {excused:?}", answers.len());
}

#[test]
fn every_answer_is_read_as_hyper_reads_it() {
    let answers = cases::distinct();
    assert!(answers.len() > 300, "{}", answers.len());
    compare_all(&answers, |long| match long {
        0..=600 => (1..=long.max(1)).collect(),
        _ => vec![1000, 4095, 4096, 4097, 8192, long - 1, long],
    });
}

#[test]
fn every_byte_is_taken_as_hyper_takes_it() {
    compare_all(&cases::with_every_byte(), |long| vec![1, 7, long]);
}

#[test]
fn what_comes_of_an_answer_does_not_depend_on_its_pieces() {
    for answer in cases::all().into_iter().filter(|answer| answer.len() <= 2000) {
        let whole = ours(Script::new([vec![answer.clone()]], End::Eof), 1);
        for size in 1..answer.len().min(70) {
            let pieced = ours(Script::new([pieces(&answer, size)], End::Eof), 1);
            assert_eq!(pieced, whole, "{} by {size}", answer.escape_ascii());
        }
    }
}

#[test]
fn a_connection_that_may_be_used_again_answers_again() {
    const SECOND: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-length: 6\r\n\r\nsecond";
    let mut again = 0;
    for answer in cases::all().into_iter().filter(|answer| answer.len() <= 2000) {
        // What comes behind an answer before the next request is seen before it; what comes after it, nobody can tell
        // from the next answer.
        let alone = ours(Script::new([vec![answer.clone()]], End::Open), 1);
        if !matches!(&alone[..], [Outcome::Answered(answered)] if answered.reusable) {
            continue;
        }
        for size in [1, 7, answer.len()] {
            let says = || Script::new([pieces(&answer, size), pieces(SECOND, size)], End::Open);
            let (ours, theirs) = (ours(says(), 2), theirs(says(), 2));
            assert_eq!(ours, theirs, "{}", answer.escape_ascii());
            let Some(Outcome::Answered(answered)) = ours.get(1) else { panic!("no second answer: {ours:?}") };
            assert_eq!((answered.status, &answered.body[..], answered.reusable), (201, &b"second"[..], true));
            again += 1;
        }
    }
    assert!(again > 100, "{again}");
}
