//! Who may do what: tokens, accounts and their quotas, and the log of what was done. Memory has what the catalog has.

pub mod accounts;
pub mod audit;
pub(in crate::operations) mod quotas;
pub mod tokens;

use std::sync::atomic::Ordering;

use flare_model::access::{Account, StoredAccount, StoredToken};
use flare_provider::{Deletion, Entity, EntityKind, ProviderError};

use crate::access::{Access, Known};
use crate::operations::{App, Done, Failure, corrupt};

/// Entities that are read at a time.
const BATCH: usize = 200;

impl App {
    /// Who is let in; without authentication there is nothing of it.
    fn access(&self) -> Done<&Access> {
        self.access.as_ref().ok_or_else(|| {
            let detail = "there is no authentication (auth.mode = \"none\"), so there are no tokens, accounts or audit; \
                          auth.mode = \"token\" turns it on";
            Failure::NotFound(detail.to_owned())
        })
    }

    /// Reads all accounts and tokens.
    pub(in crate::operations) async fn reload_access(&self) -> Result<(), ProviderError> {
        let Some(access) = &self.access else { return Ok(()) };
        let accounts = self.entities_of(EntityKind::Account).await?;
        for entity in &accounts {
            let stored: StoredAccount =
                serde_json::from_str(&entity.body).map_err(|error| corrupt(entity, &error))?;
            access.put_account(Account::named(&entity.id), entity.version, stored);
        }
        for known in access.accounts() {
            if accounts.iter().all(|entity| Account::named(&entity.id) != known.account) {
                access.remove_account(&known.account);
            }
        }
        let tokens = self.entities_of(EntityKind::Token).await?;
        let tokens: Result<Vec<_>, ProviderError> = tokens.iter().map(known_token).collect();
        access.replace_tokens(tokens?);
        Ok(())
    }

    async fn entities_of(&self, kind: EntityKind) -> Result<Vec<Entity>, ProviderError> {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let batch = self.store.catalog.list(kind, after, BATCH).await?;
            let Some(last) = batch.last() else { return Ok(all) };
            after = last.number;
            all.extend(batch);
        }
    }

    /// Another node created an account or a token, or changed it.
    pub(in crate::operations) fn apply_access(&self, entity: &Entity) -> Result<(), ProviderError> {
        let Some(access) = &self.access else { return Ok(()) };
        match entity.kind {
            EntityKind::Account => access.put_account(
                Account::named(&entity.id),
                entity.version,
                serde_json::from_str(&entity.body).map_err(|error| corrupt(entity, &error))?,
            ),
            _ => access.add(known_token(entity)?),
        }
        Ok(())
    }

    /// Another node deleted an account, or revoked a token.
    pub(in crate::operations) fn forget_access(&self, deletion: &Deletion) {
        let Some(access) = &self.access else { return };
        match deletion.kind {
            EntityKind::Account => access.remove_account(&Account::named(&deletion.id)),
            _ => access.revoke(&deletion.id),
        }
    }

    /// Follows what others do to accounts and tokens; a look at a number where nothing has changed. A member follows the
    /// whole catalog.
    pub(in crate::operations) async fn follow_access(&self) -> Done<()> {
        let version = self.store.catalog.version().await?;
        if let Some(ringing) = self.ringing.as_ref().filter(|_| self.member.is_some()) {
            let known = ringing.followed.load(Ordering::Acquire);
            return if known < version { self.follow_catalog().await } else { Ok(()) };
        }
        if self.access_version.load(Ordering::Relaxed) != version {
            let _catalog = self.catalog.lock().await;
            self.reload_access().await?;
            self.access_version.store(version, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn known_token(entity: &Entity) -> Result<([u8; 32], Known), ProviderError> {
    let stored: StoredToken = serde_json::from_str(&entity.body).map_err(|error| corrupt(entity, &error))?;
    let account = Account::of_parent(entity.parent.as_deref());
    Known::new(&entity.id, entity.number, account, stored).ok_or_else(|| corrupt(entity, &"its hash is none"))
}
