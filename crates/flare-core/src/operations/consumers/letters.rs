//! Messages of a consumer that could not be read: listed, dropped, and read once more a part at a time.

use flare_model::consumer::{Progress, Understood, excerpt_of};
use flare_model::document::{Intent, Write};
use flare_model::ids::ResourceId;
use flare_model::invalid::Invalid;
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::{Letter, ListLetters};
use schemars::JsonSchema;
use serde::Serialize;

use crate::consuming::unit::Story;
use crate::operations::{App, Done, Failure};
use crate::registry::Consumer;

/// So much of a message is shown.
const EXCERPT: usize = 1024;

/// So many are removed at a time.
const SLICE: u64 = 100;

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

    /// Removes letters that have been kept for long enough.
    pub(in crate::operations) async fn trim_letters(&self) -> Done<()> {
        if !self.keeps_house() {
            return Ok(());
        }
        let retention = self.config.domain.retention.dead_letters;
        let Some(before) = self.steps.older_than(&*self.clock, retention) else { return Ok(()) };
        for consumer in self.registry.consumers() {
            let removed = self.trim_letters_of(&consumer, before).await?;
            if removed > 0 {
                tracing::info!(consumer.id = %consumer.id(), removed, "dead letters were kept for long enough");
            }
        }
        Ok(())
    }

    /// They are numbered as they came, so the oldest are the first.
    async fn trim_letters_of(&self, consumer: &Consumer, before: Timestamp) -> Done<u64> {
        let number = consumer.resource.number;
        let (mut removed, mut limit) = (0, 1);
        loop {
            let list = ListLetters { consumer: number, after: 0, offset: 0, limit };
            let (_, letters) = self.store.intake.letters(list).await?;
            let old = letters.iter().take_while(|letter| letter.kept.received_at < before);
            let old: Vec<u64> = old.map(|letter| letter.number).collect();
            if old.is_empty() {
                return Ok(removed);
            }
            let more = old.len() == letters.len();
            removed += self.store.intake.remove_letters(number, Some(old)).await?;
            if !more {
                return Ok(removed);
            }
            limit = SLICE;
        }
    }

    /// Reads letters once more, as the consumer is now. Those that can be read become documents, and are letters no more; answers
    /// how many those are. The others stay as they are.
    pub(super) async fn read_letters(&self, consumer: &Consumer, letters: Vec<Letter>) -> Done<u64> {
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
        // What does not fit into the documents that the account may have stays a letter.
        let outcomes = self.commit_of_consumer(&resource.account, writes).await?.committed;
        let stored = numbers.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok());
        let stored: Vec<u64> = stored.map(|(number, _)| number).collect();
        if stored.is_empty() {
            return Ok(0);
        }
        Ok(self.store.intake.remove_letters(resource.number, Some(stored)).await?)
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
