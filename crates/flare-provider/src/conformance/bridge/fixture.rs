//! What the behaviours of sources and sinks are written with: a reader that settles by whatever its source goes by, and notifications.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_model::bridge::wording::escape;

use super::{SinkSite, SourceSite};
use crate::bridge::{
    Batch, BridgeErrorKind, BridgeResult, Message, Outgoing, Progress, Receipt, Sent, Sink, Source, Stream,
};
pub use crate::conformance::cluster::fixture::{now, stopwatch};

/// How long anything may take, a server that starts again on a busy machine included. Only a failure takes so long.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// How often something that is to happen is looked for.
pub const LOOK: Duration = Duration::from_millis(20);

/// How long nothing may come until it is believed that nothing comes, where nothing else says so.
pub const QUIET: Duration = Duration::from_millis(300);

/// Between two notifications, so that what happens meanwhile gets its turn.
const PACE: Duration = Duration::from_millis(1);

/// So many messages are out at a time: fewer than any source bounds it to.
pub const SOME: usize = 20;

/// What comes of something that has to come soon.
pub async fn within<T>(what: impl Future<Output = T>, name: &str) -> T {
    match tokio::time::timeout(PATIENCE, what).await {
        Ok(done) => done,
        Err(_) => panic!("in vain: {name}"),
    }
}

/// Payloads `0` to `count`, each told by its text.
pub fn numbered(count: usize) -> Vec<Bytes> {
    texts((0..count).map(|number| number.to_string()))
}

/// Payloads of these texts.
pub fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Bytes> {
    texts.into_iter().map(|text| Bytes::from(text.into())).collect()
}

/// What a message says.
pub fn text(message: &Message) -> String {
    String::from_utf8(message.payload.to_vec()).expect("these messages are texts")
}

/// What messages say.
pub fn said(messages: &[Message]) -> Vec<String> {
    messages.iter().map(text).collect()
}

/// A reader of the partition that has the messages of a site.
pub struct Reader {
    pub source: Arc<dyn Source>,
    pub partition: String,
    pub stream: Box<dyn Stream>,
    /// By positions: the last that was settled.
    pub settled: Option<String>,
}

impl Reader {
    /// Opens the first partition of a site's source.
    pub async fn of(site: &dyn SourceSite) -> Reader {
        let source = site.source().await;
        let partitions = source.partitions().await.expect("it is there");
        let partition = partitions.into_iter().next().expect("it has a partition").id;
        Reader::open(source, partition, None).await
    }

    /// Opens a partition, after a while if need be.
    pub async fn open(source: Arc<dyn Source>, partition: String, settled: Option<String>) -> Reader {
        let opened = async {
            loop {
                match source.open(&partition, settled.as_deref()).await {
                    Ok(stream) => return stream,
                    Err(error) => {
                        let wait = [BridgeErrorKind::Unavailable, BridgeErrorKind::Broken];
                        assert!(wait.contains(&error.kind), "{error:?}");
                        tokio::time::sleep(LOOK).await;
                    }
                }
            }
        };
        let stream = within(opened, "the source is opened").await;
        Reader { source, partition, stream, settled }
    }

    /// The stream is dropped, and opened anew by another process that knows what was settled.
    pub async fn reopen(self, site: &dyn SourceSite) -> Reader {
        let Reader { partition, stream, settled, source } = self;
        drop((stream, source));
        Reader::open(site.source().await, partition, settled).await
    }

    /// Whether it goes by acknowledgements.
    pub fn acknowledges(&self) -> bool {
        self.source.nature().progress == Progress::Acknowledgements
    }

    /// The next messages; the partition is not over.
    pub async fn next(&mut self, most: usize) -> Vec<Message> {
        match within(self.stream.next(most), "messages come").await {
            Ok(Batch::Messages(messages)) => {
                assert!(!messages.is_empty(), "a batch has at least one message");
                assert!(messages.len() <= most, "{} messages, though {most} were asked for", messages.len());
                messages
            }
            other => panic!("messages were expected, not {other:?}"),
        }
    }

    /// So many messages, unsettled. Of sources that may give one out twice, each counts once.
    pub async fn take(&mut self, count: usize) -> Vec<Message> {
        let mut taken: Vec<Message> = Vec::new();
        while taken.len() < count {
            for message in self.next(count - taken.len()).await {
                if !taken.iter().any(|other| other.payload == message.payload) {
                    taken.push(message);
                }
            }
        }
        taken
    }

    /// Settles messages: they need not come again.
    pub async fn settle(&mut self, messages: &[Message]) -> BridgeResult<()> {
        self.stream.acknowledge(&receipts(messages)).await?;
        if let Some(last) = messages.last() {
            self.settled = Some(last.position.clone());
        }
        Ok(())
    }

    /// Takes and settles until everything in the list was seen, reopening whenever the stream breaks.
    pub async fn settle_all(mut self, site: &dyn SourceSite, expected: &[Bytes]) -> Reader {
        let mut open: BTreeSet<Bytes> = expected.iter().cloned().collect();
        let began = stopwatch();
        while !open.is_empty() {
            assert!(began() < PATIENCE, "{} of {} messages never came", open.len(), expected.len());
            let batch = match within(self.stream.next(SOME), "messages come or the stream breaks").await {
                Ok(Batch::Messages(messages)) => messages,
                Ok(Batch::End) => panic!("the partition is not over"),
                Err(error) => {
                    let again = [BridgeErrorKind::Unavailable, BridgeErrorKind::Broken];
                    assert!(again.contains(&error.kind), "{error:?}");
                    self = self.reopen(site).await;
                    continue;
                }
            };
            match self.settle(&batch).await {
                Ok(()) => open.retain(|payload| !batch.iter().any(|message| message.payload == *payload)),
                Err(_) => self = self.reopen(site).await,
            }
        }
        self
    }

    /// Whatever comes, settled: so many different ones in any case, then until nothing comes for a while (long enough that a lease would
    /// be over).
    pub async fn rest(&mut self, site: &dyn SourceSite, expected: usize) -> Vec<Message> {
        let mut rest = self.take(expected).await;
        self.settle(&rest).await.expect("it is settled");
        let quiet = site.can().lease.map_or(QUIET, |lease| lease * 2);
        while let Ok(batch) = tokio::time::timeout(quiet, self.stream.next(SOME)).await {
            let Ok(Batch::Messages(messages)) = batch else {
                panic!("messages were expected, not {batch:?}")
            };
            self.settle(&messages).await.expect("it is settled");
            rest.extend(messages);
        }
        rest
    }
}

/// What acknowledges these.
pub fn receipts(messages: &[Message]) -> Vec<Receipt> {
    messages.iter().map(|message| message.receipt).collect()
}

/// Which kind of error it is.
pub fn refused<T>(result: BridgeResult<T>) -> BridgeErrorKind {
    match result {
        Ok(_) => panic!("it has to be refused"),
        Err(error) => error.kind,
    }
}

/// A notification of a document: its id and its body tell it from all others.
pub fn notification(document: &str, number: usize) -> Outgoing {
    // Headers are such as HTTP has, whatever the document is called.
    let mut name = String::new();
    escape(document, &mut name);
    Outgoing {
        id: format!("msg_{name}_{number}"),
        document: document.into(),
        revision: number.to_string(),
        headers: vec![
            ("webhook-id".to_owned(), format!("msg_{name}_{number}")),
            ("Flare-Document".to_owned(), name.clone()),
        ],
        content_type: Some("application/json"),
        body: Bytes::from(format!("{{\"document\":{document:?},\"number\":{number}}}")),
    }
}

/// Sends one and tells how it ended.
pub async fn send_one(sink: &dyn Sink, outgoing: Outgoing) -> Sent {
    let mut sent = within(sink.send(vec![outgoing]), "the sink answers").await;
    assert_eq!(sent.len(), 1, "one answer for each");
    sent.remove(0)
}

/// Sends one again and again until it is delivered.
pub async fn until_delivered(sink: &dyn Sink, outgoing: Outgoing) {
    let delivered = async {
        loop {
            match send_one(sink, outgoing.clone()).await {
                Sent::Delivered => break,
                Sent::Refused(why) => panic!("refused for good: {why}"),
                Sent::Failed(_) | Sent::Unknown(_) => tokio::time::sleep(LOOK).await,
            }
        }
    };
    within(delivered, "it is delivered").await
}

/// Waits until so many have arrived at the least.
pub async fn until_arrived(site: &dyn SinkSite, count: usize) -> Vec<super::Arrived> {
    let arrived = async {
        loop {
            let arrived = site.arrived().await;
            if arrived.len() >= count {
                break arrived;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    within(arrived, "all arrive").await
}

/// Sends and sends while something happens, each until it is delivered; all arrive.
pub async fn send_through(site: &dyn SinkSite, happens: impl Future<Output = bool>) {
    let sink = site.sink().await;
    until_delivered(&*sink, notification("d", 0)).await;
    let over = tokio::sync::Notify::new();
    let sending = async {
        let mut count = 1;
        let mut over = std::pin::pin!(over.notified());
        // A hundred more when it is over, so that some go by what there is then.
        let mut left = 100;
        while left > 0 {
            if over.as_mut().enable() {
                left -= 1;
            }
            until_delivered(&*sink, notification("d", count)).await;
            count += 1;
            tokio::time::sleep(PACE).await;
        }
        count
    };
    let happening = async {
        let happened = happens.await;
        over.notify_one();
        happened
    };
    let (count, happened) = tokio::join!(sending, happening);
    if !happened {
        return;
    }
    let all: Vec<_> = (0..count).map(|number| notification("d", number).body).collect();
    let arrived = until_arrived(site, count).await;
    let missing = all.iter().filter(|body| !arrived.iter().any(|one| one.body == **body)).count();
    assert_eq!(missing, 0, "of {count} that were delivered");
    if site.can().ordered {
        // One that was sent again may have arrived twice; its first arrival counts.
        let first = |body: &Bytes| arrived.iter().position(|one| one.body == *body);
        let firsts: Vec<_> = all.iter().map(first).collect();
        assert!(firsts.is_sorted(), "notifications of one document arrived out of order");
    }
}
