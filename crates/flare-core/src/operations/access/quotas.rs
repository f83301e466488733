//! Quotas: what an account may have and send. Whoever has none pays nothing for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use flare_model::access::{Account, Caller, Quotas};
use flare_model::document::{Intent, Outcome, Write};
use flare_model::ids::LaneId;
use flare_provider::ProviderError;

use crate::access::{Begun, Tenant};
use crate::consuming::Fitting;
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
        let writes: Vec<&Write> = drafts.iter().map(Draft::write).collect();
        let fitting = self.fitting(&mut begun, tenant, &writes).await?;
        let fits = drafts.into_iter().zip(&fitting).filter(|(_, fits)| **fits);
        let fits: Vec<Draft> = fits.map(|(draft, _)| draft).collect();
        let committed = if fits.is_empty() { Vec::new() } else { self.commit_all(fits).await? };
        let outcomes = committed.iter().filter_map(|outcome| outcome.as_ref().ok());
        tenant.add_documents(outcomes.map(|outcome| more(*outcome)).sum());
        let mut outcomes = committed.into_iter();
        let answer = |fits: &bool| match fits {
            true => outcomes.next().expect("every write has an outcome"),
            false => Err(too_many(tenant)),
        };
        Ok(fitting.iter().map(answer).collect())
    }

    /// Which writes are not one document too many. Those that may be new are begun.
    async fn fitting(
        &self,
        begun: &mut Begun<'_>,
        tenant: &Tenant,
        writes: &[&Write],
    ) -> Result<Vec<bool>, ProviderError> {
        if tenant.must_count(self.clock.monotonic()) {
            self.count_documents(tenant).await?;
        }
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

    /// How many of so many messages of a consumer its account may have stored in this second. None: after so long it may have one.
    pub(in crate::operations) fn take_messages(
        &self,
        account: &Account,
        wanted: usize,
    ) -> Result<usize, Duration> {
        let tenant = self.access.as_ref().and_then(|access| access.tenant(account));
        tenant.map_or(Ok(wanted), |tenant| tenant.take_changes(self.clock.monotonic(), wanted))
    }

    /// Commits what a consumer writes, from the first on as much as fits into the documents that its account may have. What does not
    /// fit holds up what is behind it: so everything stays in order.
    pub(in crate::operations) async fn commit_of_consumer(
        &self,
        account: &Account,
        mut writes: Vec<Write>,
    ) -> Result<Fitting, ProviderError> {
        let tenant = self.access.as_ref().and_then(|access| access.tenant(account));
        let Some(tenant) = tenant.filter(|tenant| tenant.stored.quotas.documents.is_some()) else {
            return Ok(Fitting { committed: self.store.documents.commit(writes).await?, full: None });
        };
        let mut begun = Begun::new(&tenant);
        let each = self.fitting(&mut begun, &tenant, &writes.iter().collect::<Vec<_>>()).await?;
        let fitting = each.iter().take_while(|fits| **fits).count();
        let full = (fitting < writes.len()).then(|| detail_of(&tenant));
        writes.truncate(fitting);
        let committed = match writes.is_empty() {
            true => Vec::new(),
            false => self.store.documents.commit(writes).await?,
        };
        let outcomes = committed.iter().filter_map(|written| written.as_ref().ok());
        tenant.add_documents(outcomes.map(|written| more(written.outcome)).sum());
        Ok(Fitting { committed, full })
    }

    async fn count_documents(&self, tenant: &Tenant) -> Result<(), ProviderError> {
        let now = self.clock.monotonic();
        let lanes = self.store.documents.lanes().await?;
        let own = self.registry.all_tracked().into_iter();
        let own: Vec<_> = own.filter(|one| one.account == tenant.account).map(|one| one.number).collect();
        let there = lanes.iter().filter(|lane| own.contains(&lane.lane.resource)).map(|lane| lane.documents);
        tenant.counted(there.sum(), now);
        Ok(())
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
fn more(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Created => 1,
        Outcome::Deleted => -1,
        _ => 0,
    }
}

fn detail_of(tenant: &Tenant) -> String {
    let most = tenant.stored.quotas.documents.unwrap_or_default();
    format!("the account has as many documents as it may: {most} (quota documents)")
}

fn too_many(tenant: &Tenant) -> NotAccepted {
    NotAccepted::Quota { detail: detail_of(tenant), passes: false }
}
