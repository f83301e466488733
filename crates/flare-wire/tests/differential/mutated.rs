//! Answers that nobody wrote: good ones with bytes changed, cut, doubled and joined, in pieces at random.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::script::{End, Script};
use crate::{cases, compare, players};

/// What changes a parser's mind.
const TWISTS: [&[u8]; 24] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\n\n",
    b":",
    b" ",
    b"\t",
    b",",
    b";",
    b"0\r\n\r\n",
    b"0",
    b"\0",
    b"\xff",
    b"\x7f",
    b"HTTP/1.1 ",
    b"HTTP/1.0 ",
    b"100 ",
    b"204 ",
    b"chunked",
    b"close",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"connection: keep-alive\r\n",
];

#[derive(Clone, Debug)]
enum Twist {
    Insert(Index, usize),
    Replace(Index, u8),
    Remove(Index, Index),
    Join(usize, Index),
    Double(Index, Index),
}

fn twist() -> impl Strategy<Value = Twist> {
    prop_oneof![
        4 => (any::<Index>(), 0..TWISTS.len()).prop_map(|(at, what)| Twist::Insert(at, what)),
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Twist::Replace(at, byte)),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Twist::Remove(from, to)),
        1 => (any::<usize>(), any::<Index>()).prop_map(|(case, at)| Twist::Join(case, at)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Twist::Double(from, to)),
    ]
}

fn apply(twist: &Twist, answer: &mut Vec<u8>, cases: &[Vec<u8>]) {
    let range = |from: &Index, to: &Index, long: usize| {
        let start = from.index(long + 1);
        // Mostly short ones: what is left should still look like an answer.
        start..long.min(start + to.index(12))
    };
    match twist {
        Twist::Insert(at, what) => {
            let at = at.index(answer.len() + 1);
            answer.splice(at..at, TWISTS[*what].iter().copied());
        }
        Twist::Replace(at, byte) if !answer.is_empty() => {
            let at = at.index(answer.len());
            answer[at] = *byte;
        }
        Twist::Replace(..) => {}
        Twist::Remove(from, to) => {
            answer.drain(range(from, to, answer.len()));
        }
        Twist::Join(case, at) => {
            answer.truncate(at.index(answer.len() + 1));
            answer.extend_from_slice(&cases[case % cases.len()]);
        }
        Twist::Double(from, to) => {
            let part = answer[range(from, to, answer.len())].to_vec();
            let at = from.index(answer.len() + 1);
            answer.splice(at..at, part);
        }
    }
}

fn cut(answer: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(answer.len() + 1)).collect();
    places.sort_unstable();
    places.push(answer.len());
    let mut from = 0;
    places.iter().map(|&to| answer[std::mem::replace(&mut from, to)..to].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn twisted_answers_are_read_as_hyper_reads_them(
        case in any::<usize>(),
        twists in vec(twist(), 0..4),
        cuts in vec(any::<Index>(), 0..8),
        end in prop_oneof![Just(End::Eof), Just(End::Open), Just(End::Reset)],
    ) {
        let cases = cases::short();
        let mut answer = cases[case % cases.len()].clone();
        for twist in &twists {
            apply(twist, &mut answer, &cases);
        }
        compare(&answer, cut(&answer, &cuts), end);
        let whole = players::ours(Script::new([vec![answer.clone()]], End::Eof), 1);
        let pieced = players::ours(Script::new([cut(&answer, &cuts)], End::Eof), 1);
        prop_assert_eq!(whole, pieced);
    }
}
