//! Replays: a client is told again, on request.

use flare_model::feed::SweepKind;
use flare_model::ids::{LaneId, Ordinal, ResourceId, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::subscription::{KEPT_REPLAYS, Replay};
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::journey::{AskedFor, Command, ListOwed, Progress, Requested};
use crate::notification::ids::replay_id;
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::delivery::groups::DeadLetterKind;
use crate::operations::documents::known::Seen;
use crate::registry::Subscription;

/// Documents looked at, or asked for, at once.
const SLICE: usize = 256;

/// How often the store is asked for documents that changed, and were forgotten by the tail, while it answered.
const LOOKS: usize = 20;

/// `POST .../replay`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplayDraft {
    /// What to send again; everything, where nothing is said.
    pub scope: Option<ReplayScope>,
    /// Only documents accepted since then; with scope `all`.
    pub since: Option<Timestamp>,
    /// Only this document, whatever the scope.
    #[schemars(extend("format" = "document-url"))]
    pub document: Option<String>,
    /// Only dead letters whose last answer had this status; with scope `deadLetters`.
    pub status: Option<u16>,
    /// Only dead letters whose last attempt had no answer and ended with this error; with scope `deadLetters`.
    pub error: Option<String>,
}

/// What to send again.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReplayScope {
    /// Every document.
    All,
    /// Documents that wait for a retry, are in doubt, or were given up.
    Lagging,
    /// Documents that were given up.
    DeadLetters,
}

/// `GET .../replays/:id`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayView {
    /// Its id.
    pub id: String,
    /// How many documents it sends.
    pub total: u64,
    /// How many of them are through: delivered, dropped, given up, or replaced by a newer change.
    pub done: u64,
    /// `running` or `done`.
    #[schemars(extend("enum" = ["running", "done"]))]
    pub state: &'static str,
    /// When it was asked for.
    pub created_at: Timestamp,
}

/// A part of the list of replays.
pub struct ReplayPage {
    /// How many are remembered.
    pub total: u64,
    /// The part, in the order in which they were asked for.
    pub replays: Vec<ReplayView>,
}

impl ReplayDraft {
    /// The kind of dead letters that is asked for, if one is.
    fn kind(&self, scope: ReplayScope) -> Result<Option<DeadLetterKind>, Invalid> {
        let (status, error) = (self.status, self.error.clone());
        let field = match (status.is_some(), error.is_some()) {
            (false, false) => return Ok(None),
            (true, true) => return Err(Invalid::new("error", "goes without a status: there was no answer")),
            (true, false) => "status",
            (false, true) => "error",
        };
        if scope != ReplayScope::DeadLetters || self.document.is_some() {
            return Err(Invalid::new(field, "goes with the scope `deadLetters`, without a document"));
        }
        Ok(Some(DeadLetterKind { status, error }))
    }
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
        let kind = draft.kind(scope)?;
        // Counting may take a while: before the catalog is taken, which others wait for.
        let lanes = match (&draft.document, scope) {
            (None, ReplayScope::All) => {
                self.count_replayed(&*self.subscription(resource, id)?, draft.since).await?
            }
            _ => Vec::new(),
        };
        let alike = match &kind {
            Some(kind) => Some(self.dead_of(&*self.subscription(resource, id)?, kind).await?),
            None => None,
        };
        let _catalog = self.hold_catalog().await?;
        let subscription = self.subscription(resource, id)?;
        let number = subscription.stored.last_replay + 1;
        // The number is durable before anything is sent under it: no two replays share one.
        let subscription = self.keep(&subscription, |stored| stored.last_replay = number).await?;
        let total = match (&draft.document, scope) {
            (Some(url), _) => self.replay_document(&subscription, url, number).await?,
            (None, ReplayScope::All) => {
                self.replay_all(&subscription, draft.since, number).await?;
                lanes.iter().sum()
            }
            (None, ReplayScope::Lagging) => self.replay_lagging(&subscription, number).await?,
            (None, ReplayScope::DeadLetters) => self.replay_dead(&subscription, alike, number).await?,
        };
        // Accepted means durable: killed from here on, the next process goes on with it.
        self.record(&subscription).await?;
        let begun = Replay { number, total, lanes, created_at: self.clock.now() };
        let subscription = self
            .keep(&subscription, |stored| {
                stored.replays.push(begun.clone());
                if stored.replays.len() > KEPT_REPLAYS {
                    stored.replays.remove(0);
                }
            })
            .await?;
        self.journey.observe().counts().operator.replays.add_among_many(1);
        Ok(progress(&begun, &self.inspect(&subscription).await?))
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
        Ok(progress(known, &self.inspect(&subscription).await?))
    }

    /// The replays that are remembered.
    pub async fn replays(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        offset: usize,
        limit: usize,
    ) -> Done<ReplayPage> {
        let subscription = self.subscription(resource, id)?;
        let seen = self.inspect(&subscription).await?;
        let all = &subscription.stored.replays;
        let replays = all.iter().skip(offset).take(limit).map(|replay| progress(replay, &seen)).collect();
        Ok(ReplayPage { total: all.len() as u64, replays })
    }

    async fn replay_all(
        &self,
        subscription: &Subscription,
        since: Option<Timestamp>,
        replay: u64,
    ) -> Done<()> {
        let since = since.unwrap_or(Timestamp::from_millis(i64::MIN));
        let number = subscription.number();
        let kind = SweepKind::Replay { since };
        // All of its threads begin it or none: sweeps only end meanwhile, because the catalog is held.
        let begun = match self.journey.ask(number, |reply| Command::MaySweep(number, reply)).await {
            Some(true) => self.journey.ask(number, |reply| Command::Sweep(number, kind, replay, reply)).await,
            other => other,
        };
        match begun {
            Some(true) => Ok(()),
            Some(false) => Err(Failure::Conflict(
                "a replay or the beginning of this subscription is under way; wait until it is through"
                    .into(),
            )),
            None => Err(self.left(subscription)),
        }
    }

    async fn replay_document(&self, subscription: &Subscription, url: &str, replay: u64) -> Done<u64> {
        let document = self.document_of(&subscription.compiled.resource, url).await?;
        let (seen, _) = self.look_at(subscription, std::slice::from_ref(&document)).await?;
        // What its expressions keep from the client is not sent, so it counts for nothing.
        let nothing = |seen: &Seen| !seen.to_replay && seen.is_settled();
        if seen.iter().flatten().any(nothing) {
            return Ok(0);
        }
        self.request_all(subscription, &[(document.lane.index, document.row.ordinal)], replay).await
    }

    /// What is owed and was read. What the feed has yet to come to is sent anyway, and so is what is in flight.
    async fn replay_lagging(&self, subscription: &Subscription, replay: u64) -> Done<u64> {
        let number = subscription.number();
        let (mut after, mut total) = (None, 0);
        loop {
            let list = ListOwed { subscription: number, after, limit: SLICE };
            let owed = self.journey.ask(number, |reply| Command::Owed(list, reply)).await;
            let owed = owed.flatten().ok_or_else(|| self.left(subscription))?.documents;
            // Each of its threads answers so many: beyond the first, some of another may be missing.
            let owed = &owed[..owed.len().min(SLICE)];
            let Some(last) = owed.last() else { return Ok(total) };
            after = Some(*last);
            total += self.request_all(subscription, owed, replay).await?;
        }
    }

    /// All that were given up, or those of one kind.
    async fn replay_dead(
        &self,
        subscription: &Subscription,
        alike: Option<Vec<(u8, Ordinal)>>,
        replay: u64,
    ) -> Done<u64> {
        if let Some(alike) = alike {
            return self.request_all(subscription, &alike, replay).await;
        }
        let number = subscription.number();
        let dead = self.journey.ask(number, |reply| Command::Dead(number, reply)).await;
        self.request_all(subscription, &dead.ok_or_else(|| self.left(subscription))?, replay).await
    }

    /// Asks for documents by lane and ordinal, which are in order.
    async fn request_all(
        &self,
        subscription: &Subscription,
        documents: &[(u8, Ordinal)],
        replay: u64,
    ) -> Done<u64> {
        let mut total = 0;
        for group in documents.chunk_by(|a, b| a.0 == b.0) {
            for slice in group.chunks(SLICE) {
                total += self.request(subscription, slice.to_vec(), replay).await?;
            }
        }
        Ok(total)
    }

    /// Asks for documents of one lane.
    async fn request(
        &self,
        subscription: &Subscription,
        mut documents: Vec<(u8, Ordinal)>,
        replay: u64,
    ) -> Done<u64> {
        let (number, mut total) = (subscription.number(), 0);
        for _ in 0..LOOKS {
            let Some((index, _)) = documents.first().copied() else { break };
            let lane = LaneId { resource: subscription.compiled.resource.number, index };
            let ordinals: Vec<Ordinal> = documents.iter().map(|(_, ordinal)| *ordinal).collect();
            let (found, head) = self.store.documents.fetch(lane, &ordinals).await?;
            let rows = found.into_iter().flatten().map(|document| document.row);
            let asked: Vec<AskedFor> = rows.map(|row| AskedFor { lane: index, row, head }).collect();
            let request = |reply| Command::Request(number, asked.clone(), replay, reply);
            let requested = self.journey.ask(number, request).await;
            let Requested { taken, unsure } = requested.ok_or_else(|| self.left(subscription))?;
            total += taken as u64;
            documents = unsure;
        }
        if documents.is_empty() {
            return Ok(total);
        }
        let what = "documents change faster than they can be looked at; replay again when less is going on";
        Err(Failure::Conflict(what.into()))
    }
}

fn progress(replay: &Replay, seen: &Progress) -> ReplayView {
    let left = seen.replays.get(&replay.number).cloned().unwrap_or_default();
    ReplayView {
        id: replay_id(replay.number),
        total: replay.total,
        done: replay.done(&left),
        state: if replay.is_done(&left) { "done" } else { "running" },
        created_at: replay.created_at,
    }
}
