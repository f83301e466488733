//! Deleting and hiding messages, ten at a time: handles come in, what became of each goes out. A batch is not all or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_provider::bridge::Receipt;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::receivers::TEN;
use crate::transport::failure::Refusal;
use crate::transport::{Client, Failure};

/// Requests of one call that are under way at once.
const AT_ONCE: usize = 8;

/// What is done with messages.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// They are done with.
    Delete,
    /// They are hidden for so many seconds from now on.
    Hide(u64),
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Delete => "DeleteMessageBatch",
            Operation::Hide(_) => "ChangeMessageVisibilityBatch",
        }
    }

    fn entry(self, id: usize, handle: &str) -> Value {
        match self {
            Operation::Delete => json!({"Id": id.to_string(), "ReceiptHandle": handle}),
            Operation::Hide(seconds) => {
                json!({"Id": id.to_string(), "ReceiptHandle": handle, "VisibilityTimeout": seconds})
            }
        }
    }
}

/// What became of the entries of a batch.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Batched {
    pub successful: Vec<Successful>,
    pub failed: Vec<Failed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Successful {
    pub id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Failed {
    pub id: String,
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub sender_fault: bool,
}

impl Batched {
    /// What became of each of so many entries, whose ids are their places. One that the answer does not name is not known of.
    pub fn outcomes(self, entries: usize) -> Vec<Result<(), Failure>> {
        let mut outcomes: Vec<Result<(), Failure>> = (0..entries)
            .map(|_| Err(Failure::Unanswered("the answer says nothing of this message".to_owned())))
            .collect();
        let place = |id: &str| id.parse::<usize>().ok().filter(|place| *place < entries);
        for place in self.successful.iter().filter_map(|entry| place(&entry.id)) {
            outcomes[place] = Ok(());
        }
        for entry in &self.failed {
            let Some(place) = place(&entry.id) else { continue };
            let mut refusal = Refusal::new(&entry.code, &entry.message);
            refusal.later = !entry.sender_fault;
            outcomes[place] = Err(Failure::Refused(refusal));
        }
        outcomes
    }
}

/// Does it with all of them, and says of each that failed why.
pub async fn in_tens(
    client: &Arc<Client>,
    url: &Arc<str>,
    operation: Operation,
    messages: Vec<(Receipt, Arc<str>)>,
) -> BTreeMap<Receipt, Failure> {
    let mut failed = BTreeMap::new();
    let mut under_way = JoinSet::new();
    for batch in messages.chunks(TEN) {
        if under_way.len() == AT_ONCE
            && let Some(Ok(done)) = under_way.join_next().await
        {
            failed.extend::<Vec<_>>(done);
        }
        let (client, url, batch) = (client.clone(), url.clone(), batch.to_vec());
        under_way.spawn(async move { ten(&client, &url, operation, batch).await });
    }
    while let Some(done) = under_way.join_next().await {
        // None of them panics or is aborted before this ends.
        failed.extend(done.unwrap_or_default());
    }
    failed
}

async fn ten(
    client: &Client,
    url: &str,
    operation: Operation,
    batch: Vec<(Receipt, Arc<str>)>,
) -> Vec<(Receipt, Failure)> {
    let entries = batch.iter().enumerate().map(|(id, (_, handle))| operation.entry(id, handle));
    let asked = json!({"QueueUrl": url, "Entries": entries.collect::<Vec<_>>()});
    let receipts = batch.iter().map(|(receipt, _)| *receipt);
    match client.call::<Batched>(operation.name(), &asked).await {
        Ok(done) => {
            let outcomes = done.outcomes(batch.len());
            receipts.zip(outcomes).filter_map(|(receipt, outcome)| Some((receipt, outcome.err()?))).collect()
        }
        Err(failure) => receipts.map(|receipt| (receipt, failure.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use flare_provider::bridge::BridgeErrorKind;

    use super::*;

    #[test]
    fn every_entry_of_a_batch_has_an_outcome_of_its_own() {
        let answer = r#"{"Successful":[{"Id":"2"},{"Id":"0"},{"Id":"99"}],
            "Failed":[{"Id":"1","SenderFault":true,"Code":"ReceiptHandleIsInvalid","Message":"no"},
                      {"Id":"3","SenderFault":false,"Code":"Odd"},{"Id":"x","Code":"y"}]}"#;
        let batched: Batched = serde_json::from_str(answer).expect("an answer");
        let outcomes = batched.outcomes(5);
        assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
        assert!(outcomes[1].as_ref().is_err_and(|failure| failure.is("ReceiptHandleIsInvalid")));
        assert!(outcomes[3].as_ref().is_err_and(|failure| failure.kind() == BridgeErrorKind::Unavailable));
        assert!(matches!(outcomes[4], Err(Failure::Unanswered(_))));
    }
}
