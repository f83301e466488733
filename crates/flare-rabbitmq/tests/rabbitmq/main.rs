//! The engine against a real broker, which the tests start on free ports and stop by its process.

mod outside;
mod own;
mod server;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::bridge::{RabbitMqTarget, Source as Settings, Target, Wording};
use flare_provider::bridge::{Bridge as _, Sink, Source};
use flare_provider::conformance::bridge::{
    Arrived, Server, SinkCan, SinkFactory, SinkSite, SourceCan, SourceFactory, SourceSite,
};
use parking_lot::Mutex;

use outside::Site;

/// Sources over quorum queues, as Flare makes them, or over classic ones, as others may have made them.
enum Queues {
    Quorum,
    Classic,
}

#[async_trait]
impl SourceFactory for Queues {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SourceSite>> {
        Some(Box::new(Site::new(server, matches!(self, Queues::Quorum)).await?))
    }
}

impl Site {
    fn source_of(&self, queue: &str) -> Arc<dyn Source> {
        let settings = Settings::RabbitMq(self.settings(queue));
        self.engine().source("con_1", &settings).expect("it has such")
    }
}

#[async_trait]
impl SourceSite for Site {
    async fn source(&self) -> Arc<dyn Source> {
        self.source_of(&self.queue)
    }

    fn can(&self) -> SourceCan {
        SourceCan { delay: true, lease: None, text_only: false, lag: true }
    }

    async fn put(&self, payloads: Vec<Bytes>) {
        Site::put(self, payloads).await
    }

    async fn delete(&self) {
        Site::delete(self).await
    }

    async fn nowhere(&self) -> Arc<dyn Source> {
        self.source_of("never-made")
    }

    async fn cut(&self) -> bool {
        self.proxy.cut();
        true
    }

    async fn set_away(&self, away: bool) -> bool {
        self.proxy.set_away(away);
        true
    }

    async fn restart(&self) -> bool {
        self.broker.restart().await
    }
}

/// Sinks to a queue of their own.
struct Exchanges;

struct End {
    site: Site,
    /// What was taken from the queue until now.
    arrived: Mutex<Vec<Arrived>>,
}

#[async_trait]
impl SinkFactory for Exchanges {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SinkSite>> {
        let site = Site::new(server, true).await?;
        site.bind(&format!("{}-topic", site.queue), "ok.*").await;
        Some(Box::new(End { site, arrived: Mutex::default() }))
    }
}

impl Site {
    /// A sink to an exchange, by a key.
    fn sink_to(&self, exchange: &str, key: &str) -> Arc<dyn Sink> {
        let routing_key = Wording::parse(key).expect("these are right");
        let target = RabbitMqTarget { exchange: exchange.to_owned(), routing_key, persistent: true };
        self.engine().sink(&Target::RabbitMq(target)).expect("it has such")
    }
}

#[async_trait]
impl SinkSite for End {
    async fn sink(&self) -> Arc<dyn Sink> {
        self.site.sink_to("", &self.site.queue)
    }

    fn can(&self) -> SinkCan {
        SinkCan { ids: true, headers: true, text_only: false, ordered: true, keys: true }
    }

    async fn named(&self) -> Option<Arc<dyn Sink>> {
        Some(self.site.sink_to(&format!("{}-topic", self.site.queue), "ok.{id}"))
    }

    fn leads_nowhere(&self) -> Option<String> {
        // A key has 255 bytes at the most.
        Some("x".repeat(300))
    }

    async fn nowhere(&self) -> Arc<dyn Sink> {
        self.site.sink_to("", "never-made")
    }

    async fn arrived(&self) -> Vec<Arrived> {
        let taken = self.site.take_all().await.into_iter().map(|delivery| Arrived {
            id: delivery.properties.message_id().as_ref().map(|id| id.as_str().to_owned()),
            key: Some(delivery.routing_key.as_str().to_owned()),
            headers: headers(&delivery.properties),
            body: delivery.data.into(),
        });
        let mut arrived = self.arrived.lock();
        arrived.extend(taken);
        arrived.clone()
    }

    async fn cut(&self) -> bool {
        self.site.proxy.cut();
        true
    }

    async fn set_away(&self, away: bool) -> bool {
        self.site.proxy.set_away(away);
        true
    }

    async fn restart(&self) -> bool {
        self.site.broker.restart().await
    }
}

fn headers(properties: &lapin::BasicProperties) -> Vec<(String, String)> {
    let headers = properties.headers().iter().flat_map(|headers| headers.inner());
    let text = |value: &lapin::types::AMQPValue| match value {
        lapin::types::AMQPValue::LongString(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        other => format!("{other:?}"),
    };
    headers.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

flare_provider::source_conformance!(
    quorum_source,
    Queues::Quorum,
    flavor = "multi_thread",
    worker_threads = 2
);

flare_provider::source_conformance!(
    classic_source,
    Queues::Classic,
    flavor = "multi_thread",
    worker_threads = 2
);

flare_provider::sink_conformance!(sink, Exchanges, flavor = "multi_thread", worker_threads = 2);
