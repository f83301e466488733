//! Both sides' outcomes come in; whether they agree goes out. Where they may differ, the reason stands here, one by one.

use crate::players::{Answered, Kind, Outcome};

/// Why it is right that ours is another than hyper's, if it is.
pub fn excuse(answer: &[u8], ours: &Outcome, theirs: &Outcome) -> Option<&'static str> {
    use Outcome::{Answered as Ok, Failed, Waits};
    Some(match (ours, theirs) {
        // hyper hands the connection over, to whoever takes it; nobody here does.
        (Failed(Kind::NotHttp), Ok(Answered { status: 101, .. })) => "101 is refused",
        // From the second piece on hyper looks for the end of a head before it looks at the head: what is none is found
        // out later, as something else or never.
        (Failed(Kind::NotHttp), Failed(Kind::EndedInHead | Kind::TooLarge | Kind::Io(_)) | Waits) => {
            "told at once"
        }
        // Its buffer may be larger than asked for, and it has no limit for words in between.
        (Failed(Kind::TooLarge), Ok(_) | Failed(Kind::EndedInHead | Kind::Io(_)) | Waits)
            if long_heads(answer) =>
        {
            "a limit is a limit"
        }
        // It keeps the two largest numbers for itself.
        (Failed(Kind::EndedInBody | Kind::Io(_)) | Waits, Failed(Kind::TooLarge))
            if contains(answer, b"184467440737095516") =>
        {
            "any number of 64 bits is a length"
        }
        // It notices most of them, and later, by counting lines.
        (Failed(Kind::BadBody), Ok(_) | Failed(Kind::EndedInBody | Kind::Io(_)) | Waits)
            if lone_line_feed(answer) =>
        {
            "trailers end with CR LF"
        }
        // It does not look at options in a value that has a byte beyond ASCII.
        (Ok(ours), Ok(theirs)) if closes_beyond_ascii(ours) && same_but_for_reuse(ours, theirs) => {
            "close is close"
        }
        _ => return None,
    })
}

fn long_heads(answer: &[u8]) -> bool {
    let first = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(answer.len());
    first > flare_wire::HEAD_LIMIT - 4 || contains(&answer[..first], b"HTTP/1.1 1")
}

fn lone_line_feed(answer: &[u8]) -> bool {
    answer.windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r')
}

fn contains(answer: &[u8], part: &[u8]) -> bool {
    answer.windows(part.len()).any(|window| window == part)
}

fn closes_beyond_ascii(answered: &Answered) -> bool {
    let mut values = answered.fields.iter().filter(|(name, _)| name == "connection").map(|(_, value)| value);
    !answered.reusable && values.any(|value| !value.is_ascii())
}

fn same_but_for_reuse(ours: &Answered, theirs: &Answered) -> bool {
    *ours == Answered { reusable: ours.reusable, ..theirs.clone() }
}
