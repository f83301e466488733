//! A stream as a sink: notifications come in, up to five hundred records go out at once, and what became of each comes back.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flare_provider::bridge::{Outgoing, Sent, Sink};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Named;
use crate::transport::failure::Refusal;
use crate::transport::{Failure, hash};

/// The most records of a request.
const MOST: usize = 500;

/// What all records of a request may have together, keys included.
const BATCH: usize = 5 << 20;

/// A record above this goes alone: one that is too large for the stream fails the whole request.
const USUAL: usize = 1 << 20;

/// No stream takes a record that is larger.
const LARGEST: usize = 10 << 20;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Put {
    records: Vec<Outcome>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Outcome {
    sequence_number: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
}

/// A stream as a sink.
pub struct KinesisSink {
    named: Named,
}

impl KinesisSink {
    /// Nothing is asked yet.
    pub fn new(named: Named) -> KinesisSink {
        KinesisSink { named }
    }

    async fn put(&self, batch: &[Outgoing]) -> Vec<Sent> {
        let doing = self.named.doing("sending to");
        if let [alone] = batch
            && size(alone) > LARGEST
        {
            let words = format!("the record has {} bytes; Kinesis takes {LARGEST} at the most", size(alone));
            return vec![Sent::Refused(words)];
        }
        let records = batch.iter().map(|outgoing| {
            json!({"Data": STANDARD.encode(&outgoing.body), "PartitionKey": key(&outgoing.document)})
        });
        let asked = json!({"StreamName": &*self.named.name, "Records": records.collect::<Vec<Value>>()});
        match self.named.client.call::<Put>("PutRecords", &asked).await {
            Ok(put) => outcomes(put, batch.len(), &doing),
            Err(failure) => vec![failure.sent(&doing); batch.len()],
        }
    }
}

#[async_trait]
impl Sink for KinesisSink {
    fn most(&self) -> usize {
        MOST
    }

    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent> {
        let mut sent = Vec::with_capacity(batch.len());
        while sent.len() < batch.len() {
            let rest = &batch[sent.len()..];
            sent.extend(self.put(&rest[..together(rest)]).await);
        }
        sent
    }
}

/// How many of these go in one request: at least one.
fn together(rest: &[Outgoing]) -> usize {
    let mut sum = 0;
    let fits = |outgoing: &&Outgoing| {
        let size = size(outgoing);
        sum += size;
        size <= USUAL && sum <= BATCH
    };
    rest.iter().take(MOST).take_while(fits).count().max(1)
}

fn size(outgoing: &Outgoing) -> usize {
    outgoing.body.len() + key(&outgoing.document).len()
}

/// The key that keeps a document in one shard, and so in order: the document, or its hash where it is longer than keys are.
fn key(document: &str) -> String {
    match !document.is_empty() && document.chars().count() <= 256 {
        true => document.to_owned(),
        false => hash(document.as_bytes()),
    }
}

/// What became of each record. A request that was answered is not all or nothing.
fn outcomes(put: Put, records: usize, doing: &str) -> Vec<Sent> {
    let of = |outcome: Outcome| match (outcome.error_code, outcome.sequence_number) {
        (Some(code), _) => {
            // The service names only reasons of its own here: too much at once, or a failure inside.
            let refusal = Refusal::new(&code, outcome.error_message.as_deref().unwrap_or_default());
            Sent::Failed(format!("{doing}: {refusal}"))
        }
        (None, Some(_)) => Sent::Delivered,
        (None, None) => Failure::Unanswered("the answer says nothing of this record".to_owned()).sent(doing),
    };
    let mut outcomes: Vec<Sent> = put.records.into_iter().map(of).collect();
    let unsaid = Failure::Unanswered("the answer does not name this record".to_owned());
    outcomes.resize(records, unsaid.sent(doing));
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(document: &str, bytes: usize) -> Outgoing {
        Outgoing {
            id: "msg_1".to_owned(),
            document: document.into(),
            revision: "7".to_owned(),
            headers: Vec::new(),
            content_type: None,
            body: vec![b'x'; bytes].into(),
        }
    }

    #[test]
    fn only_the_records_that_failed_are_said_to_have_failed() {
        let answer = r#"{"FailedRecordCount":1,"Records":[{"SequenceNumber":"1","ShardId":"s"},
            {"ErrorCode":"ProvisionedThroughputExceededException","ErrorMessage":"slow"},{}]}"#;
        let sent = outcomes(serde_json::from_str(answer).expect("an answer"), 4, "sending");
        assert_eq!(sent[0], Sent::Delivered);
        assert!(matches!(&sent[1], Sent::Failed(why) if why.contains("slow")));
        assert!(matches!(sent[2..], [Sent::Unknown(_), Sent::Unknown(_)]));
    }

    #[test]
    fn a_request_has_as_many_records_as_it_may_and_a_large_one_goes_alone() {
        let small: Vec<Outgoing> = (0..600).map(|_| outgoing("a", 10)).collect();
        assert_eq!(together(&small), 500);
        let large: Vec<Outgoing> = (0..20).map(|_| outgoing("a", 1_000_000)).collect();
        assert_eq!(together(&large), 5);
        let huge = [outgoing("a", 10), outgoing("a", 2 << 20), outgoing("a", 10)];
        assert_eq!([together(&huge), together(&huge[1..]), together(&huge[2..])], [1, 1, 1]);
    }

    #[test]
    fn a_document_always_has_the_same_key() {
        assert_eq!(key("https://shop.example/ä"), "https://shop.example/ä");
        let long = "x".repeat(257);
        assert_eq!((key(&long).len(), key(&long)), (64, key(&long)));
    }
}
