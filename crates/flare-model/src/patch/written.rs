//! JSON Merge Patch (RFC 7396): what there is and a patch of it come in, what there is then goes out. Both stay text, so
//! that a number which nobody touches remains as it was written.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

/// Deeper than anything that can be patched: what is below is taken as it is, and refused by who reads the whole.
const DEEPEST: usize = 32;

/// The members of an object; nothing for any other value. Of one that occurs twice the last counts.
pub fn members(value: &RawValue) -> Option<BTreeMap<String, Box<RawValue>>> {
    if value.get().starts_with('{') { serde_json::from_str(value.get()).ok() } else { None }
}

/// What there is after the patch.
pub fn merged(target: &RawValue, patch: &RawValue) -> Box<RawValue> {
    merge(Some(target), patch, 0)
}

fn merge(target: Option<&RawValue>, patch: &RawValue, depth: usize) -> Box<RawValue> {
    let Some(changes) = members(patch).filter(|_| depth < DEEPEST) else { return patch.to_owned() };
    let mut merged = target.and_then(members).unwrap_or_default();
    for (name, change) in changes {
        if change.get() == "null" {
            merged.remove(&name);
        } else {
            let changed = merge(merged.get(&name).map(|value| &**value), &change, depth + 1);
            merged.insert(name, changed);
        }
    }
    to_raw_value(&merged).expect("texts that are JSON are written as they are")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("it is JSON")
    }

    #[test]
    fn a_merge_patch_replaces_adds_and_removes() {
        let target = raw(r#"{"a": 1, "b": {"c": 1e2, "d": [1, 2]}}"#);
        let patch = raw(r#"{"a": null, "b": {"d": [3.0], "e": {"f": null, "g": 1.10}}}"#);
        let expected = r#"{"b":{"c":1e2,"d":[3.0],"e":{"g":1.10}}}"#;
        assert_eq!(merged(&target, &patch).get(), expected);
        assert_eq!(merged(&target, &raw("[1]")).get(), "[1]");
        assert!(members(&raw("[]")).is_none());
    }

    #[test]
    fn a_patch_of_any_depth_is_taken() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        assert_eq!(merged(&raw("{}"), &raw(&deep)).get().len(), deep.len());
    }
}
