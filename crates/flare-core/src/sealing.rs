//! Subscriptions, producers and consumers as they are stored. In: one as the node knows it, or a stored one. Out: the other. In
//! the store signing secrets and the endpoints that have credentials are sealed, and what tells urls apart there does not tell
//! them.

use flare_model::consumer::StoredConsumer;
use flare_model::ids::{ResourceId, ResourceNumber, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::resource::{Resource, ResourceView};
use flare_model::subscription::credentials::{has_credentials, has_credentials_in_query, redacted};
use flare_model::subscription::{Limits, Spec, Stored, check};
use flare_provider::{Entity, EntityKind, Store};

use crate::vault::{Closed, Vault};

/// A subscription as it is stored.
pub fn at_rest(vault: &Vault, id: &SubscriptionId, stored: &Stored) -> String {
    let plain = |stored: &Stored| serde_json::to_string(stored).expect("a subscription is plain data");
    let endpoint = &stored.draft.endpoint;
    if !has_credentials(endpoint) {
        return plain(stored);
    }
    let whole = serde_json::to_string(endpoint).expect("an endpoint is plain data");
    let mut sealed = stored.clone();
    sealed.draft.endpoint = redacted(endpoint);
    sealed.sealed_endpoint = Some(vault.seal_endpoint(id, &whole).into());
    plain(&sealed)
}

/// What tells its urls from others' in the store.
pub fn keys_at_rest(vault: &Vault, spec: &Spec) -> Vec<String> {
    let sealed = |key: String| match key.split_once(' ') {
        Some((action, url)) if has_credentials_in_query(url) => {
            format!("{action} sealed {}", vault.name_of_url(url))
        }
        _ => key,
    };
    spec.keys().into_iter().map(sealed).collect()
}

/// A consumer as it is stored: what it polls has credentials only sealed.
pub fn consumer_at_rest(vault: &Vault, id: &ResourceId, consumer: &StoredConsumer) -> String {
    let mut sealed = consumer.clone();
    let endpoint = consumer.draft.source.endpoint();
    if has_credentials(&endpoint) {
        let whole = serde_json::to_string(&endpoint).expect("an endpoint is plain data");
        sealed.sealed = Some(vault.seal_endpoint(&name_of(id), &whole));
        sealed.draft.source = consumer.draft.source.redacted();
    }
    serde_json::to_string(&sealed).expect("a consumer is plain data")
}

/// What is sealed is sealed for an id, whatever it is the id of.
fn name_of(id: &ResourceId) -> SubscriptionId {
    SubscriptionId::new(id.as_str())
}

/// Why what is stored cannot be known.
#[derive(Debug, thiserror::Error)]
pub enum Unknowable<T> {
    /// It is not what was stored.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Its endpoint stays closed. The rest of it is here, with the word for its credentials.
    #[error("endpoint: {1}")]
    Closed(Box<T>, Closed),
}

/// A stored subscription as the node knows it.
pub fn from_rest(vault: &Vault, id: &SubscriptionId, body: &str) -> Result<Stored, Unknowable<Stored>> {
    let mut stored: Stored = serde_json::from_str(body).map_err(|e| Invalid::new("subscription", e))?;
    let Some(sealed) = stored.sealed_endpoint.take() else { return Ok(stored) };
    match vault.unseal_endpoint(id, &sealed) {
        Ok(whole) => {
            stored.draft.endpoint = serde_json::from_str(&whole).map_err(|e| Invalid::new("endpoint", e))?;
            Ok(stored)
        }
        Err(closed) => Err(Unknowable::Closed(Box::new(stored), closed)),
    }
}

/// A stored consumer as the node knows it.
pub fn consumer_from_rest(
    vault: &Vault,
    id: &ResourceId,
    body: &str,
) -> Result<StoredConsumer, Unknowable<StoredConsumer>> {
    let mut stored: StoredConsumer = serde_json::from_str(body).map_err(|e| Invalid::new("consumer", e))?;
    let Some(sealed) = stored.sealed.take() else { return Ok(stored) };
    match vault.unseal_endpoint(&name_of(id), &sealed) {
        Ok(whole) => {
            let endpoint = serde_json::from_str(&whole).map_err(|e| Invalid::new("source", e))?;
            stored.draft.source = stored.draft.source.with_endpoint(endpoint);
            Ok(stored)
        }
        Err(closed) => {
            // It is written back as it was.
            stored.sealed = Some(sealed);
            Err(Unknowable::Closed(Box::new(stored), closed))
        }
    }
}

/// Whether an earlier version has stored credentials as they were given.
pub fn is_open(body: &str) -> bool {
    serde_json::from_str::<Stored>(body).is_ok_and(|stored| has_credentials(&stored.draft.endpoint))
}

/// How much was sealed anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Subscriptions, and producers among them.
    pub subscriptions: usize,
    /// Consumers, whose sources are polled with credentials.
    pub consumers: usize,
}

/// Seals everything of a store anew that the present key has not sealed, and answers how much that was. The vault has the
/// former key as well. Nobody else may use the store.
pub async fn reseal(store: &Store, vault: &Vault) -> anyhow::Result<Resealed> {
    const BATCH: usize = 200;
    let mut count = Resealed::default();
    for kind in [EntityKind::Subscription, EntityKind::Producer, EntityKind::Consumer] {
        let mut after = 0;
        loop {
            let entities = store.catalog.list(kind, after, BATCH).await?;
            let Some(last) = entities.last() else { break };
            after = last.number;
            for entity in entities {
                let (anew, counted) = match kind {
                    EntityKind::Consumer => (resealed_consumer(vault, &entity)?, &mut count.consumers),
                    _ => (resealed(store, vault, &entity).await?, &mut count.subscriptions),
                };
                if let Some(anew) = anew {
                    store.catalog.replace(anew).await?;
                    *counted += 1;
                }
            }
        }
    }
    Ok(count)
}

/// A consumer under the present key; nothing where it is, or has nothing to seal.
fn resealed_consumer(vault: &Vault, entity: &Entity) -> anyhow::Result<Option<Entity>> {
    let id = ResourceId::new(entity.id.as_str());
    let raw: StoredConsumer = serde_json::from_str(&entity.body)?;
    match &raw.sealed {
        Some(sealed) if vault.is_of_present_key(sealed) => return Ok(None),
        None if !has_credentials(&raw.draft.source.endpoint()) => return Ok(None),
        _ => {}
    }
    let stored =
        consumer_from_rest(vault, &id, &entity.body).map_err(|why| anyhow::anyhow!("{id}: {why}"))?;
    Ok(Some(Entity { body: consumer_at_rest(vault, &id, &stored), ..entity.clone() }))
}

/// A subscription under the present key; nothing where it is.
async fn resealed(store: &Store, vault: &Vault, entity: &Entity) -> anyhow::Result<Option<Entity>> {
    let id = SubscriptionId::new(entity.id.as_str());
    let raw: Stored = serde_json::from_str(&entity.body)?;
    let sealed =
        raw.secrets.iter().map(|secret| secret.sealed.as_str()).chain(raw.sealed_endpoint.as_deref());
    if sealed.clone().all(|sealed| vault.is_of_present_key(sealed)) && !is_open(&entity.body) {
        return Ok(None);
    }
    let mut stored = from_rest(vault, &id, &entity.body).map_err(|why| anyhow::anyhow!("{id}: {why}"))?;
    for secret in &mut stored.secrets {
        let opened = vault.unseal(&id, &secret.sealed).map_err(|why| anyhow::anyhow!("{id}: {why}"))?;
        secret.sealed = vault.seal(&id, &opened);
    }
    let mut keys = entity.keys.clone();
    if has_credentials(&stored.draft.endpoint) {
        let kind = entity.kind.follows().unwrap_or(EntityKind::Resource);
        let parent = store.catalog.get(kind, entity.parent.as_deref().unwrap_or_default()).await?;
        let parent = parent.ok_or_else(|| anyhow::anyhow!("{id}: its {} does not exist", kind.as_str()))?;
        keys = keys_at_rest(vault, &check(&stored.draft, &parent_of(&parent)?, &Limits::none())?);
    }
    Ok(Some(Entity { body: at_rest(vault, &id, &stored), keys, ..entity.clone() }))
}

/// What a subscription or producer follows, as far as its settings are checked by it.
fn parent_of(parent: &Entity) -> anyhow::Result<Resource> {
    let number = ResourceNumber(parent.number);
    if parent.kind == EntityKind::Consumer {
        let (id, stored) =
            (ResourceId::new(parent.id.as_str()), serde_json::from_str::<StoredConsumer>(&parent.body)?);
        let settings = stored.check(&id)?;
        return Ok(Resource::of_consumer(id, number, settings, parent.lanes, stored.created_at));
    }
    let view: ResourceView = serde_json::from_str(&parent.body)?;
    Ok(Resource::compile(view, number)?)
}
