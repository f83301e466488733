//! A stream as a source: its shards are partitions, each after those that it was made of.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::bridge::StartAt;
use flare_provider::bridge::{
    BridgeError, BridgeErrorKind, BridgeResult, Lag, Nature, Partition, Progress, Source, Stream,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::Named;
use super::reading::{self, From};
use super::stream::{KinesisStream, read_once};
use crate::Now;
use crate::transport::Failure;

/// A stream as a source.
pub struct KinesisSource {
    named: Named,
    start: StartAt,
    now: Now,
    /// Shards that were over when they were first opened, so that nothing of them was read. Bound: the shards of the stream.
    over_before: Mutex<BTreeSet<String>>,
    /// Shards of which a position was forgotten: whoever then opens one without a position begins at what it still has, and not with
    /// what comes from then on. Bound: the shards of the stream.
    forgot: Mutex<BTreeSet<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Shards {
    shards: Vec<Shard>,
    next_token: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Shard {
    shard_id: String,
    parent_shard_id: Option<String>,
    adjacent_parent_shard_id: Option<String>,
    #[serde(default)]
    sequence_number_range: Sequence,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Sequence {
    ending_sequence_number: Option<String>,
}

impl Shard {
    fn parents(&self) -> impl Iterator<Item = &String> {
        self.parent_shard_id.iter().chain(&self.adjacent_parent_shard_id)
    }

    fn is_closed(&self) -> bool {
        self.sequence_number_range.ending_sequence_number.is_some()
    }
}

impl KinesisSource {
    /// Nothing is asked yet.
    pub fn new(named: Named, start: StartAt, now: Now) -> KinesisSource {
        KinesisSource { named, start, now, over_before: Mutex::default(), forgot: Mutex::default() }
    }

    async fn shards(&self) -> BridgeResult<Vec<Shard>> {
        let failed = |failure: Failure| failure.error(&self.named.doing("listing the shards of"));
        let mut asked = json!({"StreamName": &*self.named.name});
        let mut all = Vec::new();
        loop {
            let listed: Shards = self.named.client.call("ListShards", &asked).await.map_err(failed)?;
            all.extend(listed.shards);
            match listed.next_token {
                // The token stands for the stream as well, and the service takes only one of the two.
                Some(token) if !token.is_empty() => asked = json!({"NextToken": token}),
                _ => return Ok(all),
            }
        }
    }

    /// Where a shard is read from that has no position.
    async fn beginning(&self, shard: &str) -> BridgeResult<From> {
        if self.forgot.lock().contains(shard) {
            return Ok(From::Oldest);
        }
        if self.start != StartAt::Latest {
            return Ok(From::start(self.start));
        }
        let shards = self.shards().await?;
        let Some(this) = shards.iter().find(|listed| listed.shard_id == shard) else {
            return Ok(From::Oldest);
        };
        let mut over_before = self.over_before.lock();
        let is_listed = |parent: &&String| shards.iter().any(|listed| listed.shard_id == **parent);
        let was_read = this.parents().filter(is_listed).any(|parent| !over_before.contains(parent));
        let from = reading::child(self.start, was_read);
        if from == From::Latest && this.is_closed() {
            over_before.insert(shard.to_owned());
        }
        Ok(from)
    }
}

#[async_trait]
impl Source for KinesisSource {
    fn nature(&self) -> Nature {
        Nature {
            ordered: true,
            progress: Progress::Positions,
            counts_deliveries: false,
            names_messages: true,
        }
    }

    async fn partitions(&self) -> BridgeResult<Vec<Partition>> {
        if self.named.status().await?.is_none() {
            let words = format!("{}: it does not exist", self.named.doing("looking for"));
            return Err(BridgeError::new(BridgeErrorKind::Missing, words));
        }
        let shards = self.shards().await?;
        Ok(shards
            .into_iter()
            .map(|shard| Partition { after: shard.parents().cloned().collect(), id: shard.shard_id })
            .collect())
    }

    async fn open(&self, partition: &str, after: Option<&str>) -> BridgeResult<Box<dyn Stream>> {
        let from = match after {
            Some(position) => From::position(position, From::Including),
            None => self.beginning(partition).await?,
        };
        let mut stream = KinesisStream::new(self.named.clone(), partition, from, (self.now)());
        stream.begin().await.inspect_err(|error| {
            if error.kind == BridgeErrorKind::Forgotten {
                self.forgot.lock().insert(partition.to_owned());
            }
        })?;
        Ok(Box::new(stream))
    }

    async fn lag(&self, partition: &str, after: Option<&str>) -> BridgeResult<Lag> {
        let from = match after {
            Some(position) => From::position(position, From::After),
            None => self.beginning(partition).await?,
        };
        // The service says how far the end of a read is from the newest record: so a read of one says it of the oldest.
        let behind = read_once(&self.named, partition, &from).await;
        match behind {
            Ok(behind) => Ok(Lag { messages: None, oldest: Some(Duration::from_millis(behind)) }),
            // It is asked by whoever reads the shard, too, and they go first.
            Err(failure) if failure.is_too_much() => Ok(Lag::default()),
            Err(failure) => Err(failure.error(&self.named.doing("looking how far it is to the end of"))),
        }
    }
}
