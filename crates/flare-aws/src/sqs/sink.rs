//! A queue as a sink: notifications come in, batches of ten at the most go out, and what became of each comes back.

use async_trait::async_trait;
use flare_provider::bridge::{Outgoing, Sent, Sink};
use serde_json::{Map, Value, json};

use super::Queue;
use super::batch::Batched;
use super::receivers::TEN;
use crate::transport::hash;

/// What all messages of a request may have together, wherever it goes.
const BATCH: usize = 256 * 1024;

/// No queue takes a message that is larger. One between the two goes alone, and the queue says whether it takes it.
const LARGEST: usize = 1024 * 1024;

/// The most attributes that a message may have.
const ATTRIBUTES: usize = 10;

/// A queue as a sink.
pub struct SqsSink {
    queue: Queue,
}

/// A message as it goes out, and how large it is.
struct Entry {
    written: Map<String, Value>,
    size: usize,
}

impl SqsSink {
    /// Nothing is asked yet.
    pub fn new(queue: Queue) -> SqsSink {
        SqsSink { queue }
    }

    async fn send_batch(&self, entries: Vec<Entry>) -> Vec<Sent> {
        let count = entries.len();
        let doing = self.queue.doing("sending to");
        let entries: Vec<Value> = entries
            .into_iter()
            .enumerate()
            .map(|(place, mut entry)| {
                entry.written.insert("Id".to_owned(), place.to_string().into());
                Value::Object(entry.written)
            })
            .collect();
        let url = match self.queue.url().await {
            Ok(url) => url,
            // Nothing was sent, so there is no doubt, whatever the reason.
            Err(failure) => {
                let sent = match failure.sent(&doing) {
                    Sent::Unknown(why) => Sent::Failed(why),
                    other => other,
                };
                return vec![sent; count];
            }
        };
        let asked = json!({"QueueUrl": url, "Entries": entries});
        match self.queue.client.call::<Batched>("SendMessageBatch", &asked).await {
            Ok(batched) => {
                let outcomes = batched.outcomes(count).into_iter();
                outcomes
                    .map(|outcome| outcome.map_or_else(|failure| failure.sent(&doing), |()| Sent::Delivered))
                    .collect()
            }
            Err(failure) => vec![self.queue.note(failure).sent(&doing); count],
        }
    }
}

#[async_trait]
impl Sink for SqsSink {
    fn most(&self) -> usize {
        TEN
    }

    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent> {
        let mut sent = Vec::with_capacity(batch.len());
        let mut together: Vec<Entry> = Vec::new();
        // In order: what waits goes out before one that is refused here is answered for.
        for outgoing in &batch {
            let entry = entry(outgoing, self.queue.is_fifo());
            let full = |entries: &[Entry], next: usize| {
                entries.len() == TEN || entries.iter().map(|entry| entry.size).sum::<usize>() + next > BATCH
            };
            let size = entry.as_ref().map_or(0, |entry| entry.size);
            if entry.is_err() || full(&together, size) {
                sent.extend(self.flush(&mut together).await);
            }
            match entry {
                Ok(entry) => together.push(entry),
                Err(why) => sent.push(Sent::Refused(why)),
            }
        }
        sent.extend(self.flush(&mut together).await);
        sent
    }
}

impl SqsSink {
    async fn flush(&self, together: &mut Vec<Entry>) -> Vec<Sent> {
        if together.is_empty() {
            return Vec::new();
        }
        self.send_batch(std::mem::take(together)).await
    }
}

/// A notification as an entry of a batch, or why no queue takes it.
fn entry(outgoing: &Outgoing, fifo: bool) -> Result<Entry, String> {
    let body = std::str::from_utf8(&outgoing.body)
        .map_err(|_| "a message of SQS has to be text, and this one is not UTF-8".to_owned())?;
    let attributes = attributes(outgoing);
    let mut size = body.len();
    let mut described = Map::new();
    for (name, value) in attributes {
        size += name.len() + "String".len() + value.len();
        described.insert(name, json!({"DataType": "String", "StringValue": value}));
    }
    if size > LARGEST {
        return Err(format!("the message has {size} bytes; SQS takes {LARGEST} at the most"));
    }
    let mut written = Map::new();
    written.insert("MessageBody".to_owned(), body.into());
    written.insert("MessageAttributes".to_owned(), described.into());
    if fifo {
        written.insert("MessageGroupId".to_owned(), plain(&outgoing.document).into());
        written.insert("MessageDeduplicationId".to_owned(), plain(&outgoing.id).into());
    }
    Ok(Entry { written, size })
}

/// What the message says beside its body. There is room for ten, so those that tell what it is go first.
fn attributes(outgoing: &Outgoing) -> Vec<(String, String)> {
    let rank = |name: &str| match name {
        "webhook-id" => 0,
        name if name.starts_with("Flare-") => 1,
        name if name.starts_with("webhook-") => 2,
        _ => 3,
    };
    let id = ("webhook-id", outgoing.id.as_str());
    let content_type = outgoing.content_type.map(|kind| ("content-type", kind));
    let headers = outgoing.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (name, value) in std::iter::once(id).chain(headers).chain(content_type) {
        if is_name(name) && is_value(value) && !all.iter().any(|(known, _)| *known == name) {
            all.push((name, value));
        }
    }
    all.sort_by_key(|(name, _)| rank(name));
    all.truncate(ATTRIBUTES);
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.bytes().all(fits) && !name.starts_with("aws.") && !name.starts_with("amazon.")
}

/// An attribute has a value, and none of the characters that the service refuses.
fn is_value(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|letter| letter >= ' ' || matches!(letter, '\t' | '\n' | '\r'))
}

/// A group or an id as the service takes it: visible ASCII, 128 at the most. Anything else is hashed, always to the same.
fn plain(text: &str) -> String {
    match !text.is_empty() && text.len() <= 128 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => text.to_owned(),
        false => hash(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(headers: &[(&str, &str)], body: &[u8]) -> Outgoing {
        Outgoing {
            id: "msg_1".to_owned(),
            document: "https://shop.example/orders/1".into(),
            revision: "7".to_owned(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            content_type: Some("application/json"),
            body: body.to_vec().into(),
        }
    }

    #[test]
    fn attributes_say_what_a_message_is_and_are_ten_at_the_most() {
        let many: Vec<(String, String)> = (0..20).map(|n| (format!("x-{n}"), "v".to_owned())).collect();
        let mut headers: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        headers.extend([
            ("Flare-Patch-From", "3"),
            ("webhook-id", "msg_1"),
            ("webhook-signature", "v1,x"),
            ("x-empty", ""),
            ("x (odd)", "v"),
        ]);
        let written = attributes(&outgoing(&headers, b"{}"));
        let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.len(), ATTRIBUTES);
        assert_eq!(names[..3], ["webhook-id", "Flare-Patch-From", "webhook-signature"]);
        assert_eq!(attributes(&outgoing(&[], b""))[0], ("webhook-id".to_owned(), "msg_1".to_owned()));
    }

    #[test]
    fn what_no_queue_takes_is_refused_with_the_reason() {
        let too_large = entry(&outgoing(&[], &vec![b'x'; LARGEST]), false).err().expect("refused");
        assert!(too_large.contains("1048576"), "{too_large}");
        let odd = entry(&outgoing(&[], &[0xff]), false).err().expect("refused");
        assert!(odd.contains("UTF-8"), "{odd}");
    }

    #[test]
    fn a_document_is_its_group_and_always_the_same_one() {
        let entry = entry(&outgoing(&[], b"{}"), true).expect("it goes");
        assert_eq!(entry.written["MessageGroupId"], "https://shop.example/orders/1");
        assert_eq!(entry.written["MessageDeduplicationId"], "msg_1");
        let long = "x".repeat(129);
        assert_eq!((plain(&long), plain(&long).len()), (plain(&long), 64));
        assert_ne!(plain("ä"), plain("ö"));
    }
}
