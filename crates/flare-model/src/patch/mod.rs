//! Differences: two states of a document come in, as bytes; a JSON Merge Patch (RFC 7396) or a JSON Patch (RFC 6902)
//! from the one to the other goes out, or nothing where it cannot be said.
//!
//! Values go into the patch byte by byte as the origin wrote them, and are compared as such: no number goes through a
//! float. What only looks different (`1.0` and `1.00`, blanks within a list) counts as changed, which is harmless.

mod json;
mod members;
mod merge;
mod values;
mod written;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use values::merge_between;
pub use written::{members, merged};

/// How deep two states are compared. Every level reads what is below it once more.
const DEEPEST: usize = 16;

/// Which words a difference is told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// JSON Merge Patch.
    Merge,
    /// JSON Patch.
    Json,
}

impl PatchKind {
    /// The media type of a patch.
    pub const fn media_type(self) -> &'static str {
        match self {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Json => "application/json-patch+json",
        }
    }

    /// The patch from one state to the other; `None` when it cannot be said in these words, or when it would not be
    /// shorter than the state itself.
    pub fn between(self, from: &[u8], to: &[u8]) -> Option<Bytes> {
        let (before, after) = (std::str::from_utf8(from).ok()?, std::str::from_utf8(to).ok()?);
        let patch = match self {
            PatchKind::Merge => merge::between(before, after)?,
            PatchKind::Json => json::between(before, after)?,
        };
        (patch.len() < to.len()).then(|| patch.into())
    }
}

/// `content.patch` as users write it: `"merge"`, `"json"`, `true` for merge, or `false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchDraft(pub Option<PatchKind>);

impl<'de> Deserialize<'de> for PatchDraft {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PatchDraft, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let kind = match (&value, value.as_str()) {
            (serde_json::Value::Bool(false), _) => None,
            (serde_json::Value::Bool(true), _) | (_, Some("merge")) => Some(PatchKind::Merge),
            (_, Some("json")) => Some(PatchKind::Json),
            _ => {
                let problem =
                    format!("must be `merge`, `json`, true (which is `merge`) or false, got {value}");
                return Err(serde::de::Error::custom(problem));
            }
        };
        Ok(PatchDraft(kind))
    }
}

impl Serialize for PatchDraft {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_bool(false),
            Some(PatchKind::Merge) => serializer.serialize_str("merge"),
            Some(PatchKind::Json) => serializer.serialize_str("json"),
        }
    }
}
