//! Tokens: created, listed, revoked. The token itself is shown once and kept nowhere.

use std::sync::Arc;

use flare_model::access::{Caller, Scope, StoredToken, TokenDraft, TokenText, hash_of};
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::time::Timestamp;
use flare_provider::{Conflict, EntityKind, NewEntity, Start};
use schemars::JsonSchema;
use serde::Serialize;

use super::accounts::unknown_account;
use super::known_token;
use crate::access::{Known, hex};
use crate::operations::{App, Done, Failure};
use crate::registry::Slice;

/// How much later than what is stored a token must have been used for that to be stored.
const WORTH_STORING: std::time::Duration = std::time::Duration::from_secs(60);

/// A token, without the token.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Token")]
pub struct TokenView {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Whose it is.
    pub account: String,
    /// What it is good for.
    pub scopes: Vec<Scope>,
    /// Only for these resources and what is below them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<ResourceId>>,
    /// Only for these subscriptions and what is below them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<Vec<SubscriptionId>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Until when it is good; nothing: until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
}

/// A token that was just created: the only time that it is shown.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "NewToken")]
pub struct NewTokenView {
    #[serde(flatten)]
    view: TokenView,
    /// What to send as `Authorization: Bearer`.
    pub token: String,
}

impl NewTokenView {
    /// What is shown of it from now on.
    pub fn view(&self) -> &TokenView {
        &self.view
    }
}

impl TokenView {
    fn of(known: &Known) -> TokenView {
        let StoredToken { name, scopes, created_at, expires_at, resources, subscriptions, .. } =
            known.stored.clone();
        TokenView {
            id: known.id.clone(),
            name,
            account: known.account.to_string(),
            scopes,
            resources,
            subscriptions,
            created_at,
            expires_at,
            last_used_at: known.last_used_at(),
        }
    }
}

impl App {
    /// Creates a token of the caller's account.
    pub async fn create_token(&self, by: &Caller, draft: TokenDraft) -> Done<NewTokenView> {
        let access = self.access()?;
        draft.check()?;
        let _catalog = self.hold_catalog().await?;
        let through = self.check_limits(by, &draft)?;
        let (now, text) = (self.clock.now(), TokenText::of(self.entropy.bytes()));
        let TokenDraft { name, mut scopes, ttl, resources, subscriptions } = draft;
        scopes.sort_unstable();
        scopes.dedup();
        let stored = StoredToken {
            name,
            scopes,
            created_at: now,
            expires_at: ttl.map(|ttl| now.saturating_add(ttl.0)),
            last_used_at: None,
            hash: hex(&hash_of(text.reveal().as_bytes())),
            resources,
            subscriptions,
            through,
        };
        let new = NewEntity {
            kind: EntityKind::Token,
            id: self.entropy.fresh_id("tok"),
            parent: by.account.parent(),
            keys: Vec::new(),
            body: serde_json::to_string(&stored).expect("a token is plain data"),
            lanes: 0,
            start: Start::Now,
            history: false,
            capture: None,
        };
        let entity =
            self.store.catalog.create(new).await.map_err(|error| match error.is(&Conflict::Parent) {
                true => unknown_account(&by.account),
                false => error.into(),
            })?;
        let (hash, known) = known_token(&entity)?;
        let view = TokenView::of(&known);
        access.add((hash, known));
        tracing::info!(token.id = %view.id, account = %by.account, "token created");
        Ok(NewTokenView { view, token: text.reveal().to_owned() })
    }

    /// What a token is limited to is there; the resources of its subscriptions.
    fn check_limits(&self, by: &Caller, draft: &TokenDraft) -> Done<Vec<ResourceId>> {
        for id in draft.resources.iter().flatten() {
            let found = self.registry.tracked(id).filter(|resource| by.sees_whole(resource));
            let kind = if id.as_str().starts_with(ResourceId::CONSUMER) { "consumer" } else { "resource" };
            found.ok_or_else(|| Invalid::new("resources", format!("there is no {kind} {id}")))?;
        }
        let mut through = Vec::new();
        for id in draft.subscriptions.iter().flatten() {
            let found = self.registry.subscription_for(by, id);
            let unknown = || Invalid::new("subscriptions", format!("there is no {} {id}", id.kind()));
            let found = found.ok_or_else(unknown)?;
            through.push(found.compiled.resource.id().clone());
        }
        through.sort_unstable();
        through.dedup();
        Ok(through)
    }

    /// Tokens of the caller's account; whoever is limited sees their own.
    fn tokens_of(&self, by: &Caller) -> Done<Vec<Arc<Known>>> {
        let own = by.token.as_ref().map(|token| token.id.as_str());
        let seen = |known: &Known| {
            known.account == by.account && (by.sees_whole_account() || own == Some(known.id.as_str()))
        };
        Ok(self.access()?.tokens(seen))
    }

    /// A part of the tokens, in order of creation.
    pub fn tokens(&self, by: &Caller, offset: usize, limit: usize) -> Done<Slice<TokenView>> {
        let all = self.tokens_of(by)?;
        let entries = all.iter().skip(offset).take(limit).map(|known| TokenView::of(known)).collect();
        Ok(Slice { total: all.len(), entries })
    }

    /// One token; before it is said that there is none, it is asked whether another node has created it.
    pub async fn token(&self, by: &Caller, id: &str) -> Done<TokenView> {
        if let Ok(found) = self.token_here(by, id) {
            return Ok(found);
        }
        self.follow_catalog().await?;
        self.token_here(by, id)
    }

    fn token_here(&self, by: &Caller, id: &str) -> Done<TokenView> {
        let all = self.tokens_of(by)?;
        let found = all.iter().find(|known| known.id == id);
        found.map(|known| TokenView::of(known)).ok_or_else(|| unknown_token(id))
    }

    /// Revokes a token: from now on it is refused.
    pub async fn revoke_token(&self, by: &Caller, id: &str) -> Done<()> {
        let access = self.access()?;
        let _catalog = self.hold_catalog().await?;
        self.token_here(by, id)?;
        let deleted = self.store.catalog.delete(EntityKind::Token, id).await?;
        access.revoke(id);
        tracing::info!(token.id = id, account = %by.account, "token revoked");
        if deleted { Ok(()) } else { Err(unknown_token(id)) }
    }

    /// Stores when tokens were last used, where that is worth it.
    pub async fn store_last_used(&self) -> Done<()> {
        let Some(access) = &self.access else { return Ok(()) };
        let worth = |known: &Known| {
            let Some(used) = known.last_used_at() else { return false };
            known.stored.last_used_at.is_none_or(|stored| used.since(stored) >= WORTH_STORING)
        };
        for known in access.tokens(worth) {
            let _catalog = self.catalog.lock().await;
            let Some(mut entity) = self.store.catalog.get(EntityKind::Token, &known.id).await? else {
                continue;
            };
            let stored = StoredToken { last_used_at: known.last_used_at(), ..known.stored.clone() };
            entity.body = serde_json::to_string(&stored).expect("a token is plain data");
            match self.store.catalog.replace(entity).await {
                // Revoked meanwhile: it must not come back.
                Ok(Some(entity)) if access.tokens(|other| other.id == known.id).len() == 1 => {
                    access.add(known_token(&entity)?);
                }
                Ok(_) => {}
                Err(error) if error.is(&Conflict::Version) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn unknown_token(id: &str) -> Failure {
    Failure::NotFound(format!("there is no token {id}"))
}
