//! A durable consumer that is being read: it is asked for so many messages, and sends heartbeats while it has none. When those stay away, it
//! is looked at and asked anew. Acknowledgements are messages to the subject that each message names; the last of a batch is answered,
//! and the server takes them in their order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, StatusCode, Subject, Subscriber};
use async_trait::async_trait;
use flare_model::time::Timestamp;
use flare_provider::bridge::{Batch, BridgeResult, Message, Receipt, Stream};
use futures_util::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::json;

use crate::consumer::{Wanted, nanoseconds};
use crate::link::{Identity, Link, away, identity};
use crate::source::{Known, broken};

/// How many are asked for at once, at the most.
const MOST: usize = 256;

/// How long the server remembers a question.
const EXPIRES: Duration = Duration::from_secs(30);

/// How often it says that it is there while it has nothing.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// After so long without a word it is looked at.
const SILENCE: Duration = Duration::from_secs(3);

/// A consumer that is being read.
pub struct Pulling {
    link: Arc<Link>,
    client: Client,
    identity: Identity,
    wanted: Wanted,
    /// When the stream was made, in microseconds: messages are numbered from there on, so that those of a stream that was made anew come
    /// after those of the one before.
    stream: i64,
    known: Arc<Mutex<Known>>,
    inbox: String,
    /// What the server sent and nobody took. Bound: what was asked for.
    subscriber: Subscriber,
    /// How many were asked for and have not come.
    asked: usize,
    /// What came and was not given out. Bound: what was asked for.
    ready: VecDeque<Message>,
    /// Where to settle what came, by receipt. Bound: what the consumer lets be open at a time.
    open: BTreeMap<u64, Subject>,
    next_receipt: u64,
}

impl Pulling {
    pub async fn new(
        link: Arc<Link>,
        client: Client,
        wanted: Wanted,
        stream: i64,
        known: Arc<Mutex<Known>>,
    ) -> BridgeResult<Pulling> {
        let inbox = client.new_inbox();
        let subscriber = client.subscribe(inbox.clone()).await;
        let subscriber =
            subscriber.map_err(|error| away(&format!("listening at NATS: {error}")).because(error))?;
        let identity = identity(&client);
        Ok(Pulling {
            link,
            client,
            identity,
            wanted,
            stream,
            known,
            inbox,
            subscriber,
            asked: 0,
            ready: VecDeque::new(),
            open: BTreeMap::new(),
            next_receipt: 1,
        })
    }

    async fn ask(&mut self, most: usize) -> BridgeResult<()> {
        let most = most.clamp(1, MOST);
        let question = json!({
            "batch": most,
            "expires": nanoseconds(EXPIRES),
            "idle_heartbeat": nanoseconds(HEARTBEAT),
        });
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.wanted.stream, self.wanted.durable);
        // Counted first: one that is dropped here is missed like one that was lost on the way.
        self.asked = most;
        let asked =
            self.client.publish_with_reply(subject, self.inbox.clone(), question.to_string().into()).await;
        asked.map_err(|error| broken(format!("asking for messages: {error}")).because(error))
    }

    /// What something from the server means: a message is kept in `ready`; the end of a question has it asked anew.
    async fn take(&mut self, came: async_nats::Message) -> BridgeResult<()> {
        match came.status {
            None | Some(StatusCode::OK) => {
                self.asked = self.asked.saturating_sub(1);
                if let Some(message) = self.message(came) {
                    self.ready.push_back(message);
                }
                Ok(())
            }
            Some(StatusCode::IDLE_HEARTBEAT) => Ok(()),
            // It waited long enough, or has nothing: the next question follows.
            Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => {
                self.asked = 0;
                Ok(())
            }
            // Deleted, moved to another server, or nobody is there: the server says which.
            Some(_) => {
                self.asked = 0;
                self.look(came.description.unwrap_or_default()).await
            }
        }
    }

    /// Whether it makes sense to ask on.
    async fn look(&self, why: String) -> BridgeResult<()> {
        if self.client.connection_state() != State::Connected || identity(&self.client) != self.identity {
            return Err(broken("the connection to NATS broke"));
        }
        let timeout = self.link.timeout();
        match tokio::time::timeout(timeout, self.wanted.info(&self.client)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                // A stream that is gone takes its consumers along, and the server names the consumer.
                self.wanted.find_stream(&self.client).await?;
                Err(error.into())
            }
            Err(_) => Err(broken(format!("NATS does not answer: {why}"))),
        }
    }

    fn message(&mut self, came: async_nats::Message) -> Option<Message> {
        let reply = came.reply?;
        let told = Told::read(&reply)?;
        let receipt = self.next_receipt;
        self.next_receipt += 1;
        self.open.insert(receipt, reply);
        Some(Message {
            receipt: Receipt(receipt),
            position: told.sequence.to_string(),
            order: self.stream.saturating_add_unsigned(told.sequence),
            payload: came.payload,
            deliveries: Some(told.delivered),
            sent_at: Some(Timestamp::from_millis(told.nanoseconds / 1_000_000)),
        })
    }

    async fn say(&self, to: &Subject, what: String) -> BridgeResult<()> {
        let said = self.client.publish(to.clone(), what.into()).await;
        said.map_err(|error| broken(format!("settling a message: {error}")).because(error))
    }

    fn is_whole(&self) -> BridgeResult<()> {
        match self.client.connection_state() {
            State::Connected => Ok(()),
            State::Pending | State::Disconnected => Err(broken("the connection to NATS broke")),
        }
    }
}

/// What the subject of the acknowledgement tells of a message.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    delivered: u32,
    sequence: u64,
    nanoseconds: i64,
}

impl Told {
    /// `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<of the consumer>.<time>.<pending>`; newer servers put the domain and the account
    /// before the stream, and may put more at the end.
    fn read(reply: &str) -> Option<Told> {
        let parts: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
        let parts = if parts.len() >= 9 { &parts[2..] } else { &parts[..] };
        let [_stream, _consumer, delivered, sequence, _own, time, _pending, ..] = parts else { return None };
        Some(Told {
            delivered: delivered.parse().ok()?,
            sequence: sequence.parse().ok()?,
            nanoseconds: time.parse().ok()?,
        })
    }
}

#[async_trait]
impl Stream for Pulling {
    async fn next(&mut self, most: usize) -> BridgeResult<Batch> {
        loop {
            // What is there already, and no more than was asked for.
            while self.ready.len() < most {
                let Some(Some(came)) = self.subscriber.next().now_or_never() else { break };
                self.take(came).await?;
            }
            if !self.ready.is_empty() {
                let most = most.max(1).min(self.ready.len());
                return Ok(Batch::Messages(self.ready.drain(..most).collect()));
            }
            if self.asked == 0 {
                self.ask(most).await?;
            }
            match tokio::time::timeout(SILENCE, self.subscriber.next()).await {
                Ok(Some(came)) => self.take(came).await?,
                Ok(None) => return Err(broken("the subscription at NATS ended")),
                Err(_) => {
                    self.look("it has been silent".to_owned()).await?;
                    self.asked = 0;
                }
            }
        }
    }

    async fn acknowledge(&mut self, receipts: &[Receipt]) -> BridgeResult<()> {
        let open: Vec<(u64, Subject)> = receipts
            .iter()
            .filter_map(|receipt| self.open.get(&receipt.0).map(|subject| (receipt.0, subject.clone())))
            .collect();
        let Some(((_, last), before)) = open.split_last() else { return Ok(()) };
        self.is_whole()?;
        for (_, subject) in before {
            self.say(subject, "+ACK".to_owned()).await?;
        }
        let answered = self.client.request(last.clone(), "+ACK".into()).await;
        answered.map_err(|error| broken(format!("acknowledging: {error}")).because(error))?;
        let mut known = self.known.lock();
        for (receipt, subject) in &open {
            self.open.remove(receipt);
            known.settled = known.settled.max(Told::read(subject).map_or(0, |told| told.sequence));
        }
        Ok(())
    }

    async fn reject(&mut self, receipt: Receipt, delay: Duration) -> BridgeResult<()> {
        let Some(subject) = self.open.get(&receipt.0).cloned() else { return Ok(()) };
        self.is_whole()?;
        let word = match delay.is_zero() {
            true => "-NAK".to_owned(),
            false => format!("-NAK {}", json!({"delay": nanoseconds(delay)})),
        };
        self.say(&subject, word).await?;
        self.open.remove(&receipt.0);
        Ok(())
    }

    async fn keep(&mut self) -> BridgeResult<()> {
        self.is_whole()?;
        for subject in self.open.values() {
            self.say(subject, "+WPI".to_owned()).await?;
        }
        Ok(())
    }

    async fn leave(&mut self) {
        while let Some(Some(came)) = self.subscriber.next().now_or_never() {
            if self.take(came).await.is_err() {
                return;
            }
        }
        for subject in std::mem::take(&mut self.open).values() {
            if self.say(subject, "-NAK".to_owned()).await.is_err() {
                return;
            }
        }
        // What could not be sent comes again in its time.
        let _ = self.client.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_by_old_and_new_servers() {
        let told = Told { delivered: 3, sequence: 17, nanoseconds: 1_600_000_000_000_000_000 };
        let old = "$JS.ACK.orders.flare-con_1.3.17.9.1600000000000000000.4";
        assert_eq!(Told::read(old).as_ref(), Some(&told));
        for new in [
            "_.hash.orders.flare.3.17.9.1600000000000000000.4",
            "hub.hash.o.f.3.17.9.1600000000000000000.4.x",
        ] {
            assert_eq!(Told::read(&format!("$JS.ACK.{new}")).as_ref(), Some(&told), "{new}");
        }
        assert_eq!(Told::read("_INBOX.x"), None);
    }
}
