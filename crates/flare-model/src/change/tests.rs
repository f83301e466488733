//! Documents and what revision they have, or the sentence they are refused with.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn reader(field: &str, format: Option<&str>) -> ChangeReader {
    let spec = ChangeSpec { field: field.to_owned(), format: format.map(str::to_owned) };
    spec.compile().expect("a valid spec")
}

fn read(field: &str, format: Option<&str>, body: &str) -> Result<Revision, String> {
    reader(field, format).read(body.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn integers_are_read_over_their_whole_range() {
    for (body, expected) in [
        (r#"{"v":1}"#, 1),
        (r#"{"v":0}"#, 0),
        (r#"{"v":-0}"#, 0),
        (r#" { "a" : [1,{"v":2}] , "v" : 9223372036854775807 } "#, i64::MAX),
        (r#"{"v":-9223372036854775808,"b":null}"#, i64::MIN),
        (r#"{"v":9007199254740993}"#, 9_007_199_254_740_993),
        (r#"{"\u0076":7}"#, 7),
        (r#"{"v":1,"v":{"v":3},"v":2}"#, 2),
        (r#"{"v":"x","v":4,"w":{"v":9}}"#, 4),
    ] {
        assert_eq!(read("v", None, body), Ok(Revision::Integer(expected)), "{body}");
    }
}

#[test]
fn a_dotted_path_reaches_into_objects() {
    for (body, expected) in [
        (r#"{"meta":{"version":3}}"#, Ok(Revision::Integer(3))),
        (r#"{"version":1,"meta":{"a":{"version":2},"version":3,"z":0}}"#, Ok(Revision::Integer(3))),
        (r#"{"meta":{"version":3},"meta":{"version":4}}"#, Ok(Revision::Integer(4))),
        (r#"{"meta":[1,{"version":3}],"meta":{"version":4}}"#, Ok(Revision::Integer(4))),
        (r#"{"meta":{"version":3},"meta":{}}"#, Err(())),
        (r#"{"meta":{"version":3},"meta":"none"}"#, Err(())),
        (r#"{"meta":{"version":3},"meta":1.5}"#, Err(())),
        (r#"{"meta":{"version":3},"meta":-1}"#, Err(())),
        (r#"{"meta":null}"#, Err(())),
        (r#"{"meta":[{"version":3}]}"#, Err(())),
        (r#"{"meta":true}"#, Err(())),
        (r#"{"meta.version":3}"#, Err(())),
        (r#"{}"#, Err(())),
    ] {
        let expected = expected
            .map_err(|()| "the document has no field \"meta.version\", which holds its revision".to_owned());
        assert_eq!(read("meta.version", None, body), expected, "{body}");
    }
}

#[test]
fn strings_are_dates_in_the_format_or_rfc_3339() {
    let parts = |format, body: &str| {
        read("at", format, body).map(|revision| {
            let (seconds, nanos, text) = revision.to_parts();
            (seconds, nanos, text.map(str::to_owned))
        })
    };
    for (format, text, seconds, nanos) in [
        (None, "2010-02-04T21:00:57.5-08:00", 1_265_346_057, 500_000_000),
        (Some("2006-01-02T15:04:05Z07:00"), "2010-02-04T21:00:57Z", 1_265_317_257, 0),
        (Some("02/01/2006"), "04/02/2010", 1_265_241_600, 0),
        (Some("2006"), "1970", 0, 0),
        (Some("2006年"), "1970年", 0, 0),
    ] {
        let body = json!({ "at": text }).to_string();
        assert_eq!(parts(format, &body), Ok((seconds, nanos, Some(text.to_owned()))));
    }
    let escaped = parts(Some("02/01/2006"), r#"{"at":"04\/02\u002f2010"}"#);
    assert_eq!(escaped, Ok((1_265_241_600, 0, Some("04/02/2010".to_owned()))));
}

#[test]
fn a_value_that_is_no_revision_is_named_with_field_and_format() {
    let rfc = r#"; a revision is an integer or a date in the format "RFC 3339""#;
    for (value, expected) in [
        ("1.0", "a number with a fraction or an exponent"),
        ("1e3", "a number with a fraction or an exponent"),
        ("-1E+3", "a number with a fraction or an exponent"),
        ("9223372036854775808", "an integer of more than 64 bits"),
        ("-9223372036854775809", "an integer of more than 64 bits"),
        ("99999999999999999999999", "an integer of more than 64 bits"),
        ("null", "null"),
        ("true", "a boolean"),
        ("false", "a boolean"),
        (r#"{"a":1}"#, "an object"),
        ("[1]", "a list"),
    ] {
        let error = read("a.v", None, &format!(r#"{{"a":{{"v":{value}}}}}"#)).expect_err(value);
        assert_eq!(error, format!(r#"the field "a.v" is {value}, {expected}{rfc}"#));
    }
    assert_eq!(
        read("v", Some("2006-01-02"), r#"{"v":"2010-02"}"#).expect_err("no day"),
        r#"the field "v" is "2010-02", which is no date in the format "2006-01-02": "" does not fit "-""#
    );
    for number in ["1970", "-1", "1.5", "1e3"] {
        assert_eq!(
            read("v", Some("2006-01-02"), &format!(r#"{{"v":{number}}}"#)).expect_err("a number"),
            format!(
                r#"the field "v" is {number}, a number; a revision is a date in the format "2006-01-02""#
            )
        );
    }
    assert_eq!(
        read("v", None, r#"{"v":"12"}"#).expect_err("not a date"),
        r#"the field "v" is "12", which is no date in the format "RFC 3339": "12" does not fit "year""#
    );
}

#[test]
fn long_values_are_cut_in_errors_and_refused_as_dates() {
    let long = format!(r#"{{"v":"2010-02-04T21:00:57.{}Z"}}"#, "1".repeat(1_000));
    let error = read("v", None, &long).expect_err("too long");
    assert!(error.contains("longer than 256 bytes") && error.len() < 300, "{error}");
    let list = format!(r#"{{"v":[{}1]}}"#, "1,".repeat(10_000));
    assert!(read("v", None, &list).expect_err("a list").len() < 300);
}

#[test]
fn a_body_that_is_not_one_json_object_is_refused() {
    for (body, expected) in [
        (&b""[..], r#"must be a JSON object, and begins with """#),
        (b"  ", "must be a JSON object"),
        (b"[1]", r#"begins with "[1]""#),
        (b"1", "must be a JSON object"),
        (b"\"v\"", "must be a JSON object"),
        (b"\xef\xbb\xbf{\"v\":1}", "must be a JSON object"),
        (b"{\"v\":1}{\"v\":2}", "trailing characters at line 1 column 8"),
        (b"{\"v\":1} x", "trailing characters"),
        (b"{\"v\":1", "EOF while parsing an object"),
        (b"{\"v\":1,}", "trailing comma"),
        (b"{\"v\":01}", "invalid number"),
        (b"{\"v\":1,\"a\":tru}", "expected ident"),
        (b"{\"v\":1,\"a\":[1,]}", "not valid JSON"),
        (b"{\"v\":1,\"a\":\"\x01\"}", "control character"),
        (b"{\"v\":1,\"a\":\"\xff\"}", "not UTF-8 at byte 12"),
        (b"{\"v\":1,\"\xc3\x28\":0}", "not UTF-8 at byte 8"),
    ] {
        let error = reader("v", None).read(body).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn deep_nesting_is_a_quick_error_wherever_it_is() {
    let deep = |depth: usize| format!(r#"{{"v":1,"a":{}0{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert_eq!(read("v", None, &deep(MAX_NESTING - 1)), Ok(Revision::Integer(1)));
    for body in [
        deep(MAX_NESTING),
        deep(1_000_000),
        format!("{{\"v\":{}", "[".repeat(1_000_000)),
        "{\"v\":".repeat(1_000_000),
        "{\"a\":".repeat(1_000_000),
    ] {
        for field in ["v", "v.v", "a.a.a"] {
            assert_eq!(read(field, None, &body), Err("the document is nested more than 128 deep".to_owned()));
        }
    }
}

#[test]
fn the_longest_path_is_read() {
    let field = vec!["a"; MAX_SEGMENTS].join(".");
    let body = format!("{}5{}", "{\"a\":".repeat(MAX_SEGMENTS), "}".repeat(MAX_SEGMENTS));
    assert_eq!(read(&field, None, &body), Ok(Revision::Integer(5)));
}

#[test]
fn a_header_is_read_by_the_same_rules() {
    let read = |format, text: &str| {
        let read = reader("v", format).read_revision_text(text);
        read.map(|revision| (revision.to_string(), revision.to_parts().2.is_some()))
            .map_err(|e| e.to_string())
    };
    let integer = |text: &str| Ok((text.to_owned(), false));
    let date = |text: &str| Ok((text.to_owned(), true));
    assert_eq!(read(None, "-12"), integer("-12"));
    assert_eq!(read(None, "9223372036854775807"), integer("9223372036854775807"));
    assert_eq!(read(None, "2010-02-04T21:00:57Z"), date("2010-02-04T21:00:57Z"));
    assert_eq!(read(Some("20060102"), "20100204"), date("20100204"));
    assert_eq!(
        read(Some("20060102"), "7").expect_err("no date"),
        r#"the revision is 7, a number; a revision is a date in the format "20060102""#
    );
    let too_large = read(None, "9223372036854775808").expect_err("too large");
    assert!(
        too_large.starts_with("the revision is 9223372036854775808, an integer of more than"),
        "{too_large}"
    );
    for text in ["", "-", "+1", "01", "1.0", "1e3", " 1", "\"1\"", "null"] {
        assert!(read(None, text).expect_err(text).contains("no date in the format \"RFC 3339\""));
    }
}

#[test]
fn a_new_format_is_a_whole_date_and_not_the_name_of_one() {
    let check = |format: &str| {
        let spec = ChangeSpec { field: "v".to_owned(), format: Some(format.to_owned()) };
        spec.check().map_err(|error| error.to_string())
    };
    for format in
        ["2006-01-02", "02 Jan 06 15:04 MST", "2006-002", "20060102150405", "Monday, January 2 2006"]
    {
        assert_eq!(check(format), Ok(()), "{format}");
    }
    for format in ["15:04:05", "2006", "Jan _2 15:04:05", "2006-01", "3:04PM"] {
        let error = check(format).expect_err(format);
        assert!(error.contains("is no whole date") && error.contains("2006-01-02T15:04:05Z07:00"), "{error}");
    }
    for name in ["RFC3339", "rfc3339", "time.RFC3339", "RFC 3339", "ISO8601", "ISO-8601"] {
        let error = check(name).expect_err(name);
        assert!(error.contains(r#"write the layout itself, "2006-01-02T15:04:05Z07:00""#), "{error}");
    }
    assert!(check("RFC1123Z").expect_err("a name").contains("Mon, 02 Jan 2006 15:04:05 -0700"));
}

#[test]
fn a_spec_is_checked_when_it_is_compiled() {
    let error = |field: &str, format: Option<&str>| {
        let spec = ChangeSpec { field: field.to_owned(), format: format.map(str::to_owned) };
        spec.compile().expect_err("refused").to_string()
    };
    for field in ["", ".", "a.", ".a", "a..b"] {
        assert!(error(field, None).contains("has an empty part"));
    }
    assert!(error(&vec!["a"; MAX_SEGMENTS + 1].join("."), None).contains("more than 32 parts"));
    assert!(error("v", Some("yyyy")).contains("has no part of a date"));
    assert!(error("v", Some("2006\n01")).contains("control character"));
    let reader = reader("a.b", Some("2006"));
    assert_eq!((reader.field(), reader.format()), ("a.b", Some("2006")));
}

#[test]
fn a_spec_is_json_and_unknown_keys_are_refused() {
    let parse = serde_json::from_str::<ChangeSpec>;
    let spec = parse(r#"{"field":"a","format":"2006"}"#).unwrap();
    assert_eq!(serde_json::to_string(&spec).unwrap(), r#"{"field":"a","format":"2006"}"#);
    let bare = parse(r#"{"field":"a"}"#).unwrap();
    assert_eq!(serde_json::to_string(&bare).unwrap(), r#"{"field":"a"}"#);
    assert!(parse(r#"{"field":"a","fromat":"2006"}"#).unwrap_err().to_string().contains("fromat"));
    assert!(parse(r#"{"format":"2006"}"#).unwrap_err().to_string().contains("field"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map("[a-c]|.{0,6}", inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

/// Puts the value at the path, over whatever is in its way.
fn put(document: &mut Value, path: &[String], value: Value) {
    let mut place = document;
    for key in path {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[key.as_str()];
    }
    *place = value;
}

proptest! {
    #[test]
    fn a_revision_at_any_path_is_read_back(
        mut document in any_json(),
        path in vec("[a-c]|[^.]{1,6}", 1..5),
        revision: i64,
        seconds in -62_135_596_800_000_i64..253_402_300_799_999,
        pretty: bool,
    ) {
        let field = path.join(".");
        let write = if pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
        put(&mut document, &path, revision.into());
        prop_assert_eq!(
            reader(&field, None).read(&write(&document).unwrap()).unwrap(),
            Revision::Integer(revision)
        );
        let date = crate::time::Timestamp::from_millis(seconds).to_string();
        put(&mut document, &path, date.as_str().into());
        let read = reader(&field, None).read(&write(&document).unwrap()).unwrap();
        let (whole, nanos, text) = read.to_parts();
        prop_assert_eq!(whole * 1_000 + i64::from(nanos / 1_000_000), seconds);
        prop_assert_eq!(text, Some(date.as_str()));
    }

    #[test]
    fn what_is_accepted_is_what_a_full_parser_accepts(
        document in any_json(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut body = serde_json::to_vec(&json!({ "a": document, "v": 7 })).unwrap();
        let at = at.index(body.len());
        body[at] = byte;
        let read = reader("v", None).read(&body);
        match serde_json::from_slice::<Value>(&body) {
            Ok(value) if value.is_object() => match value["v"].as_i64() {
                Some(revision) => prop_assert_eq!(read.unwrap(), Revision::Integer(revision)),
                None => prop_assert!(read.is_err()),
            },
            // A number that no float can hold is JSON all the same, and nobody asked for its value.
            Err(error) if error.to_string().contains("number out of range") => {}
            _ => prop_assert!(read.is_err()),
        }
    }

    #[test]
    fn no_bytes_panic(body: Vec<u8>, text in "\\{[\\[\\]{}\",:\\\\a-c0-9. ]*", field in "[a-c]|[a-c]\\.[a-c]") {
        let reader = reader(&field, Some("2006-01-02"));
        let _ = reader.read(&body);
        let _ = reader.read(text.as_bytes());
        let _ = reader.read_revision_text(&text);
    }
}
