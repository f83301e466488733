//! Whatever bytes come as an answer, in whatever pieces: our connection makes of them what hyper's makes, but for the
//! differences that have a reason (`crates/flare-wire/tests/differential/compare.rs`). The first byte says how it ends,
//! the second and third how large the pieces are.

#![no_main]

#[path = "../../crates/flare-wire/tests/differential/compare.rs"]
mod compare;
#[path = "../../crates/flare-wire/tests/differential/players.rs"]
mod players;
#[path = "../../crates/flare-wire/tests/differential/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;
use players::Outcome;
use script::{End, Script};

fuzz_target!(|data: &[u8]| {
    let [how, first, others, answer @ ..] = data else { return };
    let end = [End::Eof, End::Open, End::Reset][usize::from(how % 3)];
    let (first, rest) = answer.split_at(usize::from(*first).min(answer.len()));
    let mut pieces = vec![first.to_vec()];
    pieces.extend(rest.chunks(usize::from(*others) + 1).map(<[u8]>::to_vec));
    let alone = || Script::new([pieces.clone()], end);
    let (ours, theirs) = (players::ours(alone(), 1), players::theirs(alone(), 1));
    if ours != theirs {
        assert!(compare::excuse(answer, &ours[0], &theirs[0]).is_some(), "ours {ours:?}\nhyper's {theirs:?}");
    } else if matches!(&ours[..], [Outcome::Answered(answered)] if answered.reusable) {
        // The connection is still there, and nothing came behind the answer: another one may follow.
        let twice = || Script::new([pieces.clone(), vec![b"HTTP/1.1 204 x\r\n\r\n".to_vec()]], end);
        assert_eq!(players::ours(twice(), 2), players::theirs(twice(), 2));
    }
});
