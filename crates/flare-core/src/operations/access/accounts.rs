//! Accounts: created, changed and deleted by the operator, each with its quotas.

use std::collections::HashMap;

use flare_model::access::{Account, AccountDraft, Quotas, StoredAccount};
use flare_model::ids::ResourceNumber;
use flare_model::invalid::{Invalid, plain};
use flare_model::patch::{members, merged};
use flare_model::time::Timestamp;
use flare_provider::{Conflict, Entity, EntityKind, NewEntity, Start};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::objects::Objects;
use crate::operations::{App, Done, Failure};
use crate::registry::Slice;

/// An account.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Account")]
pub struct AccountView {
    /// Its name.
    pub name: String,
    /// How much it may have; what is left out has no bound.
    pub quotas: QuotasView,
    /// How much it has.
    pub usage: UsageView,
    /// When it was created; nothing for the one that is there from the beginning.
    pub created_at: Option<Timestamp>,
}

/// How much an account may have, as users see it.
#[derive(Clone, Copy, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AccountQuotas")]
pub struct QuotasView {
    /// How many resources and consumers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u32>,
    /// How many subscriptions and producers, of all its resources and consumers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<u32>,
    /// How many live documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<u32>,
    /// How many documents its origins and consumers may send each second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_per_second: Option<u32>,
}

impl From<Quotas> for QuotasView {
    fn from(Quotas { resources, subscriptions, documents, changes_per_second }: Quotas) -> QuotasView {
        QuotasView { resources, subscriptions, documents, changes_per_second }
    }
}

/// How much an account has.
#[derive(Clone, Copy, Default, Serialize, JsonSchema)]
#[schemars(rename = "AccountUsage")]
pub struct UsageView {
    /// Resources and consumers.
    pub resources: u64,
    /// Subscriptions and producers.
    pub subscriptions: u64,
    /// Live documents.
    pub documents: u64,
}

impl App {
    /// Creates an account.
    pub async fn create_account(&self, draft: AccountDraft) -> Done<AccountView> {
        self.access()?;
        draft.check()?;
        let account = Account::named(&draft.name);
        let taken = |name: &str| Failure::Conflict(format!("there is an account {name} already"));
        if account.is_default() {
            return Err(taken(account.as_str()));
        }
        let stored = StoredAccount { created_at: Some(self.clock.now()), quotas: draft.quotas };
        let _catalog = self.catalog.lock().await;
        let created = self.store_new_account(&account, &stored).await;
        created.map_err(|failure| match &failure {
            Failure::Store(error) if error.is(&Conflict::Taken(account.to_string())) => {
                taken(account.as_str())
            }
            _ => failure,
        })?;
        tracing::info!(account = %account, "account created");
        self.account_view(&account).await
    }

    async fn store_new_account(&self, account: &Account, stored: &StoredAccount) -> Done<()> {
        let new = NewEntity {
            kind: EntityKind::Account,
            id: account.to_string(),
            parent: None,
            keys: Vec::new(),
            body: serde_json::to_string(stored).expect("an account is plain data"),
            lanes: 0,
            start: Start::Now,
            history: false,
            capture: None,
        };
        let entity = self.store.catalog.create(new).await?;
        self.access()?.put_account(account.clone(), entity.version, stored.clone());
        Ok(())
    }

    /// A part of the accounts, `default` first and then by name.
    pub async fn accounts(&self, offset: usize, limit: usize) -> Done<Slice<AccountView>> {
        let mut all = vec![Account::default()];
        all.extend(self.access()?.accounts().into_iter().map(|tenant| tenant.account.clone()));
        all.dedup();
        let total = all.len();
        let documents = self.documents_by_resource().await?;
        let part = all.iter().skip(offset).take(limit);
        Ok(Slice { total, entries: part.map(|account| self.view_of(account, &documents)).collect() })
    }

    /// One account.
    pub async fn account(&self, name: &str) -> Done<AccountView> {
        let account = Account::named(name);
        let access = self.access()?;
        if !access.has_account(&account) {
            // Another node may have created it just now.
            self.follow_catalog().await?;
        }
        match access.has_account(&account) {
            true => self.account_view(&account).await,
            false => Err(unknown_account(&account)),
        }
    }

    /// Changes quotas by a JSON Merge Patch.
    pub async fn patch_account(&self, name: &str, patch: &RawValue) -> Done<AccountView> {
        let (access, account) = (self.access()?, Account::named(name));
        let Some(fields) = members(patch) else {
            return Err(Invalid::new("body", "a merge patch is a JSON object").into());
        };
        if let Some(other) = fields.keys().find(|field| *field != "quotas") {
            return Err(Invalid::new(other, "cannot be changed; only `quotas` can").into());
        }
        let _catalog = self.catalog.lock().await;
        let found = self.store.catalog.get(EntityKind::Account, account.as_str()).await?;
        let stored = match &found {
            Some(entity) => {
                serde_json::from_str(&entity.body).map_err(|error| Invalid::new("account", error))?
            }
            None if account.is_default() => StoredAccount { created_at: None, quotas: Quotas::default() },
            None => return Err(unknown_account(&account)),
        };
        let quotas = match fields.get("quotas") {
            Some(patch) => patched(&stored.quotas, patch)?,
            None => stored.quotas,
        };
        let changed = StoredAccount { quotas, ..stored };
        match found {
            None => self.store_new_account(&account, &changed).await?,
            Some(entity) => {
                let body = serde_json::to_string(&changed).expect("an account is plain data");
                let replaced = self.store.catalog.replace(Entity { body, ..entity }).await?;
                let replaced = replaced.ok_or_else(|| unknown_account(&account))?;
                access.put_account(account.clone(), replaced.version, changed);
            }
        }
        tracing::info!(account = %account, "quotas changed");
        self.account_view(&account).await
    }

    /// Deletes an account that has nothing; its tokens go with it.
    pub async fn delete_account(&self, name: &str) -> Done<()> {
        let (access, account) = (self.access()?, Account::named(name));
        if account.is_default() {
            return Err(Failure::Conflict("the account default is always there".to_owned()));
        }
        let _catalog = self.catalog.lock().await;
        match self.store.catalog.delete(EntityKind::Account, account.as_str()).await {
            Ok(deleted) => {
                access.remove_account(&account);
                tracing::info!(account = %account, "account deleted");
                if deleted { Ok(()) } else { Err(unknown_account(&account)) }
            }
            Err(error) if error.is(&Conflict::Children) => {
                let (resources, _) = self.registry.counts_of(&account);
                let detail = format!(
                    "account {account} still has resources ({resources}), consumers among them; delete them first"
                );
                Err(Failure::Conflict(detail))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn account_view(&self, account: &Account) -> Done<AccountView> {
        Ok(self.view_of(account, &self.documents_by_resource().await?))
    }

    fn view_of(&self, account: &Account, documents: &HashMap<ResourceNumber, u64>) -> AccountView {
        let stored = self.access.as_ref().and_then(|access| access.tenant(account));
        let (resources, subscriptions) = self.registry.counts_of(account);
        let own = self.registry.all_tracked().into_iter();
        let own = own.filter(|resource| resource.account == *account);
        AccountView {
            name: account.to_string(),
            quotas: stored.as_ref().map(|tenant| tenant.stored.quotas.into()).unwrap_or_default(),
            usage: UsageView {
                resources: resources as u64,
                subscriptions: subscriptions as u64,
                documents: own.filter_map(|resource| documents.get(&resource.number)).sum(),
            },
            created_at: stored.and_then(|tenant| tenant.stored.created_at),
        }
    }

    pub(super) async fn documents_by_resource(&self) -> Done<HashMap<ResourceNumber, u64>> {
        let mut documents = HashMap::new();
        for lane in self.store.documents.lanes().await? {
            *documents.entry(lane.lane.resource).or_default() += lane.documents;
        }
        Ok(documents)
    }
}

/// Quotas after a merge patch.
fn patched(quotas: &Quotas, patch: &RawValue) -> Result<Quotas, Invalid> {
    let before = to_raw_value(quotas).expect("quotas are plain data");
    let after = merged(&before, patch);
    let mut after = serde_json::Deserializer::from_str(after.get());
    let quotas: Quotas = serde_path_to_error::deserialize(Objects(&mut after)).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "quotas".to_owned() } else { format!("quotas.{path}") };
        Invalid::new(field, plain(error.inner()))
    })?;
    quotas.check()?;
    Ok(quotas)
}

pub(in crate::operations) fn unknown_account(account: &Account) -> Failure {
    Failure::NotFound(format!("there is no account {account}"))
}
