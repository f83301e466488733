//! A partition of a consumer: messages come in; they are documents in the store, and how far was read is durable, before what
//! became of each goes out. Only then may a source forget them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_model::change::ChangeError;
use flare_model::consumer::{Condition, Failed, Naming, Progress, Understood, Unread};
use flare_model::document::{Intent, Outcome, Write};
use flare_model::layout::Instant;
use flare_model::resource::Resource;
use flare_model::revision::{Date, Revision};
use flare_provider::{Committed, Conflict, ErrorKind, NewLetter, ProviderError};
use serde::{Deserialize, Serialize};

use super::board::Board;
use super::{A_WHILE, Fitting, Tools};

/// No catalog routes what a consumer writes: its documents lie in its own lanes, whatever their names.
const ROUTED: u64 = u64::MAX;

/// So many documents are written at once.
const WRITES: usize = 1000;

/// A message, as its source gave it out.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Where it is in its source.
    pub position: String,
    /// Its place in the order of its source.
    pub order: i64,
    /// What it says.
    pub payload: Bytes,
    /// How often it was given out, where the source counts.
    pub given_out: Option<u32>,
    /// What it says of which document, where that is known without reading it.
    pub understood: Option<Understood>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// A document, or one that was newer already.
    Stored,
    /// It cannot be read, and is to come again after a while.
    Again(Duration),
    /// It cannot be read, and is a dead letter.
    Dead,
}

/// Why a partition is not read on here.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Another reader has it, or its consumer is gone.
    #[error("another reader has taken it over, or its consumer is gone")]
    Fenced,
    /// Its account has as many documents as it may: all of it is to be tried again.
    #[error("{0}")]
    Full(String),
    /// Not now; nothing, or only a part, was stored, and all of it is to be tried again.
    #[error(transparent)]
    Store(ProviderError),
}

/// What is kept of a message that could not be read, beside its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// How often it was tried.
    pub tries: u32,
    /// Why it could not be read.
    pub error: String,
    /// Where it was in its source.
    pub position: String,
}

/// A partition that is being read.
pub struct Unit {
    tools: Arc<Tools>,
    board: Arc<Board>,
    resource: Arc<Resource>,
    partition: String,
    epoch: u64,
    /// Whether the source gives out again what it is told to.
    comes_again: bool,
    /// Whether it says the same again and again, also what was given up: that is remembered then, with the dead letter itself.
    pub says_again: bool,
    /// What is durable, and what was counted since.
    pub progress: Progress,
    /// Whether something was counted since.
    unwritten: bool,
}

impl Unit {
    /// Takes a partition over.
    pub async fn take(
        tools: &Arc<Tools>,
        board: &Arc<Board>,
        resource: &Arc<Resource>,
        partition: &str,
        epoch: u64,
        comes_again: bool,
    ) -> Result<Unit, Stopped> {
        let taken = tools.store.intake.take(resource.number, partition, epoch).await.map_err(stopped)?;
        let mut progress: Progress = match taken {
            None => Progress::default(),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let detail = format!("how far {partition} was read cannot be read: {error}");
                Stopped::Store(ProviderError::new(ErrorKind::Corrupt, "intake.take", detail))
            })?,
        };
        let settings = resource.consumer().expect("only consumers are read");
        progress.reads(&settings.draft.source.place());
        progress.turns(Condition::Preparing, tools.clock.now(), None);
        board.put(partition, epoch, &progress, None);
        Ok(Unit {
            tools: tools.clone(),
            board: board.clone(),
            resource: resource.clone(),
            partition: partition.to_owned(),
            epoch,
            comes_again,
            says_again: false,
            progress,
            unwritten: false,
        })
    }

    /// How it fares. A turn is written down, so that others know; where that fails the next one does it.
    pub async fn turns(&mut self, condition: Condition, why: Option<String>) {
        let turned = self.progress.turns(condition, self.tools.clock.now(), why.as_deref());
        self.board.put(&self.partition, self.epoch, &self.progress, why.clone());
        if turned {
            tracing::info!(
                consumer.id = %self.resource.id(), partition = self.partition, condition = condition.as_str(), why,
                "a consumer fares otherwise"
            );
            let _ = self.advance(Vec::new()).await;
        }
    }

    /// Something is wrong that does not keep it from reading.
    pub fn notes(&mut self, error: String) {
        self.progress.last_failure = Some(Failed { at: self.tools.clock.now(), error });
        self.board.put(&self.partition, self.epoch, &self.progress, None);
    }

    /// The partition is over.
    pub async fn end(&mut self) -> Result<(), Stopped> {
        self.progress.ended = true;
        self.advance(Vec::new()).await?;
        self.board.put(&self.partition, self.epoch, &self.progress, None);
        Ok(())
    }

    /// How many of so many messages may be stored now. None: to be asked again after this.
    pub fn allowed(&self, wanted: usize) -> Result<usize, Duration> {
        let allowed = self.tools.accounts.messages(&self.resource.account, wanted);
        allowed.map_err(|wait| wait.max(A_WHILE))
    }

    /// So many of its messages need not come again. That is durable with whatever is written next.
    pub fn acknowledged(&mut self, messages: usize) {
        if !self.comes_again {
            return;
        }
        self.progress.counted.acknowledged += messages as u64;
        self.unwritten |= messages > 0;
        self.board.put(&self.partition, self.epoch, &self.progress, None);
    }

    /// It is not read here any more. What was counted since the last writing is written down; where that fails nobody is told more than
    /// was known before.
    pub async fn rest(&mut self) {
        if self.unwritten {
            let _ = self.advance(Vec::new()).await;
        }
    }

    /// Stores messages, in order, and answers what became of each. `position` is where reading goes on after them. When this fails,
    /// nothing is known to be stored, and all of it is to be stored again: doing it twice is the same as once.
    pub async fn take_in(
        &mut self,
        messages: &[Incoming],
        position: Option<String>,
    ) -> Result<Vec<Became>, Stopped> {
        let mut next = self.progress.clone();
        next.counted.received += messages.len() as u64;
        next.last_message_at =
            Some(self.tools.clock.now()).filter(|_| !messages.is_empty()).or(next.last_message_at);
        let written = self.store(messages, &mut next).await?;
        let (mut became, mut letters) = (Vec::with_capacity(messages.len()), Vec::new());
        for (message, written) in messages.iter().zip(written) {
            became.push(match written {
                Ok(outcome) => {
                    next.read(&message.payload);
                    next.counted.stored(outcome);
                    Became::Stored
                }
                Err(error) => {
                    let most = self.tools.tries;
                    match next.unread(&message.payload, message.given_out, self.comes_again, most) {
                        Unread::Again(wait) => Became::Again(wait),
                        Unread::GiveUp(tries) => {
                            if self.says_again {
                                next.gave_up(&message.payload);
                            }
                            letters.push(self.letter(message, tries, error));
                            Became::Dead
                        }
                    }
                }
            });
        }
        next.position = position.or(next.position);
        if !self.comes_again {
            // A position says so by itself.
            next.counted.acknowledged += messages.len() as u64;
        }
        let before = std::mem::replace(&mut self.progress, next);
        if let Err(error) = self.advance(letters).await {
            self.progress = before;
            return Err(error);
        }
        let more = self.progress.counted.since(before.counted);
        let mut counted = self.tools.counted.lock();
        *counted = counted.plus(more);
        drop(counted);
        self.board.came(messages.len(), self.tools.clock.monotonic());
        self.board.put(&self.partition, self.epoch, &self.progress, None);
        Ok(became)
    }

    /// Writes how far it was read.
    async fn advance(&mut self, letters: Vec<NewLetter>) -> Result<(), Stopped> {
        let progress = serde_json::to_string(&self.progress).expect("progress is plain data");
        let (number, intake) = (self.resource.number, &self.tools.store.intake);
        intake.advance(number, &self.partition, self.epoch, progress, letters).await.map_err(stopped)
    }

    fn letter(&self, message: &Incoming, tries: u32, error: String) -> NewLetter {
        tracing::warn!(
            consumer.id = %self.resource.id(), partition = self.partition, position = message.position, tries, error,
            "a message cannot be read, and is a dead letter"
        );
        let story = Story { tries, error, position: message.position.clone() };
        NewLetter {
            received_at: self.tools.clock.now(),
            story: serde_json::to_string(&story).expect("a story is plain data"),
            payload: message.payload.clone(),
        }
    }

    /// Commits what can be read, in pieces; what cannot is an error in its place.
    async fn store(
        &self,
        messages: &[Incoming],
        next: &mut Progress,
    ) -> Result<Vec<Result<Outcome, String>>, Stopped> {
        let mut results: Vec<Result<Outcome, String>> = Vec::with_capacity(messages.len());
        let (mut piece, mut places, mut bytes) = (Vec::new(), Vec::new(), 0);
        for message in messages {
            match self.write(message, next) {
                Ok(write) => {
                    bytes += message.payload.len() + write.url.len() + 64;
                    piece.push(write);
                    places.push(results.len());
                    // Until it is known.
                    results.push(Ok(Outcome::Unchanged));
                }
                Err(error) => results.push(Err(error)),
            }
            if bytes >= self.tools.commit_bytes || piece.len() >= WRITES {
                self.commit(&mut piece, &mut places, &mut results).await?;
                bytes = 0;
            }
        }
        self.commit(&mut piece, &mut places, &mut results).await?;
        Ok(results)
    }

    async fn commit(
        &self,
        piece: &mut Vec<Write>,
        places: &mut Vec<usize>,
        results: &mut [Result<Outcome, String>],
    ) -> Result<(), Stopped> {
        if piece.is_empty() {
            return Ok(());
        }
        let committing = self.tools.accounts.commit(&self.resource.account, std::mem::take(piece));
        let Fitting { committed, full } = committing.await.map_err(stopped)?;
        for (place, committed) in places.drain(..).zip(committed) {
            results[place] = outcome(committed)?;
        }
        full.map_or(Ok(()), |why| Err(Stopped::Full(why)))
    }

    fn write(&self, message: &Incoming, next: &mut Progress) -> Result<Write, String> {
        let at = self.tools.clock.now();
        let settings = self.resource.consumer().expect("only consumers are read");
        // What came in may be a part of a larger buffer, which would stay in memory as long as the document does.
        let content = || Bytes::copy_from_slice(&message.payload);
        if matches!(settings.reader.naming(), Naming::Position) {
            // The messages of a partition are the revisions of one document, so that they stay in order and every one is kept
            // for as long as somebody is to be told of it.
            let arrived = Instant { seconds: next.arrive(at), nanos: 0 };
            let revision = Revision::Date(Date::new(arrived, message.position.as_str()));
            let lane = self.resource.lane_of(&self.partition);
            let intent = Intent::Put { revision, content: content() };
            return Ok(Write { lane, url: self.partition.as_str().into(), intent, at, routed_by: ROUTED });
        }
        let understood = match &message.understood {
            Some(understood) => understood.clone(),
            None => settings.reader.understand(&message.payload).map_err(|error| error.to_string())?,
        };
        let Understood { name, revision, is_delete } = understood;
        let revision = revision.unwrap_or(Revision::Integer(message.order));
        let intent = match is_delete {
            true => Intent::Delete { revision: Some(revision) },
            false => Intent::Put { revision, content: content() },
        };
        let lane = self.resource.lane_of(&name);
        Ok(Write { lane, url: name.into(), intent, at, routed_by: ROUTED })
    }
}

fn stopped(error: ProviderError) -> Stopped {
    match error.kind {
        ErrorKind::Fenced | ErrorKind::Conflict(Conflict::Parent | Conflict::Lane) => Stopped::Fenced,
        _ => Stopped::Store(error),
    }
}

fn outcome(committed: flare_provider::Result<Committed>) -> Result<Result<Outcome, String>, Stopped> {
    match committed {
        Ok(committed) => Ok(Ok(committed.outcome)),
        Err(error) if error.is(&Conflict::RevisionKind) => Ok(Err(ChangeError::OtherKind.to_string())),
        Err(error) => Err(stopped(error)),
    }
}
