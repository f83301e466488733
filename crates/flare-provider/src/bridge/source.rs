//! Source: where a consumer's messages come from. It is asked for as many as there is room for; it never pushes.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::time::Timestamp;

use super::error::BridgeResult;

/// What a source is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Whether messages of a partition come in the order in which they were sent.
    pub ordered: bool,
    /// How it knows what was read.
    pub progress: Progress,
    /// Whether it says how often a message was given out ([`Message::deliveries`]).
    pub counts_deliveries: bool,
    /// Whether a message that is given out again has the position that it had. A queue of RabbitMQ has no names for its messages:
    /// there the position is another one each time, and tells nobody that it is the same message.
    pub names_messages: bool,
}

/// How a source knows what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// By positions: whoever opens a partition says after which. Flare keeps them, under the epoch of the unit; the source keeps
    /// nothing, and acknowledging does nothing.
    Positions,
    /// By acknowledgements: what was given out and not acknowledged comes again.
    Acknowledgements,
}

/// A part of a source that is read by one at a time. A queue has one, `0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its name, as it stands at the end of a unit's.
    pub id: String,
    /// Those that have to be read to their end before it is begun; one that the source no longer lists is over.
    pub after: Vec<String>,
}

/// What names a message towards the stream that gave it out; void once that is dropped or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(pub u64);

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// To acknowledge or reject it by.
    pub receipt: Receipt,
    /// Where it is in its source: for people, for the name of a `raw` document, and for [`Source::open`] where it goes by positions.
    /// Two messages of a partition never have the same; the same message given out again has the same where the source
    /// [names its messages](Nature::names_messages).
    pub position: String,
    /// Whether its position comes after others': it grows with each message of the partition. It takes the place of a
    /// revision where the payload has none. Where the source has no such number, it counts what this stream has given out,
    /// beginning with the time in microseconds at which it was opened.
    pub order: i64,
    /// What it says.
    pub payload: Bytes,
    /// How often it was given out, this time included, where the source counts.
    pub deliveries: Option<u32>,
    /// When it was sent, as the source says.
    pub sent_at: Option<Timestamp>,
}

/// What a stream gives out.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// These, at least one.
    Messages(Vec<Message>),
    /// The partition is over: nothing follows, ever.
    End,
}

/// How far behind a reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Messages that were not read yet, where the source can say.
    pub messages: Option<u64>,
    /// How old the oldest of them is, where the source can say.
    pub oldest: Option<Duration>,
}

/// Where messages come from.
#[async_trait]
pub trait Source: Send + Sync {
    /// What it is like; always the same.
    fn nature(&self) -> Nature;

    /// Its partitions at this moment. `Missing`: it does not exist.
    async fn partitions(&self) -> BridgeResult<Vec<Partition>>;

    /// Reads a partition: for a source with positions from after this one on (with none: from where its settings say), for
    /// others whatever is next. `Missing`: it does not exist. `Forgotten`: it no longer has what follows the position.
    async fn open(&self, partition: &str, after: Option<&str>) -> BridgeResult<Box<dyn Stream>>;

    /// How far behind a reader at this position is, or whoever reads where the source goes by acknowledgements.
    async fn lag(&self, partition: &str, after: Option<&str>) -> BridgeResult<Lag>;
}

/// A partition that is being read.
#[async_trait]
pub trait Stream: Send {
    /// Of a partition that was opened without a position, where the source goes by positions: one that begins it again where this did,
    /// also when nothing has come yet. `None`: opening it without a position always does.
    fn began(&self) -> Option<String> {
        None
    }

    /// Waits for messages and gives out `most` of them at the most. Of those that it may have read ahead, within bounds of its
    /// own, none is lost when this is dropped midway. `Broken`: open it anew. `Missing`: it was deleted, noticed within ten seconds
    /// also while nothing comes.
    async fn next(&mut self, most: usize) -> BridgeResult<Batch>;

    /// These are stored, and need not come again. An error says that they may come again. Safe to repeat.
    async fn acknowledge(&mut self, receipts: &[Receipt]) -> BridgeResult<()>;

    /// This is to be given out again, after a while at the earliest where the source can wait, and at once where it cannot.
    async fn reject(&mut self, receipt: Receipt, delay: Duration) -> BridgeResult<()>;

    /// What was given out is still being worked on: whatever would give it out again waits. To be called every few seconds.
    async fn keep(&mut self) -> BridgeResult<()>;

    /// Nobody reads on: what was read ahead, or given out and not settled, is given back where it would otherwise be kept from others for a
    /// while. Whoever calls waits some seconds at the most; what is not given back by then comes again in its time.
    async fn leave(&mut self) {}
}
