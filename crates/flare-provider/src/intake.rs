//! Intake: how far consumers have read their sources, and the messages that could not be read. Each partition is written by one owner
//! at a time, like a feed.

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::ids::ResourceNumber;
use flare_model::time::Timestamp;

use crate::error::Result;

/// A partition of a consumer's source as last written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its name.
    pub partition: String,
    /// The epoch under which it was taken over last.
    pub epoch: u64,
    /// How far it was read, which the engine does not look into; `None` until something was written.
    pub progress: Option<String>,
}

/// A message that could not be read, to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLetter {
    /// When it came.
    pub received_at: Timestamp,
    /// Why it could not be read and how often it was tried, which the engine does not look into.
    pub story: String,
    /// The message.
    pub payload: Bytes,
}

/// One that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Its number: growing, never given twice.
    pub number: u64,
    /// The partition that it came from.
    pub partition: String,
    /// What was given.
    pub kept: NewLetter,
}

/// Which letters of a consumer, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLetters {
    /// Of this consumer.
    pub consumer: ResourceNumber,
    /// Only with a higher number.
    pub after: u64,
    /// Skip so many.
    pub offset: u64,
    /// At most so many.
    pub limit: u64,
}

/// How far consumers have read. Everything goes with the consumer.
#[async_trait]
pub trait Intake: Send + Sync {
    /// Takes a partition over under an epoch, durably, and answers how far it was read. `Fenced` where it was taken over under a
    /// higher one. [`Conflict::Parent`](crate::Conflict::Parent) where there is no such consumer.
    async fn take(&self, consumer: ResourceNumber, partition: &str, epoch: u64) -> Result<Option<String>>;

    /// Writes how far a partition was read, and the messages that could not be, as one; durable when it returns. `Fenced`, and nothing is
    /// written, where it was taken over under another epoch, or is gone with its consumer.
    async fn advance(
        &self,
        consumer: ResourceNumber,
        partition: &str,
        epoch: u64,
        progress: String,
        letters: Vec<NewLetter>,
    ) -> Result<()>;

    /// All partitions that were taken over, by name.
    async fn readings(&self, consumer: ResourceNumber) -> Result<Vec<Reading>>;

    /// Letters, and how many there are in all (those up to `after` among them), in one snapshot.
    async fn letters(&self, list: ListLetters) -> Result<(u64, Vec<Letter>)>;

    /// Removes these letters, durably, or all where none is named, and answers how many there were.
    async fn remove_letters(&self, consumer: ResourceNumber, numbers: Option<Vec<u64>>) -> Result<u64>;
}
