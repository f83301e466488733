//! Documents of origins: understood, committed, and counted by what became of them.

use flare_model::access::Caller;
use flare_model::document::Outcome;
use flare_model::url::DocumentUrl;
use flare_provider::ProviderError;

use crate::journey::accept::{self, Draft, NotAccepted, Word};
use crate::observe::count::{Refusal, micros};
use crate::operations::{App, Done, Failure};

impl App {
    /// Understands what an origin says of a document.
    pub fn draft(&self, by: &Caller, url: DocumentUrl, word: Word) -> Result<Draft, NotAccepted> {
        let draft = self
            .within_rate(by)
            .and_then(|()| accept::draft(&self.registry, by, url, word, self.clock.now()));
        draft.inspect_err(|refused| self.count_refused(refused))
    }

    /// The same. Before it is said that no resource fits, it is asked whether another node has created one.
    pub async fn draft_anywhere(
        &self,
        by: &Caller,
        url: DocumentUrl,
        word: Word,
    ) -> Result<Draft, NotAccepted> {
        if self.member.is_some() && self.registry.find_for(by, &url).is_none() {
            // Where that cannot be asked, nobody can say that there is none.
            if let Err(Failure::Store(error)) = self.follow_catalog().await
                && error.is_passing()
            {
                return Err(NotAccepted::Store(error));
            }
        }
        self.draft(by, url, word)
    }

    /// Commits drafts, in order, as one; each has its own outcome.
    pub async fn commit(
        &self,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Result<Outcome, NotAccepted>>, ProviderError> {
        match self.tenant_of(&drafts) {
            None => self.commit_all(drafts).await,
            Some(tenant) => self.commit_within(&tenant, drafts).await,
        }
    }

    /// The same, whatever the quotas say.
    pub(in crate::operations) async fn commit_all(
        &self,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Result<Outcome, NotAccepted>>, ProviderError> {
        let origin = &self.journey.observe().counts().origin;
        let (quantity, bytes) = (drafts.len() as u64, drafts.iter().map(Draft::bytes).sum());
        let began = self.clock.monotonic();
        let catch_up = |version| self.catch_up(version);
        let committed = accept::commit(&*self.store.documents, &self.registry, drafts, catch_up).await;
        let outcomes = committed.inspect_err(|error| {
            origin.refused[refusal(error) as usize].add_among_many(quantity);
            self.note_unavailable(error, quantity);
        })?;
        if let Some(refused) = origin.refusing.accepted() {
            tracing::info!(refused, "the store takes documents again");
        }
        origin.commit.record_among_many(micros(self.clock.monotonic().saturating_sub(began)));
        origin.bytes.add_among_many(bytes);
        for outcome in &outcomes {
            match outcome {
                Ok(outcome) => origin.answered(*outcome),
                Err(refused) => self.count_refused(refused),
            }
        }
        Ok(outcomes)
    }

    /// Sees to it that the registry knows of resources that came or went after this version. Whoever changes them holds
    /// the catalog until the registry knows; if it still does not then, an answer of the store was lost.
    async fn catch_up(&self, version: u64) -> Result<(), ProviderError> {
        if self.registry.version() <= version {
            let _catalog = self.catalog.lock().await;
            if self.registry.version() <= version {
                self.reload_resources().await?;
            }
        }
        Ok(())
    }

    /// Whether the store takes no writes: the last one was refused, of an origin or of a delivery thread.
    pub fn refuses_writes(&self) -> bool {
        self.journey.observe().counts().origin.refusing.refuses()
    }

    /// Where the store takes no writes, tries one that changes nothing: whoever sends nothing to a node that is not ready
    /// would never find out that it is.
    pub(in crate::operations) async fn try_a_write(&self) -> Done<()> {
        let refusing = &self.journey.observe().counts().origin.refusing;
        if refusing.refuses() && self.store.ledger.next_epoch().await.is_ok() {
            let refused = refusing.accepted().unwrap_or_default();
            tracing::info!(refused, "the store takes writes again");
        }
        Ok(())
    }

    /// Origins are told each time; the log once a minute.
    fn note_unavailable(&self, error: &ProviderError, quantity: u64) {
        let refusing = &self.journey.observe().counts().origin.refusing;
        if error.is_passing()
            && let Some(refused) = refusing.refused(quantity, self.clock.monotonic())
        {
            let error = error as &dyn std::error::Error;
            tracing::warn!(refused, error, "the store takes no documents; origins are told to come again");
        }
    }

    fn count_refused(&self, refused: &NotAccepted) {
        let refusal = match refused {
            NotAccepted::NoResource(_) => Refusal::NoResource,
            NotAccepted::Unreadable(_) => Refusal::Unreadable,
            NotAccepted::Quota { .. } => Refusal::Quota,
            NotAccepted::Store(error) => refusal(error),
        };
        self.journey.observe().counts().origin.refused(refusal);
    }
}

fn refusal(error: &ProviderError) -> Refusal {
    if error.is_passing() { Refusal::Unavailable } else { Refusal::Failed }
}
