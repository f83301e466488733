//! Whatever bytes come in as an expression, and whatever document it meets: it is refused with a place, or evaluated
//! within its bounds. Up to the first zero byte is the expression, the rest the document; where that is no JSON, one
//! of our own is used.

#![no_main]

use bytes::Bytes;
use flare_model::feed::Action;
use flare_model::filter::{Filter, Inputs, Json, MAX_SOURCE, Purpose};
use flare_model::revision::Revision;
use libfuzzer_sys::fuzz_target;

const DOCUMENT: &[u8] = br#"{"quantity":7,"price":12.5,"huge":18446744073709551615,"name":"Aarau \"West\"","active":true,
"nothing":null,"tags":["a","b",3],"empty":[],"seller":{"country":"CH","rating":{"stars":4}},
"updatedAt":"2024-05-06T07:08:09.5Z","a":{"a":{"a":[[[[1]]]]}},"small":-9223372036854775808}"#;

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let Ok(source) = std::str::from_utf8(&data[..end]) else { return };
    let given = data.get(end + 1..).and_then(|rest| Json::new(Bytes::copy_from_slice(rest)).ok());
    let document = given.unwrap_or_else(|| Json::new(Bytes::from_static(DOCUMENT)).expect("it is JSON"));
    for (purpose, action) in [(Purpose::Membership, None), (Purpose::Telling, Some(Action::Update))] {
        match Filter::compile(source, purpose, None) {
            Ok(filter) => {
                assert!(source.len() <= MAX_SOURCE);
                let inputs = Inputs {
                    document: &document,
                    revision: &Revision::Integer(41),
                    wildcards: &[("id", "1")],
                    action,
                    state: Some(&document),
                };
                let once = filter.decide(&inputs);
                assert_eq!(once, filter.decide(&inputs), "the same every time");
            }
            Err(mistake) => assert!(mistake.position.offset <= source.len()),
        }
    }
});
