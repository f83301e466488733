//! A queue as a source. A stream is a channel with one consumer: delivery tags are its channel's and mean nothing on another one, so
//! a stream that broke is never mended but opened anew.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::bridge::RabbitMqSource;
use flare_model::time::Timestamp;
use flare_provider::bridge::{
    Batch, BridgeError, BridgeErrorKind, BridgeResult, Lag, Message, Nature, Partition, Progress, Receipt,
    Source, Stream,
};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, QueueBindOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Consumer};

use crate::error::bridge_error;
use crate::link::{Link, short};

/// The partition that a queue has.
const ONLY: &str = "0";

/// A queue.
pub struct Queue {
    link: Arc<Link>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    settings: RabbitMqSource,
}

impl Queue {
    pub fn new(
        link: Arc<Link>,
        now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        settings: RabbitMqSource,
    ) -> Queue {
        Queue { link, now, settings }
    }

    /// Binds the queue where it is to be bound, which may have been done before, and begins to consume.
    async fn consume(&self, channel: &Channel) -> BridgeResult<Consumer> {
        let unavailable = |error| {
            bridge_error(error, BridgeErrorKind::Unavailable, &format!("reading \"{}\"", self.settings.queue))
        };
        let queue = short(&self.settings.queue)?;
        if let Some(exchange) = &self.settings.exchange {
            let key = short(self.settings.routing_key.as_deref().unwrap_or_default())?;
            let bound = channel.queue_bind(
                queue.clone(),
                short(exchange)?,
                key,
                QueueBindOptions::default(),
                FieldTable::default(),
            );
            bound.await.map_err(unavailable)?;
        }
        // Bound of what is read ahead, and of what is given out and not settled. When full: the broker waits.
        let qos = channel.basic_qos(self.settings.prefetch.max(1), BasicQosOptions::default());
        qos.await.map_err(unavailable)?;
        let consumer =
            channel.basic_consume(queue, short("")?, BasicConsumeOptions::default(), FieldTable::default());
        consumer.await.map_err(unavailable)
    }
}

#[async_trait]
impl Source for Queue {
    fn nature(&self) -> Nature {
        Nature {
            ordered: true,
            progress: Progress::Acknowledgements,
            // What Flare makes is a quorum queue, which counts; what others made may be one.
            counts_deliveries: self.settings.create,
            names_messages: false,
        }
    }

    async fn partitions(&self) -> BridgeResult<Vec<Partition>> {
        self.link.waiting(&self.settings.queue).await?;
        Ok(vec![Partition { id: ONLY.to_owned(), after: Vec::new() }])
    }

    async fn open(&self, _partition: &str, _after: Option<&str>) -> BridgeResult<Box<dyn Stream>> {
        let channel = self.link.channel().await?;
        let consumer = self.link.soon(self.consume(&channel)).await?;
        Ok(Box::new(Reading {
            link: self.link.clone(),
            queue: self.settings.queue.clone(),
            channel,
            consumer,
            out: BTreeSet::new(),
            rejected: FuturesUnordered::new(),
            due: Vec::new(),
            order: (self.now)().millis().saturating_mul(1000),
        }))
    }

    async fn lag(&self, _partition: &str, _after: Option<&str>) -> BridgeResult<Lag> {
        let waiting = self.link.waiting(&self.settings.queue).await?;
        Ok(Lag { messages: Some(waiting), oldest: None })
    }
}

type Wait = Pin<Box<dyn Future<Output = u64> + Send + Sync>>;

/// A queue that is being read.
struct Reading {
    link: Arc<Link>,
    queue: String,
    channel: Channel,
    /// Has what was read ahead. Bound: the prefetch.
    consumer: Consumer,
    /// What was given out and not settled. Bound: the prefetch.
    out: BTreeSet<u64>,
    /// What was rejected and waits here for its time, since the broker cannot. Bound: the prefetch.
    rejected: FuturesUnordered<Wait>,
    /// Rejected messages whose time has come and of which the broker was not told yet.
    due: Vec<u64>,
    /// The number of the next message.
    order: i64,
}

impl Reading {
    fn broken(&self, error: lapin::Error) -> BridgeError {
        // An unknown delivery tag, a cut connection: whatever it is, this channel is over.
        let words = format!("the channel that read \"{}\" broke: {error}", self.queue);
        BridgeError::new(BridgeErrorKind::Broken, words).because(error)
    }

    /// Why nothing comes any more: the broker ends a consumer whose queue is deleted.
    async fn ended(&self, error: Option<lapin::Error>) -> BridgeError {
        if let Some(error) = error {
            return self.broken(error);
        }
        let broken = || {
            let words = format!("the broker ended the consumer of \"{}\"", self.queue);
            BridgeError::new(BridgeErrorKind::Broken, words)
        };
        if !self.channel.status().connected() {
            return broken();
        }
        match self.link.waiting(&self.queue).await {
            Err(error) if error.kind == BridgeErrorKind::Missing => error,
            _ => broken(),
        }
    }

    fn message(&mut self, delivery: Delivery) -> Message {
        let order = self.order;
        self.order += 1;
        self.out.insert(delivery.delivery_tag);
        let sent_at = delivery.properties.timestamp().map(|seconds| {
            Timestamp::from_millis(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
        });
        Message {
            receipt: Receipt(delivery.delivery_tag),
            position: order.to_string(),
            order,
            deliveries: deliveries(&delivery),
            payload: delivery.data.into(),
            sent_at,
        }
    }

    /// Gives back what waited long enough.
    async fn give_back(&mut self) -> BridgeResult<()> {
        while let Some(&tag) = self.due.last() {
            let nacked =
                self.channel.basic_nack(tag, BasicNackOptions { multiple: false, requeue: true }).await;
            nacked.map_err(|error| self.broken(error))?;
            self.due.pop();
            self.out.remove(&tag);
        }
        Ok(())
    }

    async fn ack(&self, tag: u64, multiple: bool) -> BridgeResult<()> {
        let acked = self.channel.basic_ack(tag, BasicAckOptions { multiple }).await;
        acked.map_err(|error| self.broken(error))
    }
}

/// How often it was given out. A quorum queue counts what was given out before, and says nothing the first time; any other queue says only
/// whether it was.
fn deliveries(delivery: &Delivery) -> Option<u32> {
    let headers = delivery.properties.headers().as_ref();
    let before = headers.and_then(|headers| headers.inner().get("x-delivery-count")).and_then(whole);
    match before {
        Some(before) => u32::try_from(before).ok().map(|before| before.saturating_add(1)),
        None if delivery.redelivered => None,
        None => Some(1),
    }
}

fn whole(value: &AMQPValue) -> Option<i64> {
    match value {
        AMQPValue::LongLongInt(number) => Some(*number),
        AMQPValue::LongInt(number) => Some(i64::from(*number)),
        AMQPValue::LongUInt(number) => Some(i64::from(*number)),
        AMQPValue::ShortInt(number) => Some(i64::from(*number)),
        AMQPValue::ShortShortInt(number) => Some(i64::from(*number)),
        AMQPValue::ShortShortUInt(number) => Some(i64::from(*number)),
        _ => None,
    }
}

#[async_trait]
impl Stream for Reading {
    async fn next(&mut self, most: usize) -> BridgeResult<Batch> {
        let first = loop {
            self.give_back().await?;
            tokio::select! {
                delivery = self.consumer.next() => match delivery {
                    Some(Ok(delivery)) => break delivery,
                    Some(Err(error)) => return Err(self.ended(Some(error)).await),
                    None => return Err(self.ended(None).await),
                },
                Some(tag) = self.rejected.next() => self.due.push(tag),
            }
        };
        let mut messages = vec![self.message(first)];
        while messages.len() < most {
            // What is there already; an error or the end comes again when there is nothing else.
            let Some(Some(Ok(delivery))) = self.consumer.next().now_or_never() else { break };
            messages.push(self.message(delivery));
        }
        Ok(Batch::Messages(messages))
    }

    async fn acknowledge(&mut self, receipts: &[Receipt]) -> BridgeResult<()> {
        let settled: BTreeSet<u64> =
            receipts.iter().map(|receipt| receipt.0).filter(|tag| self.out.contains(tag)).collect();
        // All below the first that is not settled goes with one frame: what was read ahead has higher tags.
        let open = self.out.difference(&settled).next().copied().unwrap_or(u64::MAX);
        let whole = settled.range(..open).next_back().copied();
        if let Some(tag) = whole {
            self.ack(tag, true).await?;
        }
        for &tag in settled.range(open..) {
            self.ack(tag, false).await?;
        }
        self.out.retain(|tag| !settled.contains(tag));
        Ok(())
    }

    async fn reject(&mut self, receipt: Receipt, delay: Duration) -> BridgeResult<()> {
        if !self.out.contains(&receipt.0) {
            return Ok(());
        }
        if delay.is_zero() {
            self.due.push(receipt.0);
            return self.give_back().await;
        }
        self.rejected.push(Box::pin(async move {
            tokio::time::sleep(delay).await;
            receipt.0
        }));
        Ok(())
    }

    async fn keep(&mut self) -> BridgeResult<()> {
        // A message is this channel's for as long as there is one.
        if self.channel.status().connected() {
            return Ok(());
        }
        Err(BridgeError::new(
            BridgeErrorKind::Broken,
            format!("the channel that read \"{}\" broke", self.queue),
        ))
    }
}
