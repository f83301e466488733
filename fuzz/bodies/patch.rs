//! Up to the first zero byte a document, the rest another: a patch between them, where there is one, makes of the one the other;
//! and whatever comes in as a merge patch is applied.

use flare_model::patch::{PatchKind, members, merge_between, merged};
use serde_json::Value;
use serde_json::value::RawValue;

pub fn run(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (from, to) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    for kind in [PatchKind::Merge, PatchKind::Json] {
        if let Some(patch) = kind.between(from, to) {
            assert!(patch.len() < to.len());
            serde_json::from_slice::<Value>(&patch).expect("a patch is JSON");
        }
    }
    let (Ok(from), Ok(to)) = (serde_json::from_slice::<Value>(from), serde_json::from_slice::<Value>(to))
    else {
        return;
    };
    let raw = |value: &Value| RawValue::from_string(value.to_string()).expect("it is JSON");
    let _ = members(&raw(&to));
    let changed = merged(&raw(&from), &raw(&to));
    serde_json::from_str::<Value>(changed.get()).expect("what is merged is JSON");
    // To say that something is null would be to take it away.
    let nowhere_null = !to.to_string().contains("null");
    if let Some(patch) = merge_between(&from, &to).filter(|_| nowhere_null) {
        let there: Value = serde_json::from_str(merged(&raw(&from), &raw(&patch)).get()).expect("it is JSON");
        assert_eq!(there, to);
    }
}
