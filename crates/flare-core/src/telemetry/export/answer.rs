//! In: a collector's answer. Out: what it says of things that were not taken.

use crate::protobuf::{BYTES, FIXED32, FIXED64, VARINT};

/// How many things were not taken, and why. An answer that cannot be read says nothing.
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
    use crate::protobuf::Message;

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
