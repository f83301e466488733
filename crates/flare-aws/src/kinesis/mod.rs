//! Streams of Kinesis: the name of one comes in; whether it exists, its shards, its source and its sink go out.

mod reading;
mod sink;
mod source;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use serde::Deserialize;
use serde_json::json;

pub use sink::KinesisSink;
pub use source::KinesisSource;

use crate::mark::Mark;
use crate::transport::{Client, Failure};

/// A stream takes some seconds to be there; one that is not after so many looks is not waited for any longer.
const LOOKS: u32 = 120;

const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// A stream, by its name.
#[derive(Clone)]
pub struct Named {
    client: Arc<Client>,
    name: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    stream_description_summary: Summary,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Summary {
    stream_status: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Listed {
    stream_names: Vec<String>,
    has_more_streams: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Tagged {
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tag {
    key: String,
    #[serde(default)]
    value: String,
}

/// The answer to operations that say nothing.
#[derive(Deserialize)]
struct Done {}

impl Named {
    /// Nothing is asked yet.
    pub fn new(client: Arc<Client>, name: &str) -> Named {
        Named { client, name: name.into() }
    }

    /// What is being done, for messages.
    fn doing(&self, what: &str) -> String {
        format!("{what} the stream {}", self.name)
    }

    /// `ACTIVE`, `CREATING` or the like; nothing where it does not exist. One that is being deleted does not.
    pub async fn status(&self) -> BridgeResult<Option<String>> {
        let asked = json!({"StreamName": &*self.name});
        match self.client.call::<Described>("DescribeStreamSummary", &asked).await {
            Ok(described) => {
                let status = described.stream_description_summary.stream_status;
                Ok(Some(status).filter(|status| status != "DELETING"))
            }
            Err(failure) if failure.is_missing() => Ok(None),
            Err(failure) => Err(failure.error(&self.doing("looking for"))),
        }
    }

    /// Makes it, with one shard, and waits until it is there. One that is there stays as it is.
    pub async fn create(&self, tags: &BTreeMap<&str, String>) -> BridgeResult<()> {
        let failed = |failure: Failure| failure.error(&self.doing("making"));
        let asked = json!({
            "StreamName": &*self.name,
            "ShardCount": 1,
            "StreamModeDetails": {"StreamMode": "PROVISIONED"},
            "Tags": tags,
        });
        match self.client.call::<Done>("CreateStream", &asked).await {
            Ok(_) => {}
            // Somebody made it meanwhile, and it is theirs.
            Err(failure) if failure.is("ResourceInUseException") => return self.until_active().await,
            Err(failure) => return Err(failed(failure)),
        }
        self.until_active().await?;
        // Not everything that speaks the protocol takes tags with the first request.
        let asked = json!({"StreamName": &*self.name, "Tags": tags});
        self.client.call::<Done>("AddTagsToStream", &asked).await.map_err(failed)?;
        Ok(())
    }

    async fn until_active(&self) -> BridgeResult<()> {
        for _ in 0..LOOKS {
            if self.status().await?.as_deref() == Some("ACTIVE") {
                return Ok(());
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Err(BridgeError::new(
            BridgeErrorKind::Unavailable,
            format!("{}: it takes too long", self.doing("making")),
        ))
    }

    /// Removes it, if it carries the mark. One that is gone is fine.
    pub async fn delete(&self, mark: &Mark) -> BridgeResult<()> {
        let deleted = async {
            if !is_marked(&self.client, &self.name, mark).await? {
                return Ok(false);
            }
            let asked = json!({"StreamName": &*self.name});
            self.client.call::<Done>("DeleteStream", &asked).await.map(|_| true)
        };
        match deleted.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(crate::refused(&format!(
                "the stream {} is not ours: it does not carry the mark",
                self.name
            ))),
            Err(failure) if failure.is_missing() => Ok(()),
            Err(failure) => Err(failure.error(&self.doing("deleting"))),
        }
    }
}

async fn is_marked(client: &Client, name: &str, mark: &Mark) -> Result<bool, Failure> {
    // A stream has fifty tags at the most, which one answer has room for.
    let tagged: Tagged = client.call("ListTagsForStream", &json!({"StreamName": name})).await?;
    Ok(tagged.tags.iter().any(|tag| mark.is(&tag.key, &tag.value)))
}

/// The names of all streams that carry the mark.
pub async fn marked(client: &Client, mark: &Mark) -> BridgeResult<Vec<String>> {
    let failed = |failure: Failure| failure.error("listing streams");
    let (mut names, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let mut asked = json!({});
        if let Some(after) = &after {
            asked["ExclusiveStartStreamName"] = after.as_str().into();
        }
        let listed: Listed = client.call("ListStreams", &asked).await.map_err(failed)?;
        for name in &listed.stream_names {
            match is_marked(client, name, mark).await {
                Ok(true) => names.push(name.clone()),
                Ok(false) => {}
                // Gone since it was listed.
                Err(failure) if failure.is_missing() => {}
                Err(failure) => return Err(failed(failure)),
            }
        }
        after = listed.stream_names.last().cloned();
        if !listed.has_more_streams || after.is_none() {
            return Ok(names);
        }
    }
}
