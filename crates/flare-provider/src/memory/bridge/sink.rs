//! A queue in memory as a sink.

use async_trait::async_trait;
use flare_model::bridge::wording::escape;
use flare_model::bridge::{Target, Wording};

use super::queue::Kept;
use super::{MemoryBroker, ONLY};
use crate::bridge::{Outgoing, Sent, Sink};

/// How many go at once.
const MOST: usize = 100;

/// Where notifications go: the queue of that name, or, where the name is made of documents, the queue named by what comes before
/// the first of its dots.
pub struct MemorySink {
    broker: MemoryBroker,
    queue: String,
    name: Option<Wording>,
}

impl MemorySink {
    pub(super) fn new(broker: MemoryBroker, settings: &Target) -> MemorySink {
        let (queue, name) = match settings {
            Target::Sqs(sqs) => (sqs.queue.as_str(), None),
            Target::Kinesis(kinesis) => (kinesis.stream.as_str(), None),
            Target::RabbitMq(rabbitmq) => (rabbitmq.routing_key.as_str(), Some(&rabbitmq.routing_key)),
            Target::Nats(nats) => (nats.subject.as_str(), Some(&nats.subject)),
        };
        let queue = queue.split_once('.').map_or(queue, |(queue, _)| queue).to_owned();
        MemorySink { broker, queue, name: name.cloned() }
    }

    fn one(&self, outgoing: Outgoing) -> Sent {
        let now = (self.broker.now)();
        let mut state = match self.broker.reach() {
            Ok(state) => state,
            Err(error) => return Sent::Failed(error.detail),
        };
        let part = match state.queue(&self.queue) {
            Ok(queue) => queue.part(ONLY),
            Err(error) => return Sent::Refused(error.detail),
        };
        let Some(part) = part else {
            return Sent::Refused(format!("the queue \"{}\" takes nothing", self.queue));
        };
        let render = |name: &Wording| name.render(&outgoing.document, &outgoing.revision, escape);
        let key = self.name.as_ref().map_or_else(|| outgoing.document.to_string(), render);
        part.put(
            Kept { id: Some(outgoing.id), key: Some(key), headers: outgoing.headers, payload: outgoing.body },
            now,
        );
        match state.loses_answer() {
            true => Sent::Unknown("the answer was lost".to_owned()),
            false => Sent::Delivered,
        }
    }
}

#[async_trait]
impl Sink for MemorySink {
    fn most(&self) -> usize {
        MOST
    }

    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent> {
        let sent = batch.into_iter().map(|outgoing| self.one(outgoing)).collect();
        self.broker.shared.moved.notify_waiters();
        sent
    }
}
