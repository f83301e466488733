//! What others' readers of CEL, RE2 and JSON agree on, in cases of our own.

use bytes::Bytes;
use proptest::prelude::*;

use super::{EvaluationError, Filter, Inputs, Json, Purpose, read};
use crate::revision::Revision;

fn decide(source: &str, document: &str) -> Result<bool, EvaluationError> {
    let filter = Filter::compile(source, Purpose::Membership, None);
    let filter = filter.unwrap_or_else(|mistake| panic!("{source}: {mistake}"));
    let document = Json::new(Bytes::copy_from_slice(document.as_bytes())).expect("it is JSON");
    filter.decide(&Inputs {
        document: &document,
        revision: &Revision::Integer(1),
        wildcards: &[],
        action: None,
        state: None,
    })
}

fn matches(pattern: &str, text: &str) -> bool {
    let pattern = serde_json::to_string(pattern).unwrap();
    let document = serde_json::json!({"text": text}).to_string();
    decide(&format!("document.text.matches({pattern})"), &document).unwrap()
}

#[test]
fn a_pattern_is_read_as_re2_reads_it() {
    for (pattern, text, expected) in [
        // Classes by letter are ASCII.
        (r"^\w+$", "Grusse_9", true),
        (r"^\w+$", "Grüße", false),
        (r"^\W$", "ü", true),
        (r"^\d$", "٣", false),
        (r"^\D$", "٣", true),
        (r"^\s$", "\u{a0}", false),
        (r"^\s$", "\u{b}", false),
        (r"^\S$", "\u{2003}", true),
        (r"^[\d\s]+$", "1 2", true),
        (r"^[^\d]$", "٣", true),
        (r"^[\D]$", "٣", true),
        (r"(?i)^\w$", "K", true),
        // So is the boundary of a word.
        (r"\bb", "äb", true),
        (r"a\b", "aä", true),
        (r"a\Bb", "ab", true),
        (r"ä\Bä", "ää", true),
        // A class has no operators, and no classes inside it but by name.
        ("^[a&&b]$", "&", true),
        ("^[a&&b]$", "a", true),
        ("^[+--]$", ",", true),
        ("^[a~~b]$", "~", true),
        ("^[[a]$", "[", true),
        ("^[a[b]c]$", "bc]", true),
        ("^[]a]$", "]", true),
        ("^[^]a]$", "]", false),
        ("^[a-]$", "-", true),
        (r"^[\d-z]$", "-", true),
        ("^[[:alpha:]_]+$", "a_b", true),
        ("^[[:^alpha:]]$", "ä", true),
        ("^[[:word:]]$", "_", true),
        // Quoted, octal, hexadecimal.
        (r"^\Qa.b(\E$", "a.b(", true),
        (r"^\Qa.b\E$", "axb", false),
        (r"^\Qab\E+$", "abbb", true),
        (r"^\Q*", "*", true),
        (r"^\101\60$", "A0", true),
        (r"^\x41\x{42}$", "AB", true),
        (r"^\0$", "\0", true),
        (r"^\_\ \<\-$", "_ <-", true),
        (r"^[\-\]\\]$", "\\", true),
        (r"^\a\f\t\n\r\v$", "\x07\x0c\t\n\r\x0b", true),
        // A brace that begins no repetition is a character.
        ("^a{,2}$", "a{,2}", true),
        ("^a{$", "a{", true),
        ("^a{x}$", "a{x}", true),
        ("^a{2,3}?$", "aaa", true),
        (r"^\b{start}", "{start}", false),
        // Flags and groups.
        ("(?ii)^A$", "a", true),
        ("(?i-i)^A$", "a", false),
        ("(?s).", "\n", true),
        (".", "\n", false),
        ("(?m)^b$", "a\nb\nc", true),
        ("^b$", "a\nb\nc", false),
        ("a(?i)B|C", "c", true),
        ("^a(?i)*B$", "aab", true),
        ("^(?P<year>[0-9]+)-(?<month>[0-9]+)$", "2026-01", true),
        ("(?U)^a+?$", "aa", true),
        // Classes of Unicode are what they were.
        (r"^\pL\p{Greek}\P{L}\p{^L}$", "äα1-", true),
        ("^ä.$", "ää", true),
        ("(?i)Ä", "ä", true),
        ("# x", "# x", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} on {text:?}");
    }
}

#[test]
fn a_pattern_that_re2_refuses_is_refused() {
    for (pattern, part) in [
        ("a**", "repeats a repetition"),
        ("a{2}{3}", "repeats a repetition"),
        ("*a", "nothing to repeat"),
        ("a|*", "nothing to repeat"),
        ("(+)", "nothing to repeat"),
        ("a{1001}", "at most 1000"),
        ("a{3,2}", "no repetition"),
        (r"(a)\1", "refer to a group"),
        (r"\Z", "no escape"),
        (r"\C", "no escape"),
        (r"\u0041", "no escape"),
        (r"\E", "no escape"),
        (r"\", "ends with"),
        (r"\xZZ", "hexadecimal"),
        (r"\x{110000}", "hexadecimal"),
        (r"\x{d800}", "hexadecimal"),
        ("[b-a]", "before its beginning"),
        ("[a", "never ends"),
        ("[]", "never ends"),
        (r"[a-\d]", "no escape"),
        ("[[:foo:]]", "no class"),
        (r"\p{sc=Greek}", "no class"),
        ("(?x)a", "no `(?x`"),
        ("(?=a)", "no `(?=`"),
        ("(?i", "never ends"),
        ("(?-)", "no `(?)`"),
        ("(?<a>b)(?P<a>c)", "two groups"),
        ("(", "unclosed group"),
        (")", "unopened group"),
    ] {
        let source = format!("document.text.matches({})", serde_json::to_string(pattern).unwrap());
        let mistake = Filter::compile(&source, Purpose::Membership, None).expect_err(pattern);
        assert!(mistake.problem.contains(part), "{pattern}: {mistake}");
    }
}

#[test]
fn dates_and_durations_have_a_text() {
    for source in [
        "string(timestamp('2024-05-06T09:08:09.50+02:00')) == '2024-05-06T07:08:09.5Z'",
        "string(timestamp('0001-01-01T00:00:00Z')) == '0001-01-01T00:00:00Z'",
        "string(timestamp(-1)) == '1969-12-31T23:59:59Z'",
        "string(timestamp('1969-12-31T23:59:59.000000001Z')) == '1969-12-31T23:59:59.000000001Z'",
        "string(duration('1h')) == '3600s' && string(duration('0')) == '0s'",
        "string(duration('-1.5s')) == '-1.5s' && string(duration('-1ms')) == '-0.001s'",
        "string(timestamp(document.at) - timestamp(0)) == '1.000001s'",
        "timestamp(string(timestamp(document.at))) == timestamp(document.at)",
    ] {
        assert_eq!(decide(source, r#"{"at": "1970-01-01T00:00:01.000001Z"}"#), Ok(true), "{source}");
    }
}

#[test]
fn only_a_value_that_is_asked_for_fails() {
    let document = r#"{"large": 1e400, "half": "\ud800 x", "\udc00": 1, "": 2, "price": 3, "small": 1e-400,
        "deep": {"list": [1, -1e400, "b"]}, "whole": "\ud83d\ude00", "late": 4}"#;
    for (source, expected) in [
        ("document.price == 3 && document.late == 4 && document[''] == 2", Ok(true)),
        ("document.small == 0.0 && size(document.whole) == 1 && document.whole == '😀'", Ok(true)),
        ("has(document.large) && has(document.half) && !has(document.more)", Ok(true)),
        ("size(document) == 9 && size(document.deep.list) == 3", Ok(true)),
        ("document.deep.list[2] == 'b' && 'b' in document.deep.list", Ok(true)),
        ("'large' in document && !('other' in document)", Ok(true)),
        ("document.large > 1.0", Err("a number is too large")),
        ("document.half == 'x'", Err("a string has half a surrogate pair")),
        ("document.deep.list[1] < 0", Err("a number is too large")),
        ("'c' in document.deep.list", Err("a number is too large")),
        ("document.deep == document.deep", Err("a number is too large")),
        ("document == document", Err("a string has half")),
        ("document.large > 1.0 || document.price == 3", Ok(true)),
    ] {
        match (decide(source, document), expected) {
            (Ok(result), Ok(expected)) => assert_eq!(result, expected, "{source}"),
            (Err(error), Err(part)) => assert!(error.0.contains(part), "{source}: {error}"),
            (result, _) => panic!("{source}: {result:?}"),
        }
    }
}

#[test]
fn minus_zero_is_an_integer_and_a_doubled_key_counts_once() {
    let document = r#"{"zero": -0, "double": -0.0, "a": 1, "a": 2, "inner": {"b": 1, "\u0062": 2}}"#;
    for source in [
        "type(document.zero) == int && document.zero == 0 && type(document.double) == double",
        "size(document) == 4 && size(document.inner) == 1",
    ] {
        assert_eq!(decide(source, document), Ok(true), "{source}");
    }
}

#[test]
fn nothing_is_ordered_with_what_is_not_a_number() {
    for source in [
        "!(double('NaN') < 1.0) && !(double('NaN') >= 1) && !(1 <= double('NaN')) && !(1u > double('NaN'))",
        "!(double('NaN') <= double('NaN')) && double('NaN') != double('NaN')",
        "!(document.zero / 0.0 > 0.0)",
    ] {
        assert_eq!(decide(source, r#"{"zero": 0}"#), Ok(true), "{source}");
    }
}

/// Texts that are JSON, or nearly.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"\\u0041\"",
        "\"\\ud83d\\ude00\"",
        "1",
        "-",
        "0",
        ".5",
        "e9",
        "-0",
        "1.5e-3",
        "true",
        "false",
        "null",
        " ",
        "\n",
        "\\",
        "\\n",
        "{\"a\":1}",
        "[1,2]",
        "\"ä\"",
        "tru",
        "01",
        "\t",
        "18446744073709551615",
        "99999999999999999999",
        "{\"a\":",
        "\"b\":",
        "[]",
        "{}",
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// But for what makes serde refuse a whole document for one value, both agree on what JSON is.
    #[test]
    fn json_is_what_it_is_elsewhere(text in prop_oneof![nearly_json(), any::<String>()]) {
        let here = read::read(&text).is_ok();
        let there = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(here, there, "{}", text);
    }

    #[test]
    fn values_are_what_they_are_elsewhere(
        number in any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()),
        whole in any::<i64>(),
        text in any::<String>(),
    ) {
        let document = serde_json::json!({"number": number, "whole": whole, "text": text, "list": [text]});
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let document = document.to_string().replacen('{', &format!("{{\"escaped\":\"{escaped}\","), 1);
        let same = "document.escaped == document.text && document.list == [document.text]";
        prop_assert_eq!(decide(same, &document), Ok(true), "{}", &document);
        let numbers = format!("document.whole == {whole} && document.number == double('{number:?}')");
        prop_assert_eq!(decide(&numbers, &document), Ok(true), "{}", &document);
    }
}
