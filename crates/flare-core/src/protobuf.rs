//! In: fields of a protobuf message, one after the other. Out: its bytes.
//!
//! Flare writes a handful of messages that never change their numbers, those of OTLP and of pprof's profiles: an encoder
//! of this size costs nothing to build (docs/adr/0008-otlp-by-hand.md). Tests hold it against the published definitions.

/// A message under construction. Fields with their default are left out, as protobuf does, but for members of a choice.
#[derive(Default)]
pub struct Message(Vec<u8>);

/// How a field is written: a number of as many bytes as it needs.
pub const VARINT: u32 = 0;
/// Eight bytes.
pub const FIXED64: u32 = 1;
/// A length and as many bytes: texts, messages, packed lists.
pub const BYTES: u32 = 2;
/// Four bytes.
pub const FIXED32: u32 = 5;

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

    /// Whole numbers, packed.
    pub fn packed(&mut self, field: u32, values: impl Iterator<Item = u64>) -> &mut Message {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.bytes(field, packed.0)
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
}
