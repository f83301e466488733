//! What notifications contain: the draft of `content` and `data` comes in; one checked shape of body goes out.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataValue, Draft, Scalar, Target, Way};
use crate::bridge;
use crate::invalid::Invalid;
use crate::patch::{PatchDraft, PatchKind};
use crate::resource::Resource;

/// What notifications contain, as users write it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContentDraft {
    /// `flare` or `cloudevents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// How an event is put into HTTP; for `cloudevents` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<EventMode>,
    /// Whether the body is an envelope; for `flare` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<bool>,
    /// Whether the body has the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<bool>,
    /// Whether an update is told as the difference to what the client has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchDraft>,
}

/// Whose words a notification uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Flare's own.
    #[default]
    Flare,
    /// CloudEvents 1.0.
    CloudEvents,
}

/// How a CloudEvent is put into HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventMode {
    /// The body is the event, with the document in it.
    #[default]
    Structured,
    /// The body is the document, the rest of the event is in headers.
    Binary,
}

/// A subscription that gets CloudEvents.
#[derive(Clone, Debug)]
pub struct Event {
    /// How they are put into HTTP.
    pub mode: EventMode,
    /// Where they come from: the endpoint of the resource, as a URI.
    pub source: Arc<str>,
}

/// What a body is made of, checked.
#[derive(Clone, Debug)]
pub struct Content {
    /// Set for CloudEvents.
    pub event: Option<Event>,
    /// Whether the body is Flare's envelope.
    pub envelope: bool,
    /// Whether the body has the document.
    pub document: bool,
    /// Set where an update is told as the difference to what the client has.
    pub patch: Option<PatchKind>,
}

/// The names of CloudEvents 1.0 that `data` cannot take.
const OF_THE_EVENT: [&str; 10] = [
    "specversion",
    "id",
    "source",
    "type",
    "datacontenttype",
    "dataschema",
    "subject",
    "time",
    "data",
    "data_base64",
];

/// Checks what belongs together.
pub(super) fn check(draft: &Draft, resource: &Resource, way: &Way) -> Result<Content, Invalid> {
    let given = &draft.content;
    let targets = way.targets();
    if let Way::Sink(sink) = way {
        check_for_sink(given, sink)?;
    }
    let document = given.document.unwrap_or(true);
    let patch = given.patch.and_then(|patch| patch.0);
    if patch.is_some() && !document {
        return Err(Invalid::new(
            "content.patch",
            "needs content.document to be true: it stands in its place",
        ));
    }
    match given.format.unwrap_or_default() {
        Format::Flare => {
            if given.mode.is_some() {
                return Err(Invalid::new("content.mode", "needs content.format to be `cloudevents`"));
            }
            let envelope = given.envelope.unwrap_or(true);
            if !envelope && !draft.data.is_empty() {
                let problem = "needs content.envelope to be true: it is part of the envelope";
                return Err(Invalid::new("data", problem));
            }
            if patch.is_some() && !envelope {
                check_content_type(targets, "a patch")?;
            }
            Ok(Content { event: None, envelope, document, patch })
        }
        Format::CloudEvents => {
            if given.envelope.is_some() {
                let problem = "belongs to the format `flare`: an event is its own envelope; leave it out (null in a patch)";
                return Err(Invalid::new("content.envelope", problem));
            }
            for (name, value) in &draft.data {
                check_attribute(name, value)?;
            }
            let mode = given.mode.unwrap_or_default();
            check_headers(targets)?;
            if mode == EventMode::Structured {
                check_content_type(targets, "a structured event")?;
            } else if patch.is_some() {
                check_content_type(targets, "a patch")?;
            }
            let source = resource.uri().into();
            Ok(Content { event: Some(Event { mode, source }), envelope: false, document, patch })
        }
    }
}

/// A stream of Kinesis has no headers: what names a notification is in its body.
fn check_for_sink(given: &ContentDraft, sink: &bridge::Target) -> Result<(), Invalid> {
    if !matches!(sink, bridge::Target::Kinesis(_)) {
        return Ok(());
    }
    let problem =
        "must be true for aws.kinesis: its records have no headers, and the envelope names the notification";
    if given.envelope == Some(false) {
        return Err(Invalid::new("content.envelope", problem));
    }
    if given.mode == Some(EventMode::Binary) {
        return Err(Invalid::new(
            "content.mode",
            "must be `structured` for aws.kinesis: its records have no headers",
        ));
    }
    Ok(())
}

/// `data` becomes extension attributes of the event, whose names and types CloudEvents restricts.
fn check_attribute(name: &str, value: &DataValue) -> Result<(), Invalid> {
    let wrong = |problem: &str| Err(Invalid::new(format!("data.{name}"), problem));
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() || name.len() > 20 || !name.chars().all(legal) {
        return wrong(
            "becomes an attribute of the event: its name has 1 to 20 small letters and digits, no others",
        );
    }
    if OF_THE_EVENT.contains(&name) || name.starts_with("flare") {
        return wrong(
            "is an attribute that every event has already, or begins like one of Flare's; choose another name",
        );
    }
    match value {
        DataValue::One(Scalar::Text(_) | Scalar::Boolean(_)) => Ok(()),
        DataValue::One(Scalar::Number(n)) if n.get().parse::<i32>().is_ok() => Ok(()),
        DataValue::One(Scalar::Number(_)) => wrong(
            "becomes an attribute of the event: a number must be whole and fit 32 bits; give it as a string",
        ),
        DataValue::Many(_) => wrong("becomes an attribute of the event, which cannot be a list"),
    }
}

fn check_headers(targets: &[Arc<Target>]) -> Result<(), Invalid> {
    match targets.iter().flat_map(|target| &target.headers).find(|(name, _)| name.starts_with("ce-")) {
        None => Ok(()),
        Some((name, _)) => {
            let problem = "belongs to the event and is set by Flare; use data for attributes";
            Err(Invalid::new(format!("endpoint.headers.{name}"), problem))
        }
    }
}

fn check_content_type(targets: &[Arc<Target>], what: &str) -> Result<(), Invalid> {
    let given = targets.iter().flat_map(|target| &target.headers).any(|(name, _)| name == "content-type");
    if !given {
        return Ok(());
    }
    let problem = format!("is how a client tells {what}, and is set by Flare; leave it out");
    Err(Invalid::new("endpoint.headers.content-type", problem))
}

/// Fills in what was not said.
pub(super) fn fill(draft: &mut ContentDraft, content: &Content) {
    draft.document = Some(content.document);
    match &content.event {
        // The format is not named where nobody did: it is what it always was.
        None => draft.envelope = Some(content.envelope),
        Some(event) => {
            draft.format = Some(Format::CloudEvents);
            draft.mode = Some(event.mode);
        }
    }
}
