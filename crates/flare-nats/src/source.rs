//! A stream of JetStream as a source, by a durable consumer that is asked for messages.

use std::sync::Arc;

use async_trait::async_trait;
use flare_provider::bridge::{
    BridgeError, BridgeErrorKind, BridgeResult, Lag, Nature, Partition, Progress, Source, Stream,
};

use crate::api::{ApiError, Lacks};
use crate::consumer::Wanted;
use crate::link::Link;
use crate::pulling::Pulling;

/// The partition that a consumer has.
const ONLY: &str = "0";

/// A durable consumer.
pub struct Durable {
    link: Arc<Link>,
    wanted: Wanted,
}

impl Durable {
    pub fn new(link: Arc<Link>, wanted: Wanted) -> Durable {
        Durable { link, wanted }
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
        self.wanted.provide(&client).await?;
        Ok(Box::new(Pulling::new(self.link.clone(), client, self.wanted.clone()).await?))
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
