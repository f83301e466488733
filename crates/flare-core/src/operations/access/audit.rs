//! The audit log: whatever changes something but documents is written down with who did it, before they are answered.

use flare_model::access::Caller;
use flare_model::time::Timestamp;
use flare_provider::{Act, ListActs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operations::{App, Done, Failure};
use crate::registry::Slice;

/// Acts that are removed in one commit.
const SLICE: usize = 1000;

/// Something that was done, or tried.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AuditEvent")]
pub struct ActView {
    /// When.
    pub at: Timestamp,
    /// In which account.
    pub account: String,
    /// By whose token.
    pub token: Option<ActToken>,
    /// From which address.
    pub address: Option<String>,
    /// What, by the name that the description of the API gives it.
    pub operation: String,
    /// To what: a path.
    pub target: String,
    /// What it was answered with.
    pub status: u16,
}

/// Whose token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditToken")]
pub struct ActToken {
    /// Its id.
    pub id: String,
    /// Its name, as it was.
    pub name: String,
}

/// Which acts.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditQuery {
    /// Only those at this time or later.
    pub since: Option<Timestamp>,
    /// After so many.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

impl App {
    /// Writes down what a caller did. That it cannot be written down does not undo it: the log of the node has it then.
    pub async fn note_act(&self, by: &Caller, address: Option<String>, what: (&str, String), status: u16) {
        let (operation, target) = what;
        let token =
            by.token.as_ref().map(|token| ActToken { id: token.id.clone(), name: token.name.clone() });
        let view = ActView {
            at: self.clock.now(),
            account: by.account.to_string(),
            token,
            address,
            operation: operation.to_owned(),
            target,
            status,
        };
        let body = serde_json::to_string(&view).expect("an act is plain data");
        let act = Act { at: view.at, account: view.account.clone(), body };
        if let Err(error) = self.store.acts.append(act).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, act = ?view, "something was done and could not be written into the audit log");
        }
    }

    /// A part of what was done, the last first: in the caller's account, or in all of them for the operator who names none.
    pub async fn audit(&self, by: &Caller, query: AuditQuery) -> Done<Slice<ActView>> {
        self.access()?;
        if !by.sees_whole_account() {
            let detail = "this tells of the whole account, and the token is limited to a part of it";
            return Err(Failure::Forbidden(detail.to_owned()));
        }
        let account = (!by.operator || by.named).then(|| by.account.to_string());
        let AuditQuery { since, offset, limit } = query;
        let page = self.store.acts.list(ListActs { account, since, offset, limit }).await?;
        let read = |act: Act| serde_json::from_str(&act.body).ok();
        Ok(Slice { total: page.total as usize, entries: page.acts.into_iter().filter_map(read).collect() })
    }

    /// Removes what is older than it is kept.
    pub(in crate::operations) async fn trim_audit(&self) -> Done<()> {
        let retention = i64::try_from(self.config.auth.audit_retention.as_millis()).unwrap_or(i64::MAX);
        let before = self.clock.now().moved(retention.saturating_neg());
        while self.store.acts.trim(before, SLICE).await? == SLICE as u64 {}
        Ok(())
    }
}
