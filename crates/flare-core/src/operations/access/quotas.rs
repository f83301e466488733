//! Quotas: what an account may have and send. Whoever has none pays nothing for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::access::{Account, Caller, Quotas};
use flare_model::document::{Intent, Outcome, Write};
use flare_model::ids::LaneId;
use flare_provider::{Committed, ErrorKind, ProviderError};

use crate::access::{Begun, Tenant};
use crate::consuming::Room;
use crate::journey::accept::{Draft, NotAccepted};
use crate::operations::{App, Done, Failure};

impl App {
    fn quotas(&self, account: &Account) -> Quotas {
        let tenant = self.access.as_ref().and_then(|access| access.tenant(account));
        tenant.map_or_else(Quotas::default, |tenant| tenant.stored.quotas)
    }

    /// Whether an account may have one more resource; the caller holds the catalog.
    pub(in crate::operations) fn refuse_more_resources(&self, account: &Account) -> Done<()> {
        let most = self.quotas(account).resources;
        let there = || self.registry.counts_of(account).0;
        refuse("resources", most, there)
    }

    /// The same for subscriptions.
    pub(in crate::operations) fn refuse_more_subscriptions(&self, account: &Account) -> Done<()> {
        let most = self.quotas(account).subscriptions;
        let there = || self.registry.counts_of(account).1;
        refuse("subscriptions", most, there)
    }

    /// Whether an account may send one more document in this second.
    pub(in crate::operations) fn within_rate(&self, by: &Caller) -> Result<(), NotAccepted> {
        let Some(access) = &self.access else { return Ok(()) };
        let Some(tenant) = access.tenant(&by.account) else { return Ok(()) };
        if tenant.take_change(self.clock.monotonic()) {
            return Ok(());
        }
        let most = tenant.stored.quotas.changes_per_second.unwrap_or_default();
        let detail =
            format!("account {} may send {most} documents a second (quota changesPerSecond)", by.account);
        Err(NotAccepted::Quota { detail, passes: true })
    }

    /// The account of drafts, which is one, if it may not have any number of documents.
    pub(in crate::operations) fn tenant_of(&self, drafts: &[Draft]) -> Option<Arc<Tenant>> {
        let tenant = self.access.as_ref()?.tenant(&drafts.first()?.by().account)?;
        tenant.stored.quotas.documents.is_some().then_some(tenant)
    }

    /// Commits drafts of an account, but for those that would be one document too many.
    pub(in crate::operations) async fn commit_within(
        &self,
        tenant: &Tenant,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Result<Outcome, NotAccepted>>, ProviderError> {
        let mut begun = Begun::new(tenant);
        let fitting = self.fitting(&mut begun, tenant, drafts.iter().map(Draft::write)).await?;
        let fits = drafts.into_iter().zip(&fitting).filter(|(_, fits)| **fits);
        let fits: Vec<Draft> = fits.map(|(draft, _)| draft).collect();
        let committed = if fits.is_empty() { Vec::new() } else { self.commit_all(fits).await? };
        let outcomes = committed.iter().map(|outcome| outcome.as_ref().ok().copied());
        tenant.add_documents(outcomes.map(more).sum());
        let mut outcomes = committed.into_iter();
        let answer = |fits: &bool| match fits {
            true => outcomes.next().expect("every write has an outcome"),
            false => Err(NotAccepted::Quota { detail: too_many(tenant), passes: false }),
        };
        Ok(fitting.iter().map(answer).collect())
    }

    /// Commits what a consumer of an account has read, but for what would be one document too many: nothing came of that.
    pub(in crate::operations) async fn commit_read(
        &self,
        account: &Account,
        mut writes: Vec<Write>,
    ) -> Result<Vec<Option<flare_provider::Result<Committed>>>, ProviderError> {
        let tenant = self.access.as_ref().and_then(|access| access.tenant(account));
        let Some(tenant) = tenant else {
            return Ok(self.store.documents.commit(writes).await?.into_iter().map(Some).collect());
        };
        let mut begun = Begun::new(&tenant);
        let fitting = match tenant.stored.quotas.documents.is_some() {
            true => self.fitting(&mut begun, &tenant, writes.iter()).await?,
            false => vec![true; writes.len()],
        };
        let mut fits = fitting.iter();
        writes.retain(|_| *fits.next().expect("it was asked of every write"));
        let committed = match writes.is_empty() {
            true => Vec::new(),
            false => self.store.documents.commit(writes).await?,
        };
        let outcomes = || committed.iter().map(|committed| committed.as_ref().ok().map(|one| one.outcome));
        tenant.add_documents(outcomes().map(more).sum());
        // What is as it was costs nothing: whatever is tried again, or polled again, comes with it.
        let changes = outcomes()
            .flatten()
            .filter(|outcome| matches!(outcome, Outcome::Created | Outcome::Updated | Outcome::Deleted));
        tenant.owe_changes(changes.count(), self.clock.monotonic());
        let mut committed = committed.into_iter();
        Ok(fitting.into_iter().map(|fits| if fits { committed.next() } else { None }).collect())
    }

    /// Which writes are not one document too many. Those that may be new are begun.
    async fn fitting(
        &self,
        begun: &mut Begun<'_>,
        tenant: &Tenant,
        writes: impl Iterator<Item = &Write>,
    ) -> Result<Vec<bool>, ProviderError> {
        if tenant.must_count(self.clock.monotonic()) {
            self.count_documents(tenant).await?;
        }
        let writes: Vec<&Write> = writes.collect();
        let mut fitting: Vec<bool> =
            writes.iter().map(|write| matches!(write.intent, Intent::Delete { .. }) || begun.one()).collect();
        if fitting.iter().all(|fits| *fits) {
            return Ok(fitting);
        }
        // Room was kept for some that are there already: it is for those that are not, in their order. Whatever is there may
        // change, and so may what one before has made.
        begun.none();
        let mut there: HashSet<(LaneId, &str)> = HashSet::new();
        for (write, fits) in writes.iter().zip(&mut fitting) {
            if matches!(write.intent, Intent::Delete { .. }) {
                continue;
            }
            let known = (write.lane, &*write.url);
            *fits = there.contains(&known) || self.is_live(write).await? || begun.one();
            if *fits {
                there.insert(known);
            }
        }
        Ok(fitting)
    }

    async fn is_live(&self, write: &Write) -> Result<bool, ProviderError> {
        let found = self.store.documents.get(write.lane, &write.url).await?;
        Ok(found.is_some_and(|document| !document.row.deleted))
    }

    async fn count_documents(&self, tenant: &Tenant) -> Result<(), ProviderError> {
        let now = self.clock.monotonic();
        let lanes = self.store.documents.lanes().await?;
        let own = self.registry.all_tracked().into_iter();
        let own: HashSet<_> = own.filter(|one| one.account == tenant.account).map(|one| one.number).collect();
        let there = lanes.iter().filter(|lane| own.contains(&lane.lane.resource)).map(|lane| lane.documents);
        tenant.counted(there.sum(), now);
        Ok(())
    }

    /// What is said of an account that has as many documents as it may.
    pub(in crate::operations) fn too_many_documents(&self, account: &Account) -> String {
        let tenant = self.access.as_ref().and_then(|access| access.tenant(account));
        tenant.map_or_else(String::new, |tenant| too_many(&tenant))
    }
}

/// Keeps consumers to the quotas of their accounts.
pub(in crate::operations) struct Within(pub Arc<App>);

#[async_trait]
impl Room for Within {
    async fn commit(
        &self,
        account: &Account,
        writes: Vec<Write>,
    ) -> flare_provider::Result<Vec<flare_provider::Result<Committed>>> {
        let committed = self.0.commit_read(account, writes).await?;
        // Its source keeps what does not fit, and it is tried again: there may be room by then.
        committed.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| {
            let detail = self.0.too_many_documents(account);
            ProviderError::new(ErrorKind::Unavailable, "documents.commit", detail)
        })
    }

    fn at_once(&self, account: &Account) -> usize {
        let most = self.0.quotas(account).changes_per_second;
        most.map_or(usize::MAX, |most| most.max(1) as usize)
    }

    fn wait(&self, account: &Account) -> Duration {
        let tenant = self.0.access.as_ref().and_then(|access| access.tenant(account));
        tenant.map_or(Duration::ZERO, |tenant| tenant.owes_for(self.0.clock.monotonic()))
    }
}

fn refuse(quota: &str, most: Option<u32>, there: impl FnOnce() -> usize) -> Done<()> {
    match most {
        Some(most) if there() >= most as usize => {
            let detail = format!("the account has as many {quota} as it may: {most} (quota {quota})");
            Err(Failure::Forbidden(detail))
        }
        _ => Ok(()),
    }
}

/// How many more live documents there are after it.
fn more(outcome: Option<Outcome>) -> i64 {
    match outcome {
        Some(Outcome::Created) => 1,
        Some(Outcome::Deleted) => -1,
        _ => 0,
    }
}

fn too_many(tenant: &Tenant) -> String {
    let most = tenant.stored.quotas.documents.unwrap_or_default();
    format!("the account has as many documents as it may: {most} (quota documents)")
}
