//! What is the same url, what is refused and with which words, and that no input panics.

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> String {
    DocumentUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

fn refused(text: &str) -> UrlError {
    DocumentUrl::parse(text).expect_err(text)
}

#[test]
fn spellings_of_the_same_url_are_the_same_document() {
    for (given, expected) in [
        ("http://api.company.com/users/1", "http://api.company.com/users/1"),
        ("HTTP://API.Company.COM/Users/1/", "http://api.company.com/Users/1"),
        ("http://api.company.com:80/users/1", "http://api.company.com/users/1"),
        ("https://api.company.com:443/users/1", "https://api.company.com/users/1"),
        ("https://api.company.com:80/users/1", "https://api.company.com:80/users/1"),
        ("http://api.company.com:08080", "http://api.company.com:8080"),
        ("http://api.company.com/", "http://api.company.com"),
        ("http://h/a%2fb", "http://h/a%2Fb"),
        ("http://h/%7euser/%61", "http://h/~user/a"),
        ("http://h/caf\u{e9}", "http://h/caf%C3%A9"),
        ("http://h/a|b", "http://h/a%7Cb"),
        ("http://h/a:b@c;d=e,f+g&h", "http://h/a:b@c;d=e,f+g&h"),
        ("http://[0:0:0:0:0:0:0:1]:8080/x", "http://[::1]:8080/x"),
        ("http://a_b.local/x", "http://a_b.local/x"),
        ("http://M\u{dc}NCHEN.de:8080/x", "http://xn--mnchen-3ya.de:8080/x"),
        ("http://mu\u{308}nchen.de/x", "http://xn--mnchen-3ya.de/x"),
        ("http://m%C3%BCnchen.de/x", "http://xn--mnchen-3ya.de/x"),
        ("http://\u{4f8b}\u{3048}.\u{30c6}\u{30b9}\u{30c8}/x", "http://xn--r8jz45g.xn--zckzah/x"),
        ("http://h/...", "http://h/..."),
        ("http://h/%2525", "http://h/%2525"),
    ] {
        assert_eq!(parsed(given), expected, "{given}");
    }
}

#[test]
fn the_parts_of_a_url_can_be_asked_for() {
    let url = DocumentUrl::parse("https://api.company.com:8443/users/a%2Fb").unwrap();
    assert_eq!(url.scheme(), Scheme::Https);
    assert_eq!(url.authority(), "api.company.com:8443");
    assert_eq!(url.origin(), "https://api.company.com:8443");
    assert_eq!(url.path(), "/users/a%2Fb");
    assert_eq!(url.segments().collect::<Vec<_>>(), ["users", "a%2Fb"]);
    assert_eq!(DocumentUrl::parse("http://h").unwrap().segments().count(), 0);
}

#[test]
fn every_violation_is_named() {
    let host = |host: &str| UrlError::Host { host: host.into() };
    let port = |port: &str| UrlError::Port { port: port.into() };
    let dots = |segment: &str| UrlError::DotSegment { segment: segment.into() };
    for (given, expected) in [
        ("", UrlError::Scheme),
        ("/users/1", UrlError::Scheme),
        ("ftp://h/x", UrlError::Scheme),
        (" http://h/x", UrlError::Scheme),
        ("http:/h/x", UrlError::Scheme),
        ("http://user:secret@h/x", UrlError::UserInfo),
        ("http:///x", UrlError::EmptyHost),
        ("http://:80/x", UrlError::EmptyHost),
        ("http://a\u{ad}\u{2028}b.de/x", UrlError::NonAsciiHost { host: "a\u{ad}\u{2028}b.de".into() }),
        ("http://a\u{ff0f}b/x", host("a/b")),
        ("http://a..b/x", host("a..b")),
        ("http://a%20b/x", host("a%20b")),
        ("http://{host}/x", host("{host}")),
        ("http://[::1/x", host("[")),
        ("http://[fe80::1%25eth0]/x", host("[fe80::1%25eth0]")),
        ("http://h:0/x", port("0")),
        ("http://h:/x", port("")),
        ("http://h:+80/x", port("+80")),
        ("http://h:65536/x", port("65536")),
        ("http://h:80:80/x", port("80:80")),
        ("http://h/x?a=1", UrlError::Query),
        ("http://h?", UrlError::Query),
        ("http://h/x#?a", UrlError::Fragment),
        ("http://h/a/../b", dots("..")),
        ("http://h/a/.", dots(".")),
        ("http://h/%2e./b", dots("%2e.")),
        ("http://h/%2E/b", dots("%2E")),
        ("http://h//b", UrlError::EmptySegment),
        ("http://h/a//", UrlError::EmptySegment),
        ("http://h//", UrlError::EmptySegment),
        ("http://h/a b", UrlError::Blank),
        ("http://h h/a", UrlError::Blank),
        ("http://h/a\nb", UrlError::Control),
        ("http://h\t/a", UrlError::Control),
        ("http://h/100%", UrlError::Escape { escape: "%".into() }),
        ("http://h/%zz1", UrlError::Escape { escape: "%zz".into() }),
        ("http://h/users/{id}", UrlError::Brace),
    ] {
        assert_eq!(refused(given), expected, "{given:?}");
    }
}

#[test]
fn length_and_segments_are_capped() {
    let segments = |n: usize| format!("http://h{}", "/a".repeat(n));
    assert!(DocumentUrl::parse(&segments(MAX_SEGMENTS)).is_ok());
    assert_eq!(refused(&segments(MAX_SEGMENTS + 1)), UrlError::TooManySegments);
    assert!(DocumentUrl::parse(&format!("http://h/{}", "a".repeat(MAX_URL_LENGTH - 9))).is_ok());
    assert_eq!(refused(&format!("http://h/{}", "a".repeat(MAX_URL_LENGTH - 8))), UrlError::TooLong);
    // Short as written, too long once its characters are percent-encoded.
    assert_eq!(refused(&format!("http://h/{}", "\u{e9}".repeat(MAX_URL_LENGTH / 4))), UrlError::TooLong);
}

#[test]
fn a_request_path_may_be_raw_encoded_or_folded() {
    for (given, expected) in [
        ("http://api.company.com/users/1", "http://api.company.com/users/1"),
        ("http:/api.company.com/users/1", "http://api.company.com/users/1"),
        ("HTTPS:/api.company.com/users/1", "https://api.company.com/users/1"),
        ("http%3A%2F%2Fapi.company.com%2Fusers%2F1", "http://api.company.com/users/1"),
        ("http%3a%2f%2fapi.company.com%3a8080%2fusers%2f1", "http://api.company.com:8080/users/1"),
        ("http%3A//api.company.com/users/1", "http://api.company.com/users/1"),
        ("http%3A/api.company.com/users/1", "http://api.company.com/users/1"),
        ("http:%2F%2Fapi.company.com%2Fusers%2F1", "http://api.company.com/users/1"),
        ("http://h/a%2Fb", "http://h/a%2Fb"),
        ("http%3A%2F%2Fh%2Fa%252Fb", "http://h/a%2Fb"),
        ("http%3A%2F%2Fh%2Fa%2Fb", "http://h/a/b"),
        ("http%3A%2F%2Fh%2Fcaf%C3%A9", "http://h/caf%C3%A9"),
    ] {
        assert_eq!(DocumentUrl::from_request_path(given).unwrap().as_str(), expected, "{given}");
    }
    for (given, expected) in [
        ("users/1", UrlError::Scheme),
        ("", UrlError::Scheme),
        ("http%3A%2F%2Fh%2Fa%3Fb", UrlError::Query),
        ("http%3A%2F%2Fh%2F%FF", UrlError::NotUtf8),
        ("http%3A%2F%2Fh%2Fa%20b", UrlError::Blank),
        ("http%3A%2F%2Fh%2F%252e%252e", UrlError::DotSegment { segment: "%2e%2e".into() }),
        ("http%3A%2F%2Fh%2", UrlError::Escape { escape: "%2".into() }),
    ] {
        assert_eq!(DocumentUrl::from_request_path(given).unwrap_err(), expected, "{given}");
    }
}

#[test]
fn a_segment_that_is_no_text_stays_encoded() {
    assert_eq!(decode_segment("a%20b"), "a b");
    assert_eq!(decode_segment("plain"), "plain");
    assert_eq!(decode_segment("%FF%20"), "%FF%20");
}

#[test]
fn a_url_travels_as_a_json_string_and_is_checked_on_arrival() {
    let url: DocumentUrl = serde_json::from_str("\"HTTP://h/a/\"").unwrap();
    assert_eq!(serde_json::to_string(&url).unwrap(), "\"http://h/a\"");
    assert!(serde_json::from_str::<DocumentUrl>("\"h/a\"").is_err());
}

/// Encodes everything but letters and digits, as `encodeURIComponent` and its like do at most.
fn encode_whole(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(text in ".*", tail in "[\\PC%/{}. ]{0,40}") {
        let _ = DocumentUrl::parse(&text);
        let _ = DocumentUrl::parse(&format!("http://{tail}"));
        let _ = DocumentUrl::from_request_path(&text);
        let _ = DocumentUrl::from_request_path(&format!("http%3A{tail}"));
    }

    #[test]
    fn normalising_twice_changes_nothing_and_leaves_printable_ascii(path in "(/[\\PC%]{0,8}(%[0-9a-fA-F]{2})?){0,5}") {
        if let Ok(url) = DocumentUrl::parse(&format!("http://h{path}")) {
            prop_assert_eq!(&DocumentUrl::parse(url.as_str()).unwrap(), &url);
            prop_assert!(url.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
            let structural = url.as_str().contains(['?', '#', '{', '}']);
            prop_assert!(!structural);
        }
    }

    #[test]
    fn the_three_forms_of_a_request_path_agree(
        origin in "https?://[a-z]{1,5}(:[1-9][0-9]{1,3})?", path in "(/[a-z%:@.]{0,6}(%[0-9A-F]{2})?){0,4}",
    ) {
        let raw = format!("{origin}{path}");
        let expected = DocumentUrl::parse(&raw);
        prop_assert_eq!(&DocumentUrl::from_request_path(&raw), &expected);
        prop_assert_eq!(&DocumentUrl::from_request_path(&raw.replacen("//", "/", 1)), &expected);
        prop_assert_eq!(&DocumentUrl::from_request_path(&encode_whole(&raw)), &expected);
    }
}
