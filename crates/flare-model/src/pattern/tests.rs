//! Which endpoints are the same, which are refused and with which words, and what their wildcards catch.

use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn url(text: &str) -> DocumentUrl {
    DocumentUrl::parse(text).unwrap()
}

#[test]
fn an_endpoint_is_shown_normalised() {
    for (given, expected) in [
        ("http://api.company.com/users/{id}", "http://api.company.com/users/{id}"),
        ("HTTP://API.company.com:80/users/{ id }/", "http://api.company.com/users/{id}"),
        ("https://h:8443/{*}/{\u{e9}t\u{e9}}", "https://h:8443/{*}/{\u{e9}t\u{e9}}"),
        ("http://h/{user id}", "http://h/{user id}"),
        ("http://h/{a?}/{#}/{:}/{a:b@c}", "http://h/{a?}/{#}/{:}/{a:b@c}"),
        ("http://h/%7eusers/a%2fb/{Revision}", "http://h/~users/a%2Fb/{Revision}"),
        ("http://h/*/a:b/{id}", "http://h/*/a:b/{id}"),
    ] {
        assert_eq!(pattern(given).normalised(), expected, "{given}");
        assert_eq!(pattern(expected).normalised(), expected, "{given}");
    }
    assert_eq!(pattern("http://h/{ user id }/x/{b}").wildcards(), ["user id", "b"]);
}

#[test]
fn the_shape_leaves_the_names_out() {
    assert_eq!(pattern("http://h:8080/users/{id}/{x}").shape(), "http://h:8080/users/{}/{}");
    assert_eq!(pattern("http://h/{a}/b").shape(), pattern("http://H:80/{c}/b/").shape());
    assert_ne!(pattern("http://h/{a}/b").shape(), pattern("https://h/{a}/b").shape());
}

#[test]
fn every_violation_is_named() {
    let partial = |segment: &str| PatternError::PartOfSegment { segment: segment.into() };
    let unbalanced = |segment: &str| PatternError::Unbalanced { segment: segment.into() };
    let dots = |segment: &str| PatternError::Url(UrlError::DotSegment { segment: segment.into() });
    for (given, expected) in [
        ("", UrlError::Scheme.into()),
        ("/users/{id}", UrlError::Scheme.into()),
        ("ftp://h/{id}", UrlError::Scheme.into()),
        ("http:///{id}", UrlError::EmptyHost.into()),
        ("http://u:p@h/{id}", UrlError::UserInfo.into()),
        ("http://h:x/{id}", UrlError::Port { port: "x".into() }.into()),
        ("http://h/{id}?a=1", UrlError::Query.into()),
        ("http://h/{id}?a={b}", UrlError::Query.into()),
        ("http://h?{id}", UrlError::Query.into()),
        ("http://h/{id}#a", UrlError::Fragment.into()),
        ("http://h#{id}", UrlError::Fragment.into()),
        ("http://h/../{id}", dots("..")),
        ("http://h/%2e/{id}", dots("%2e")),
        ("http://h//{id}", UrlError::EmptySegment.into()),
        ("http://h/{id}//", UrlError::EmptySegment.into()),
        ("http://h/a b/{id}", UrlError::Blank.into()),
        ("http://h", PatternError::NoWildcard),
        ("http://h/users/", PatternError::NoWildcard),
        ("http://{host}/users/{id}", PatternError::WildcardInHost),
        ("http://h:{port}/users/{id}", PatternError::WildcardInHost),
        ("http://h/{}", PatternError::EmptyName),
        ("http://h/{  }", PatternError::EmptyName),
        ("http://h/{revision}", PatternError::ReservedName),
        ("http://h/{ revision }", PatternError::ReservedName),
        ("http://h/{id}/{ id }", PatternError::DuplicateName { name: "id".into() }),
        ("http://h/{a\u{7}b}", PatternError::ControlInName),
        ("http://h/a{b}", partial("a{b}")),
        ("http://h/{a}b", partial("{a}b")),
        ("http://h/{a}{b}", partial("{a}{b}")),
        ("http://h/{{a}}", partial("{{a}}")),
        ("http://h/{a", unbalanced("{a")),
        ("http://h/a}", unbalanced("a}")),
        ("http://h/{a/b}", unbalanced("{a")),
    ] {
        assert_eq!(Pattern::parse(given).expect_err(given), expected, "{given}");
    }
    let many = format!("http://h/{{id}}{}", "/a".repeat(MAX_SEGMENTS));
    assert_eq!(Pattern::parse(&many).unwrap_err(), UrlError::TooManySegments.into());
}

#[test]
fn messages_show_braces_as_users_write_them() {
    assert!(PatternError::NoWildcard.to_string().contains("`{id}`"));
    let duplicate = PatternError::DuplicateName { name: "id".into() };
    assert!(duplicate.to_string().contains("the wildcard `{id}` more than once"));
}

#[test]
fn wildcards_catch_raw_segments_by_position() {
    let users = pattern("http://h/users/{id}/posts/{post}");
    assert_eq!(users.values(&url("http://h/users/a%2Fb/posts/7")), Some(vec!["a%2Fb", "7"]));
    assert_eq!(users.values(&url("http://h/users/1/likes/7")), None);
    assert_eq!(users.values(&url("http://h/users/1/posts")), None);
    assert_eq!(users.values(&url("http://h/users/1/posts/7/x")), None);
    assert_eq!(users.values(&url("https://h/users/1/posts/7")), None);
    assert_eq!(users.values(&url("http://h:81/users/1/posts/7")), None);
}

#[test]
fn a_more_specific_pattern_captures_what_it_overlaps() {
    let general = pattern("http://h/users/{id}/{x}");
    let me = pattern("http://h/users/me/{x}");
    let posts = pattern("http://h/users/{id}/posts");
    assert!(me.captures(&general) && !general.captures(&me));
    assert!(posts.captures(&general) && !general.captures(&posts));
    // Of two that overlap crosswise, the leftmost literal decides.
    assert!(me.captures(&posts) && !posts.captures(&me));
    assert!(!general.captures(&general));
    let likes = pattern("http://h/users/{id}/likes");
    assert!(!posts.overlaps(&likes) && !posts.captures(&likes));
    assert!(!pattern("https://h/users/me/{x}").captures(&general));
    assert!(!pattern("http://h/users/me/{x}/{y}").captures(&general));
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(text in ".*", tail in "[\\PC%/{}.?# ]{0,40}") {
        let _ = Pattern::parse(&text);
        let _ = Pattern::parse(&format!("http://h/{tail}"));
    }

    #[test]
    fn any_name_without_braces_and_slashes_is_legal(name in "[^{}/\\p{Cc}]{1,12}") {
        prop_assume!(!name.trim().is_empty() && name.trim() != REVISION);
        let parsed = Pattern::parse(&format!("http://h/a/{{ {name}\u{20}}}")).unwrap();
        prop_assert_eq!(parsed.wildcards(), [name.trim()]);
        prop_assert_eq!(&Pattern::parse(parsed.normalised()).unwrap(), &parsed);
        let document = url("http://h/a/1");
        prop_assert_eq!(parsed.values(&document), Some(vec!["1"]));
    }
}

#[test]
fn as_many_wildcards_as_are_allowed_can_be_routed() {
    let of =
        |count: usize| format!("http://h{}", (0..count).map(|n| format!("/{{w{n}}}")).collect::<String>());
    let most = Pattern::parse(&of(MAX_WILDCARDS)).unwrap();
    let mut router = crate::router::Router::default();
    assert!(router.insert(&most, "most").is_ok(), "the router takes it");
    assert_eq!(Pattern::parse(&of(MAX_WILDCARDS + 1)), Err(PatternError::TooManyWildcards));
}
