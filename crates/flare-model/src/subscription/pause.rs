//! A pause: what somebody says who stops a subscription comes in; who it was and why, in words, goes out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::invalid::Invalid;

/// A reason has at most so many characters.
pub const LONGEST_REASON: usize = 500;

/// `POST .../pause`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PauseDraft {
    /// Why, for whoever finds it paused.
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
}

/// Who paused a subscription, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who.
    pub by: PausedBy,
    /// Why, where it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// By which way somebody paused a subscription: nobody has a name here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PausedBy {
    /// By a request to the API, as the command line sends them too.
    Api,
    /// In the web interface.
    WebInterface,
}

impl PauseDraft {
    /// The pause that somebody asks for.
    pub fn pause(self, by: PausedBy) -> Result<Pause, Invalid> {
        let reason = self.reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
            return Err(Invalid::new("reason", format!("must have at most {LONGEST_REASON} characters")));
        }
        Ok(Pause { by, reason })
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            PausedBy::Api => "paused through the API",
            PausedBy::WebInterface => "paused in the web interface",
        })?;
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_says_who_and_why() {
        let said = |reason: Option<&str>, by| {
            let draft = PauseDraft { reason: reason.map(str::to_owned) };
            draft.pause(by).map(|pause| pause.to_string()).map_err(|invalid| invalid.to_string())
        };
        assert_eq!(said(None, PausedBy::Api).unwrap(), "paused through the API");
        assert_eq!(said(Some("  "), PausedBy::WebInterface).unwrap(), "paused in the web interface");
        assert_eq!(
            said(Some(" their migration "), PausedBy::Api).unwrap(),
            "paused through the API: their migration"
        );
        assert!(said(Some(&"ß".repeat(LONGEST_REASON)), PausedBy::Api).is_ok());
        let refused = said(Some(&"ß".repeat(LONGEST_REASON + 1)), PausedBy::Api).unwrap_err();
        assert!(refused.contains("reason") && refused.contains("500"), "{refused}");
    }
}
