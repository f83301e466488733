//! Rings as text, for doorbells that carry messages: `[{"lane":1,"head":17},{"catalog":4}]`.

use flare_model::ids::{LaneId, Seq};
use serde_json::{Value, json};

use crate::doorbell::Ring;

/// Rings as a text.
pub fn write(rings: &[Ring]) -> String {
    let each = rings.iter().map(|ring| match ring {
        Ring::Lane { lane, head } => json!({"lane": lane.packed(), "head": head.0}),
        Ring::Catalog { version } => json!({"catalog": version}),
    });
    Value::from_iter(each).to_string()
}

/// Rings of a text. What cannot be read was written by a newer version of Flare, and is as good as lost.
pub fn read(value: &[u8]) -> Option<Vec<Ring>> {
    let value: Value = serde_json::from_slice(value).ok()?;
    let ring = |value: &Value| {
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        match (number("lane"), number("head"), number("catalog")) {
            (Some(lane), Some(head), _) => Some(Ring::Lane { lane: LaneId::unpacked(lane), head: Seq(head) }),
            (_, _, Some(version)) => Some(Ring::Catalog { version }),
            _ => None,
        }
    };
    value.as_array()?.iter().map(ring).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_come_back_as_they_were_written() {
        let lane = LaneId::unpacked(u64::MAX >> 8);
        let rings = [Ring::Lane { lane, head: Seq(u64::MAX) }, Ring::Catalog { version: 0 }];
        assert_eq!(read(write(&rings).as_bytes()).as_deref(), Some(&rings[..]));
        assert_eq!(read(b"[]"), Some(Vec::new()));
        for strange in ["", "{}", "[{}]", "[{\"lane\":1}]"] {
            assert_eq!(read(strange.as_bytes()), None, "{strange}");
        }
    }
}
