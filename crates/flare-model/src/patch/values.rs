//! JSON Merge Patch (RFC 7396) over values that were read: two values come in, and the patch between them goes out. What
//! users send about settings is small; documents go byte by byte.

use serde_json::{Map, Value};

/// The merge patch that turns one value into another; nothing where they are the same. A null within an object cannot be
/// set by one.
pub fn merge_between(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return Some(to.clone());
    };
    let mut changes = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        changes.insert(name.clone(), Value::Null);
    }
    for (name, value) in to {
        match from.get(name) {
            None => _ = changes.insert(name.clone(), value.clone()),
            Some(before) => {
                if let Some(change) = merge_between(before, value) {
                    changes.insert(name.clone(), change);
                }
            }
        }
    }
    Some(Value::Object(changes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_patch_between_two_values_turns_the_one_into_the_other() {
        let values = [
            json!({}),
            json!({"a": 1}),
            json!({"a": {"b": 1, "c": [1, null]}}),
            json!({"a": {"c": [2]}, "d": "x"}),
            json!([1]),
            json!("x"),
        ];
        for from in &values {
            for to in &values {
                let Some(patch) = merge_between(from, to) else {
                    assert_eq!(from, to);
                    continue;
                };
                let mut patched = from.clone();
                ::json_patch::merge(&mut patched, &patch);
                assert_eq!(&patched, to, "{from} by {patch}");
            }
        }
    }

    #[test]
    fn a_patch_says_what_changed_and_what_is_gone() {
        let current = json!({"endpoint": {"url": "a", "method": "put"}, "filter": "x", "shards": 2});
        let wanted = json!({"endpoint": {"url": "b"}, "shards": 2, "when": "y"});
        let changes = json!({"endpoint": {"url": "b", "method": null}, "filter": null, "when": "y"});
        assert_eq!(merge_between(&current, &wanted), Some(changes));
        assert_eq!(merge_between(&wanted, &wanted), None);
    }
}
