//! Why was a client told, or not? Everything known about one document and one subscription comes in as
//! [`Evidence`]; a [`Verdict`] and the facts behind it, in the order in which Flare looks at them, go out. Pure.
//!
//! This is the one place to extend: what a new feature knows becomes a field of [`Evidence`], one more function in
//! [`STEPS`] that turns it into facts, and, where it decides, a line in [`verdict`].

mod steps;
#[cfg(test)]
mod tests;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::feed::{Glimpse, Trouble};
use crate::ids::ResourceId;
use crate::revision::Revision;
use crate::subscription::{Disabled, RateLimit, Start};
use crate::time::Timestamp;

/// Everything that is known about one document and one subscription.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// When it was gathered.
    pub now: Timestamp,
    /// The document's normalised url.
    pub url: String,
    /// The resource of the subscription.
    pub resource: ResourceId,
    /// The resource that the url belongs to.
    pub owner: Option<Candidate>,
    /// Others whose endpoint the url fits too, but less specifically.
    pub fitting: Vec<Candidate>,
    /// What Flare has of the document.
    pub document: Option<Known>,
    /// What the subscription's filter says of it; nothing where it has none, or the document is deleted.
    pub membership: Option<Membership>,
    /// What the feed knows of it; nothing where there is no document.
    pub glimpse: Option<Glimpse>,
    /// How the attempts went of what was given up.
    pub dead: Option<Trouble>,
    /// The subscription.
    pub subscription: Settings,
    /// How it stands on its thread.
    pub condition: Condition,
}

/// What a filter says of a document as it is now.
#[derive(Clone, Debug, PartialEq)]
pub enum Membership {
    /// The client is to have it.
    Included,
    /// It is none of the client's.
    Excluded,
    /// It cannot be told, and the client is left as it is.
    Unclear(String),
}

impl Membership {
    /// Whether the client is to have it; `None` where it cannot be told.
    pub fn includes(&self) -> Option<bool> {
        match self {
            Membership::Included => Some(true),
            Membership::Excluded => Some(false),
            Membership::Unclear(_) => None,
        }
    }
}

/// A resource, as far as a url is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its id.
    pub id: ResourceId,
    /// Its endpoint.
    pub endpoint: String,
}

/// What Flare has of the document.
#[derive(Clone, Debug)]
pub struct Known {
    /// As the origin wrote it.
    pub revision: Revision,
    /// Its numbers.
    pub row: crate::document::Row,
    /// Its lane.
    pub lane: u8,
    /// When Flare accepted the last change.
    pub updated_at: Timestamp,
}

/// What was said about the subscription.
#[derive(Clone, Debug)]
pub struct Settings {
    /// When it was created.
    pub created_at: Timestamp,
    /// Where it started.
    pub start: Start,
    /// Since when a user has it paused.
    pub paused_since: Option<Timestamp>,
    /// Since when and why Flare has disabled it.
    pub disabled: Option<Disabled>,
    /// Its rate limit.
    pub rate_limit: Option<RateLimit>,
}

/// How a subscription stands at the moment, whatever the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Attempts open now.
    pub in_flight: u32,
    /// How many may be open now.
    pub room: u32,
    /// Failures since the last success.
    pub failures: u32,
    /// When the first of them ended.
    pub failing_since: Option<Timestamp>,
    /// Only probes are sent; so long until the next one.
    pub probe_in: Option<Duration>,
    /// A host of its own that does not answer, and so long until it is tried again.
    pub silent_host: Option<(String, Duration)>,
    /// The client said that it is too much, and wants to be left alone for so long.
    pub rests_for: Duration,
    /// So long until the rate limit allows the next attempt.
    pub rate_wait: Duration,
    /// A replay or the beginning goes over older documents.
    pub sweeping: bool,
    /// Connections that it stands in line for; nothing where it does not.
    pub in_line: Option<InLine>,
}

/// Connections that a subscription stands in line for.
#[derive(Clone, Debug, PartialEq)]
pub struct InLine {
    /// To this host; nothing where as many are open to all hosts together as may be.
    pub host: Option<String>,
    /// How many are open.
    pub open: u32,
    /// How many may be.
    pub most: u32,
    /// Those of them that clients have which are slow to answer, where that is known.
    pub slow: Option<u32>,
}

/// The answer in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The url is no document of the subscription's resource.
    NoMatch,
    /// Flare has never heard of the document, or has forgotten its deletion.
    Unknown,
    /// It is being sent.
    InFlight,
    /// It is none of the client's: its filter says so, or cannot say.
    Filtered,
    /// It is owed, but the subscription is disabled.
    Disabled,
    /// It is owed, but the subscription is paused.
    Paused,
    /// It is owed, and will be sent.
    Waiting,
    /// The policy gave it up.
    GaveUp,
    /// Nothing is owed, but whether the client has it is unknown.
    InDoubt,
    /// The client has the newest state.
    Delivered,
    /// The client does not have it, and nothing is to be sent.
    NotHeld,
}

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FactKind")]
pub enum Kind {
    /// Which resource the url belongs to.
    Pattern,
    /// What Flare has.
    Revision,
    /// What the subscription's filter says.
    Filter,
    /// What the client has, and where the feed is.
    Standing,
    /// An attempt: made, under way, or planned.
    Attempt,
    /// The client has failed lately, and is asked less.
    Breaker,
    /// Rate limit and concurrency.
    Rate,
    /// Connections that are waited for, to its host or to all.
    Host,
    /// The subscription stands still.
    Pause,
}

/// One fact.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fact {
    /// When it happened or will happen, where that is known.
    pub at: Option<Timestamp>,
    /// What it is about.
    pub fact: Kind,
    /// In words.
    pub detail: String,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// In a word.
    pub verdict: Verdict,
    /// The facts, in the order in which Flare looks at them.
    pub facts: Vec<Fact>,
}

/// Turns one part of the evidence into facts.
type Step = fn(&Evidence, &mut Vec<Fact>);

/// The order of the facts.
const STEPS: [Step; 10] = [
    steps::pattern,
    steps::revision,
    steps::filter,
    steps::standing,
    steps::attempt,
    steps::pause,
    steps::breaker,
    steps::host,
    steps::rate,
    steps::concurrency,
];

/// Explains.
pub fn explain(evidence: &Evidence) -> Explanation {
    let mut facts = Vec::new();
    for step in STEPS {
        step(evidence, &mut facts);
    }
    Explanation { verdict: verdict(evidence), facts }
}

/// The first that holds.
fn verdict(evidence: &Evidence) -> Verdict {
    if evidence.owner.as_ref().is_none_or(|owner| owner.id != evidence.resource) {
        return Verdict::NoMatch;
    }
    let (Some(document), Some(glimpse)) = (&evidence.document, &evidence.glimpse) else {
        return Verdict::Unknown;
    };
    // What is out of the filter and not with the client stays so when the reader comes to it.
    let filtered = match &evidence.membership {
        None | Some(Membership::Included) => false,
        Some(Membership::Excluded) => !glimpse.held,
        Some(Membership::Unclear(_)) => true,
    };
    let to_come = glimpse.unread && glimpse.to_tell && !filtered;
    let owed = glimpse.again || glimpse.waiting.is_some() || to_come;
    let settings = &evidence.subscription;
    match () {
        () if glimpse.open.is_some() => Verdict::InFlight,
        () if owed && settings.disabled.is_some() => Verdict::Disabled,
        () if owed && settings.paused_since.is_some() => Verdict::Paused,
        () if owed => Verdict::Waiting,
        () if glimpse.dead => Verdict::GaveUp,
        () if glimpse.doubt => Verdict::InDoubt,
        () if filtered => Verdict::Filtered,
        () if glimpse.held && !document.row.deleted => Verdict::Delivered,
        () => Verdict::NotHeld,
    }
}

/// Why a client lags behind a document, or doesn't, in one line: the shortest form of an explanation.
pub fn why(known: &Known, glimpse: &Glimpse, settings: &Settings) -> String {
    steps::why(known, glimpse, settings)
}
