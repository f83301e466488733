//! A queue that is being read: several long polls at once bring messages, which are hidden from others until they are
//! acknowledged, rejected, or the time is over.
//!
//! Polls are tasks of this stream, so that a `next` that is dropped loses nothing of what they bring; they end with it.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::time::Timestamp;
use flare_provider::bridge::{Batch, BridgeError, BridgeErrorKind, BridgeResult, Message, Receipt, Stream};
use serde::Deserialize;
use serde_json::json;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Queue;
use super::batch::{Operation, in_tens};
use super::receivers::Receivers;
use crate::transport::Failure;

/// How long the service waits for a message before it says that there is none. A queue that was deleted shows with the next
/// request, within ten seconds; and a poll whose reader is gone may still take messages into hiding, so it should not last long.
const WAIT: Duration = Duration::from_secs(3);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Received {
    messages: Vec<Given>,
}

/// A message as the service gives it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    message_id: String,
    receipt_handle: String,
    body: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

impl Given {
    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.attributes.get(name)?.parse().ok()
    }
}

/// How a poll came back: for how many it had asked, and what it brought.
type Polled = (usize, Result<Vec<Given>, Failure>);

pub struct SqsStream {
    queue: Queue,
    url: Arc<str>,
    receivers: Receivers,
    /// How long messages are hidden, in seconds.
    visibility: u64,
    /// Bound: as many as there are receivers.
    polls: JoinSet<Polled>,
    /// What the polls that run have asked for.
    on_its_way: usize,
    /// What came and was not given out. Bound: what was asked for at once. When full: nobody polls.
    ready: VecDeque<(Receipt, Message)>,
    /// What the service knows messages by that came and were not settled. Bound: what the caller has, and what is ready.
    handles: BTreeMap<Receipt, Arc<str>>,
    /// A poll failed while others brought messages.
    failed: Option<Failure>,
    receipts: u64,
    order: i64,
    /// When what is hidden is hidden for longer.
    prolong: Interval,
}

impl SqsStream {
    pub fn new(
        queue: Queue,
        url: Arc<str>,
        receivers: Receivers,
        visibility: u64,
        opened: Timestamp,
    ) -> SqsStream {
        let mut prolong = interval(Duration::from_secs(visibility) / 3);
        prolong.set_missed_tick_behavior(MissedTickBehavior::Delay);
        SqsStream {
            queue,
            url,
            receivers,
            visibility,
            polls: JoinSet::new(),
            on_its_way: 0,
            ready: VecDeque::new(),
            handles: BTreeMap::new(),
            failed: None,
            receipts: 0,
            order: opened.millis().saturating_mul(1000),
            prolong,
        }
    }

    /// Begins polls for as many as there is room for.
    fn poll(&mut self, most: usize) {
        loop {
            let room = most.saturating_sub(self.ready.len() + self.on_its_way);
            let Some(asked) = self.receivers.ask(self.polls.len(), room) else { return };
            let (queue, url, visibility) = (self.queue.clone(), self.url.clone(), self.visibility);
            self.on_its_way += asked;
            self.polls.spawn(async move { (asked, receive(&queue, &url, visibility, asked).await) });
        }
    }

    fn came_back(&mut self, polled: Result<Polled, JoinError>) {
        // A poll is neither aborted nor does it panic while the stream is there.
        let Ok((asked, outcome)) = polled else { return };
        self.on_its_way -= asked;
        match outcome {
            Ok(messages) => {
                self.receivers.came_back(asked, messages.len());
                messages.into_iter().for_each(|given| self.take(given));
            }
            Err(failure) => self.failed = Some(failure),
        }
    }

    fn take(&mut self, given: Given) {
        self.receipts += 1;
        self.order += 1;
        let receipt = Receipt(self.receipts);
        let message = Message {
            receipt,
            order: self.order,
            deliveries: given.number("ApproximateReceiveCount"),
            sent_at: given.number("SentTimestamp").map(Timestamp::from_millis),
            position: given.message_id,
            payload: Bytes::from(given.body),
        };
        self.handles.insert(receipt, given.receipt_handle.into());
        self.ready.push_back((receipt, message));
    }

    fn error(&self, failure: Failure, doing: &str) -> BridgeError {
        self.queue.note(failure).error(&self.queue.doing(doing))
    }

    /// What the first of these failures says of all of them.
    fn failures(&self, failed: &BTreeMap<Receipt, Failure>, doing: &str, means: &str) -> BridgeResult<()> {
        let Some(first) = failed.values().next() else { return Ok(()) };
        let kind = match first.kind() {
            // The handle of one message is void; nothing is wrong with the queue or its settings.
            BridgeErrorKind::Refused if first.is("ReceiptHandleIsInvalid") => BridgeErrorKind::Unavailable,
            kind => kind,
        };
        let doing = self.queue.doing(doing);
        Err(BridgeError::new(kind, format!("{doing}: {first}; {} {means}", messages(failed.len()))))
    }
}

fn messages(count: usize) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

async fn receive(queue: &Queue, url: &str, visibility: u64, most: usize) -> Result<Vec<Given>, Failure> {
    let asked = json!({
        "QueueUrl": url,
        "MaxNumberOfMessages": most,
        "WaitTimeSeconds": WAIT.as_secs(),
        "VisibilityTimeout": visibility,
        "MessageSystemAttributeNames": ["ApproximateReceiveCount", "SentTimestamp"],
    });
    let received: Received = queue.client.call_that_waits("ReceiveMessage", &asked, WAIT).await?;
    Ok(received.messages)
}

#[async_trait]
impl Stream for SqsStream {
    async fn next(&mut self, most: usize) -> BridgeResult<Batch> {
        let most = most.max(1);
        loop {
            while let Some(polled) = self.polls.try_join_next() {
                self.came_back(polled);
            }
            if !self.ready.is_empty() {
                let out = self.ready.drain(..most.min(self.ready.len()));
                let out: Vec<Message> = out.map(|(_, message)| message).collect();
                return Ok(Batch::Messages(out));
            }
            if let Some(failure) = self.failed.take() {
                return Err(self.error(failure, "receiving from"));
            }
            self.poll(most);
            if let Some(polled) = self.polls.join_next().await {
                self.came_back(polled);
            }
        }
    }

    async fn acknowledge(&mut self, receipts: &[Receipt]) -> BridgeResult<()> {
        let known = |receipt: &Receipt| Some((*receipt, self.handles.get(receipt)?.clone()));
        let stored: Vec<_> = receipts.iter().filter_map(known).collect();
        let failed = in_tens(&self.queue.client, &self.url, Operation::Delete, stored).await;
        for receipt in receipts {
            // What may be deleted later stays known; a handle that is void never does anything again.
            let later = failed.get(receipt).is_some_and(|failure| !failure.is("ReceiptHandleIsInvalid"));
            if !later {
                self.handles.remove(receipt);
            }
        }
        self.failures(&failed, "deleting from", "may come again")
    }

    async fn reject(&mut self, receipt: Receipt, delay: Duration) -> BridgeResult<()> {
        let Some(handle) = self.handles.remove(&receipt) else { return Ok(()) };
        let hide = Operation::Hide(super::whole_seconds(delay));
        let failed = in_tens(&self.queue.client, &self.url, hide, vec![(receipt, handle)]).await;
        self.failures(&failed, "giving back to", "will come again when its time is over")
    }

    async fn keep(&mut self) -> BridgeResult<()> {
        while let Some(polled) = self.polls.try_join_next() {
            self.came_back(polled);
        }
        let due = poll_fn(|cx| Poll::Ready(self.prolong.poll_tick(cx).is_ready())).await;
        if !due || self.handles.is_empty() {
            return Ok(());
        }
        let hidden = self.handles.iter().map(|(receipt, handle)| (*receipt, handle.clone())).collect();
        let hide = Operation::Hide(self.visibility);
        let mut failed = in_tens(&self.queue.client, &self.url, hide, hidden).await;
        // These have come again, or will: that is what happens to a message whose time is over.
        failed.retain(|_, failure| {
            !matches!(failure, Failure::Refused(refusal) if refusal.status == 400 && !refusal.passes())
                || failure.is_missing()
        });
        self.failures(&failed, "hiding what is being stored of", "may come again")
    }

    async fn leave(&mut self) {
        // A poll that is dropped may take messages all the same, and hide them from everybody until their time is over.
        while let Some(polled) = self.polls.join_next().await {
            self.came_back(polled);
        }
        self.ready.clear();
        let hidden = std::mem::take(&mut self.handles).into_iter().collect();
        in_tens(&self.queue.client, &self.url, Operation::Hide(0), hidden).await;
    }
}
