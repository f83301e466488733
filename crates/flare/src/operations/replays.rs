//! Replays: a client is told again, on request.

use flare_model::document::Document;
use flare_model::feed::SweepKind;
use flare_model::ids::{Ordinal, ResourceId, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::subscription::{KEPT_REPLAYS, Replay};
use flare_model::time::Timestamp;
use flare_model::url::DocumentUrl;
use serde::{Deserialize, Serialize};

use super::{App, Done, Failure};
use crate::journey::{Command, replay_id};
use crate::registry::Subscription;

/// `POST .../replay`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplayDraft {
    /// What to send again; everything, where nothing is said.
    pub scope: Option<ReplayScope>,
    /// Only documents accepted since then; with scope `all`.
    pub since: Option<Timestamp>,
    /// Only this document.
    pub document: Option<String>,
}

/// What to send again.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReplayScope {
    /// Every document.
    All,
    /// Documents that wait for a retry or were given up.
    Lagging,
    /// Documents that were given up.
    DeadLetters,
}

/// `GET .../replays/:id`.
#[derive(Serialize)]
pub struct ReplayView {
    /// Its id.
    pub id: String,
    /// How many documents it goes over.
    pub total: u64,
    /// How many of them are through.
    pub done: u64,
    /// `running` or `done`.
    pub state: &'static str,
}

impl App {
    /// Begins a replay.
    pub async fn replay(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        draft: ReplayDraft,
    ) -> Done<ReplayView> {
        let scope = draft.scope.unwrap_or(ReplayScope::All);
        if draft.since.is_some() && (scope != ReplayScope::All || draft.document.is_some()) {
            return Err(Invalid::new("since", "goes with the scope `all`, without a document").into());
        }
        let _catalog = self.catalog.lock().await;
        let subscription = self.subscription(resource, id)?;
        let number = subscription.stored.last_replay + 1;
        // The number is durable before anything is sent under it: no two replays share one.
        let subscription = self.keep(&subscription, |stored| stored.last_replay = number).await?;
        let total = match (&draft.document, scope) {
            (Some(url), _) => self.replay_document(&subscription, url, number).await?,
            (None, ReplayScope::All) => self.replay_all(&subscription, draft.since, number).await?,
            (None, ReplayScope::Lagging) => {
                let waiting = self.ask_number(&subscription, Command::Hasten).await?;
                waiting as u64 + self.replay_dead(&subscription, number).await?
            }
            (None, ReplayScope::DeadLetters) => self.replay_dead(&subscription, number).await?,
        };
        // Accepted means durable: killed from here on, the next process goes on with it.
        self.record(&subscription).await?;
        let created_at = self.clock.now();
        let begun = Replay { number, total, created_at };
        let subscription = self
            .keep(&subscription, |stored| {
                stored.replays.push(begun.clone());
                if stored.replays.len() > KEPT_REPLAYS {
                    stored.replays.remove(0);
                }
            })
            .await?;
        self.progress(&subscription, &begun).await
    }

    /// How far a replay is.
    pub async fn replay_progress(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        replay: &str,
    ) -> Done<ReplayView> {
        let subscription = self.subscription(resource, id)?;
        let known = subscription.stored.replays.iter().find(|known| replay_id(known.number) == replay);
        let known = known.ok_or_else(|| Failure::NotFound(format!("there is no replay {replay}")))?;
        self.progress(&subscription, known).await
    }

    async fn progress(&self, subscription: &Subscription, replay: &Replay) -> Done<ReplayView> {
        let seen = self.inspect(subscription).await?;
        let left = seen.replays.iter().find(|(number, _)| *number == replay.number);
        let left = left.map_or(0, |(_, left)| (*left).min(replay.total.max(1)));
        Ok(ReplayView {
            id: replay_id(replay.number),
            total: replay.total,
            done: replay.total.saturating_sub(left),
            state: if left == 0 { "done" } else { "running" },
        })
    }

    async fn replay_all(
        &self,
        subscription: &Subscription,
        since: Option<Timestamp>,
        replay: u64,
    ) -> Done<u64> {
        let since = since.unwrap_or(Timestamp::from_millis(i64::MIN));
        let number = subscription.number();
        let resource = subscription.compiled.resource.number;
        let lanes = self.store.documents.lanes().await?;
        let total =
            lanes.iter().filter(|lane| lane.lane.resource == resource).map(|lane| lane.documents).sum();
        let kind = SweepKind::Replay { since };
        // All of its threads begin it or none: sweeps only end meanwhile, because the catalog is held.
        let begun = match self.journey.ask(number, |reply| Command::MaySweep(number, reply)).await {
            Some(true) => self.journey.ask(number, |reply| Command::Sweep(number, kind, replay, reply)).await,
            other => other,
        };
        match begun {
            Some(true) => Ok(total),
            Some(false) => Err(Failure::Conflict(
                "a replay or the beginning of this subscription is under way; wait until it is through"
                    .into(),
            )),
            None => Err(Failure::Stopping),
        }
    }

    async fn replay_document(&self, subscription: &Subscription, url: &str, replay: u64) -> Done<u64> {
        let url = DocumentUrl::parse(url).map_err(|e| Invalid::new("document", e))?;
        let resource = &subscription.compiled.resource;
        let lane = resource.lane_of(url.as_str());
        let found = self.store.documents.get(lane, url.as_str()).await?;
        let mine = self.registry.find(&url).is_some_and(|owner| owner.number == resource.number);
        let Some(document) = found.filter(|_| mine) else {
            return Err(Invalid::new("document", format!("{url} is not a document of this resource")).into());
        };
        self.request(subscription, vec![document], replay).await
    }

    async fn replay_dead(&self, subscription: &Subscription, replay: u64) -> Done<u64> {
        let number = subscription.number();
        let dead = self.journey.ask(number, |reply| Command::Dead(number, reply)).await;
        let mut total = 0;
        for group in dead.ok_or(Failure::Stopping)?.chunk_by(|a, b| a.0 == b.0) {
            let lane = flare_model::ids::LaneId {
                resource: subscription.compiled.resource.number,
                index: group[0].0,
            };
            let ordinals: Vec<Ordinal> = group.iter().map(|(_, ordinal)| *ordinal).collect();
            for ordinals in ordinals.chunks(256) {
                let (documents, _) = self.store.documents.fetch(lane, ordinals).await?;
                let documents = documents.into_iter().flatten().collect();
                total += self.request(subscription, documents, replay).await?;
            }
        }
        Ok(total)
    }

    async fn request(&self, subscription: &Subscription, documents: Vec<Document>, replay: u64) -> Done<u64> {
        let number = subscription.number();
        let rows: Vec<_> = documents.iter().map(|document| (document.lane.index, document.row)).collect();
        let request = |reply| Command::Request(number, rows.clone(), replay, reply);
        let taken = self.journey.ask(number, request).await;
        Ok(taken.ok_or(Failure::Stopping)? as u64)
    }

    async fn ask_number(
        &self,
        subscription: &Subscription,
        command: impl Fn(flare_model::ids::SubscriptionNumber, tokio::sync::oneshot::Sender<usize>) -> Command,
    ) -> Done<usize> {
        let number = subscription.number();
        let answer = self.journey.ask(number, |reply| command(number, reply)).await;
        answer.ok_or(Failure::Stopping)
    }
}
