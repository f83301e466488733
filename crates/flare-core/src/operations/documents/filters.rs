//! Expressions: trying one on a document without a subscription, and what those of a subscription left out.

use std::collections::BTreeMap;

use bytes::Bytes;
use flare_model::feed::{Action, Example, Filtering};
use flare_model::filter::{Filter, Inputs, Json, Position, Purpose};
use flare_model::invalid::Invalid;
use flare_model::layout::Instant;
use flare_model::revision::{Date, Revision};
use flare_model::subscription::Spec;
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::journey::RECENT_ERROR;
use crate::operations::App;
use crate::operations::Done;

/// `POST /filters/test`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "FilterTest", extend("oneOf" = [
    {"required": ["filter"], "properties": {"filter": {"type": "string"}, "when": {"type": "null"}}},
    {"required": ["when"], "properties": {"when": {"type": "string"}, "filter": {"type": "null"}}},
]))]
pub struct FilterTrial {
    /// Membership; this or `when`.
    pub filter: Option<String>,
    /// Whether to tell; this or `filter`.
    pub when: Option<String>,
    /// The document; without one it is as after a delete. As it is written: an expression tells `-0` from `-0.0`.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub document: Option<Box<RawValue>>,
    /// Its revision; 1 where none is given.
    #[schemars(with = "Option<Revision>")]
    pub revision: Option<Value>,
    /// The values of the wildcards.
    pub wildcards: BTreeMap<String, String>,
    /// What would be told; for `when`.
    pub action: Option<Action>,
    /// The document as the client last got it; for `when`.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub state: Option<Box<RawValue>>,
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FilterTestResult")]
pub enum FilterTrialView {
    /// The expression has a value.
    Result(bool),
    /// It has none.
    Error(FilterTrialError),
}

/// Why there is no value.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FilterTestError")]
pub struct FilterTrialError {
    /// What kind of problem, in a few words.
    pub title: &'static str,
    /// What exactly.
    pub detail: String,
    /// Where the mistake is, if it is one of the expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// What the expressions of a subscription left out, in its status.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilterView {
    /// How often a document was left out by `filter`.
    pub excluded: u64,
    /// How often a change was left out by `when`.
    pub not_told: u64,
    /// How often an expression had no result.
    pub errors: u64,
    /// The last such error.
    pub last_error: Option<FilterErrorView>,
    /// It is less than a day old: the subscription is among those in trouble.
    pub erring: bool,
}

/// An expression that had no result.
#[derive(Serialize, JsonSchema)]
pub struct FilterErrorView {
    /// When.
    pub at: Timestamp,
    /// About which document.
    pub document: String,
    /// What is wrong.
    pub error: String,
}

impl FilterView {
    /// Shown where there is an expression, or something was counted while there was one.
    pub(in crate::operations) fn of(
        spec: &Spec,
        seen: Option<Filtering>,
        now: Timestamp,
    ) -> Option<FilterView> {
        let counted = |kept: &Filtering| kept.excluded + kept.not_told + kept.errors > 0;
        if !spec.has_expressions() && !seen.as_ref().is_some_and(counted) {
            return None;
        }
        let Filtering { excluded, not_told, errors, last_error, .. } = seen.unwrap_or_default();
        let last_error =
            last_error.map(|Example { at, document, error }| FilterErrorView { at, document, error });
        let erring = last_error.as_ref().is_some_and(|last| now.since(last.at) < RECENT_ERROR);
        Some(FilterView { excluded, not_told, errors, last_error, erring })
    }
}

impl App {
    /// Evaluates an expression as a subscription would.
    pub fn try_filter(&self, trial: &FilterTrial) -> Done<FilterTrialView> {
        let (field, source, purpose) = match (&trial.filter, &trial.when) {
            (Some(filter), None) => ("filter", filter, Purpose::Membership),
            (None, Some(when)) => ("when", when, Purpose::Telling),
            _ => return Err(Invalid::new("filter", "give either `filter` or `when`").into()),
        };
        let document =
            trial.document.as_ref().map_or(Ok(Json::nothing()), |value| json("document", value))?;
        let state = trial.state.as_ref().map(|value| json("state", value)).transpose()?;
        let revision = revision(trial.revision.as_ref())?;
        let wildcards: Vec<(&str, &str)> =
            trial.wildcards.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let compiled = match Filter::compile(source, purpose, None) {
            Ok(compiled) => compiled,
            Err(mistake) => {
                return Ok(FilterTrialView::Error(FilterTrialError {
                    title: "The expression is not valid",
                    detail: format!("{field}: {mistake}"),
                    position: Some(mistake.position),
                }));
            }
        };
        let (wildcards, state) = (wildcards.as_slice(), state.as_ref());
        let inputs =
            Inputs { document: &document, revision: &revision, wildcards, action: trial.action, state };
        Ok(match compiled.decide(&inputs) {
            Ok(result) => FilterTrialView::Result(result),
            Err(error) => FilterTrialView::Error(FilterTrialError {
                title: "The expression has no result for this document",
                detail: error.to_string(),
                position: None,
            }),
        })
    }
}

fn json(field: &str, value: &RawValue) -> Result<Json, Invalid> {
    if !value.get().starts_with('{') {
        return Err(Invalid::new(field, "must be a JSON object"));
    }
    Json::new(Bytes::copy_from_slice(value.get().as_bytes())).map_err(|error| Invalid::new(field, error))
}

fn revision(value: Option<&Value>) -> Result<Revision, Invalid> {
    match value {
        None => Ok(Revision::Integer(1)),
        Some(Value::String(text)) => {
            Ok(Revision::Date(Date::new(Instant { seconds: 0, nanos: 0 }, text.as_str())))
        }
        Some(value) => value
            .as_i64()
            .map(Revision::Integer)
            .ok_or_else(|| Invalid::new("revision", "must be an integer, or the text of a date")),
    }
}
