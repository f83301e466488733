//! Dead letters: what was given up, with the reason, until it is replayed, replaced or dropped.

use flare_model::feed::{Action, Standing};
use flare_model::ids::{FeedId, LaneId, ResourceId, SubscriptionId, SubscriptionNumber};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::ListStandings;
use schemars::JsonSchema;
use serde::Serialize;

use crate::journey::Command;
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::documents::explain::document_key;
use crate::registry::Subscription;

/// One dead letter.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterView {
    /// The document.
    pub document: String,
    /// In which revision.
    pub revision: Revision,
    /// What the last attempt told.
    pub action: Option<Action>,
    /// How many attempts there were.
    pub attempts: u32,
    /// When the first began.
    pub first_attempt_at: Option<Timestamp>,
    /// When the last began.
    pub last_attempt_at: Option<Timestamp>,
    /// The status of the last answer; nothing where there was none.
    pub status: Option<u16>,
    /// What went wrong where there was no answer.
    pub error: Option<String>,
    /// The beginning of the last answer's body.
    pub response: Option<String>,
}

/// A part of the list.
pub struct DeadLetterPage {
    /// How many there are in all.
    pub total: u64,
    /// The part.
    pub letters: Vec<DeadLetterView>,
}

impl App {
    /// Lists dead letters.
    pub async fn dead_letters(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        offset: u64,
        limit: u64,
    ) -> Done<DeadLetterPage> {
        let subscription = self.subscription(resource, id)?;
        self.record(&subscription).await?;
        let number = subscription.number();
        let list = ListStandings { subscription: number, dead: true, offset, limit };
        let (total, standings) = self.store.ledger.standings(list).await?;
        let letters = self.letters(&subscription, standings).await?;
        Ok(DeadLetterPage { total, letters })
    }

    /// Dead letters as they are shown, with their documents.
    pub(in crate::operations) async fn letters(
        &self,
        subscription: &Subscription,
        standings: Vec<(u8, Standing)>,
    ) -> Done<Vec<DeadLetterView>> {
        let mut letters = Vec::with_capacity(standings.len());
        for (index, standing) in standings {
            let lane = LaneId { resource: subscription.compiled.resource.number, index };
            let (mut found, _) = self.store.documents.fetch(lane, &[standing.ordinal]).await?;
            let Some(document) = found.pop().flatten() else { continue };
            let trouble = standing.trouble.as_deref();
            letters.push(DeadLetterView {
                document: document.url.to_string(),
                revision: document.revision,
                action: trouble.map(|t| t.action),
                attempts: trouble.map_or(0, |t| t.attempts),
                first_attempt_at: trouble.map(|t| t.first_attempt_at),
                last_attempt_at: trouble.map(|t| t.last_attempt_at),
                status: trouble.and_then(|t| t.status),
                error: trouble.and_then(|t| t.error.clone()),
                response: trouble.and_then(|t| t.response.clone()),
            });
        }
        Ok(letters)
    }

    /// Drops one dead letter, or all. What the client has stays as it is.
    pub async fn drop_dead_letters(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        document: Option<&str>,
    ) -> Done<usize> {
        let subscription = self.subscription(resource, id)?;
        let number = subscription.number();
        // How the attempts went is not in memory, and is kept with the note of what was dropped.
        self.record(&subscription).await?;
        let letters = match document {
            None => self.all_letters(number).await?,
            Some(url) => {
                let key = document_key(&subscription.compiled.resource, url)?;
                let lane = subscription.compiled.resource.lane_of(key.as_str());
                let found = self.store.documents.get(lane, key.as_str()).await?;
                let feed = FeedId { subscription: number, lane: lane.index };
                let letter = match found {
                    Some(document) => self.store.ledger.standing(feed, document.row.ordinal).await?,
                    None => None,
                };
                letter.map(|letter| (lane.index, letter)).into_iter().collect()
            }
        };
        let drop = |reply| Command::DropDead(number, letters.clone(), reply);
        let dropped = self.journey.ask(number, drop).await;
        let dropped = dropped.ok_or_else(|| self.left(&subscription))?;
        if dropped == 0 && document.is_some() {
            return Err(Failure::NotFound("there is no dead letter of this document".into()));
        }
        self.record(&subscription).await?;
        Ok(dropped)
    }

    /// All dead letters of a subscription. Bound: its documents.
    async fn all_letters(&self, subscription: SubscriptionNumber) -> Done<Vec<(u8, Standing)>> {
        const PAGE: u64 = 1_000;
        let mut letters = Vec::new();
        loop {
            let list = ListStandings { subscription, dead: true, offset: letters.len() as u64, limit: PAGE };
            let (_, page) = self.store.ledger.standings(list).await?;
            let last = (page.len() as u64) < PAGE;
            letters.extend(page);
            if last {
                return Ok(letters);
            }
        }
    }

    /// What the ledger says of a subscription is as new as what its thread knows.
    pub(in crate::operations) async fn record(&self, subscription: &Subscription) -> Done<()> {
        let number = subscription.number();
        let recorded = self.journey.ask(number, |reply| Command::Record(number, reply)).await;
        recorded.ok_or_else(|| self.left(subscription))
    }
}
