//! Whatever bytes come as an answer: they are read within the limits, and what comes of them does not depend on the
//! pieces they come in. The first byte says how large those are.

#![no_main]

use flare_wire::{Answer, HEAD_LIMIT, MAX_FIELDS, Mistake, Progress, ReadLimits, Reading};
use libfuzzer_sys::fuzz_target;

const LIMITS: ReadLimits = ReadLimits { read: 1000, keep: 100 };

fuzz_target!(|data: &[u8]| {
    let Some((&size, bytes)) = data.split_first() else { return };
    let whole = read(bytes, usize::MAX);
    assert_eq!(whole, read(bytes, usize::from(size % 16) + 1));
    if let Ok((answer, _)) = whole {
        assert!((200..1000).contains(&answer.status));
        assert!(answer.excerpt.len() <= LIMITS.keep && answer.fields.len() <= MAX_FIELDS);
        for (name, value) in answer.fields.iter() {
            assert!(!name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b':'));
            assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
});

/// The answer and how many bytes it is long, the end of the bytes being the end of the connection. The body's length is
/// left out where more came than is read.
fn read(bytes: &[u8], size: usize) -> Result<(Answer, Option<usize>), Mistake> {
    let mut reading = Reading::new(Answer::default(), LIMITS);
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = bytes.len().min(end.saturating_add(size));
        let (taken, progress) = reading.take(&bytes[start..end])?;
        start += taken;
        assert!(end - start <= HEAD_LIMIT || matches!(progress, Progress::Whole { .. }));
        if let Progress::Whole { reusable } = progress {
            return Ok((reading.into_answer(), reusable.then_some(start)));
        }
    }
    reading.end(&bytes[start..])?;
    Ok((reading.into_answer(), None))
}
