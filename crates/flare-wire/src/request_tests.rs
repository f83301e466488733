//! What a request looks like on the wire, and what it cannot look like.

use bytes::Bytes;

use super::*;

const OWN: Name<'static> = Name::fixed("x-own");

fn beginning(method: Method) -> Beginning {
    let value = |text: &'static str| Value::new(text.as_bytes()).unwrap();
    let fields = [(Name::fixed("User-Agent"), value("Flare/1")), (OWN, value("one")), (OWN, value("two"))];
    Beginning::new(method, "example.com:81", fields).unwrap()
}

fn written(request: Request) -> String {
    let (first, second) = request.finish();
    String::from_utf8([first.bytes(), &second].concat()).unwrap()
}

#[test]
fn a_request_is_its_line_its_fields_in_order_and_its_body() {
    let mut request =
        Request::new(Room::default(), &beginning(Method::Post), |target| target.push_str("/a/b?c=d"));
    request.number(Name::fixed("flare-sequence"), 42u64);
    request.compose(Name::fixed("webhook-signature"), |value| {
        value.push("v1,");
        value.push("abc=");
    });
    request.set_body(Bytes::from_static(b"{}"));
    assert_eq!(
        (request.method(), request.target(), &request.body()[..]),
        (Method::Post, "/a/b?c=d", &b"{}"[..])
    );
    let fields: Vec<_> =
        request.fields().map(|(name, value)| (name, std::str::from_utf8(value).unwrap())).collect();
    let expected = [
        ("host", "example.com:81"),
        ("user-agent", "Flare/1"),
        ("x-own", "one"),
        ("x-own", "two"),
        ("flare-sequence", "42"),
        ("webhook-signature", "v1,abc="),
    ];
    assert_eq!(fields, expected);
    assert_eq!(request.get("x-own"), Some(&b"one"[..]));
    assert_eq!(
        written(request),
        "POST /a/b?c=d HTTP/1.1\r\nhost: example.com:81\r\nuser-agent: Flare/1\r\nx-own: one\r\nx-own: two\r\n\
         flare-sequence: 42\r\nwebhook-signature: v1,abc=\r\ncontent-length: 2\r\n\r\n{}"
    );
}

#[test]
fn lines_that_were_written_before_are_as_harmless_as_others() {
    let lines = Lines::of_texts([(Name::new("X-One").unwrap(), "1"), (OWN, "a\r\nhost: b")]);
    let mut request = Request::new(Room::default(), &beginning(Method::Get), |target| target.push('/'));
    request.lines(&lines);
    let fields: Vec<_> = request.fields().skip(4).collect();
    assert_eq!(fields, [("x-one", &b"1"[..]), ("x-own", b"a%0D%0Ahost: b")]);
}

#[test]
fn where_a_body_is_usual_its_absence_is_said() {
    for (method, said) in [
        (Method::Get, false),
        (Method::Post, true),
        (Method::Put, true),
        (Method::Patch, true),
        (Method::Delete, false),
    ] {
        let text = written(Request::new(Room::default(), &beginning(method), |target| target.push('/')));
        assert_eq!(text.contains("content-length: 0\r\n"), said, "{text}");
        assert_eq!(Method::named(method.as_str()), Some(method));
    }
    assert_eq!(Method::named("HEAD"), None);
}

#[test]
fn a_large_body_is_not_copied() {
    for (size, copied) in [(COPIED_BODY, true), (COPIED_BODY + 1, false)] {
        let body = Bytes::from(vec![b'x'; size]);
        let mut request = Request::new(Room::default(), &beginning(Method::Put), |target| target.push('/'));
        request.set_body(body.clone());
        let (first, second) = request.finish();
        assert_eq!(first.bytes().ends_with(b"\r\n\r\n"), !copied);
        assert_eq!(second.is_empty(), copied);
        assert!(copied || second.as_ptr() == body.as_ptr());
    }
}

#[test]
fn a_field_can_be_taken_out_again() {
    let mut request =
        Request::new(Room::default(), &beginning(Method::Get), |target| target.push_str("/x-own:"));
    request.text(Name::fixed("x-owner"), "x-own: three");
    request.text(Name::fixed("x"), "");
    request.remove(Name::new("X-Own").unwrap());
    request.remove(Name::fixed("x-own-and-much-longer-than-any-of-the-lines-that-are-there"));
    let fields: Vec<_> = request.fields().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(fields, ["host", "user-agent", "x-owner", "x"]);
    assert_eq!(request.target(), "/x-own:");
}

#[test]
fn text_that_would_end_a_line_is_encoded() {
    let mut request = Request::new(Room::default(), &beginning(Method::Get), |target| {
        target.push_str("no slash\r\nx: y#f/é%20")
    });
    assert_eq!(request.target(), "/no%20slash%0D%0Ax:%20y%23f/%C3%A9%20");
    request.text(OWN, "tab\tand é stay");
    request.text(OWN, "a\r\nhost: é\0\t%");
    let values: Vec<_> =
        request.fields().skip(4).map(|(_, value)| std::str::from_utf8(value).unwrap()).collect();
    assert_eq!(values, ["tab\tand é stay", "a%0D%0Ahost: %C3%A9%00%09%"]);
}

#[test]
fn a_host_is_visible_ascii() {
    for bad in ["", "a b", "a\r\nx: y", "é", "a\t"] {
        assert_eq!(Beginning::new(Method::Get, bad, []).err(), Some(BadField::Authority), "{bad:?}");
    }
}
