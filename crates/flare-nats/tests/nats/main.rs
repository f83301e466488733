//! The engine against a real server, which the tests start on a free port and stop by its process.

mod bell;
mod outside;
mod own;
mod server;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::bridge::{NatsTarget, Source as Settings, Target, Wording};
use flare_provider::bridge::{Bridge as _, Sink, Source};
use flare_provider::conformance::bridge::{
    Arrived, Server, SinkCan, SinkFactory, SinkSite, SourceCan, SourceFactory, SourceSite,
};

use outside::{LEASE, Site};

/// Sources over streams of their own.
struct Streams;

#[async_trait]
impl SourceFactory for Streams {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SourceSite>> {
        Some(Box::new(Site::new(server).await?))
    }
}

impl Site {
    fn source_of(&self, stream: &str) -> Arc<dyn Source> {
        let settings = Settings::Nats(self.settings(stream));
        self.engine().source("con_1", &settings).expect("it has such")
    }

    fn sink_to(&self, subject: &str) -> Arc<dyn Sink> {
        let subject = Wording::parse(subject).expect("these are right");
        self.engine().sink(&Target::Nats(NatsTarget { subject })).expect("it has such")
    }
}

#[async_trait]
impl SourceSite for Site {
    async fn source(&self) -> Arc<dyn Source> {
        self.source_of(&self.stream)
    }

    fn can(&self) -> SourceCan {
        SourceCan { delay: true, lease: Some(LEASE), text_only: false, lag: true }
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
        self.server.restart().await
    }
}

/// Sinks to a stream of their own.
struct Subjects;

struct End(Site);

#[async_trait]
impl SinkFactory for Subjects {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SinkSite>> {
        Some(Box::new(End(Site::new(server).await?)))
    }
}

#[async_trait]
impl SinkSite for End {
    async fn sink(&self) -> Arc<dyn Sink> {
        self.0.sink_to(&format!("{}.out", self.0.stream))
    }

    fn can(&self) -> SinkCan {
        SinkCan { ids: true, headers: true, text_only: false, ordered: true, keys: true }
    }

    async fn named(&self) -> Option<Arc<dyn Sink>> {
        Some(self.0.sink_to(&format!("{}.{{id}}", self.0.stream)))
    }

    fn leads_nowhere(&self) -> Option<String> {
        None
    }

    async fn nowhere(&self) -> Arc<dyn Sink> {
        self.0.sink_to("never.made")
    }

    async fn arrived(&self) -> Vec<Arrived> {
        let arrived = self.0.contents().await.into_iter().map(|message| Arrived {
            id: header(&message, "Nats-Msg-Id"),
            key: Some(message.subject.to_string()),
            headers: headers(&message),
            body: message.payload,
        });
        arrived.collect()
    }

    async fn cut(&self) -> bool {
        self.0.proxy.cut();
        true
    }

    async fn set_away(&self, away: bool) -> bool {
        self.0.proxy.set_away(away);
        true
    }

    async fn restart(&self) -> bool {
        self.0.server.restart().await
    }
}

fn headers(message: &async_nats::Message) -> Vec<(String, String)> {
    let all = message.headers.iter().flat_map(|headers| headers.iter());
    let each =
        all.flat_map(|(name, values)| values.iter().map(move |value| (name.to_string(), value.to_string())));
    each.collect()
}

fn header(message: &async_nats::Message, wanted: &str) -> Option<String> {
    headers(message).into_iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
}

flare_provider::source_conformance!(source, Streams, flavor = "multi_thread", worker_threads = 2);

flare_provider::sink_conformance!(sink, Subjects, flavor = "multi_thread", worker_threads = 2);
