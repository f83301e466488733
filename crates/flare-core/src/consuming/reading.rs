//! A partition of a queue or a stream: it is asked for as many messages as there is room for; what it gave is stored, and only then
//! acknowledged. One batch is in memory at a time. Connections are made again here, above the contract.

use std::sync::Arc;
use std::time::Duration;

use flare_model::consumer::Condition;
use flare_provider::bridge::{Batch, BridgeError, BridgeErrorKind, Message, Progress, Source, Stream};
use tokio_util::sync::CancellationToken;

use super::unit::{Became, Incoming, Stopped, Unit};
use super::{Tools, backoff};

/// How often a source is told that what it gave out is still being stored.
const KEEP: Duration = Duration::from_secs(5);

/// How long to wait after a failure, at first and at most; and for something that does not exist.
const FIRST: Duration = Duration::from_millis(250);
const MOST: Duration = Duration::from_secs(30);
const SELDOM: Duration = Duration::from_secs(5);

/// How many bytes of messages are asked for at once, going by how large they were lately.
const BYTES: usize = 8 << 20;

/// How reading came to an end.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop.
    Told,
    /// The partition is over.
    Over,
    /// Another reader has it, or its consumer is gone.
    Fenced,
}

/// A partition, being read.
pub struct Reading {
    /// What reading takes.
    pub tools: Arc<Tools>,
    /// Where messages come from.
    pub source: Arc<dyn Source>,
    /// Which part of it.
    pub partition: String,
    /// Cancelled when it is to stop.
    pub stop: CancellationToken,
    /// How large a message was lately, about.
    pub size: usize,
}

/// Why a stream is not read on.
enum Broken {
    Ended(Ended),
    Bridge(BridgeError),
}

impl Reading {
    /// Reads until it is told to stop or there is nothing more. It stops between batches: what was given out is stored first.
    pub async fn run(mut self, mut unit: Unit) -> Ended {
        let ended = self.read(&mut unit).await;
        if ended == Ended::Told {
            unit.rest().await;
        }
        ended
    }

    async fn read(&mut self, unit: &mut Unit) -> Ended {
        let mut failures = 0;
        loop {
            let ended = match self.open(unit).await {
                Ok(stream) => match self.begin(stream.began(), unit).await {
                    Ok(()) => self.follow(stream, unit, &mut failures).await,
                    Err(broken) => broken,
                },
                Err(error) => Broken::Bridge(error),
            };
            let error = match ended {
                Broken::Ended(ended) => return ended,
                Broken::Bridge(error) => error,
            };
            failures += 1;
            let wait = match error.kind {
                BridgeErrorKind::Missing | BridgeErrorKind::Refused => {
                    unit.turns(Condition::Disabled, Some(error.to_string())).await;
                    backoff(1, SELDOM, SELDOM, &self.tools.chance)
                }
                BridgeErrorKind::Forgotten => {
                    // What the source no longer has is lost, and said to be; the rest is not to be.
                    unit.turns(Condition::Failing, Some(error.to_string())).await;
                    unit.progress.position = None;
                    Duration::ZERO
                }
                // It is made again at once; only if that fails too does anybody hear of it.
                BridgeErrorKind::Broken if failures == 1 => Duration::ZERO,
                BridgeErrorKind::Broken | BridgeErrorKind::Unavailable => {
                    unit.turns(Condition::Failing, Some(error.to_string())).await;
                    backoff(failures, FIRST, MOST, &self.tools.chance)
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return Ended::Told,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn open(&self, unit: &Unit) -> Result<Box<dyn Stream>, BridgeError> {
        let after = match self.source.nature().progress {
            Progress::Positions => unit.progress.position.as_deref(),
            Progress::Acknowledgements => None,
        };
        self.source.open(&self.partition, after).await
    }

    /// Where a partition was begun is durable before anything comes: whoever reads it after a restart misses nothing of what came
    /// meanwhile.
    async fn begin(&self, began: Option<String>, unit: &mut Unit) -> Result<(), Broken> {
        let positions = self.source.nature().progress == Progress::Positions;
        let Some(began) = began.filter(|_| positions && unit.progress.position.is_none()) else {
            return Ok(());
        };
        match unit.take_in(&[], Some(began)).await {
            Ok(_) => Ok(()),
            Err(Stopped::Fenced) => Err(Broken::Ended(Ended::Fenced)),
            Err(stopped) => Err(Broken::Bridge(store_is_away(&stopped))),
        }
    }

    async fn follow(&mut self, mut stream: Box<dyn Stream>, unit: &mut Unit, failures: &mut u32) -> Broken {
        unit.turns(Condition::Active, None).await;
        loop {
            let most = self.tools.batch.min(BYTES / self.size.max(1)).max(1);
            let batch = tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    // Whatever is not given back by then comes again by itself.
                    let _ = tokio::time::timeout(KEEP, stream.leave()).await;
                    return Broken::Ended(Ended::Told);
                }
                batch = stream.next(most) => batch,
            };
            let messages = match batch {
                Ok(Batch::Messages(messages)) => messages,
                Ok(Batch::End) => match unit.end().await {
                    Ok(()) => return Broken::Ended(Ended::Over),
                    Err(Stopped::Fenced) => return Broken::Ended(Ended::Fenced),
                    Err(stopped) => return Broken::Bridge(store_is_away(&stopped)),
                },
                Err(error) => return Broken::Bridge(error),
            };
            *failures = 0;
            let bytes: usize = messages.iter().map(|message| message.payload.len()).sum();
            self.size = (self.size * 3 + bytes / messages.len().max(1)) / 4;
            if let Err(broken) = self.settle(&mut stream, unit, messages).await {
                return broken;
            }
        }
    }

    /// Stores messages as their account may send them, and tells the source.
    async fn settle(
        &self,
        stream: &mut Box<dyn Stream>,
        unit: &mut Unit,
        mut messages: Vec<Message>,
    ) -> Result<(), Broken> {
        while !messages.is_empty() {
            let allowed = self.allowed(stream, unit, messages.len()).await?;
            let rest = messages.split_off(allowed);
            self.settle_allowed(stream, unit, messages).await?;
            messages = rest;
        }
        Ok(())
    }

    /// How many of so many messages may be stored: it waits until some may.
    async fn allowed(
        &self,
        stream: &mut Box<dyn Stream>,
        unit: &Unit,
        wanted: usize,
    ) -> Result<usize, Broken> {
        let mut kept = self.tools.clock.monotonic();
        loop {
            let wait = match unit.allowed(wanted) {
                Ok(allowed) => return Ok(allowed.clamp(1, wanted)),
                Err(wait) => wait,
            };
            tokio::select! {
                () = self.stop.cancelled() => return Err(Broken::Ended(Ended::Told)),
                () = tokio::time::sleep(wait.min(KEEP)) => {}
            }
            let now = self.tools.clock.monotonic();
            if now.saturating_sub(kept) >= KEEP {
                stream.keep().await.map_err(Broken::Bridge)?;
                kept = now;
            }
        }
    }

    /// Stores messages however long that takes, and then tells the source.
    async fn settle_allowed(
        &self,
        stream: &mut Box<dyn Stream>,
        unit: &mut Unit,
        messages: Vec<Message>,
    ) -> Result<(), Broken> {
        let positions = self.source.nature().progress == Progress::Positions;
        let position = messages.last().filter(|_| positions).map(|message| message.position.clone());
        let receipts: Vec<_> = messages.iter().map(|message| message.receipt).collect();
        let incoming: Vec<Incoming> = messages.into_iter().map(incoming).collect();
        let became = self.store(stream, unit, &incoming, position).await?;
        let mut stored = Vec::with_capacity(receipts.len());
        for (receipt, became) in receipts.into_iter().zip(became) {
            match became {
                Became::Stored | Became::Dead => stored.push(receipt),
                Became::Again(wait) => stream.reject(receipt, wait).await.map_err(Broken::Bridge)?,
            }
        }
        stream.acknowledge(&stored).await.map_err(Broken::Bridge)?;
        unit.acknowledged(stored.len());
        Ok(())
    }

    async fn store(
        &self,
        stream: &mut Box<dyn Stream>,
        unit: &mut Unit,
        incoming: &[Incoming],
        position: Option<String>,
    ) -> Result<Vec<Became>, Broken> {
        let mut failures = 0;
        loop {
            let taken = {
                let mut taking = std::pin::pin!(unit.take_in(incoming, position.clone()));
                loop {
                    tokio::select! {
                        biased;
                        taken = &mut taking => break taken,
                        () = tokio::time::sleep(KEEP) => stream.keep().await.map_err(Broken::Bridge)?,
                    }
                }
            };
            let stopped = match taken {
                Ok(became) => {
                    if failures > 0 {
                        unit.turns(Condition::Active, None).await;
                    }
                    return Ok(became);
                }
                Err(stopped) => stopped,
            };
            if matches!(stopped, Stopped::Fenced) {
                return Err(Broken::Ended(Ended::Fenced));
            }
            failures += 1;
            unit.turns(Condition::Failing, Some(stopped.to_string())).await;
            let wait = backoff(failures, FIRST, KEEP, &self.tools.chance);
            tokio::select! {
                () = self.stop.cancelled() => return Err(Broken::Ended(Ended::Told)),
                () = tokio::time::sleep(wait) => {}
            }
            stream.keep().await.map_err(Broken::Bridge)?;
        }
    }
}

fn incoming(message: Message) -> Incoming {
    Incoming {
        position: message.position,
        order: message.order,
        payload: message.payload,
        given_out: message.deliveries,
        understood: None,
    }
}

fn store_is_away(stopped: &Stopped) -> BridgeError {
    BridgeError::new(BridgeErrorKind::Unavailable, format!("the store does not take it: {stopped}"))
}
