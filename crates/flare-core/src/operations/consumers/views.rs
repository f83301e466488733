//! Consumers as users see them: what is known where they are read, or what their reader recorded last.

use std::collections::BTreeMap;

use flare_model::cluster::NodeId;
use flare_model::consumer::{Condition, ConsumerView, Counted, Failed, Progress};
use flare_model::duration::HumanDuration;
use flare_model::ids::ResourceId;
use flare_model::time::Timestamp;
use flare_provider::ListLetters;
use schemars::JsonSchema;
use serde::Serialize;

use super::running::unit;
use crate::consuming::board::{Now, Part};
use crate::operations::{App, AssignmentQuery, Done};
use crate::registry::Consumer;

/// `GET /consumers/:id/status`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsumerStatus")]
pub struct ConsumerStatusView {
    /// `active`, `preparing`, `paused`, `failing` (the source does not answer) or `disabled` (there is nothing to read from).
    pub status: String,
    /// Since when.
    pub since: Timestamp,
    /// Why, where it does not read.
    pub reason: Option<String>,
    /// The node that reads it; none while nobody does.
    pub node: Option<String>,
    /// The parts of its source.
    pub units: Vec<ConsumerUnitView>,
    /// Messages that its source gave out, those that came again included.
    pub received: u64,
    /// Those that changed a document.
    pub accepted: u64,
    /// Those with a revision that was known.
    pub unchanged: u64,
    /// Those with an older one.
    pub stale: u64,
    /// Those that could not be read, each try counted.
    pub rejected: u64,
    /// Those that the source need not give out again.
    pub acknowledged: u64,
    /// Messages that are kept because they could not be read.
    pub dead_letters: u64,
    /// How many came in a second, lately.
    pub messages_per_second: f64,
    /// How many wait in the source, where it can say.
    pub lag: Option<u64>,
    /// How old the oldest of them is, where the source can say.
    pub oldest_age: Option<HumanDuration>,
    /// When the last one came.
    pub last_message_at: Option<Timestamp>,
    /// What went wrong last.
    pub last_failure: Option<FailedView>,
    /// Another node reads it and does not answer: these are the numbers that it recorded last.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale_numbers: bool,
}

/// A part of a consumer's source.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsumerUnit")]
pub struct ConsumerUnitView {
    /// Its unit.
    pub unit: String,
    /// The node that reads it.
    pub node: Option<String>,
    /// Under which epoch.
    pub epoch: u64,
    /// How far it was read.
    pub position: Option<String>,
    /// How many wait, where the source can say.
    pub lag: Option<u64>,
    /// `running`, or `ended`: nothing follows.
    pub state: &'static str,
}

/// What went wrong, and when.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsumerFailure")]
pub struct FailedView {
    /// When.
    pub at: Timestamp,
    /// What.
    pub error: String,
}

impl From<Failed> for FailedView {
    fn from(failed: Failed) -> FailedView {
        FailedView { at: failed.at, error: failed.error }
    }
}

/// Why a consumer is not read whose credentials cannot be opened.
const LOST: &str =
    "its credentials are lost with the key that sealed them: PUT the consumer with them once more";

/// How a consumer fares.
struct Fares {
    status: &'static str,
    since: Timestamp,
    reason: Option<String>,
}

impl App {
    /// A consumer as users see it.
    pub async fn consumer_view(&self, consumer: &Consumer) -> Done<ConsumerView> {
        let now = self.consumer_now(consumer).await?;
        let Fares { status, since, reason } = fares(consumer, &now);
        let settings = consumer.settings();
        Ok(ConsumerView {
            id: consumer.id().clone(),
            source: settings.draft.source.redacted(),
            payload: settings.draft.payload.clone(),
            status: status.to_owned(),
            since,
            reason,
            created_at: consumer.stored.created_at,
            updated_at: consumer.stored.updated_at,
        })
    }

    /// How a consumer fares, in numbers.
    pub async fn consumer_status(&self, id: &ResourceId) -> Done<ConsumerStatusView> {
        let consumer = self.consumer(id)?;
        let here = self.consuming.board(id).is_some();
        let now = self.consumer_now(&consumer).await?;
        let Fares { status, since, reason } = fares(&consumer, &now);
        let node = self.reader_of(id, here);
        let counted = self.counted_of(&consumer, &now).await?;
        let lags: Vec<u64> = now.partitions.values().filter_map(|part| part.lag.messages).collect();
        let oldest = now.partitions.values().filter_map(|part| part.lag.oldest).max();
        let list = ListLetters { consumer: consumer.resource.number, after: 0, offset: 0, limit: 0 };
        let (dead_letters, _) = self.store.intake.letters(list).await?;
        let failures = now.partitions.values().filter_map(|part| part.progress.last_failure.clone());
        let failures = failures.chain(now.not_found.clone());
        let name = node.as_ref().map(NodeId::to_string);
        let units = now.partitions.iter().map(|(partition, part)| ConsumerUnitView {
            unit: format!("consumer/{id}/{partition}"),
            node: name.clone(),
            epoch: part.epoch,
            position: part.progress.position.clone(),
            lag: part.lag.messages,
            state: if part.progress.ended { "ended" } else { "running" },
        });
        Ok(ConsumerStatusView {
            status: status.to_owned(),
            since,
            reason,
            units: units.collect(),
            node: name,
            received: counted.received,
            accepted: counted.accepted,
            unchanged: counted.unchanged,
            stale: counted.stale,
            rejected: counted.rejected,
            acknowledged: counted.acknowledged,
            dead_letters,
            messages_per_second: now.rate,
            lag: (!lags.is_empty()).then(|| lags.iter().sum()),
            oldest_age: oldest.map(HumanDuration),
            last_message_at: now.partitions.values().filter_map(|part| part.progress.last_message_at).max(),
            last_failure: failures.max_by_key(|failed| failed.at).map(FailedView::from),
            stale_numbers: !here && node.is_some(),
        })
    }

    /// What is known of a consumer where it is read here, and otherwise what was recorded of it last.
    async fn consumer_now(&self, consumer: &Consumer) -> Done<Now> {
        if let Some(board) = self.consuming.board(consumer.id()) {
            return Ok(board.now(self.clock.monotonic()));
        }
        let mut partitions = BTreeMap::new();
        for reading in self.store.intake.readings(consumer.resource.number).await? {
            let text = reading.progress.as_deref().unwrap_or("{}");
            let progress: Progress = serde_json::from_str(text).unwrap_or_default();
            let why = progress.last_failure.as_ref().map(|failed| failed.error.clone());
            let why = why.filter(|_| progress.condition != Condition::Active);
            let part = Part { epoch: reading.epoch, progress, why, ..Part::default() };
            partitions.insert(reading.partition, part);
        }
        let worst = partitions
            .values()
            .filter(|part| !part.progress.ended)
            .max_by_key(|part| part.progress.condition);
        let (condition, since, reason) = worst.map_or((Condition::Preparing, None, None), |part| {
            (part.progress.condition, part.progress.since, part.why.clone())
        });
        Ok(Now { condition, since, reason, partitions, not_found: None, rate: 0.0 })
    }

    /// What was counted of all parts of a source, those included that it no longer lists, or that are not known here yet.
    async fn counted_of(&self, consumer: &Consumer, now: &Now) -> Done<Counted> {
        let known = now.partitions.values();
        let known = known.fold(Counted::default(), |sum, part| sum.plus(part.progress.counted));
        let readings = self.store.intake.readings(consumer.resource.number).await?;
        let others = readings.iter().filter(|reading| !now.partitions.contains_key(&reading.partition));
        Ok(others.fold(known, |sum, reading| {
            let progress = reading.progress.as_deref().unwrap_or("{}");
            let progress: Progress = serde_json::from_str(progress).unwrap_or_default();
            sum.plus(progress.counted)
        }))
    }

    /// The node that reads a consumer.
    fn reader_of(&self, id: &ResourceId, here: bool) -> Option<NodeId> {
        if here {
            return Some(self.about.node.clone());
        }
        let query = AssignmentQuery { unit: Some(unit(id)), ..AssignmentQuery::default() };
        self.member.as_ref()?;
        self.assignments(&query).into_iter().find_map(|found| found.owner)
    }
}

fn fares(consumer: &Consumer, now: &Now) -> Fares {
    match consumer.stored.paused_since {
        Some(since) => Fares { status: "paused", since, reason: None },
        None if consumer.is_closed() => Fares {
            status: Condition::Disabled.as_str(),
            since: consumer.stored.updated_at,
            reason: Some(LOST.to_owned()),
        },
        None => Fares {
            status: now.condition.as_str(),
            since: now.since.unwrap_or(consumer.stored.updated_at),
            reason: now.reason.clone(),
        },
    }
}
