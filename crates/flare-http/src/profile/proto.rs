//! In: a profile. Out: the same in the format of pprof (`profile.proto`), which `go tool pprof`, Grafana Pyroscope,
//! speedscope and others read. Not compressed: readers take either.
//!
//! Written by hand, because a message of five kinds is less than a code generator and its library.

use std::collections::HashMap;

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
        out.message(field::SAMPLE_TYPE, &value_type(&mut strings, kind, unit));
    }
    let thread_key = strings.number("thread");
    for stack in &profile.stacks {
        // The innermost first. A function has one location, with the same number.
        let mut locations = Message::default();
        for frame in stack.frames.iter().rev() {
            let next = functions.len() as u64 + 1;
            locations.varint(*functions.entry(frame).or_insert(next));
        }
        let mut values = Message::default();
        values.varint(stack.count);
        values.varint(stack.amount);
        let mut label = Message::default();
        label.number(1, thread_key);
        label.number(2, strings.number(&stack.thread));
        let mut sample = Message::default();
        sample.message(1, &locations);
        sample.message(2, &values);
        sample.message(3, &label);
        out.message(field::SAMPLE, &sample);
    }
    let mut numbered: Vec<(&str, u64)> = functions.into_iter().collect();
    numbered.sort_by_key(|(_, number)| *number);
    for (name, number) in numbered {
        let mut line = Message::default();
        line.number(1, number);
        let mut location = Message::default();
        location.number(1, number);
        location.message(4, &line);
        out.message(field::LOCATION, &location);
        let mut function = Message::default();
        function.number(1, number);
        function.number(2, strings.number(name));
        function.number(3, strings.number(name));
        out.message(field::FUNCTION, &function);
    }
    out.number(field::TIME_NANOS, profile.began_nanos.unsigned_abs());
    out.number(field::DURATION_NANOS, profile.took_nanos.unsigned_abs());
    out.message(field::PERIOD_TYPE, &value_type(&mut strings, between, between_unit));
    out.number(field::PERIOD, period);
    for text in &strings.texts {
        out.bytes(field::STRING_TABLE, text.as_bytes());
    }
    out.0
}

fn value_type(strings: &mut Strings, kind: &str, unit: &str) -> Message {
    let mut message = Message::default();
    message.number(1, strings.number(kind));
    message.number(2, strings.number(unit));
    message
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

/// A message of protocol buffers as it is written; a packed list of numbers looks the same.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u32, number: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(number);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
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
            &[0x48, 5, 0x50, 0, 0x5a, 4, 0x08, 6, 0x10, 4, 0x60, 0x80, 0x80, 0x20],
            &[0x32, 0],
            b"\x32\x0dinuse_objects\x32\x05count\x32\x0binuse_space\x32\x05bytes\x32\x06thread\x32\x05space",
        ]
        .concat();
        assert_eq!(encode(&profile), expected);
    }
}
