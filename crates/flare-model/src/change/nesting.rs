//! In: the bytes of a JSON text. Out: whether it is nested too deep.
//!
//! The parser skips values without recursion and so without a limit of its own; but whoever reads the
//! document later (a filter, a client) may recurse, and would overflow its stack.

/// How deep objects and lists may stand inside each other, the document itself being the first.
pub const MAX_NESTING: usize = 128;

/// Whether valid JSON is nested deeper than `MAX_NESTING`. Of a text that is not JSON it may say either.
pub(super) fn is_too_deep(json: &[u8]) -> bool {
    // Most documents have too few brackets to be deep, and counting them is far cheaper than following them.
    count_opening(json) > MAX_NESTING && exceeds(json, MAX_NESTING)
}

/// How many `[` and `{` there are, in strings too. They differ in one bit.
fn count_opening(json: &[u8]) -> usize {
    // Counted in bytes for as long as those cannot overflow: so the compiler can take many at a time.
    json.chunks(255)
        .map(|chunk| usize::from(chunk.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>()))
        .sum()
}

fn exceeds(json: &[u8], most: usize) -> bool {
    let mut depth = 0_usize;
    let mut rest = json;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => rest = after_string(after),
            _ => {}
        }
    }
    false
}

/// What follows the quote that ends a string, given what follows the one that begins it.
fn after_string(string: &[u8]) -> &[u8] {
    let mut rest = string;
    loop {
        // Strings are most of a document: eight bytes at a time halve the time of the whole.
        while let Some((word, after)) = rest.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            let special = bytes_equal(word, b'"') | bytes_equal(word, b'\\');
            if special != 0 {
                rest = &rest[special.trailing_zeros() as usize / 8..];
                break;
            }
            rest = after;
        }
        match rest {
            [] => return rest,
            [b'"', after @ ..] => return after,
            [b'\\', _, after @ ..] | [_, after @ ..] => rest = after,
        }
    }
}

/// A word whose lowest set bit is in the first byte (of the lowest place) that equals `byte`; zero where none
/// does.
fn bytes_equal(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    // A byte that is equal becomes zero, and only a zero byte, or one above it, borrows from its top bit.
    let difference = word ^ u64::from_le_bytes([byte; 8]);
    difference.wrapping_sub(ONES) & !difference & TOPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_limit_is_allowed() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert!(!is_too_deep(nested(MAX_NESTING).as_bytes()));
            assert!(is_too_deep(nested(MAX_NESTING + 1).as_bytes()));
        }
    }

    #[test]
    fn brackets_side_by_side_or_in_strings_are_not_depth() {
        let wide = format!("[{}1]", "[],{},".repeat(1_000));
        assert!(!is_too_deep(wide.as_bytes()));
        let text = format!(r#"["{}","\"{}\\",[]]"#, "[".repeat(1_000), "{".repeat(1_000));
        assert!(!is_too_deep(text.as_bytes()));
        let closing = format!(r#"["{}",{}"#, "]".repeat(1_000), "[".repeat(MAX_NESTING));
        assert!(is_too_deep(closing.as_bytes()));
    }

    #[test]
    fn a_string_ends_at_its_own_quote_at_any_distance() {
        for length in 0..40 {
            for filler in ["a", "é", "#", "[", "\\\\", "\\\"", "\u{7f}\u{80}"] {
                let string = format!("{}\"{{\"", filler.repeat(length));
                assert_eq!(after_string(string.as_bytes()), b"{\"", "{string}");
            }
            assert_eq!(after_string("a".repeat(length).as_bytes()), b"");
        }
        assert_eq!(after_string(b"\\"), b"");
    }

    #[test]
    fn the_count_does_not_overflow() {
        assert_eq!(count_opening(&[b'['; 1_000]), 1_000);
        assert_eq!(count_opening(b"[{]}\"x{[\\;"), 4);
    }
}
