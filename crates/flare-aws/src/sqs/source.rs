//! A queue as a source: its one partition, how much waits in it, and streams that receive from it.

use async_trait::async_trait;
use flare_model::bridge;
use flare_provider::bridge::{BridgeResult, Lag, Nature, Partition, Progress, Source, Stream};

use super::Queue;
use super::receivers::Receivers;
use super::stream::SqsStream;
use crate::Now;
use crate::transport::Failure;

/// A queue as a source.
pub struct SqsSource {
    queue: Queue,
    settings: bridge::SqsSource,
    now: Now,
}

impl SqsSource {
    /// Nothing is asked yet.
    pub fn new(queue: Queue, settings: &bridge::SqsSource, now: Now) -> SqsSource {
        SqsSource { queue, settings: settings.clone(), now }
    }
}

#[async_trait]
impl Source for SqsSource {
    fn nature(&self) -> Nature {
        Nature {
            // Those of a FIFO queue come in the order of their group, which is not that of the queue.
            ordered: false,
            progress: Progress::Acknowledgements,
            counts_deliveries: true,
            names_messages: true,
        }
    }

    async fn partitions(&self) -> BridgeResult<Vec<Partition>> {
        self.queue
            .attribute("VisibilityTimeout")
            .await
            .map_err(|failure| failure.error(&self.queue.doing("looking for")))?;
        Ok(vec![Partition { id: "0".to_owned(), after: Vec::new() }])
    }

    async fn open(&self, _partition: &str, _after: Option<&str>) -> BridgeResult<Box<dyn Stream>> {
        let looked = async {
            self.queue.attribute("VisibilityTimeout").await?;
            self.queue.url().await
        };
        let failed = |failure: Failure| failure.error(&self.queue.doing("opening"));
        let url = looked.await.map_err(failed)?;
        let receivers = Receivers::new(self.settings.concurrency);
        let visibility = super::seconds(self.settings.visibility);
        Ok(Box::new(SqsStream::new(self.queue.clone(), url, receivers, visibility, (self.now)())))
    }

    async fn lag(&self, _partition: &str, _after: Option<&str>) -> BridgeResult<Lag> {
        let waiting = self.queue.attribute("ApproximateNumberOfMessages").await;
        let messages =
            waiting.map_err(|failure| failure.error(&self.queue.doing("counting what waits in")))?;
        // How old the oldest is, only another service of the vendor's says.
        Ok(Lag { messages, oldest: None })
    }
}
