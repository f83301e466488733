//! A stream of JetStream as a source, by a durable consumer that is asked for messages.

use std::sync::Arc;

use async_trait::async_trait;
use flare_provider::bridge::{
    BridgeError, BridgeErrorKind, BridgeResult, Lag, Nature, Partition, Progress, Source, Stream,
};
use parking_lot::Mutex;

use crate::api::{ApiError, Lacks};
use crate::consumer::{Begin, Wanted};
use crate::link::Link;
use crate::pulling::Pulling;

/// The partition that a consumer has.
const ONLY: &str = "0";

/// A durable consumer.
pub struct Durable {
    link: Arc<Link>,
    wanted: Wanted,
    known: Arc<Mutex<Known>>,
}

/// What this process knows of what was read by the consumer. The server keeps that with the consumer, and loses it where somebody deletes
/// that, or the stream.
#[derive(Debug, Default)]
pub struct Known {
    /// When the stream was made that was read last.
    stream: Option<i64>,
    /// The last of its messages that was settled.
    pub settled: u64,
}

impl Known {
    /// Where a consumer begins that is not there: nothing that was put meanwhile is to be missed.
    fn begin(&self, stream: i64) -> Begin {
        match self.stream {
            None => Begin::AsSet,
            Some(known) if known != stream => Begin::All,
            Some(_) if self.settled > 0 => Begin::After(self.settled),
            Some(_) => Begin::AsSet,
        }
    }

    /// This stream is read from now on.
    fn reads(&mut self, stream: i64) {
        if self.stream.replace(stream) != Some(stream) {
            self.settled = 0;
        }
    }
}

impl Durable {
    pub fn new(link: Arc<Link>, wanted: Wanted) -> Durable {
        Durable { link, wanted, known: Arc::default() }
    }
}

#[async_trait]
impl Source for Durable {
    fn nature(&self) -> Nature {
        Nature {
            ordered: true,
            progress: Progress::Acknowledgements,
            counts_deliveries: true,
            names_messages: true,
        }
    }

    async fn partitions(&self) -> BridgeResult<Vec<Partition>> {
        let client = self.link.client().await?;
        self.wanted.find_stream(&client).await?;
        Ok(vec![Partition { id: ONLY.to_owned(), after: Vec::new() }])
    }

    async fn open(&self, _partition: &str, _after: Option<&str>) -> BridgeResult<Box<dyn Stream>> {
        let client = self.link.client().await?;
        let stream = self.wanted.find_stream(&client).await?;
        let begin = self.known.lock().begin(stream);
        self.wanted.provide(&client, begin).await?;
        self.known.lock().reads(stream);
        let (link, wanted, known) = (self.link.clone(), self.wanted.clone(), self.known.clone());
        Ok(Box::new(Pulling::new(link, client, wanted, stream, known).await?))
    }

    async fn lag(&self, _partition: &str, _after: Option<&str>) -> BridgeResult<Lag> {
        let client = self.link.client().await?;
        match self.wanted.info(&client).await {
            Ok(info) => Ok(Lag { messages: info["num_pending"].as_u64(), oldest: None }),
            // Nobody has opened it yet: there is no reader that could be behind.
            Err(ApiError::Lacks(Lacks::Consumer, _)) => Ok(Lag::default()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What is said of a connection that is not what it was.
pub fn broken(words: impl Into<String>) -> BridgeError {
    BridgeError::new(BridgeErrorKind::Broken, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_that_was_deleted_goes_on_and_one_of_a_new_stream_begins_with_all() {
        let mut known = Known::default();
        assert_eq!(known.begin(5), Begin::AsSet);
        known.reads(5);
        assert_eq!(known.begin(5), Begin::AsSet, "nothing of it was read");
        known.settled = 7;
        known.reads(5);
        assert_eq!((known.begin(5), known.begin(6)), (Begin::After(7), Begin::All));
        known.reads(6);
        assert_eq!(known.settled, 0);
    }
}
