//! In: fields of a protobuf message, one after the other. Out: its bytes; and the few fields of an answer that matter.
//!
//! OTLP is a handful of messages that never change their numbers, and Flare only writes them: an encoder of this size
//! costs nothing to build (docs/adr/0008-otlp-by-hand.md). Tests hold it against the published definitions.

/// A message under construction. Fields with their default are left out, as protobuf does, but for members of a choice.
#[derive(Default)]
pub struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

impl Message {
    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// A whole number or a word of an enumeration.
    pub fn number(&mut self, field: u32, value: u64) -> &mut Message {
        if value != 0 {
            self.chosen_number(field, value);
        }
        self
    }

    /// The same in a choice, where 0 is written too.
    pub fn chosen_number(&mut self, field: u32, value: u64) -> &mut Message {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }

    /// Eight bytes, written also when they are 0.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Message {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Four bytes.
    pub fn fixed32(&mut self, field: u32, value: u32) -> &mut Message {
        self.tag(field, FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A floating point number, written also when it is 0.
    pub fn double(&mut self, field: u32, value: f64) -> &mut Message {
        self.fixed64(field, value.to_bits())
    }

    /// Bytes, or a text.
    pub fn bytes(&mut self, field: u32, value: impl AsRef<[u8]>) -> &mut Message {
        if !value.as_ref().is_empty() {
            self.chosen_bytes(field, value);
        }
        self
    }

    /// The same in a choice, where nothing is written too.
    pub fn chosen_bytes(&mut self, field: u32, value: impl AsRef<[u8]>) -> &mut Message {
        let value = value.as_ref();
        self.tag(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Eight bytes each, packed.
    pub fn packed64(&mut self, field: u32, values: impl Iterator<Item = u64>) -> &mut Message {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, packed)
    }

    /// A message inside this one.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) -> &mut Message {
        let mut inner = Message::default();
        fill(&mut inner);
        self.chosen_bytes(field, inner.0)
    }

    fn tag(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// What an answer says of things that were not taken: how many, and why. An answer that cannot be read says nothing.
pub fn partial_success(answer: &[u8]) -> Option<(u64, String)> {
    let Value::Bytes(partial) = field(answer, 1)? else { return None };
    let rejected = match field(partial, 1) {
        Some(Value::Number(rejected)) => rejected,
        _ => 0,
    };
    let why = match field(partial, 2) {
        Some(Value::Bytes(why)) => String::from_utf8_lossy(why).into_owned(),
        _ => String::new(),
    };
    (rejected > 0 || !why.is_empty()).then_some((rejected, why))
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The first field with this number.
fn field(mut message: &[u8], wanted: u32) -> Option<Value<'_>> {
    while !message.is_empty() {
        let tag = take_varint(&mut message)?;
        let value = match (tag & 7) as u32 {
            VARINT => Value::Number(take_varint(&mut message)?),
            BYTES => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                Value::Bytes(message.split_off(..length)?)
            }
            FIXED64 => Value::Bytes(message.split_off(..8)?),
            FIXED32 => Value::Bytes(message.split_off(..4)?),
            _ => return None,
        };
        if tag >> 3 == u64::from(wanted) {
            return Some(value);
        }
    }
    None
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *message.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_encoding_guide() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.into_bytes(), [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.bytes(2, "testing");
        assert_eq!(message.into_bytes(), b"\x12\x07testing");
        let mut message = Message::default();
        message.message(3, |inner| {
            inner.number(1, 150);
        });
        assert_eq!(message.into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }

    #[test]
    fn an_answer_says_what_was_not_taken() {
        let mut answer = Message::default();
        answer.fixed32(7, 1).message(1, |partial| {
            partial.number(1, 300).bytes(2, "too old");
        });
        assert_eq!(partial_success(&answer.into_bytes()), Some((300, "too old".to_owned())));
        assert_eq!(partial_success(&[]), None);
        for broken in [&[0x0a][..], &[0x0a, 0xff, 0xff], &[0xff; 20], &[0x0b, 1]] {
            assert_eq!(partial_success(broken), None);
        }
    }
}
