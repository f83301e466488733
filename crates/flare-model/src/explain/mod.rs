//! Why was a client told, or not? Everything known about one document and one subscription comes in as
//! [`Evidence`]; a [`Verdict`] and the facts behind it, in the order in which Flare looks at them, go out. Pure.
//!
//! This is the one place to extend: what a new feature knows becomes a field of [`Evidence`], one more function in
//! [`STEPS`] that turns it into facts, and, where it decides, a line in [`verdict`].

mod next;
mod steps;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::feed::{Action, ClientHas, Glimpse, Left};
use crate::health::Fares;
use crate::ids::ResourceId;
use crate::pace::Throttle;
use crate::revision::Revision;
use crate::subscription::{Disabled, Pause, RateLimit, Start};
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
    pub filter: Option<Considered>,
    /// What its `when` says of telling it now; nothing where it has none, or there is nothing to tell.
    pub when: Option<Considered>,
    /// What the feed knows of it, with what the ledger has of it; nothing where there is no document.
    pub glimpse: Option<Glimpse>,
    /// What was told of it lately.
    pub lately: Lately,
    /// The subscription.
    pub subscription: Settings,
    /// How it stands on its thread.
    pub condition: Condition,
}

/// An expression of the subscription, and what came of it for the document as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Considered {
    /// As it was written.
    pub expression: String,
    /// The values that it saw, each with how it is written there.
    pub seen: Vec<(String, String)>,
    /// What came of it, or why nothing did.
    pub result: Result<bool, String>,
}

/// What was told of a document lately, as far as attempts are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lately {
    /// The last attempt.
    pub last: Option<Tried>,
    /// The revision that the client has, as the origin wrote it, where that is known.
    pub has: Option<String>,
    /// How long attempts are kept, in words.
    pub kept: String,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// When it ended.
    pub at: Timestamp,
    /// What was told.
    pub action: Action,
    /// In which revision.
    pub revision: String,
    /// Whether that is the newest change.
    pub newest: bool,
    /// How it ended: `delivered`, `discarded` or `failed`.
    pub outcome: &'static str,
    /// How the client answered, in words.
    pub answer: String,
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
    /// By whom, and why, as far as that is known.
    pub pause: Option<Box<Pause>>,
    /// Since when and why Flare has disabled it.
    pub disabled: Option<Disabled>,
    /// Its rate limit.
    pub rate_limit: Option<RateLimit>,
    /// Its client asks for what it wants.
    pub passive: bool,
}

/// How a subscription stands at the moment, whatever the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Attempts open now.
    pub in_flight: u32,
    /// How many may be open now.
    pub room: u32,
    /// Failures since the last success; those of requests that were open at the same time count once.
    pub failures: u32,
    /// Whether its client fails.
    pub fares: Fares,
    /// It is asked one thing at a time.
    pub throttle: Option<Throttle>,
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

impl Condition {
    /// What keeps all that is owed from being sent, where it is not the subscription itself that stands still.
    fn hindrance(&self) -> Option<String> {
        let Condition { silent_host, in_line, .. } = self;
        match silent_host {
            Some((host, wait)) => {
                let again = words::soon(*wait);
                Some(format!("the host {host} does not answer: it is left alone, and asked again {again}"))
            }
            None => in_line.as_ref().map(InLine::words),
        }
    }
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

impl InLine {
    /// In words.
    pub fn words(&self) -> String {
        let InLine { host, open, most, slow } = self;
        let to = host.as_ref().map_or_else(|| "any host".to_owned(), |host| format!("host {host}"));
        let slow = slow.filter(|slow| *slow > 0);
        let slow = slow.map(|slow| format!(", {slow} by slow clients")).unwrap_or_default();
        format!("waits for a connection to {to}: {open} of {most} in use{slow}")
    }
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
    /// It is owed, but the subscription is disabled.
    Disabled,
    /// It is owed, but the subscription is paused.
    Paused,
    /// It is owed, and will be sent.
    Waiting,
    /// The policy gave it up.
    GaveUp,
    /// It is none of the client's: its filter says so, or cannot say.
    Filtered,
    /// Nothing is owed, but whether the client has it is unknown.
    InDoubt,
    /// The client asked to drop the newest change, and does not have it.
    Discarded,
    /// The policy gave it up, and then its dead letter was dropped.
    Dropped,
    /// The subscription's `when` says not to tell it, or cannot say.
    HeldBack,
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
    /// What its `when` says.
    When,
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
    /// What a person can do next, in words.
    pub next: String,
    /// The facts, in the order in which Flare looks at them.
    pub facts: Vec<Fact>,
}

/// Turns one part of the evidence into facts.
type Step = fn(&Evidence, &mut Vec<Fact>);

/// The order of the facts.
const STEPS: [Step; 11] = [
    steps::pattern,
    steps::revision,
    steps::filter,
    steps::when,
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
    let verdict = verdict(evidence);
    Explanation { verdict, next: next::step(evidence, verdict), facts }
}

/// The first that holds.
fn verdict(evidence: &Evidence) -> Verdict {
    if evidence.owner.as_ref().is_none_or(|owner| owner.id != evidence.resource) {
        return Verdict::NoMatch;
    }
    let (Some(document), Some(glimpse)) = (&evidence.document, &evidence.glimpse) else {
        return Verdict::Unknown;
    };
    let owed = glimpse.is_owed();
    let settings = &evidence.subscription;
    let left = glimpse.note.as_ref().map(|note| note.left);
    let stays = left.is_some_and(Left::stays)
        && glimpse.client_has(&document.row) == ClientHas::Newest
        && !document.row.deleted;
    let excluded = evidence.filter.as_ref().is_some_and(|filter| filter.result == Ok(false));
    let unclear = evidence.filter.as_ref().is_some_and(|filter| filter.result.is_err());
    // By wall clocks, which jump: of what the client has, it was told.
    let before = !glimpse.held && settings.start == Start::Now && document.updated_at <= settings.created_at;
    let kept = !before && evidence.when.as_ref().is_some_and(|when| when.result != Ok(true));
    match () {
        () if glimpse.open.is_some() => Verdict::InFlight,
        () if owed && settings.disabled.is_some() => Verdict::Disabled,
        () if owed && settings.paused_since.is_some() => Verdict::Paused,
        () if owed => Verdict::Waiting,
        () if glimpse.dead => Verdict::GaveUp,
        () if glimpse.doubt => Verdict::InDoubt,
        // What is out of the filter and not with the client stays so when the reader comes to it.
        () if excluded && !glimpse.held => Verdict::Filtered,
        // What it was to lose by a filter of before, it is to have again.
        () if stays && !excluded && !unclear => Verdict::Delivered,
        () if matches!(left, Some(Left::Discarded | Left::LeaveDiscarded)) => Verdict::Discarded,
        () if matches!(left, Some(Left::Dropped | Left::LeaveDropped)) => Verdict::Dropped,
        () if unclear && (!glimpse.held || glimpse.untold || glimpse.unread) => Verdict::Filtered,
        () if kept && (!glimpse.held || glimpse.untold || glimpse.unread) => Verdict::HeldBack,
        () if glimpse.noted => Verdict::HeldBack,
        () if glimpse.held && !document.row.deleted => Verdict::Delivered,
        () => Verdict::NotHeld,
    }
}

/// All that is said of a document in one line.
#[derive(Clone, Copy, Debug)]
pub struct Gist<'a> {
    /// The document.
    pub known: &'a Known,
    /// What the feed and the ledger have of it.
    pub glimpse: &'a Glimpse,
    /// The subscription.
    pub settings: &'a Settings,
    /// What its filter says.
    pub filter: Option<&'a Considered>,
    /// What its `when` says.
    pub when: Option<&'a Considered>,
    /// The revision that the client has, where that is known.
    pub has: Option<&'a str>,
    /// How the subscription stands at the moment.
    pub condition: &'a Condition,
}

/// Why a client lags behind a document, or doesn't, in one line: the shortest form of an explanation.
pub fn why(gist: &Gist<'_>) -> String {
    words::why(gist)
}
