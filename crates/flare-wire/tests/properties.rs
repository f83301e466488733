//! Whatever texts a request is made of, what is on the wire is one request with exactly these parts.

use bytes::Bytes;
use flare_wire::{Beginning, Method, Name, Request, Room, Value};
use proptest::collection::vec;
use proptest::prelude::*;

mod support;

/// Texts as they come, and such as somebody would try.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        "[ -~\\t\\r\\n\\x00\\x7f]{0,20}",
        Just("x\r\ncontent-length: 0\r\n\r\nGET / HTTP/1.1\r\nhost: a".to_owned()),
        Just("\r\n\r\n".to_owned()),
        Just("a\nb".to_owned()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[A-Za-z0-9_-]{1,12}", 1 => text(), 1 => Just("Transfer-Encoding".to_owned())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_is_what_it_was_made_of(
        authority in prop_oneof![4 => "[a-z0-9.:-]{1,20}", 1 => text()],
        target in text(),
        fixed in vec((name(), text()), 0..4),
        own in vec((name(), text()), 0..4),
        removed in name(),
        body in vec(any::<u8>(), 0..40),
    ) {
        let fixed: Vec<_> = fixed
            .iter()
            .filter_map(|(name, value)| Some((Name::new(name).ok()?, Value::new(value.as_bytes()).ok()?)))
            .collect();
        let Ok(beginning) = Beginning::new(Method::Put, &authority, fixed.iter().copied()) else {
            prop_assert!(!authority.bytes().all(|byte| byte.is_ascii_graphic()) || authority.is_empty());
            return Ok(());
        };
        let mut request = Request::new(Room::default(), &beginning, |text| text.push_str(&target));
        let mut expected: Vec<(String, Vec<u8>)> = vec![("host".to_owned(), authority.clone().into_bytes())];
        for (name, value) in &fixed {
            expected.push((name.as_str().to_ascii_lowercase(), value.as_bytes().to_vec()));
        }
        for (name, value) in &own {
            let Ok(name) = Name::new(name) else { continue };
            request.text(name, value);
            let kept = Value::new(value.as_bytes()).map(|value| value.as_bytes().to_vec());
            expected.push((name.as_str().to_ascii_lowercase(), kept.unwrap_or_else(|_| b"encoded".to_vec())));
        }
        if let Ok(name) = Name::new(&removed) {
            request.remove(name);
            expected.retain(|(field, _)| !field.eq_ignore_ascii_case(&removed));
        }
        expected.push(("content-length".to_owned(), body.len().to_string().into_bytes()));
        request.set_body(Bytes::from(body.clone()));
        let shown: Vec<_> = request.fields().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();

        let wire = support::bytes_of(request);
        let mut room = [httparse::EMPTY_HEADER; 20];
        let mut parsed = httparse::Request::new(&mut room);
        let httparse::Status::Complete(long) = parsed.parse(&wire).unwrap() else { panic!("not whole") };
        prop_assert_eq!(&wire[long..], &body[..]);
        prop_assert_eq!((parsed.method, parsed.version), (Some("PUT"), Some(1)));
        prop_assert!(parsed.path.unwrap().starts_with('/'));
        prop_assert_eq!(parsed.headers.len(), expected.len());
        prop_assert_eq!(shown.len(), expected.len() - 1);
        for (header, (name, value)) in parsed.headers.iter().zip(&expected) {
            prop_assert_eq!(header.name, name);
            // A reader takes the blanks around a value off.
            let encoded = value == b"encoded" && header.value.contains(&b'%');
            prop_assert!(encoded || header.value == trimmed(value), "{:?} {:?}", header, value);
        }
    }
}

fn trimmed(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}
