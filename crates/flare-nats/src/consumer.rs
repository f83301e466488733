//! The durable consumer that a source reads by: what it has to be like, how it is made, and whether the server made it so. A server that does
//! not know a setting leaves it out without a word, so what it answers is compared.

use std::time::Duration;

use async_nats::Client;
use flare_model::bridge::{NatsSource, StartAt};
use flare_model::time::Timestamp;
use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use serde_json::{Value, json};

use crate::api::{ApiError, Lacks, ask, result};

/// What may be given out and not settled. When full: the server waits.
const MOST_OUT: u64 = 1024;

/// A consumer as it has to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub stream: String,
    pub durable: String,
    filter: Option<String>,
    start: StartAt,
    lease: Duration,
    mark: String,
}

/// Where a consumer that has to be made begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// As its settings say.
    AsSet,
    /// With all that the stream has.
    All,
    /// With what follows this one.
    After(u64),
}

/// What says whose a consumer is.
pub fn mark(owner: &str) -> String {
    format!("flare: {owner}")
}

impl Wanted {
    pub fn new(owner: &str, lease: Duration, consumer: &str, settings: &NatsSource) -> Wanted {
        Wanted {
            stream: settings.stream.clone(),
            durable: settings.durable.clone().unwrap_or_else(|| format!("flare-{consumer}")),
            filter: settings.subject.clone(),
            start: settings.start,
            lease,
            mark: mark(owner),
        }
    }

    /// Where it begins that nobody read by yet.
    fn config(&self, begin: Begin) -> Value {
        let mut config = json!({
            "durable_name": self.durable,
            "description": self.mark,
            "ack_policy": "explicit",
            "ack_wait": nanoseconds(self.lease),
            "max_deliver": -1,
            "max_ack_pending": MOST_OUT,
            "replay_policy": "instant",
        });
        if let Some(filter) = &self.filter {
            config["filter_subject"] = json!(filter);
        }
        match (begin, self.start) {
            (Begin::After(last), _) => {
                config["deliver_policy"] = json!("by_start_sequence");
                config["opt_start_seq"] = json!(last + 1);
            }
            (Begin::All, _) | (Begin::AsSet, StartAt::Beginning) => config["deliver_policy"] = json!("all"),
            (Begin::AsSet, StartAt::Latest) => config["deliver_policy"] = json!("new"),
            (Begin::AsSet, StartAt::At(time)) => {
                config["deliver_policy"] = json!("by_start_time");
                config["opt_start_time"] = json!(time.to_string());
            }
        }
        config
    }

    /// What the server has of it now.
    pub async fn info(&self, client: &Client) -> Result<Value, ApiError> {
        ask(client, &format!("CONSUMER.INFO.{}.{}", self.stream, self.durable), &Value::Null).await
    }

    /// When the stream was made, in microseconds: one that is made anew under the same name is another one, and counts from one again.
    pub async fn find_stream(&self, client: &Client) -> BridgeResult<i64> {
        let info = result(ask(client, &format!("STREAM.INFO.{}", self.stream), &Value::Null).await)?;
        let made = info["created"].as_str().and_then(|made| made.parse::<Timestamp>().ok());
        made.map(|made| made.millis().saturating_mul(1000)).ok_or_else(|| {
            let words = format!("NATS does not say when the stream \"{}\" was made", self.stream);
            BridgeError::new(BridgeErrorKind::Unavailable, words)
        })
    }

    /// That the consumer is there and what it has to be. One of ours that is not is changed where the server can.
    pub async fn provide(&self, client: &Client, begin: Begin) -> BridgeResult<()> {
        match self.info(client).await {
            Ok(info) if self.differs(&info["config"], false).is_none() => Ok(()),
            Ok(info) if info["config"]["description"] == self.mark.as_str() => {
                self.make(client, &info["config"], begin).await
            }
            Ok(info) => Err(self.unlike(self.differs(&info["config"], false))),
            Err(ApiError::Lacks(Lacks::Consumer, _)) => self.make(client, &Value::Null, begin).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Makes it, or changes the one that is there: then it goes on from where it is.
    async fn make(&self, client: &Client, there: &Value, begin: Begin) -> BridgeResult<()> {
        let mut config = self.config(begin);
        for begun in ["deliver_policy", "opt_start_time", "opt_start_seq"] {
            match there.get(begun) {
                Some(value) => config[begun] = value.clone(),
                None if !there.is_null() => {
                    config.as_object_mut().map(|config| config.remove(begun));
                }
                None => {}
            }
        }
        let operation = format!("CONSUMER.DURABLE.CREATE.{}.{}", self.stream, self.durable);
        let made =
            result(ask(client, &operation, &json!({"stream_name": self.stream, "config": config})).await)?;
        match self.differs(&made["config"], true) {
            None => Ok(()),
            differs => Err(self.unlike(differs)),
        }
    }

    /// The first setting in which a consumer is not what it has to be; of one that we made, whatever we asked for.
    fn differs(&self, config: &Value, made: bool) -> Option<&'static str> {
        let is = |name: &'static str, right: bool| (!right).then_some(name);
        let filter = config["filter_subject"].as_str().filter(|filter| !filter.is_empty());
        let wanted = self.config(Begin::AsSet);
        is("ack_policy", config["ack_policy"] == "explicit")
            .or_else(|| {
                is("deliver_subject", config["deliver_subject"].as_str().unwrap_or_default().is_empty())
            })
            .or_else(|| is("filter_subject", filter == self.filter.as_deref()))
            .or_else(|| is("filter_subjects", config.get("filter_subjects").is_none()))
            .or_else(|| is("max_deliver", config["max_deliver"].as_i64().unwrap_or(-1) < 0))
            .or_else(|| {
                ["ack_wait", "max_ack_pending", "description"]
                    .into_iter()
                    .find(|name| made && config[*name] != wanted[*name])
            })
    }

    fn unlike(&self, setting: Option<&'static str>) -> BridgeError {
        let words = format!(
            "the consumer \"{}\" of the stream \"{}\" has another {} than Flare needs; delete it, or name another durable",
            self.durable,
            self.stream,
            setting.unwrap_or("setting")
        );
        BridgeError::new(BridgeErrorKind::Refused, words)
    }
}

pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
