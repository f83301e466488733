//! Patches, applied by a published library: what comes out is what was meant.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{PatchDraft, PatchKind, json as json_patch, merge};

/// Arbitrary values that meet each other often: few names, few scalars, odd texts.
fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3_i64).prop_map(Value::from),
        Just(json!(1.5)),
        Just(json!(u64::MAX)),
        "[a/~\" é\\\\]{0,3}".prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[ab/~é\"]{0,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc/~]{1,2}", value(), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

/// A document and one that differs from it in some places.
fn neighbours() -> impl Strategy<Value = (Value, Value)> {
    (document(), document(), prop::collection::vec(any::<bool>(), 8)).prop_map(|(from, other, choice)| {
        let mut to = from.clone();
        let fields = to.as_object_mut().expect("an object");
        let names: Vec<String> = fields.keys().cloned().collect();
        for (name, gone) in names.iter().zip(&choice) {
            if *gone {
                fields.remove(name);
            }
        }
        fields.extend(other.as_object().expect("an object").clone());
        (from, to)
    })
}

fn pairs() -> impl Strategy<Value = (Value, Value)> {
    prop_oneof![neighbours(), (document(), document())]
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_json_patch_leads_from_the_one_to_the_other((from, to) in pairs()) {
        let patch = json_patch::between(&from.to_string(), &to.to_string()).expect("it can always be said");
        let mut result = from;
        let patch = serde_json::from_str::<::json_patch::Patch>(&patch).expect("a patch");
        ::json_patch::patch(&mut result, &patch).expect("it applies");
        prop_assert_eq!(result, to);
    }

    #[test]
    fn a_merge_patch_leads_from_the_one_to_the_other_and_is_harmless_twice((from, to) in pairs()) {
        match merge::between(&from.to_string(), &to.to_string()) {
            Some(patch) => {
                let patch: Value = serde_json::from_str(&patch).expect("a patch");
                let mut result = from;
                ::json_patch::merge(&mut result, &patch);
                prop_assert_eq!(&result, &to);
                ::json_patch::merge(&mut result, &patch);
                prop_assert_eq!(result, to);
            }
            None => prop_assert!(has_null(&to), "only a null cannot be said"),
        }
    }
}

fn merge_of(from: Value, to: Value) -> Option<Value> {
    let patch = merge::between(&from.to_string(), &to.to_string())?;
    Some(serde_json::from_str(&patch).expect("a patch"))
}

fn json_of(from: Value, to: Value) -> Value {
    let patch = json_patch::between(&from.to_string(), &to.to_string()).expect("it can be said");
    serde_json::from_str(&patch).expect("a patch")
}

#[test]
fn a_merge_patch_says_what_changed_and_nothing_else() {
    let from = json!({"rev": 1, "name": "Ada", "tags": [1, 2], "address": {"city": "London", "zip": "N1"}});
    let to = json!({"rev": 2, "name": "Ada", "tags": [1], "address": {"city": "Paris"}});
    let expected = json!({"rev": 2, "tags": [1], "address": {"city": "Paris", "zip": null}});
    assert_eq!(merge_of(from, to), Some(expected));
}

#[test]
fn a_null_that_is_set_cannot_be_said_and_one_that_stays_need_not() {
    assert_eq!(merge_of(json!({"a": 1}), json!({"a": null})), None);
    assert_eq!(merge_of(json!({}), json!({"a": {"b": {"c": null}}})), None);
    assert_eq!(merge_of(json!({"a": {"b": 1}}), json!({"a": {"b": null}})), None);
    assert_eq!(merge_of(json!({"a": null}), json!({"a": null, "b": 1})), Some(json!({"b": 1})));
    assert_eq!(merge_of(json!({}), json!({"a": [null]})), Some(json!({"a": [null]})), "within a list it can");
}

#[test]
fn a_json_patch_changes_lists_entry_by_entry() {
    let patch = json_of(json!({"a": [1, 2, {"b": 1, "c": 2}, 4]}), json!({"a": [1, {"b": 1, "c": 3}, 4]}));
    let expected = json!([
        {"op": "replace", "path": "/a/1", "value": {"b": 1, "c": 3}},
        {"op": "remove", "path": "/a/2"}
    ]);
    assert_eq!(patch, expected);
    let patch = json_of(json!({"a/b": 1, "~": [1]}), json!({"~": [1, null]}));
    let expected = json!([{"op": "remove", "path": "/a~1b"}, {"op": "add", "path": "/~0/1", "value": null}]);
    assert_eq!(patch, expected);
}

#[test]
fn values_go_through_byte_by_byte() {
    let (from, to) = (
        "{\"n\": 1, \"long\": \"and unchanged\"}",
        "{\"n\": 123456789012345678901234567890.10, \"long\": \"and unchanged\"}",
    );
    let patch = PatchKind::Merge.between(from.as_bytes(), to.as_bytes()).expect("it can be said");
    assert_eq!(patch, "{\"n\":123456789012345678901234567890.10}");
}

#[test]
fn what_is_not_certain_or_not_shorter_is_not_said() {
    let between = |from: &str, to: &str| PatchKind::Merge.between(from.as_bytes(), to.as_bytes());
    assert_eq!(
        between(r#"{"a":1,"a":2,"b":"long enough"}"#, r#"{"a":3,"b":"long enough"}"#),
        None,
        "a name twice"
    );
    assert_eq!(between(r#"{"a":1}"#, r#"{"b":2}"#), None, "not shorter");
    assert_eq!(between("nonsense", r#"{"b":2}"#), None);
    let deep = |leaf: &str| format!("{}{leaf}{}", "{\"a\":".repeat(40), "}".repeat(40));
    assert_eq!(between(&deep("1"), &deep("2")), None, "too deep for a merge patch");
    assert!(PatchKind::Json.between(deep("1").as_bytes(), deep("2").as_bytes()).is_some(), "replaced whole");
}

#[test]
fn the_words_for_it() {
    for (text, kind) in [
        ("true", Some(PatchKind::Merge)),
        ("\"merge\"", Some(PatchKind::Merge)),
        ("\"json\"", Some(PatchKind::Json)),
        ("false", None),
    ] {
        assert_eq!(serde_json::from_str::<PatchDraft>(text).expect("a word for it").0, kind, "{text}");
    }
    let error = serde_json::from_str::<PatchDraft>("\"xml\"").expect_err("no word for it").to_string();
    assert!(error.contains("`merge`") && error.contains("xml"), "{error}");
}
