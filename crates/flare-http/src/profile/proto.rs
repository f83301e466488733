//! In: a profile. Out: the same in the format of pprof (`profile.proto`), which `go tool pprof`, Grafana Pyroscope,
//! speedscope and others read. Not compressed: readers take either.

use std::collections::HashMap;

use flare_core::protobuf::Message;

use super::{Profile, Unit};

/// Fields of `Profile`.
mod field {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const TIME_NANOS: u32 = 9;
    pub const DURATION_NANOS: u32 = 10;
    pub const PERIOD_TYPE: u32 = 11;
    pub const PERIOD: u32 = 12;
}

/// Encodes a profile.
pub fn encode(profile: &Profile) -> Vec<u8> {
    let (kinds, (between, between_unit), period) = match profile.unit {
        Unit::Cpu { period } => {
            ([("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"), period)
        }
        // The names that readers know from Go's heap profiles; they show the last kind unless told otherwise.
        Unit::Heap { period } => {
            ([("inuse_objects", "count"), ("inuse_space", "bytes")], ("space", "bytes"), period)
        }
    };
    let mut strings = Strings::default();
    let mut functions: HashMap<&str, u64> = HashMap::new();
    let mut out = Message::default();
    for (kind, unit) in kinds {
        value_type(&mut out, field::SAMPLE_TYPE, &mut strings, kind, unit);
    }
    let thread_key = strings.number("thread");
    for stack in &profile.stacks {
        // The innermost first. A function has one location, with the same number.
        let mut locations = Vec::with_capacity(stack.frames.len());
        for frame in stack.frames.iter().rev() {
            let next = functions.len() as u64 + 1;
            locations.push(*functions.entry(frame).or_insert(next));
        }
        let thread = strings.number(&stack.thread);
        out.message(field::SAMPLE, |sample| {
            sample.packed(1, locations.into_iter());
            sample.packed(2, [stack.count, stack.amount].into_iter());
            sample.message(3, |label| {
                label.number(1, thread_key).number(2, thread);
            });
        });
    }
    let mut numbered: Vec<(&str, u64)> = functions.into_iter().collect();
    numbered.sort_by_key(|(_, number)| *number);
    for (name, number) in numbered {
        out.message(field::LOCATION, |location| {
            location.number(1, number).message(4, |line| {
                line.number(1, number);
            });
        });
        let name = strings.number(name);
        out.message(field::FUNCTION, |function| {
            function.number(1, number).number(2, name).number(3, name);
        });
    }
    out.number(field::TIME_NANOS, profile.began_nanos.unsigned_abs());
    out.number(field::DURATION_NANOS, profile.took_nanos.unsigned_abs());
    value_type(&mut out, field::PERIOD_TYPE, &mut strings, between, between_unit);
    out.number(field::PERIOD, period);
    for text in &strings.texts {
        // The first text is the empty one, and has its place all the same.
        out.chosen_bytes(field::STRING_TABLE, text);
    }
    out.into_bytes()
}

fn value_type(out: &mut Message, field: u32, strings: &mut Strings, kind: &str, unit: &str) {
    let (kind, unit) = (strings.number(kind), strings.number(unit));
    out.message(field, |message| {
        message.number(1, kind).number(2, unit);
    });
}

/// Texts are written once and meant by their number; the first is the empty one.
struct Strings {
    texts: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { texts: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stack;
    use super::*;

    #[test]
    fn a_small_profile_is_what_the_description_of_the_format_says() {
        let frames = vec!["main".into(), "work".into()];
        let stack = Stack { thread: "t".into(), frames, count: 300, amount: 3000 };
        let profile =
            Profile { unit: Unit::Cpu { period: 10 }, began_nanos: 5, took_nanos: 7, stacks: vec![stack] };
        let expected: Vec<u8> = [
            // Sample types: (samples, count) and (cpu, nanoseconds) by their places in the table of texts.
            &[0x0a, 4, 0x08, 1, 0x10, 2][..],
            &[0x0a, 4, 0x08, 3, 0x10, 4],
            // The sample: locations work and main, 300 samples of 10 ns, and the thread as a label.
            &[0x12, 16, 0x0a, 2, 1, 2, 0x12, 4, 0xac, 0x02, 0xb8, 0x17, 0x1a, 4, 0x08, 5, 0x10, 6],
            // Locations and functions, the innermost first.
            &[0x22, 6, 0x08, 1, 0x22, 2, 0x08, 1],
            &[0x2a, 6, 0x08, 1, 0x10, 7, 0x18, 7],
            &[0x22, 6, 0x08, 2, 0x22, 2, 0x08, 2],
            &[0x2a, 6, 0x08, 2, 0x10, 8, 0x18, 8],
            // Time, duration, and that a sample stands for 10 ns of cpu.
            &[0x48, 5, 0x50, 7, 0x5a, 4, 0x08, 3, 0x10, 4, 0x60, 10],
            &[0x32, 0],
            b"\x32\x07samples\x32\x05count\x32\x03cpu\x32\x0bnanoseconds\x32\x06thread\x32\x01t\x32\x04work\x32\x04main",
        ]
        .concat();
        assert_eq!(encode(&profile), expected);
    }

    #[test]
    fn a_heap_says_so_in_the_words_that_readers_know() {
        let unit = Unit::Heap { period: 1 << 19 };
        let profile = Profile { unit, began_nanos: 5, took_nanos: 0, stacks: Vec::new() };
        let expected: Vec<u8> = [
            &[0x0a, 4, 0x08, 1, 0x10, 2][..],
            &[0x0a, 4, 0x08, 3, 0x10, 4],
            // Time, no duration, and that 512 KiB of space lie between two samples.
            &[0x48, 5, 0x5a, 4, 0x08, 6, 0x10, 4, 0x60, 0x80, 0x80, 0x20],
            &[0x32, 0],
            b"\x32\x0dinuse_objects\x32\x05count\x32\x0binuse_space\x32\x05bytes\x32\x06thread\x32\x05space",
        ]
        .concat();
        assert_eq!(encode(&profile), expected);
    }
}
