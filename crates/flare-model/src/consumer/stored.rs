//! A consumer as it is stored, and as users see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Consumer, ConsumerDraft, LetterReplay, PayloadDraft, SourceDraft};
use crate::ids::ResourceId;
use crate::invalid::Invalid;
use crate::subscription::EndpointDraft;
use crate::subscription::credentials;
use crate::time::Timestamp;

/// A consumer as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredConsumer {
    /// As the user wrote it, without its credentials where they are sealed.
    pub draft: ConsumerDraft,
    /// The url and the headers of what it polls, sealed, where they have credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// Fixed at creation.
    pub lanes: u16,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was replaced last.
    pub updated_at: Timestamp,
    /// Since when it is paused, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_since: Option<Timestamp>,
    /// The last replays of its dead letters, oldest first. Bound: [`KEPT_REPLAYS`](crate::subscription::KEPT_REPLAYS); the oldest goes,
    /// and what it has not come to is a newer one's as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<LetterReplay>,
    /// The number of the newest replay; numbers are never reused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_replay: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A consumer as users see it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerView {
    /// Its id.
    pub id: ResourceId,
    /// As given, completed; credentials are not shown.
    pub source: SourceDraft,
    /// As given, completed.
    pub payload: PayloadDraft,
    /// `active`, `preparing`, `paused`, `failing` or `disabled`.
    pub status: String,
    /// Since when.
    pub since: Timestamp,
    /// Why, where it does not read.
    pub reason: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was replaced last.
    pub updated_at: Timestamp,
}

impl StoredConsumer {
    /// Checks what was stored, as it was checked before it was.
    pub fn check(&self, id: &ResourceId) -> Result<Consumer, Invalid> {
        self.draft.check(id)
    }
}

impl SourceDraft {
    /// The part of it that may have credentials, in the form that those who seal and restore them know.
    pub fn endpoint(&self) -> EndpointDraft {
        EndpointDraft { url: self.url.clone(), headers: self.headers.clone(), ..EndpointDraft::default() }
    }

    /// The same with that part replaced.
    pub fn with_endpoint(&self, endpoint: EndpointDraft) -> SourceDraft {
        SourceDraft { url: endpoint.url, headers: endpoint.headers, ..self.clone() }
    }

    /// As it may be shown.
    pub fn redacted(&self) -> SourceDraft {
        self.with_endpoint(credentials::redacted(&self.endpoint()))
    }
}
