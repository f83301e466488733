//! Accept: an origin's word about a document → one durable commit → what became of it.

use bytes::Bytes;
use flare_model::change::ChangeError;
use flare_model::document::{Intent, Outcome, Write};
use flare_model::time::Timestamp;
use flare_model::url::DocumentUrl;
use flare_provider::{Documents, ErrorKind, ProviderError};

use crate::registry::Registry;

/// Why a document was not accepted. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// No resource's endpoint matches.
    #[error("no resource matches {0}")]
    NoResource(DocumentUrl),
    /// The document or its revision cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ChangeError),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] ProviderError),
}

/// What an origin says.
#[derive(Debug)]
pub enum Word {
    /// This is the document now.
    Put(Bytes),
    /// It is gone; the revision as the origin gave it, if it did.
    Delete(Option<String>),
}

/// A word that has been understood.
pub struct Draft {
    write: Write,
    url: DocumentUrl,
}

impl Draft {
    /// How large the document is.
    pub fn bytes(&self) -> u64 {
        match &self.write.intent {
            Intent::Put { content, .. } => content.len() as u64,
            Intent::Delete { .. } => 0,
        }
    }

    /// What is to be written.
    pub fn write(&self) -> &Write {
        &self.write
    }

    /// A draft of this write, as if it had been understood.
    #[cfg(test)]
    pub fn for_test(write: Write) -> Draft {
        let url = DocumentUrl::parse(&write.url).expect("a test's url");
        Draft { write, url }
    }
}

/// Understands a word: which resource, which revision. No I/O.
pub fn draft(registry: &Registry, url: DocumentUrl, word: Word, at: Timestamp) -> Result<Draft, Refused> {
    let Some(resource) = registry.find(&url) else { return Err(Refused::NoResource(url)) };
    let intent = match word {
        Word::Put(content) => {
            let revision = resource.change.read(&content)?;
            // What came in is a part of a larger buffer, which would stay in memory as long as the document does.
            Intent::Put { revision, content: Bytes::copy_from_slice(&content) }
        }
        Word::Delete(None) => Intent::Delete { revision: None },
        Word::Delete(Some(text)) => {
            Intent::Delete { revision: Some(resource.change.read_revision_text(&text)?) }
        }
    };
    let lane = resource.lane_of(url.as_str());
    let write = Write { lane, url: url.as_str().into(), intent, at };
    Ok(Draft { write, url })
}

/// Commits drafts, in order, as one; each has its own outcome.
pub async fn commit(
    documents: &dyn Documents,
    drafts: Vec<Draft>,
) -> Result<Vec<Result<Outcome, Refused>>, ProviderError> {
    let (writes, urls): (Vec<_>, Vec<_>) = drafts.into_iter().map(|draft| (draft.write, draft.url)).unzip();
    let outcomes = documents.commit(writes).await?;
    let mut answers = Vec::with_capacity(outcomes.len());
    for (outcome, url) in outcomes.into_iter().zip(urls) {
        answers.push(match outcome {
            Ok(committed) => Ok(committed.outcome),
            // The resource was deleted between the match and the commit.
            Err(error) if error.kind == ErrorKind::Conflict => Err(Refused::NoResource(url)),
            Err(error) => Err(error.into()),
        });
    }
    Ok(answers)
}
