//! Replays of a consumer's dead letters. In: what a user asks for, which is durable when it is answered. Out: letters that can be read
//! by now are documents. A chore reads them, a slice at a time, at the node that keeps house; how far it has come is stored after each,
//! so that another process goes on with it.

use std::sync::Arc;
use std::time::Duration;

use flare_model::consumer::{LetterReplay, StoredConsumer};
use flare_model::ids::ResourceId;
use flare_model::subscription::KEPT_REPLAYS;
use flare_model::time::Timestamp;
use flare_provider::{Letter, ListLetters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notification::ids::replay_id;
use crate::operations::{App, Done, Failure};
use crate::registry::Consumer;

/// So many letters are read at a time.
const SLICE: u64 = 200;

/// How long until a slice that could not be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long until an account may send more documents, about.
const A_WHILE: Duration = Duration::from_millis(100);

/// How often it is looked whether this node has come to keep house.
const LOOK: Duration = Duration::from_secs(5);

/// `POST /consumers/:id/replay`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsumerReplayDraft {
    /// What is read once more.
    pub scope: ConsumerReplayScope,
}

/// What is read once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConsumerReplayScope {
    /// Messages that could not be read.
    DeadLetters,
}

impl ConsumerReplayDraft {
    /// Messages that could not be read.
    pub fn dead_letters() -> ConsumerReplayDraft {
        ConsumerReplayDraft { scope: ConsumerReplayScope::DeadLetters }
    }
}

/// `GET /consumers/:id/replays/:id`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsumerReplay")]
pub struct ConsumerReplayView {
    /// Its id.
    pub id: String,
    /// How many dead letters there were when it was asked for.
    pub total: u64,
    /// How many of them are through: read once more, or dropped.
    pub done: u64,
    /// How many of those could be read: documents now, and dead letters no more.
    pub stored: u64,
    /// `running` or `done`.
    #[schemars(extend("enum" = ["running", "done"]))]
    pub state: &'static str,
    /// When it was asked for.
    pub created_at: Timestamp,
}

impl App {
    /// Begins to read dead letters once more, as the consumer is when each comes to be read.
    pub async fn replay_consumer_letters(
        &self,
        id: &ResourceId,
        draft: ConsumerReplayDraft,
    ) -> Done<ConsumerReplayView> {
        let ConsumerReplayScope::DeadLetters = draft.scope;
        let _catalog = self.hold_catalog().await?;
        let current = self.consumer(id)?;
        let (total, upto) = self.count_letters(&current).await?;
        let number = current.stored.last_replay + 1;
        let begun = LetterReplay::begin(number, total, upto, self.clock.now());
        let mut stored = StoredConsumer { last_replay: number, ..current.stored.clone() };
        stored.replays.push(begun.clone());
        if stored.replays.len() > KEPT_REPLAYS {
            stored.replays.remove(0);
        }
        self.store_consumer(&current, stored).await?;
        tracing::info!(consumer.id = %id, replay = number, total, "dead letters of a consumer are read once more");
        Ok(view(&begun))
    }

    /// How far a replay is.
    pub async fn consumer_replay(&self, id: &ResourceId, replay: &str) -> Done<ConsumerReplayView> {
        let find = |consumer: Arc<Consumer>| {
            consumer.stored.replays.iter().find(|known| replay_id(known.number) == replay).map(view)
        };
        if let Some(found) = find(self.consumer(id)?) {
            return Ok(found);
        }
        // Another node may have been asked for it just now.
        self.follow_catalog().await?;
        let missing = || Failure::NotFound(format!("there is no replay {replay} of consumer {id}"));
        find(self.consumer(id)?).ok_or_else(missing)
    }

    /// The replays that are remembered, in the order in which they were asked for, and how many there are.
    pub fn consumer_replays(
        &self,
        id: &ResourceId,
        offset: usize,
        limit: usize,
    ) -> Done<(u64, Vec<ConsumerReplayView>)> {
        let consumer = self.consumer(id)?;
        let all = &consumer.stored.replays;
        Ok((all.len() as u64, all.iter().skip(offset).take(limit).map(view).collect()))
    }

    /// Reads dead letters once more for whoever has asked for it, for as long as the node lives.
    pub(in crate::operations) async fn replay_letters(self: Arc<App>) {
        loop {
            let mut wait = LOOK;
            for consumer in self.registry.consumers() {
                if self.stop.is_cancelled() || !self.keeps_house() {
                    break;
                }
                match self.replay_letters_of(consumer.id()).await {
                    Ok(true) => {}
                    Ok(false) => wait = wait.min(A_WHILE),
                    Err(failure) => {
                        tracing::warn!(
                            consumer.id = %consumer.id(), error = %failure,
                            "dead letters of a consumer could not be read once more; it is tried again"
                        );
                        wait = wait.min(AGAIN);
                    }
                }
            }
            let _ = tokio::time::timeout(wait, self.consuming.replays_changed()).await;
        }
    }

    /// Ends the replays of a consumer, the oldest first. Answers whether nothing is left to do: an account sends so many documents
    /// in a second, and others need not wait for it.
    async fn replay_letters_of(&self, id: &ResourceId) -> Done<bool> {
        while let Ok(consumer) = self.consumer(id)
            && let Some(replay) = consumer.stored.replays.iter().find(|replay| !replay.ended)
            && !self.stop.is_cancelled()
        {
            let mut letters = self.slice_of(&consumer, replay).await?;
            if !letters.is_empty() {
                let account = &consumer.resource.account;
                let Ok(allowed) = self.take_messages(account, letters.len()) else { return Ok(false) };
                letters.truncate(allowed.max(1));
            }
            let (last, met) = (letters.last().map(|letter| letter.number), letters.len() as u64);
            let stored = self.read_letters(&consumer, letters).await?;
            let _catalog = self.hold_catalog().await?;
            let Ok(current) = self.consumer(id) else { return Ok(true) };
            let mut next = current.stored.clone();
            // Forgotten meanwhile: a newer one goes over the same letters.
            let known = next.replays.iter_mut().find(|known| known.number == replay.number);
            if let Some(known) = known {
                known.came_to(last, met, stored);
                self.store_consumer(&current, next).await?;
            }
        }
        Ok(true)
    }

    /// The letters that a replay comes to next.
    async fn slice_of(&self, consumer: &Consumer, replay: &LetterReplay) -> Done<Vec<Letter>> {
        let number = consumer.resource.number;
        let list = ListLetters { consumer: number, after: replay.after, offset: 0, limit: SLICE };
        let (_, mut letters) = self.store.intake.letters(list).await?;
        letters.retain(|letter| letter.number <= replay.upto);
        Ok(letters)
    }

    /// How many letters there are, and the number of the last.
    async fn count_letters(&self, consumer: &Consumer) -> Done<(u64, u64)> {
        let list = ListLetters { consumer: consumer.resource.number, after: 0, offset: 0, limit: 0 };
        let (total, _) = self.store.intake.letters(list).await?;
        let Some(offset) = total.checked_sub(1) else { return Ok((0, 0)) };
        let (_, last) = self.store.intake.letters(ListLetters { offset, limit: 1, ..list }).await?;
        // All of them may have been dropped in between.
        Ok(last.first().map_or((0, 0), |letter| (total, letter.number)))
    }
}

fn view(replay: &LetterReplay) -> ConsumerReplayView {
    ConsumerReplayView {
        id: replay_id(replay.number),
        total: replay.total,
        done: replay.done,
        stored: replay.stored,
        state: if replay.ended { "done" } else { "running" },
        created_at: replay.created_at,
    }
}
