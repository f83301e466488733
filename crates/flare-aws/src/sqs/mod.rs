//! Queues of SQS: the name or the url of one comes in; whether it exists, its source and its sink go out.

mod batch;
mod receivers;
mod sink;
mod source;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_model::duration::HumanDuration;
use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

pub use sink::SqsSink;
pub use source::SqsSource;

use crate::mark::Mark;
use crate::transport::{Client, Failure};

/// A queue, as somebody named it.
#[derive(Clone)]
pub struct Queue {
    client: Arc<Client>,
    named: Arc<str>,
    /// Its url, once the service has said it.
    url: Arc<Mutex<Option<Arc<str>>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Located {
    queue_url: String,
}

/// What is asked of a queue: numbers are written as texts.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Attributes {
    attributes: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Listed {
    queue_urls: Vec<String>,
    next_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Tagged {
    tags: BTreeMap<String, String>,
}

/// The answer to operations that say nothing.
#[derive(Deserialize)]
pub struct Done {}

fn is_url(named: &str) -> bool {
    named.starts_with("https://") || named.starts_with("http://")
}

/// The name of a queue that may be named by its url, which ends with it.
pub fn name_of(named: &str) -> &str {
    if is_url(named) { named.trim_end_matches('/').rsplit('/').next().unwrap_or(named) } else { named }
}

/// The region of a queue that is named by the url that the service gives: `https://sqs.eu-west-1.amazonaws.com/1/orders`.
pub fn region_of(named: &str) -> Option<&str> {
    let host = named.strip_prefix("https://")?.split('/').next()?;
    let rest = host.strip_prefix("sqs.")?;
    rest.strip_suffix(".amazonaws.com").or_else(|| rest.strip_suffix(".amazonaws.com.cn"))
}

impl Queue {
    /// Nothing is asked yet.
    pub fn new(client: Arc<Client>, named: &str) -> Queue {
        Queue { client, named: named.into(), url: Arc::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        name_of(&self.named)
    }

    /// Whether it keeps messages in order: the service wants such names to end so.
    fn is_fifo(&self) -> bool {
        self.name().ends_with(".fifo")
    }

    /// What is being done, for messages.
    fn doing(&self, what: &str) -> String {
        format!("{what} the queue {}", self.name())
    }

    /// Its url. Asked for once, and again after it was missing: a queue that is made anew may have another one.
    async fn url(&self) -> Result<Arc<str>, Failure> {
        if is_url(&self.named) {
            return Ok(self.named.clone());
        }
        if let Some(url) = self.url.lock().clone() {
            return Ok(url);
        }
        let located: Located = self.client.call("GetQueueUrl", &json!({"QueueName": &*self.named})).await?;
        let url: Arc<str> = located.queue_url.into();
        *self.url.lock() = Some(url.clone());
        Ok(url)
    }

    /// What is known is forgotten where the service says that it does not exist.
    fn note(&self, failure: Failure) -> Failure {
        if failure.is_missing() {
            *self.url.lock() = None;
        }
        failure
    }

    async fn attribute(&self, name: &str) -> Result<Option<u64>, Failure> {
        let asked = json!({"QueueUrl": self.url().await?, "AttributeNames": [name]});
        let answer: Result<Attributes, Failure> = self.client.call("GetQueueAttributes", &asked).await;
        let answer = answer.map_err(|failure| self.note(failure))?;
        Ok(answer.attributes.get(name).and_then(|value| value.parse().ok()))
    }

    /// Whether it is there.
    pub async fn exists(&self) -> BridgeResult<bool> {
        match self.attribute("VisibilityTimeout").await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_missing() => Ok(false),
            Err(failure) => Err(failure.error(&self.doing("looking for"))),
        }
    }

    /// Makes it. One that is there stays as it is.
    pub async fn create(&self, visibility: HumanDuration, tags: &BTreeMap<&str, String>) -> BridgeResult<()> {
        let mut attributes = json!({"VisibilityTimeout": seconds(visibility).to_string()});
        if self.is_fifo() {
            attributes["FifoQueue"] = "true".into();
        }
        let asked = json!({"QueueName": self.name(), "Attributes": attributes, "tags": tags});
        match self.client.call::<Located>("CreateQueue", &asked).await {
            Ok(_) => Ok(()),
            // Somebody made it meanwhile, with settings of their own.
            Err(failure) if failure.is("QueueNameExists") || failure.is("QueueAlreadyExists") => Ok(()),
            // It takes a minute until the name of a queue is free.
            Err(failure) if failure.is("QueueDeletedRecently") => Err(BridgeError::new(
                BridgeErrorKind::Unavailable,
                format!("{}: {failure}", self.doing("making")),
            )),
            Err(failure) => Err(failure.error(&self.doing("making"))),
        }
    }

    /// Removes it, if it carries the mark. One that is gone is fine.
    pub async fn delete(&self, mark: &Mark) -> BridgeResult<()> {
        let deleted = async {
            let url = self.url().await?;
            if !is_marked(&self.client, &url, mark).await? {
                return Ok(false);
            }
            self.client.call::<Done>("DeleteQueue", &json!({"QueueUrl": url})).await.map(|_| true)
        };
        match deleted.await.map_err(|failure| self.note(failure)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(crate::refused(&format!(
                "the queue {} is not ours: it does not carry the mark",
                self.name()
            ))),
            Err(failure) if failure.is_missing() => Ok(()),
            Err(failure) => Err(failure.error(&self.doing("deleting"))),
        }
    }
}

async fn is_marked(client: &Client, url: &str, mark: &Mark) -> Result<bool, Failure> {
    let tagged: Tagged = client.call("ListQueueTags", &json!({"QueueUrl": url})).await?;
    Ok(tagged.tags.iter().any(|(name, value)| mark.is(name, value)))
}

/// The names of all queues that carry the mark.
pub async fn marked(client: &Client, mark: &Mark) -> BridgeResult<Vec<String>> {
    let failed = |failure: Failure| failure.error("listing queues");
    let (mut names, mut token) = (Vec::new(), None);
    loop {
        let mut asked = json!({"MaxResults": 1000});
        if let Some(token) = token {
            asked["NextToken"] = token;
        }
        let listed: Listed = client.call("ListQueues", &asked).await.map_err(failed)?;
        for url in &listed.queue_urls {
            match is_marked(client, url, mark).await {
                Ok(true) => names.push(name_of(url).to_owned()),
                Ok(false) => {}
                // Gone since it was listed.
                Err(failure) if failure.is_missing() => {}
                Err(failure) => return Err(failed(failure)),
            }
        }
        match listed.next_token {
            Some(next) if !next.is_empty() => token = Some(next.into()),
            _ => return Ok(names),
        }
    }
}

/// How long a message is hidden, as the service takes it: whole seconds, twelve hours at the most.
fn seconds(duration: HumanDuration) -> u64 {
    whole_seconds(duration.0).max(1)
}

fn whole_seconds(duration: std::time::Duration) -> u64 {
    const MOST: u64 = 12 * 60 * 60;
    let up = u64::from(duration.subsec_nanos() > 0);
    (duration.as_secs() + up).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_may_be_named_by_its_url_which_says_the_region() {
        let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo";
        assert_eq!((name_of(url), region_of(url)), ("orders.fifo", Some("eu-west-1")));
        assert_eq!((name_of("orders"), region_of("orders")), ("orders", None));
        let emulated = "http://127.0.0.1:4566/000000000000/orders/";
        assert_eq!((name_of(emulated), region_of(emulated)), ("orders", None));
        assert_eq!(region_of("https://sqs.cn-north-1.amazonaws.com.cn/1/x"), Some("cn-north-1"));
    }

    #[test]
    fn times_are_whole_seconds_and_no_more_than_the_service_takes() {
        let of = |millis| whole_seconds(std::time::Duration::from_millis(millis));
        assert_eq!([of(0), of(1), of(1_000), of(1_001), of(u64::MAX)], [0, 1, 1, 2, 43_200]);
    }
}
