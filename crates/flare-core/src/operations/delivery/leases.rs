//! The leases of a subscription: listed, and ended by an operator. In: which. Out: what clients have, or how many ended.

use flare_model::feed::Action;
use flare_model::ids::{LaneId, ResourceId, SubscriptionId};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::journey::Command;
use crate::journey::passive::{Ask, EndLeases, LeaseEnd, LeaseOut};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::documents::explain::document_key;

/// A lease that is out.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Lease")]
pub struct LeaseView {
    /// The document.
    pub document: String,
    /// What was told of it.
    pub action: Action,
    /// In which revision.
    pub revision: Revision,
    /// Which attempt for this revision, from 1.
    pub attempt: u32,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

/// A part of the list.
pub struct LeasePage {
    /// How many there are in all.
    pub total: u64,
    /// The part.
    pub leases: Vec<LeaseView>,
}

/// The answer of `DELETE .../leases`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EndedLeases")]
pub struct EndedView {
    /// How many leases were ended.
    pub ended: usize,
}

impl App {
    /// Lists leases, those that end first at the front. A subscription that is active by now may have some too.
    pub async fn leases(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        offset: usize,
        limit: usize,
    ) -> Done<LeasePage> {
        let subscription = self.subscription(resource, id)?;
        let number = subscription.number();
        let out = self.journey.ask(number, |reply| Command::Passive(number, Ask::Leases(reply))).await;
        let mut out = out.ok_or_else(|| self.left(&subscription))?;
        out.sort_by_key(|lease| (lease.until, lease.lane, lease.ordinal));
        let total = out.len() as u64;
        let mut leases = Vec::new();
        for lease in out.into_iter().skip(offset).take(limit) {
            let LeaseOut { lane, ordinal, seq, action, revision, attempt, until } = lease;
            let lane = LaneId { resource: subscription.compiled.resource.number, index: lane };
            let (mut found, _) = self.store.documents.fetch(lane, &[ordinal]).await?;
            let Some(document) = found.pop().flatten() else { continue };
            // One of a Flare that did not keep it: the newest that there is.
            debug_assert!(revision.is_some() || document.row.seq >= seq, "it was read after that");
            let revision = revision.unwrap_or(document.revision);
            let document = document.url.to_string();
            leases.push(LeaseView { document, action, revision, attempt, expires_at: until });
        }
        Ok(LeasePage { total, leases })
    }

    /// Ends the lease of one document, or all, before their time. Each counts as an attempt, and its document goes back to
    /// the feed. Answers how many, once that is durable.
    pub async fn end_leases(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        document: Option<&str>,
    ) -> Done<EndedView> {
        let subscription = self.subscription(resource, id)?;
        let document = match document {
            None => None,
            Some(url) => {
                let key = document_key(&subscription.compiled.resource, url)?;
                let lane = subscription.compiled.resource.lane_of(key.as_str());
                match self.store.documents.get(lane, key.as_str()).await? {
                    Some(document) => Some((lane.index, document.row.ordinal)),
                    None => return Ok(EndedView { ended: 0 }),
                }
            }
        };
        let number = subscription.number();
        let which = EndLeases { document, word: LeaseEnd::Revoked };
        let end = |reply| Command::Passive(number, Ask::EndLeases(which, reply));
        let ended = self.journey.ask(number, end).await.ok_or_else(|| self.left(&subscription))?;
        tracing::info!(subscription.id = %subscription.id(), ended, "leases ended by an operator");
        Ok(EndedView { ended })
    }
}
