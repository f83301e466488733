//! Accept: an origin's word about a document → one durable commit → what became of it.

use bytes::Bytes;
use flare_model::access::Caller;
use flare_model::change::ChangeError;
use flare_model::document::{Intent, Outcome, Write};
use flare_model::time::Timestamp;
use flare_model::url::DocumentUrl;
use flare_provider::{Committed, Conflict, Documents, ErrorKind, ProviderError};

use crate::registry::Registry;

/// Why a document was not accepted. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// No resource's endpoint matches.
    #[error("no resource matches {0}")]
    NoResource(DocumentUrl),
    /// The document or its revision cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ChangeError),
    /// The account has as much as it may have, or sends faster than it may.
    #[error("{detail}")]
    Quota {
        /// Which quota, and what to do.
        detail: String,
        /// Whether it is enough to come again later.
        passes: bool,
    },
    /// The store says no.
    #[error(transparent)]
    Store(#[from] ProviderError),
}

/// How often a batch is routed again before it is refused: resources come and go seldom.
const ROUTED_AGAIN: usize = 8;

/// What an origin says.
#[derive(Clone, Debug)]
pub enum Word {
    /// This is the document now.
    Put(Bytes),
    /// It is gone; the revision as the origin gave it, if it did.
    Delete(Option<String>),
}

/// A word that has been understood.
pub struct Draft {
    write: Write,
    said: Said,
}

/// What was said, to be understood again if urls pass to another resource meanwhile.
struct Said {
    url: DocumentUrl,
    word: Word,
    at: Timestamp,
    by: Caller,
}

impl Draft {
    /// How large the document is.
    pub fn bytes(&self) -> u64 {
        match &self.write.intent {
            Intent::Put { content, .. } => content.len() as u64,
            Intent::Delete { .. } => 0,
        }
    }

    /// Who says it.
    pub fn by(&self) -> &Caller {
        &self.said.by
    }

    /// What is to be written.
    pub fn write(&self) -> &Write {
        &self.write
    }
}

/// Understands a word: which resource, which revision. No I/O.
pub fn draft(
    registry: &Registry,
    by: &Caller,
    url: DocumentUrl,
    word: Word,
    at: Timestamp,
) -> Result<Draft, NotAccepted> {
    let routed = registry.route(&by.account, &url).filter(|(resource, _)| by.sees_whole(resource));
    let Some((resource, routed_by)) = routed else { return Err(NotAccepted::NoResource(url)) };
    let change = resource.change().expect("what has an endpoint has revisions");
    let (intent, word) = match word {
        Word::Put(content) => {
            let revision = change.read(&content)?;
            // What came in is a part of a larger buffer, which would stay in memory as long as the document does.
            let content = Bytes::copy_from_slice(&content);
            (Intent::Put { revision, content: content.clone() }, Word::Put(content))
        }
        Word::Delete(None) => (Intent::Delete { revision: None }, word),
        Word::Delete(Some(ref text)) => {
            (Intent::Delete { revision: Some(change.read_revision_text(text)?) }, word)
        }
    };
    let lane = resource.lane_of(url.as_str());
    let write = Write { lane, url: url.as_str().into(), intent, at, routed_by };
    Ok(Draft { write, said: Said { url, word, at, by: by.clone() } })
}

/// Commits drafts, in order, as one; each has its own outcome. Those that were routed by a catalog that is no more are
/// understood again, once `catch_up` has made the registry newer than the version it is given.
pub async fn commit<CaughtUp: Future<Output = Result<(), ProviderError>>>(
    documents: &dyn Documents,
    registry: &Registry,
    drafts: Vec<Draft>,
    catch_up: impl Fn(u64) -> CaughtUp,
) -> Result<Vec<Result<Outcome, NotAccepted>>, ProviderError> {
    let routed_by = drafts.iter().map(|draft| draft.write.routed_by).min().unwrap_or_default();
    let (writes, said): (Vec<_>, Vec<_>) = drafts.into_iter().map(|draft| (draft.write, draft.said)).unzip();
    match documents.commit(writes).await {
        Ok(outcomes) => {
            Ok(outcomes.into_iter().zip(said).map(|(outcome, said)| answer(outcome, said)).collect())
        }
        Err(error) if error.is(&Conflict::Routing) => {
            catch_up(routed_by).await?;
            commit_again(documents, registry, said, catch_up).await
        }
        Err(error) => Err(error),
    }
}

/// The same for words whose urls may be another resource's now. All of them, since their order counts.
async fn commit_again<CaughtUp: Future<Output = Result<(), ProviderError>>>(
    documents: &dyn Documents,
    registry: &Registry,
    said: Vec<Said>,
    catch_up: impl Fn(u64) -> CaughtUp,
) -> Result<Vec<Result<Outcome, NotAccepted>>, ProviderError> {
    for _ in 0..ROUTED_AGAIN {
        let again = |said: &Said| draft(registry, &said.by, said.url.clone(), said.word.clone(), said.at);
        let drafts: Vec<Result<Draft, NotAccepted>> = said.iter().map(again).collect();
        let understood = || drafts.iter().filter_map(|draft| Some(&draft.as_ref().ok()?.write));
        let routed_by = understood().map(|write| write.routed_by).min().unwrap_or_default();
        match documents.commit(understood().cloned().collect()).await {
            Ok(outcomes) => {
                let mut outcomes = outcomes.into_iter();
                let answers = drafts.into_iter().map(|draft| {
                    let Draft { said, .. } = draft?;
                    answer(outcomes.next().expect("every write has an outcome"), said)
                });
                return Ok(answers.collect());
            }
            Err(error) if error.is(&Conflict::Routing) => catch_up(routed_by).await?,
            Err(error) => return Err(error),
        }
    }
    let detail = "resources come and go too quickly to route by them";
    Err(ProviderError::new(ErrorKind::Unavailable, "documents.commit", detail))
}

fn answer(outcome: flare_provider::Result<Committed>, said: Said) -> Result<Outcome, NotAccepted> {
    match outcome {
        Ok(committed) => Ok(committed.outcome),
        // The lane has gone with its resource.
        Err(error) if error.is(&Conflict::Lane) => Err(NotAccepted::NoResource(said.url)),
        Err(error) if error.is(&Conflict::RevisionKind) => {
            Err(NotAccepted::Unreadable(ChangeError::OtherKind))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flare_model::ids::{ResourceId, ResourceNumber, Seq};
    use flare_model::pattern::Pattern;
    use flare_model::resource::{Resource, ResourceDraft};
    use flare_provider::memory::Memory;
    use flare_provider::{Capture, EntityKind, NewEntity, Start, Store};
    use serde_json::json;

    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_767_323_045_678);

    /// Creates a resource in the store, which the registry does not know yet.
    async fn create(store: &Store, endpoint: &str, from: Option<&Resource>) -> (Arc<Resource>, u64) {
        let draft = json!({"endpoint": endpoint, "change": {"field": "rev"}});
        let draft: ResourceDraft = serde_json::from_value(draft).expect("a draft");
        let view = draft.check(ResourceId::new(endpoint), 2, AT).expect("a resource");
        let pattern = Pattern::parse(endpoint).expect("an endpoint");
        let seen = |from: &Resource| from.lanes().map(|lane| (lane, Seq(0))).collect();
        let new = NewEntity {
            kind: EntityKind::Resource,
            id: endpoint.to_owned(),
            parent: None,
            keys: Vec::new(),
            body: String::new(),
            lanes: 2,
            start: Start::Now,
            history: false,
            capture: from.map(|from| Capture { pattern, seen: seen(from) }),
        };
        let entity = store.catalog.create(new).await.expect("created");
        let resource = Resource::compile(view, ResourceNumber(entity.number)).expect("compiled");
        (Arc::new(resource), entity.version)
    }

    fn said(registry: &Registry, url: &str, word: Word) -> Draft {
        draft(registry, &Caller::anybody(), DocumentUrl::parse(url).expect("a url"), word, AT)
            .expect("understood")
    }

    #[tokio::test]
    async fn a_batch_whose_urls_pass_to_another_resource_is_routed_again_whole_and_in_order() {
        let (store, registry) = (Memory::new().store(), Registry::default());
        let (all, version) = create(&store, "http://h/users/{id}/{x}", None).await;
        registry.add_resource(all.clone());
        registry.caught_up(version);
        let (mine, yours) = ("http://h/users/me/1", "http://h/users/you/1");
        let put = |rev: i64| Word::Put(json!({"rev": rev}).to_string().into());
        let drafts = vec![
            said(&registry, mine, put(1)),
            said(&registry, yours, put(1)),
            said(&registry, mine, Word::Delete(None)),
        ];
        let (taker, version) = create(&store, "http://h/users/me/{x}", Some(&all)).await;
        let catch_up = |_| {
            registry.add_resource(taker.clone());
            registry.caught_up(version);
            std::future::ready(Ok(()))
        };
        let answers = commit(&*store.documents, &registry, drafts, catch_up).await.expect("taken");
        let outcomes: Vec<Outcome> = answers.into_iter().map(|answer| answer.expect("accepted")).collect();
        assert_eq!(outcomes, [Outcome::Created, Outcome::Created, Outcome::Deleted]);
        let found = async |resource: &Resource, url: &str| {
            store.documents.get(resource.lane_of(url), url).await.expect("read").is_some()
        };
        assert!(found(&taker, mine).await && !found(&all, mine).await);
        assert!(found(&all, yours).await);
    }

    #[tokio::test]
    async fn a_registry_that_never_catches_up_is_not_waited_for_without_end() {
        let (store, registry) = (Memory::new().store(), Registry::default());
        let (all, _) = create(&store, "http://h/users/{id}/{x}", None).await;
        registry.add_resource(all.clone());
        let drafts = vec![said(&registry, "http://h/users/me/1", Word::Delete(None))];
        create(&store, "http://h/users/me/{x}", Some(&all)).await;
        let refused = commit(&*store.documents, &registry, drafts, |_| std::future::ready(Ok(()))).await;
        assert_eq!(refused.expect_err("refused").kind, ErrorKind::Unavailable);
    }
}
