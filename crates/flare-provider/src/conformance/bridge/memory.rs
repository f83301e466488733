//! The sites of the broker in memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::bridge::{
    KinesisSource, NatsTarget, RabbitMqSource, Source as Settings, StartAt, Target, Wording,
};

use super::fixture::stopwatch;
use super::{Arrived, Server, SinkCan, SinkFactory, SinkSite, SourceCan, SourceFactory, SourceSite};
use crate::bridge::{Bridge, Progress, Sink, Source};
use crate::memory::MemoryBroker;
use crate::memory::bridge::ONLY;

/// How long what is given out is not given out again.
const LEASE: Duration = Duration::from_secs(2);

fn broker() -> MemoryBroker {
    let broker = MemoryBroker::new(Arc::new(stopwatch()), LEASE);
    broker.create("queue", &[ONLY]);
    broker
}

/// Sources in memory that go by this.
pub struct MemorySources(pub Progress);

struct MemorySite {
    broker: MemoryBroker,
    progress: Progress,
    partition: parking_lot::Mutex<String>,
}

impl MemorySite {
    fn source_of(&self, queue: &str) -> Arc<dyn Source> {
        let settings = match self.progress {
            Progress::Positions => Settings::Kinesis(KinesisSource {
                stream: queue.to_owned(),
                start: StartAt::Beginning,
                create: false,
            }),
            Progress::Acknowledgements => Settings::RabbitMq(RabbitMqSource {
                queue: queue.to_owned(),
                prefetch: 100,
                exchange: None,
                routing_key: None,
                create: false,
            }),
        };
        self.broker.source("con_1", &settings).expect("it has sources of every type")
    }
}

#[async_trait]
impl SourceFactory for MemorySources {
    async fn fresh(&self, _server: Server) -> Option<Box<dyn SourceSite>> {
        let partition = parking_lot::Mutex::new(ONLY.to_owned());
        Some(Box::new(MemorySite { broker: broker(), progress: self.0, partition }))
    }
}

#[async_trait]
impl SourceSite for MemorySite {
    async fn source(&self) -> Arc<dyn Source> {
        self.source_of("queue")
    }

    fn can(&self) -> SourceCan {
        let acknowledges = self.progress == Progress::Acknowledgements;
        SourceCan { delay: acknowledges, lease: acknowledges.then_some(LEASE), text_only: false, lag: true }
    }

    async fn put(&self, payloads: Vec<Bytes>) {
        self.broker.put("queue", &self.partition.lock(), payloads)
    }

    async fn delete(&self) {
        self.broker.delete("queue")
    }

    async fn nowhere(&self) -> Arc<dyn Source> {
        self.source_of("nowhere")
    }

    async fn cut(&self) -> bool {
        self.broker.cut();
        true
    }

    async fn set_away(&self, away: bool) -> bool {
        self.broker.set_away(away);
        true
    }

    async fn restart(&self) -> bool {
        self.broker.set_away(true);
        tokio::time::sleep(LEASE / 4).await;
        self.broker.set_away(false);
        true
    }

    async fn end_partition(&self) -> bool {
        let mut partition = self.partition.lock();
        self.broker.end("queue", &partition, &["1", "2"]);
        "2".clone_into(&mut partition);
        true
    }
}

/// Sinks in memory.
pub struct MemorySinks;

#[async_trait]
impl SinkFactory for MemorySinks {
    async fn fresh(&self, _server: Server) -> Option<Box<dyn SinkSite>> {
        Some(Box::new(MemoryEnd(broker())))
    }
}

struct MemoryEnd(MemoryBroker);

impl MemoryEnd {
    fn to(&self, subject: &str) -> Arc<dyn Sink> {
        let subject = Wording::parse(subject).expect("these are right");
        self.0.sink(&Target::Nats(NatsTarget { subject })).expect("it has sinks of every type")
    }
}

#[async_trait]
impl SinkSite for MemoryEnd {
    async fn sink(&self) -> Arc<dyn Sink> {
        self.to("queue")
    }

    fn can(&self) -> SinkCan {
        SinkCan { ids: true, headers: true, text_only: false, ordered: true, keys: true }
    }

    async fn named(&self) -> Option<Arc<dyn Sink>> {
        Some(self.to("queue.{id}"))
    }

    fn leads_nowhere(&self) -> Option<String> {
        None
    }

    async fn nowhere(&self) -> Arc<dyn Sink> {
        self.to("nowhere")
    }

    async fn arrived(&self) -> Vec<Arrived> {
        let contents = self.0.contents("queue").expect("it is there");
        let arrived = contents.into_iter().map(|kept| Arrived {
            id: kept.id,
            key: kept.key,
            headers: kept.headers,
            body: kept.payload,
        });
        arrived.collect()
    }

    async fn cut(&self) -> bool {
        self.0.lose_answers(2);
        self.0.cut();
        true
    }

    async fn set_away(&self, away: bool) -> bool {
        self.0.set_away(away);
        true
    }

    async fn restart(&self) -> bool {
        self.0.lose_answers(1);
        self.0.set_away(true);
        tokio::time::sleep(LEASE).await;
        self.0.set_away(false);
        true
    }
}
