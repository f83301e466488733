//! A subscription: who is told, and how. The JSON types of the API live here, once.
//!
//! A [`Draft`] comes in from a user and is kept as given, so that a merge patch can be applied to it; a
//! [`Spec`] goes out, checked and with every default filled in.

mod check;
mod content;
pub mod credentials;
mod draft;
mod endpoint;
mod expressions;
mod lowered;
mod pause;
mod secret;

pub use check::{Limits, check, completed};
pub use content::{Content, ContentDraft, Event, EventMode, Format};
pub use draft::{
    ActionDraft, ActionsDraft, DataValue, DeliveryDraft, Draft, EndpointDraft, RateLimit, Scalar, TlsDraft,
};
pub use endpoint::check_header_names;
pub use lowered::{Amount, Lowered, LoweredField, fitting, lowered};
pub use pause::{LONGEST_REASON, Pause, PauseDraft, PausedBy};
pub(crate) use secret::reveal;
pub use secret::{Secret, SecretView, StoredSecret, live, rotated};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bridge;
use crate::feed::Action;
use crate::filter::Filter;
use crate::ids::{ResourceId, SubscriptionId};
use crate::retry::RetryPolicy;
use crate::template::{TextTemplate, UrlTemplate};
use crate::time::Timestamp;

/// A subscription, checked and compiled.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Where notifications go.
    pub way: Way,
    /// Statuses that mean delivered; empty means 200 to 299, but for those that mean something else.
    pub success: Vec<u16>,
    /// Statuses that mean: drop this notification.
    pub discard: Vec<u16>,
    /// How long an attempt may take, from its beginning to the end of the answer.
    pub timeout: Duration,
    /// How many attempts may be open at once.
    pub concurrency: u32,
    /// How many attempts may begin in a time.
    pub rate_limit: Option<RateLimit>,
    /// What happens after a failure.
    pub retry: RetryPolicy,
    /// What a body is made of.
    pub content: Content,
    /// Values of one's own in the envelope, or attributes of the event.
    pub data: BTreeMap<String, DataTemplate>,
    /// Whether it is served without being asked.
    pub mode: Mode,
    /// Which documents the client is to have; all where there is none.
    pub filter: Option<Arc<Filter>>,
    /// Whether to tell; always where there is none.
    pub when: Option<Arc<Filter>>,
    /// Where it starts.
    pub start: Start,
    /// How many owners may serve its lanes in parallel.
    pub shards: u32,
    /// Which revisions of a document the client gets.
    pub revisions: Revisions,
    /// How old a change may be when its turn comes; whatever its age where there is none.
    pub ttl: Option<Duration>,
}

/// Where notifications go.
#[derive(Clone, Debug)]
pub enum Way {
    /// Over HTTP: by action, in the order of [`Action::ALL`]; shared by actions that have nothing of their own.
    Http([Arc<Target>; 3]),
    /// To a sink, whatever the action.
    Sink(Arc<bridge::Target>),
}

impl Way {
    /// The targets over HTTP; none for a sink.
    pub fn targets(&self) -> &[Arc<Target>] {
        match self {
            Way::Http(targets) => targets,
            Way::Sink(_) => &[],
        }
    }
}

/// Where notifications of one action go over HTTP.
#[derive(Clone, Debug)]
pub struct Target {
    /// The url.
    pub url: UrlTemplate,
    /// The method, in upper case.
    pub method: &'static str,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
}

/// A value of `data`, compiled.
#[derive(Clone, Debug)]
pub enum DataTemplate {
    /// One value.
    One(ScalarTemplate),
    /// A flat list.
    Many(Vec<ScalarTemplate>),
}

/// A scalar of `data`, compiled.
#[derive(Clone, Debug)]
pub enum ScalarTemplate {
    /// A string that may use wildcards.
    Text(TextTemplate),
    /// True or false.
    Boolean(bool),
    /// A number, as it was written.
    Number(Box<RawValue>),
}

/// Whether a subscription is served without being asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Notifications are sent as changes come.
    #[default]
    Active,
    /// Nothing is sent until someone asks.
    Passive,
}

/// Where a subscription starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// With the next change.
    #[default]
    Now,
    /// With the current state of every document.
    Beginning,
}

/// Which revisions of a document a client gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Revisions {
    /// The newest.
    #[default]
    Last,
    /// Every one that is accepted, in order, as long as it is kept.
    All,
}

impl Revisions {
    /// The word used in `delivery.revision`.
    pub fn as_str(self) -> &'static str {
        match self {
            Revisions::Last => "last",
            Revisions::All => "all",
        }
    }
}

impl Spec {
    /// Where notifications of an action go over HTTP; nothing for a sink.
    #[inline]
    pub fn target(&self, action: Action) -> Option<&Target> {
        self.way.targets().get(action as usize).map(|target| &**target)
    }

    /// Whether documents have to be looked at before anything is decided.
    #[inline]
    pub fn has_expressions(&self) -> bool {
        self.filter.is_some() || self.when.is_some()
    }

    /// Whether a status means delivered.
    pub fn is_success(&self, status: u16) -> bool {
        match self.success.is_empty() {
            true => (200..300).contains(&status) && !self.is_discard(status),
            false => self.success.contains(&status),
        }
    }

    /// Whether a status means: drop it.
    pub fn is_discard(&self, status: u16) -> bool {
        self.discard.contains(&status)
    }

    /// Whether the documents are kept as the client last got them: paid for only by who needs it.
    pub fn keeps_state(&self) -> bool {
        self.content.patch.is_some() || self.when.as_ref().is_some_and(|when| when.mentions_state())
    }

    /// Texts that no other subscription of the resource may have: its url for each action, or its sink.
    pub fn keys(&self) -> Vec<String> {
        match &self.way {
            Way::Http(targets) => {
                let named = Action::ALL.iter().zip(targets);
                named
                    .map(|(action, target)| format!("{} {}", action.as_str(), target.url.identity()))
                    .collect()
            }
            Way::Sink(sink) => vec![format!("sink {sink}")],
        }
    }
}

/// A subscription as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    /// What the user said, with patches applied.
    pub draft: Draft,
    /// In the store alone, where the endpoint has credentials: the endpoint as it was given, encrypted by the program. The
    /// draft beside it has the word for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_endpoint: Option<Box<str>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed by a user.
    pub updated_at: Timestamp,
    /// Since when a user has it paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_since: Option<Timestamp>,
    /// While it is paused: by whom and why, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Box<Pause>>,
    /// When it last went on after it had been paused or disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
    /// Since when and why Flare has disabled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
    /// When it last began again, as if its client had nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<Timestamp>,
    /// How many documents its client may have that are deleted, and of which nothing is remembered that it could be told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forgotten: u64,
    /// The last replays, oldest first. Bound: [`KEPT_REPLAYS`]; the oldest goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<Replay>,
    /// The number of the newest replay; numbers are never reused.
    #[serde(default)]
    pub last_replay: u64,
    /// What signs, oldest first. Bound: two. Empty where an earlier version stored the subscription.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<StoredSecret>,
    /// How often the filter was changed. Each feed knows which of these changes it has been swept for, so that a
    /// sweep is owed from the commit of the change on.
    #[serde(default)]
    pub filter_changes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How many replays of a subscription are remembered.
pub const KEPT_REPLAYS: usize = 20;

/// A replay that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Its number.
    pub number: u64,
    /// How many documents it sends.
    pub total: u64,
    /// Of a replay that goes over the log: the same by lane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<u64>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

/// What is left of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayLeft {
    /// Documents that it asked for and that wait or are in flight.
    pub waiting: u64,
    /// The lanes whose documents it has not all met yet, and how many of each it has.
    pub sweeping: Vec<(u8, u64)>,
}

impl Replay {
    /// How many of its documents are through: delivered, dropped, given up, or replaced by a newer change.
    pub fn done(&self, left: &ReplayLeft) -> u64 {
        let of = |lane: u8| self.lanes.get(usize::from(lane)).copied().unwrap_or(0);
        let unmet: u64 = left.sweeping.iter().map(|(lane, met)| of(*lane).saturating_sub(*met)).sum();
        self.total.saturating_sub(unmet).saturating_sub(left.waiting)
    }

    /// Whether nothing is left of it.
    pub fn is_done(&self, left: &ReplayLeft) -> bool {
        left.waiting == 0 && left.sweeping.is_empty()
    }
}

/// Why a subscription is disabled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disabled {
    /// Since when.
    pub since: Timestamp,
    /// Why, in words.
    pub reason: String,
    /// It was behind for so long that tombstones it needed may be gone: resuming sends everything again.
    #[serde(default)]
    pub start_over: bool,
}

/// Whether a subscription works: the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Flare stopped it, for the reason given.
    Disabled,
    /// A user stopped it.
    Paused,
    /// Nothing has succeeded for a while.
    Failing,
    /// The beginning is not through yet.
    Preparing,
    /// It works.
    Active,
}

impl Status {
    /// As users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Disabled => "disabled",
            Status::Paused => "paused",
            Status::Failing => "failing",
            Status::Preparing => "preparing",
            Status::Active => "active",
        }
    }
}

/// A subscription as users see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Subscription")]
pub struct View {
    /// Its id.
    pub id: SubscriptionId,
    /// The resource.
    pub resource: ResourceId,
    /// What was said, with every default filled in.
    #[serde(flatten)]
    pub draft: Draft,
    /// Whether it works.
    pub status: Status,
    /// Since when that is so.
    pub since: Timestamp,
    /// Why it is so, where there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Values that the configuration does not allow any more: shown above, and in force, is what it does allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lowered: Vec<Lowered>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed by a user.
    pub updated_at: Timestamp,
    /// What signs now, oldest first, without the values.
    pub secrets: Vec<SecretView>,
    /// The value of the newest secret: only in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "secret::reveal")]
    #[schemars(with = "Option<Secret>")]
    pub secret: Option<Secret>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_a_replay_counts_documents() {
        let replay =
            Replay { number: 1, total: 30, lanes: vec![10, 0, 20], created_at: Timestamp::from_millis(0) };
        for (waiting, sweeping, done) in [
            (0, vec![(0, 0), (2, 0)], 0),
            (4, vec![(0, 6), (2, 0)], 2),
            (0, vec![(2, 5)], 15),
            (0, vec![(2, 25)], 30),
            (3, vec![], 27),
            (40, vec![], 0),
            (0, vec![], 30),
        ] {
            let left = ReplayLeft { waiting, sweeping };
            assert_eq!(replay.done(&left), done, "{left:?}");
            assert_eq!(replay.is_done(&left), left == ReplayLeft::default());
        }
    }
}
