//! Messages of a consumer that could not be read: listed, dropped, or read once more.

use std::sync::Arc;

use flare_model::consumer::{Progress, Understood, excerpt_of};
use flare_model::document::{Intent, Write};
use flare_model::ids::ResourceId;
use flare_model::invalid::Invalid;
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::{Letter, ListLetters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::consuming::unit::Story;
use crate::operations::{App, Done, Failure};
use crate::registry::Consumer;

/// So much of a message is shown.
const EXCERPT: usize = 1024;

/// So many are read once more at a time.
const SLICE: u64 = 200;

/// A message that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsumerDeadLetter")]
pub struct ConsumerLetterView {
    /// Its id.
    pub id: String,
    /// When it came.
    pub received_at: Timestamp,
    /// How often it was tried.
    pub tries: u32,
    /// Why it could not be read.
    pub error: String,
    /// The beginning of what it says.
    pub excerpt: String,
    /// Where it was in its source.
    pub position: String,
}

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

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsumerReplay")]
pub struct ConsumerReplayView {
    /// Its id.
    pub id: String,
    /// How many messages there were.
    pub total: u64,
    /// How many of them could be read, and are dead letters no more.
    pub done: u64,
}

impl App {
    /// Messages of a consumer that could not be read, the oldest first.
    pub async fn consumer_letters(
        &self,
        id: &ResourceId,
        offset: u64,
        limit: u64,
    ) -> Done<(u64, Vec<ConsumerLetterView>)> {
        let consumer = self.consumer(id)?.resource.number;
        let list = ListLetters { consumer, after: 0, offset, limit };
        let (total, letters) = self.store.intake.letters(list).await?;
        Ok((total, letters.into_iter().map(view).collect()))
    }

    /// Drops one of them, or all.
    pub async fn drop_consumer_letters(&self, id: &ResourceId, letter: Option<&str>) -> Done<u64> {
        let consumer = self.consumer(id)?.resource.number;
        let numbers = match letter {
            None => None,
            Some(text) => Some(vec![number(text).ok_or_else(|| unknown(text))?]),
        };
        let removed = self.store.intake.remove_letters(consumer, numbers).await?;
        match letter {
            Some(text) if removed == 0 => Err(unknown(text)),
            _ => Ok(removed),
        }
    }

    /// Reads them once more, as the consumer is now. Those that can be read become documents; the others stay as they are.
    pub async fn replay_consumer_letters(
        &self,
        id: &ResourceId,
        draft: ConsumerReplayDraft,
    ) -> Done<ConsumerReplayView> {
        let ConsumerReplayScope::DeadLetters = draft.scope;
        let consumer = self.consumer(id)?;
        let replay = self.entropy.fresh_id("rpl");
        let (mut after, mut done, mut met) = (0, 0, 0);
        loop {
            let list = ListLetters { consumer: consumer.resource.number, after, offset: 0, limit: SLICE };
            let (_, letters) = self.store.intake.letters(list).await?;
            let Some(last) = letters.last() else { break };
            after = last.number;
            met += letters.len() as u64;
            done += self.read_letters(&consumer, letters).await?;
        }
        tracing::info!(consumer.id = %id, total = met, done, "dead letters of a consumer were read once more");
        Ok(ConsumerReplayView { id: replay, total: met, done })
    }

    async fn read_letters(&self, consumer: &Arc<Consumer>, letters: Vec<Letter>) -> Done<u64> {
        let (resource, settings) = (&consumer.resource, consumer.settings());
        let (mut writes, mut numbers) = (Vec::new(), Vec::new());
        let at = self.clock.now();
        for letter in letters {
            if settings.is_raw() {
                continue;
            }
            let Ok(Understood { name, revision, is_delete }) =
                settings.reader.understand(&letter.kept.payload)
            else {
                continue;
            };
            // Without a revision of its own it is as old as it is: what came since is newer.
            let revision = revision
                .unwrap_or_else(|| Revision::Integer(Progress::default().arrive(letter.kept.received_at)));
            let intent = match is_delete {
                true => Intent::Delete { revision: Some(revision) },
                false => Intent::Put { revision, content: letter.kept.payload },
            };
            let lane = resource.lane_of(&name);
            writes.push(Write { lane, url: name.into(), intent, at, routed_by: u64::MAX });
            numbers.push(letter.number);
        }
        let outcomes = self.commit_read(&resource.account, writes).await?;
        let is_full = outcomes.iter().any(Option::is_none);
        let stored = numbers.into_iter().zip(outcomes);
        let stored = stored.filter(|(_, outcome)| outcome.as_ref().is_some_and(Result::is_ok));
        let stored: Vec<u64> = stored.map(|(number, _)| number).collect();
        let removed = match stored.is_empty() {
            true => 0,
            false => self.store.intake.remove_letters(resource.number, Some(stored)).await?,
        };
        if is_full {
            return Err(Failure::Forbidden(self.too_many_documents(&resource.account)));
        }
        Ok(removed)
    }
}

fn view(letter: Letter) -> ConsumerLetterView {
    let story: Option<Story> = serde_json::from_str(&letter.kept.story).ok();
    let story = story.unwrap_or_else(|| Story {
        tries: 0,
        error: letter.kept.story.clone(),
        position: String::new(),
    });
    ConsumerLetterView {
        id: format!("ltr_{}", letter.number),
        received_at: letter.kept.received_at,
        tries: story.tries,
        error: story.error,
        excerpt: excerpt_of(&letter.kept.payload, EXCERPT),
        position: story.position,
    }
}

fn number(text: &str) -> Option<u64> {
    text.strip_prefix("ltr_")?.parse().ok()
}

fn unknown(text: &str) -> Failure {
    match number(text) {
        Some(_) => Failure::NotFound(format!("there is no dead letter {text} of this consumer")),
        None => {
            Invalid::new("id", format!("`{text}` is no id of a dead letter; they begin with ltr_")).into()
        }
    }
}
