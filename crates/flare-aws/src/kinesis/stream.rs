//! A shard that is being read. It is asked for as many records as there is room for, at the pace that the service takes; nothing is
//! acknowledged: whoever reads keeps the position.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flare_model::time::Timestamp;
use flare_provider::bridge::{Batch, BridgeError, BridgeErrorKind, BridgeResult, Message, Receipt, Stream};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::Named;
use super::reading::{AHEAD, Found, From, Went, find, pause};
use crate::transport::Failure;

/// The most records that the service gives at once.
const MOST: usize = 10_000;

/// So many reads of nothing, while something waits, are enough to take a position for known.
const LOOKS: u32 = 20;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Iterator {
    shard_iterator: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Read {
    records: Vec<Record>,
    next_shard_iterator: Option<String>,
    millis_behind_latest: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record {
    sequence_number: String,
    data: String,
    approximate_arrival_timestamp: Option<f64>,
}

/// Where reading stands.
enum Standing {
    /// An iterator is needed.
    Begin,
    /// The next read goes by this one.
    At(String),
    /// The shard is over.
    Over,
}

/// A read that is under way.
type UnderWay = Pin<Box<dyn Future<Output = Result<Read, Failure>> + Send>>;

pub struct KinesisStream {
    named: Named,
    shard: String,
    /// Where an iterator begins that is needed now.
    from: From,
    standing: Standing,
    /// What was read for somebody who asked for more than who asks now. Bound: one read. When full: nothing is read.
    ready: VecDeque<Record>,
    /// The read that is under way, and the time before it. It is kept: whoever drops `next` every now and then must neither wait
    /// anew nor lose what was read.
    under_way: Option<UnderWay>,
    /// How long the next read waits.
    pause: Duration,
    /// How often in a row it was too much.
    too_much: u32,
    opened: Timestamp,
    began: Option<String>,
    receipts: u64,
    order: i64,
}

impl KinesisStream {
    pub fn new(named: Named, shard: &str, from: From, opened: Timestamp) -> KinesisStream {
        KinesisStream {
            named,
            shard: shard.to_owned(),
            began: from.began(opened),
            from,
            standing: Standing::Begin,
            ready: VecDeque::new(),
            under_way: None,
            pause: Duration::ZERO,
            too_much: 0,
            opened,
            receipts: 0,
            order: opened.millis().saturating_mul(1000),
        }
    }

    /// Makes the iterator, and looks whether the position that it begins at is still there. So what comes after this is read, and
    /// not what comes after the first `next`.
    pub async fn begin(&mut self) -> BridgeResult<()> {
        self.renew().await?;
        let From::Including(position) = self.from.clone() else { return Ok(()) };
        for _ in 0..LOOKS {
            match self.standing {
                Standing::Over => return Ok(()),
                Standing::Begin => self.renew().await?,
                Standing::At(_) => {}
            }
            let Some((records, behind)) = self.read(1).await? else { continue };
            match find(&position, records.first().map(|record| record.sequence_number.as_str()), behind) {
                Found::It | Found::NothingSince => break,
                Found::Another => return Err(self.forgotten(&position)),
                Found::NotYet => {}
            }
        }
        self.from = From::After(position);
        Ok(())
    }

    fn forgotten(&self, position: &str) -> BridgeError {
        let doing = self.named.doing("reading");
        let words = format!("{doing}: its shard {} no longer has what follows {position}", self.shard);
        BridgeError::new(BridgeErrorKind::Forgotten, words)
    }

    async fn renew(&mut self) -> BridgeResult<()> {
        match iterator(&self.named, &self.shard, &self.from).await {
            Ok(iterator) => self.standing = Standing::At(iterator),
            Err(failure) if failure.is_missing() => self.gone(failure).await?,
            // The number is none of this shard's: the stream was made anew.
            Err(failure) if failure.is("InvalidArgumentException") => {
                return match &self.from {
                    From::Including(position) | From::After(position) => Err(self.forgotten(position)),
                    _ => Err(failure.error(&self.named.doing("reading"))),
                };
            }
            Err(failure) => return Err(failure.error(&self.named.doing("reading"))),
        }
        Ok(())
    }

    /// A shard that does not exist in a stream that does is over, and so old that nothing of it is left.
    async fn gone(&mut self, failure: Failure) -> BridgeResult<()> {
        if self.named.status().await?.is_none() {
            return Err(failure.error(&self.named.doing("reading")));
        }
        self.standing = Standing::Over;
        Ok(())
    }

    /// Reads once, when it is time for it. None: nothing was read, look again.
    async fn read(&mut self, most: usize) -> BridgeResult<Option<(Vec<Record>, u64)>> {
        let Standing::At(iterator) = &self.standing else { return Ok(None) };
        let under_way = self.under_way.get_or_insert_with(|| {
            let asked = json!({"ShardIterator": iterator, "Limit": most.clamp(1, MOST)});
            let (client, pause) = (self.named.client.clone(), self.pause);
            Box::pin(async move {
                sleep(pause).await;
                client.call("GetRecords", &asked).await
            })
        });
        let answer = under_way.as_mut().await;
        self.under_way = None;
        let (outcome, went) = match answer {
            Ok(read) => {
                self.too_much = 0;
                let caught_up = read.records.is_empty() && read.millis_behind_latest == 0;
                self.standing = match read.next_shard_iterator {
                    Some(next) if !next.is_empty() => Standing::At(next),
                    _ => Standing::Over,
                };
                (
                    Some((read.records, read.millis_behind_latest)),
                    if caught_up { Went::CaughtUp } else { Went::On },
                )
            }
            Err(failure) if failure.is_too_much() => {
                self.too_much += 1;
                (None, Went::TooMuch(self.too_much))
            }
            Err(failure) if failure.is("ExpiredIteratorException") => {
                if self.from == From::Latest {
                    // It is made anew for what came since it was made.
                    self.from = From::At(self.opened.moved(-AHEAD));
                }
                self.standing = Standing::Begin;
                (None, Went::On)
            }
            Err(failure) if failure.is_missing() => {
                self.gone(failure).await?;
                (None, Went::On)
            }
            Err(failure) => return Err(failure.error(&self.named.doing("reading"))),
        };
        self.pause = pause(went);
        Ok(outcome)
    }

    fn message(&mut self, record: Record) -> BridgeResult<Message> {
        let payload = STANDARD.decode(record.data.as_bytes()).map_err(|error| {
            let words = format!("{}: a record is no base64", self.named.doing("reading"));
            BridgeError::new(BridgeErrorKind::Unavailable, words).because(error)
        })?;
        self.receipts += 1;
        self.order += 1;
        let arrived = record.approximate_arrival_timestamp;
        Ok(Message {
            receipt: Receipt(self.receipts),
            position: record.sequence_number,
            order: self.order,
            payload: Bytes::from(payload),
            deliveries: None,
            sent_at: arrived.map(|seconds| Timestamp::from_millis((seconds * 1000.0) as i64)),
        })
    }
}

async fn iterator(named: &Named, shard: &str, from: &From) -> Result<String, Failure> {
    let asked = from.asked(&named.name, shard);
    let made: Iterator = named.client.call("GetShardIterator", &asked).await?;
    Ok(made.shard_iterator)
}

/// How many milliseconds the end of a read of one record is behind the newest.
pub async fn read_once(named: &Named, shard: &str, from: &From) -> Result<u64, Failure> {
    let asked = json!({"ShardIterator": iterator(named, shard, from).await?, "Limit": 1});
    let read: Read = named.client.call("GetRecords", &asked).await?;
    Ok(read.millis_behind_latest)
}

#[async_trait]
impl Stream for KinesisStream {
    fn began(&self) -> Option<String> {
        self.began.clone()
    }

    async fn next(&mut self, most: usize) -> BridgeResult<Batch> {
        loop {
            if !self.ready.is_empty() {
                let out: Vec<Record> = self.ready.drain(..most.clamp(1, self.ready.len())).collect();
                let messages: BridgeResult<Vec<Message>> =
                    out.into_iter().map(|record| self.message(record)).collect();
                return messages.map(Batch::Messages);
            }
            match self.standing {
                Standing::Over => return Ok(Batch::End),
                Standing::Begin => self.renew().await?,
                Standing::At(_) => {}
            }
            let Some((records, _)) = self.read(most).await? else { continue };
            if let Some(last) = records.last() {
                self.from = From::After(last.sequence_number.clone());
            }
            self.ready.extend(records);
        }
    }

    async fn acknowledge(&mut self, _receipts: &[Receipt]) -> BridgeResult<()> {
        Ok(())
    }

    /// The shard stays as it is: whoever wants it again opens it at the position before.
    async fn reject(&mut self, _receipt: Receipt, _delay: Duration) -> BridgeResult<()> {
        Ok(())
    }

    async fn keep(&mut self) -> BridgeResult<()> {
        Ok(())
    }
}
