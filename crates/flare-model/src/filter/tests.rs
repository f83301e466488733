//! Expressions against documents: results, mistakes with their places, and that nothing hostile gets through.

use bytes::Bytes;
use proptest::prelude::*;

use super::{EvaluationError, Filter, Inputs, Json, MAX_NESTING, MAX_SOURCE, MAX_VALUES, Purpose};
use crate::feed::Action;
use crate::revision::Revision;

const DOCUMENT: &str = r#"{
    "quantity": 7, "price": 12.5, "whole": 10.0, "huge": 18446744073709551615, "name": "Aarau \"West\"",
    "active": true, "nothing": null, "tags": ["a", "b", 3], "empty": [],
    "seller": {"country": "CH", "rating": {"stars": 4}}, "twice": 1, "twice": 2,
    "updatedAt": "2024-05-06T07:08:09.5Z", "odd key": 1
}"#;

fn json(text: &str) -> Json {
    Json::new(Bytes::copy_from_slice(text.as_bytes())).expect("it is JSON")
}

fn decide_on(source: &str, document: &Json) -> Result<bool, EvaluationError> {
    let names = ["id".to_owned(), "*".to_owned()];
    let filter = Filter::compile(source, Purpose::Telling, Some(&names));
    let filter = filter.unwrap_or_else(|mistake| panic!("{source}: {mistake}"));
    let state = json(r#"{"price": 12}"#);
    filter.decide(&Inputs {
        document,
        revision: &Revision::Integer(41),
        wildcards: &[("id", "1"), ("*", "x")],
        action: Some(Action::Update),
        state: Some(&state),
    })
}

fn decide(source: &str) -> Result<bool, EvaluationError> {
    decide_on(source, &json(DOCUMENT))
}

#[test]
fn true_expressions_are_true() {
    for source in [
        "true",
        "document.quantity > 0",
        "document.quantity + 1 == 8",
        "document.quantity * 2 - 4 == 10 && document.quantity / 2 == 3 && document.quantity % 4 == 3",
        "-document.quantity == -7 && - -1 == 1",
        "document.price > document.quantity",
        "document.price * 2 == 25",
        "document.quantity * 0.5 == 3.5",
        "document.whole == 10 && 10 == document.whole && document.whole < 11 && 9u < document.whole",
        "document.huge == 18446744073709551615u && document.huge > 1 && document.huge != 1.8446744073709552e19",
        "9007199254740993 != 9007199254740992.0 && 9007199254740993 > 9007199254740992.0",
        "document.name == 'Aarau \"West\"' && document.name.startsWith('Aa') && document.name.endsWith('\"')",
        "document.name.contains('West') && size(document.name) == 12 && document.name.size() == 12",
        "document.name.matches('^Aarau .W[a-z]+') && !document.name.matches('^West')",
        "matches(document.name, 'West')",
        "document.active && !(!document.active)",
        "document.nothing == null && document.quantity != null",
        "'a' in document.tags && !('x' in document.tags) && 3.0 in document.tags",
        "'country' in document.seller && !('city' in document.seller)",
        "document.seller.country in ['DE', 'CH']",
        "document.seller.rating.stars >= 4",
        "document['odd key'] == 1 && document.tags[1] == 'b' && document.tags[0.0] == 'a'",
        "has(document.seller.country) && !has(document.seller.city) && !has(document.missing)",
        "document.twice == 2",
        "document.missing == 1 || document.quantity == 7",
        "document.quantity == 7 || document.missing == 1",
        "!(document.missing == 1 && document.quantity == 8)",
        "document.active ? document.quantity == 7 : document.missing",
        "document.tags == ['a', 'b', 3] && document.tags != ['a', 'b'] && [] == document.empty",
        "document.seller == document.seller && document.seller != document.seller.rating",
        "document.tags + [1] == ['a', 'b', 3, 1]",
        "'x' + document.seller.country == 'xCH'",
        "document.name.lowerAscii().contains('west') && 'ä'.upperAscii() == 'ä'",
        "revision == 41 && revision > 40",
        "wildcards.id == '1' && wildcards['*'] == 'x' && 'id' in wildcards && size(wildcards) == 2",
        "action == 'update'",
        "action != 'update' || document.price != state.price",
        "type(document.quantity) == int && type(document.price) == double && type(document.name) == string",
        "type(document.tags) == list && type(document) == map && type(null) == null_type && type(int) == type",
        "int('12') == 12 && int(3.9) == 3 && uint(3) == 3u && double('1.5') == 1.5 && string(12) == '12'",
        "bool('true') && string(true) == 'true' && dyn(1) == 1",
        "timestamp(document.updatedAt) > timestamp('2024-05-06T07:08:09Z')",
        "timestamp(document.updatedAt) - timestamp('2024-05-06T00:00:00+00:00') > duration('7h8m')",
        "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
        "timestamp(document.updatedAt).getFullYear() == 2024 && timestamp(document.updatedAt).getMonth() == 4",
        "timestamp(document.updatedAt).getDayOfWeek() == 1 && timestamp(document.updatedAt).getDate() == 6",
        "timestamp(document.updatedAt).getHours() == 7 && timestamp(document.updatedAt).getDayOfYear() == 126",
        "timestamp(document.updatedAt).getMilliseconds() == 500 && int(timestamp(0)) == 0",
        "duration('1.5s') == duration('1500ms') && -duration('1h') < duration('0') && duration('90m').getHours() == 1",
        "0x10 == 16 && 1e3 == 1000 && .5 == 0.5 && 1.5e-1 == 0.15",
        "-9223372036854775808 < 0",
        "'\\u00e4\\x41\\101\\n' == \"ä\" + 'AA' + '''\n''' && r'\\d' == '\\\\d'",
        "// only a comment\n document.active // and another",
        "false || false || true || false",
        "1 < 2 == true",
        "true ? (false ? false : true) : false",
        "[1, 2, 3,][1] == 2",
    ] {
        assert_eq!(decide(source), Ok(true), "{source}");
    }
}

#[test]
fn what_has_no_result_says_why() {
    for (source, why) in [
        ("document.missing == 1", "there is no field `missing`"),
        ("document.seller.city.name == ''", "there is no field `city`"),
        ("document.quantity.x == 1", "`.` does not take int"),
        ("document.name > 1", "`>` does not take string and int"),
        ("document.name + 1 == 2", "`+` does not take string and int"),
        ("document.name", "the result is string, not bool"),
        ("document.name && true", "`&&` does not take string"),
        ("document.missing && true", "there is no field `missing`"),
        ("document.quantity / 0 == 1", "a division by zero"),
        ("document.quantity % (7 - 7) == 1", "a division by zero"),
        ("9223372036854775807 + document.quantity == 1", "a number is out of range"),
        ("-(-9223372036854775808) > 0", "a number is out of range"),
        ("(-9223372036854775808) / (6 - 7) > 0", "a number is out of range"),
        ("document.tags[3] == 1", "there is no such element"),
        ("document.tags[-1] == 1", "there is no such element"),
        ("document['no'] == 1", "there is no such element"),
        ("int(document.name) == 1", "this string is no int"),
        ("int(1e300) == 1", "this double is no int"),
        ("timestamp(document.name) == timestamp(0)", "this string is no timestamp"),
        ("timestamp(9223372036854775807) == timestamp(0)", "a number is out of range"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1h') == timestamp(0)", "a number is out of range"),
        ("duration('99999999999999999999h') == duration('1h')", "a number is out of range"),
        ("duration('1') == duration('1h')", "this string is no duration"),
        ("revision.matches('x')", "`matches` does not take int"),
    ] {
        assert_eq!(decide(source), Err(EvaluationError(why.to_owned())), "{source}");
    }
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let names = ["id".to_owned()];
    for (source, line, column, part) in [
        ("", 1, 1, "is empty"),
        ("  ", 1, 1, "is empty"),
        ("document.a = 1", 1, 12, "equality is `==`"),
        ("document.a == ", 1, 15, "the expression ends where a value is expected"),
        ("document.a ==\n  == 2", 2, 3, "`==` stands here"),
        ("price > 1", 1, 1, "there is no `price`; an expression sees document, revision, wildcards"),
        ("'ä' == docment.a", 1, 8, "there is no `docment`"),
        ("action == 'create'", 1, 1, "`action` can be seen in `when` only"),
        ("state.a == 1", 1, 1, "`state` can be seen in `when` only"),
        ("document.a.frobnicate()", 1, 12, "there is no function `frobnicate`"),
        ("frobnicate(1)", 1, 1, "there is no function `frobnicate`"),
        ("document.a.size(1) == 1", 1, 12, "takes 0 arguments"),
        ("contains(document.a, 'x')", 1, 1, "is called as `x.contains(...)`"),
        ("document.tags.all(t, t == 1)", 1, 15, "`all` loops over a list"),
        ("document.tags.exists(t, t == 1)", 1, 15, "`exists` loops over a list"),
        ("document.tags.map(t, t)", 1, 15, "`map` loops over a list"),
        ("document.a.matches(document.b)", 1, 20, "must be written out"),
        ("document.a.matches('(')", 1, 20, "unclosed group"),
        ("document.a.matches('((a{1000}){1000}){1000}')", 1, 20, "too large"),
        ("1 + 1", 1, 1, "the result must be bool, this is int"),
        ("document", 1, 1, "the result must be bool, this is map"),
        ("document.a && 1", 1, 15, "must be bool, this is int"),
        ("1 + 'a' == 2", 1, 3, "`+` does not take int and string"),
        ("'a' < 1", 1, 5, "string and int have no order"),
        ("'a'.b == 1", 1, 1, "what has fields must be map"),
        ("1 in 2", 1, 6, "must be list or map"),
        ("wildcards.nope == '1'", 1, 11, "`nope` is no wildcard of this resource; there are: id"),
        ("document.a == 'x", 1, 15, "never ends"),
        ("document.a == 'x\ny'", 1, 15, "must end on its line"),
        ("document.a == '\\q'", 1, 16, "unknown escape"),
        ("document.a == b'x'", 1, 15, "bytes are not available"),
        ("document.?a == 1", 1, 9, "optional fields are not available"),
        ("{'a': 1} == document", 1, 1, "maps cannot be written here"),
        ("Message{a: 1} == document", 1, 1, "there is no `Message`"),
        ("document.a == 99999999999999999999", 1, 15, "not an integer of 64 bits"),
        ("document.a == 9223372036854775808", 1, 15, "too large for an integer"),
        ("document.a == 1e999", 1, 15, "too large for a double"),
        ("document.a == 12abc", 1, 17, "a number ends here"),
        ("document.a == 1)", 1, 16, "`)` stands here"),
        ("(document.a == 1", 1, 17, "where `)` is expected"),
        ("has(document)", 1, 1, "`has` takes a field"),
        ("document. == 1", 1, 11, "where the name of a field or function is expected"),
        ("document.a === 1", 1, 14, "equality is `==`"),
        ("for == 1", 1, 1, "reserved word"),
        ("document.a == 1 ; drop", 1, 17, "unexpected character `;`"),
    ] {
        let mistake = Filter::compile(source, Purpose::Membership, Some(&names)).expect_err(source);
        let place = (mistake.position.line, mistake.position.column);
        assert!(mistake.problem.contains(part), "{source}: {mistake}");
        assert_eq!(place, (line, column), "{source}: {mistake}");
    }
}

#[test]
fn what_an_expression_needs_is_known() {
    let when = Filter::compile("document.a != state.a", Purpose::Telling, None).unwrap();
    assert!(when.mentions_state() && !when.mentions_wildcards());
    let filter = Filter::compile("wildcards.any == 'x'", Purpose::Membership, None).unwrap();
    assert!(filter.mentions_wildcards() && !filter.mentions_state());
    let nothing_known = filter.decide(&Inputs {
        document: &Json::nothing(),
        revision: &Revision::Integer(1),
        wildcards: &[("other", "x")],
        action: None,
        state: None,
    });
    assert_eq!(nothing_known, Err(EvaluationError("there is no field `any`".into())));
}

#[test]
fn a_document_that_is_gone_has_no_fields() {
    let gone = Json::nothing();
    assert_eq!(decide_on("!has(document.a) && size(document) == 0", &gone), Ok(true));
    assert!(decide_on("document.a == 1", &gone).is_err());
}

#[test]
fn length_and_depth_are_bounded() {
    let compile = |source: &str| Filter::compile(source, Purpose::Membership, None);
    let long = format!("true{}", " ".repeat(MAX_SOURCE));
    assert!(compile(&long).unwrap_err().problem.contains("at most 2048 bytes"));
    let nested = |depth: usize| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
    assert!(compile(&nested(MAX_NESTING - 1)).is_ok());
    for deep in [
        nested(1000),
        "!".repeat(2000) + "true",
        "-".repeat(2000) + "1 == 1",
        "[".repeat(2000),
        "true?".repeat(400) + "true",
        "true?true:".repeat(200) + "true",
        vec!["1"; 1000].join("+") + " > 0",
        format!("document{} == 1", ".a".repeat(1000)),
        format!("document{}", "[0]".repeat(600)),
        "size(".repeat(400),
        "has(".repeat(400),
    ] {
        assert!(compile(&deep).is_err(), "{}", &deep[..40]);
    }
    // Long is not deep.
    let alternatives = (0..100).map(|n| format!("document.a=={n}")).collect::<Vec<_>>().join("||");
    assert!(compile(&alternatives).is_ok());
}

#[test]
fn what_is_too_costly_ends() {
    let text = "a".repeat(200_000);
    let large = json(&format!(r#"{{"s": "{text}", "n": [{}1]}}"#, "1,".repeat(90_000)));
    let costly = EvaluationError("the document is too large for this expression".into());
    let sum = vec!["document.s"; 60].join("+");
    for source in [
        format!("({sum}) == ({sum})"),
        vec!["document == document"; 90].join("&&"),
        vec!["document.n == document.n"; 70].join("&&"),
        vec!["(9 in document.n)"; 100].join("||"),
        vec!["document.s.contains('aaaaaaab')"; 60].join("||"),
        "document.s.matches('(a|aa)*b')".to_owned(),
    ] {
        assert_eq!(decide_on(&source, &large), Err(costly.clone()), "{}", &source[..40]);
    }
}

#[test]
fn a_document_with_too_many_values_is_not_looked_at() {
    let many = format!(r#"{{"n": [{}1]}}"#, "1,".repeat(MAX_VALUES));
    let refused = Json::new(Bytes::from(many)).expect_err("too many");
    assert!(refused.to_string().contains("more than 100000 values"), "{refused}");
    assert!(Json::new(Bytes::from_static(b"{\"a\":")).is_err());
    assert!(Json::new(Bytes::from_static(b"\xff")).is_err());
}

/// Pieces of expressions, glued together at random, get far more of them through the parser than noise would.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "document",
        ".",
        "quantity",
        "price",
        "tags",
        "seller",
        "(",
        ")",
        "[",
        "]",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        ">=",
        "in",
        "?",
        ":",
        ",",
        "1",
        "0",
        "-1",
        "2.5",
        "7u",
        "'a'",
        "'CH'",
        "true",
        "null",
        "size",
        "has",
        "matches",
        "contains",
        "timestamp",
        "duration",
        "int",
        "string",
        "type",
        "revision",
        "wildcards",
        "action",
        "state",
        "document.quantity",
        "document.tags",
        "document.name",
        "document.price",
        "'1h'",
        "'2024-05-06T07:08:09Z'",
        "9223372036854775807",
        ".size()",
        ".getHours()",
        ".matches('a+')",
        " ",
        "document.updatedAt",
        "[1, 'a']",
        "getFullYear",
    ]);
    prop::collection::vec(piece, 1..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn no_expression_panics(source in prop_oneof![pieces(), any::<String>()]) {
        if let Ok(filter) = Filter::compile(&source, Purpose::Telling, None) {
            let document = json(DOCUMENT);
            let inputs = Inputs {
                document: &document,
                revision: &Revision::Integer(i64::MIN),
                wildcards: &[("id", "1")],
                action: Some(Action::Create),
                state: None,
            };
            let _ = filter.decide(&inputs);
        }
    }
}
