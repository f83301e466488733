//! In: the bytes of a profile in pprof's format. Out: its samples.

use std::collections::HashMap;

/// A profile, read by the description of the format and not by the code that wrote it.
pub struct Decoded {
    pub sample_types: Vec<String>,
    pub samples: Vec<Sample>,
}

/// How often a stack was seen.
#[derive(Debug)]
pub struct Sample {
    pub thread: String,
    /// The innermost first.
    pub frames: Vec<String>,
    pub values: Vec<u64>,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Decoded {
    pub fn of(bytes: &[u8]) -> Decoded {
        let fields = fields(bytes);
        let texts: Vec<String> = messages(&fields, 6)
            .map(|text| String::from_utf8(text.to_vec()).expect("texts are UTF-8"))
            .collect();
        assert_eq!(texts[0], "", "the first text is the empty one");
        let text = |number: u64| texts[number as usize].clone();
        let numbers_of = |message: &[u8]| {
            let mut numbers = HashMap::new();
            for (field, value) in self::fields(message) {
                if let Value::Number(number) = value {
                    numbers.insert(field, number);
                }
            }
            numbers
        };
        let sample_types = messages(&fields, 1).map(numbers_of);
        let sample_types =
            sample_types.map(|kind| format!("{}/{}", text(kind[&1]), text(kind[&2]))).collect();
        let functions: HashMap<u64, String> =
            messages(&fields, 5).map(numbers_of).map(|function| (function[&1], text(function[&2]))).collect();
        let locations: HashMap<u64, u64> = messages(&fields, 4)
            .map(|location| {
                let line = messages(&self::fields(location), 4).map(numbers_of).next().expect("a line");
                (numbers_of(location)[&1], line[&1])
            })
            .collect();
        let samples = messages(&fields, 2).map(|sample| {
            let fields = self::fields(sample);
            let packed = |field| messages(&fields, field).flat_map(varints).collect::<Vec<u64>>();
            let label = messages(&fields, 3).map(numbers_of).next().expect("a label");
            assert_eq!(text(label[&1]), "thread");
            Sample {
                thread: text(label[&2]),
                frames: packed(1).iter().map(|location| functions[&locations[location]].clone()).collect(),
                values: packed(2),
            }
        });
        Decoded { sample_types, samples: samples.collect() }
    }
}

fn messages<'m, 'a: 'm>(fields: &'m [(u64, Value<'a>)], wanted: u64) -> impl Iterator<Item = &'a [u8]> + 'm {
    fields.iter().filter_map(move |(field, value)| match value {
        Value::Bytes(bytes) if *field == wanted => Some(*bytes),
        _ => None,
    })
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            other => panic!("wire type {other} is not used"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn varints(mut bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(varint(&mut bytes));
    }
    numbers
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}
