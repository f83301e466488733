//! A resource: what is tracked. A draft comes in from a user; a checked, compiled resource goes out. A consumer is a resource
//! without HTTP: the same lanes and documents, which its messages name, and no endpoint.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::access::Account;
use crate::change::{ChangeReader, ChangeSpec};
use crate::consumer::Consumer;
use crate::ids::{LaneId, MAX_LANES, ResourceId, ResourceNumber, lane_of};
use crate::invalid::Invalid;
use crate::pattern::Pattern;
use crate::revision::Revision;
use crate::time::Timestamp;
use crate::url::percent;

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
    /// Whose it is.
    pub account: Account,
    /// What its documents are said by.
    origin: Origin,
}

/// What the documents of a resource are said by.
#[derive(Clone, Debug)]
enum Origin {
    /// Whoever puts them under their urls.
    Endpoint {
        pattern: Pattern,
        /// How to read a revision.
        change: ChangeReader,
        /// Which segments of a document's path are wildcards.
        wildcard_segments: Vec<usize>,
    },
    /// Messages of a source, by the names in them.
    Consumer(Arc<Consumer>),
}

/// The wildcards of a consumer: the name of a document is its one.
static NAMES: std::sync::LazyLock<[String; 1]> = std::sync::LazyLock::new(|| ["id".to_owned()]);

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
        let origin = Origin::Endpoint { pattern, change, wildcard_segments };
        Ok(Resource { view, number, account: Account::default(), origin })
    }

    /// A consumer: a resource without HTTP. Where others have their endpoint it has a word for its source.
    pub fn of_consumer(
        id: ResourceId,
        number: ResourceNumber,
        consumer: Consumer,
        lanes: u16,
        created_at: Timestamp,
    ) -> Resource {
        let change = consumer.draft.payload.revision.clone();
        let view = ResourceView {
            id,
            endpoint: consumer.label(),
            change: change.unwrap_or(ChangeSpec { field: String::new(), format: None }),
            lanes,
            created_at,
        };
        Resource { view, number, account: Account::default(), origin: Origin::Consumer(Arc::new(consumer)) }
    }

    /// The same, of an account.
    pub fn of(self, account: Account) -> Resource {
        Resource { account, ..self }
    }

    /// Its id.
    pub fn id(&self) -> &ResourceId {
        &self.view.id
    }

    /// Its endpoint; a consumer has none.
    pub fn pattern(&self) -> Option<&Pattern> {
        match &self.origin {
            Origin::Endpoint { pattern, .. } => Some(pattern),
            Origin::Consumer(_) => None,
        }
    }

    /// What it is where it is a consumer.
    pub fn consumer(&self) -> Option<&Arc<Consumer>> {
        match &self.origin {
            Origin::Endpoint { .. } => None,
            Origin::Consumer(consumer) => Some(consumer),
        }
    }

    /// The word for what it is.
    pub fn kind(&self) -> &'static str {
        if self.consumer().is_some() { "consumer" } else { "resource" }
    }

    /// Whether every message of it is passed on as it is.
    pub fn is_raw(&self) -> bool {
        self.consumer().is_some_and(|consumer| consumer.is_raw())
    }

    /// How to read a revision; `None` for a consumer whose messages have none.
    pub fn change(&self) -> Option<&ChangeReader> {
        match &self.origin {
            Origin::Endpoint { change, .. } => Some(change),
            Origin::Consumer(consumer) => consumer.reader.revision(),
        }
    }

    /// The names of its wildcards.
    pub fn wildcards(&self) -> &[String] {
        match &self.origin {
            Origin::Endpoint { pattern, .. } => pattern.wildcards(),
            Origin::Consumer(_) => &*NAMES,
        }
    }

    /// Where it is, as a URI.
    pub fn uri(&self) -> String {
        match &self.origin {
            // Braces have no place in a URI.
            Origin::Endpoint { .. } => self.view.endpoint.replace('{', "%7B").replace('}', "%7D"),
            Origin::Consumer(_) => format!("/consumers/{}", self.view.id),
        }
    }

    /// What a client is told a document is called: its url or name; of messages that are passed on as they are the position in
    /// their source. Flare keeps those as the revisions of one document for each partition, so that they stay in order.
    pub fn name<'d>(&self, url: &'d str, revision: &'d Revision) -> &'d str {
        match revision {
            Revision::Date(date) if self.is_raw() => date.text(),
            _ => url,
        }
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

    /// The values of the wildcards in a document's normalised url, raw as they stand there; for a consumer the name of a
    /// document, written as a segment would be.
    pub fn values<'u>(&self, name: &'u str) -> Values<'u> {
        let mut values = Values::new();
        let Origin::Endpoint { wildcard_segments, .. } = &self.origin else {
            values.push(match name.contains('%') {
                false => Cow::Borrowed(name),
                true => {
                    let mut escaped = String::with_capacity(name.len() + 8);
                    percent::insert_text(name, &mut escaped);
                    Cow::Owned(escaped)
                }
            });
            return values;
        };
        let mut wanted = wildcard_segments.iter();
        let mut next = wanted.next();
        for (at, segment) in path_segments(name).enumerate() {
            if next == Some(&at) {
                values.push(Cow::Borrowed(segment));
                next = wanted.next();
            }
        }
        values
    }
}

/// What the wildcards stand for in one url: few, and asked for with every delivery, so that most need no memory of their own.
pub type Values<'u> = SmallVec<[Cow<'u, str>; 6]>;

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
