//! A resource: what is tracked. A draft comes in from a user; a checked, compiled resource goes out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::change::{ChangeReader, ChangeSpec};
use crate::ids::{LaneId, MAX_LANES, ResourceId, ResourceNumber, lane_of};
use crate::invalid::Invalid;
use crate::pattern::Pattern;
use crate::time::Timestamp;

/// What a user says to create a resource.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceDraft {
    /// Where its documents live, with a wildcard for what differs.
    #[schemars(regex(pattern = "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+/"), extend("format" = "endpoint"))]
    pub endpoint: String,
    /// Where the revision is in a document.
    pub change: ChangeSpec,
    /// How many ordered lanes its documents are spread over. It bounds the shards of its subscriptions.
    #[schemars(range(min = 1, max = 256))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u16>,
}

/// A resource as users see it, and as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceView {
    /// Its id.
    pub id: ResourceId,
    /// Normalised.
    pub endpoint: String,
    /// As given.
    pub change: ChangeSpec,
    /// Fixed at creation.
    pub lanes: u16,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A resource, checked and compiled.
#[derive(Clone, Debug)]
pub struct Resource {
    /// As users see it.
    pub view: ResourceView,
    /// As the log counts it.
    pub number: ResourceNumber,
    /// Its endpoint.
    pub pattern: Pattern,
    /// How to read a revision.
    pub change: ChangeReader,
    /// Which segments of a document's path are wildcards.
    wildcard_segments: Vec<usize>,
}

impl ResourceDraft {
    /// Checks everything a user can get wrong.
    pub fn check(
        self,
        id: ResourceId,
        default_lanes: u16,
        created_at: Timestamp,
    ) -> Result<ResourceView, Invalid> {
        let pattern = Pattern::parse(&self.endpoint).map_err(|e| Invalid::new("endpoint", e))?;
        self.change.check().map_err(|e| Invalid::new("change", e))?;
        let lanes = self.lanes.unwrap_or(default_lanes);
        if lanes == 0 || lanes > MAX_LANES {
            let problem = format!("must be between 1 and {MAX_LANES}, got {lanes}");
            return Err(Invalid::new("lanes", problem));
        }
        let endpoint = pattern.normalised().to_owned();
        Ok(ResourceView { id, endpoint, change: self.change, lanes, created_at })
    }
}

impl Resource {
    /// Compiles what was checked before it was stored.
    pub fn compile(view: ResourceView, number: ResourceNumber) -> Result<Resource, Invalid> {
        let pattern = Pattern::parse(&view.endpoint).map_err(|e| Invalid::new("endpoint", e))?;
        let change = view.change.clone().compile().map_err(|e| Invalid::new("change", e))?;
        let wildcard_segments = path_segments(pattern.normalised())
            .enumerate()
            .filter(|(_, segment)| segment.starts_with('{'))
            .map(|(at, _)| at)
            .collect();
        Ok(Resource { view, number, pattern, change, wildcard_segments })
    }

    /// Its id.
    pub fn id(&self) -> &ResourceId {
        &self.view.id
    }

    /// The lane of one of its documents.
    pub fn lane_of(&self, url: &str) -> LaneId {
        LaneId { resource: self.number, index: lane_of(url, self.view.lanes) }
    }

    /// All its lanes.
    pub fn lanes(&self) -> impl Iterator<Item = LaneId> + use<> {
        let resource = self.number;
        (0..self.view.lanes).map(move |index| LaneId { resource, index: index as u8 })
    }

    /// The values of the wildcards in a document's normalised url, raw as they stand there.
    pub fn values<'u>(&self, url: &'u str) -> Values<'u> {
        let mut wanted = self.wildcard_segments.iter();
        let mut next = wanted.next();
        let mut values = Values::new();
        for (at, segment) in path_segments(url).enumerate() {
            if next == Some(&at) {
                values.push(segment);
                next = wanted.next();
            }
        }
        values
    }
}

/// What the wildcards stand for in one url: few, and asked for with every delivery, so that most need no memory of their own.
pub type Values<'u> = SmallVec<[&'u str; 6]>;

/// The segments of an absolute url's path.
fn path_segments(url: &str) -> impl Iterator<Item = &str> {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let path = url[after_scheme..].find('/').map_or("", |at| &url[after_scheme + at + 1..]);
    path.split('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_from_the_segments_that_are_wildcards() {
        let view = ResourceView {
            id: ResourceId::new("r"),
            endpoint: "http://h:81/a/{x}/b/{y}".into(),
            change: serde_json::from_str(r#"{"field":"rev"}"#).expect("a change"),
            lanes: 8,
            created_at: Timestamp::from_millis(0),
        };
        let resource = Resource::compile(view, ResourceNumber(1)).expect("a resource");
        assert_eq!(resource.values("http://h:81/a/1%2F2/b/z")[..], ["1%2F2", "z"]);
    }
}
