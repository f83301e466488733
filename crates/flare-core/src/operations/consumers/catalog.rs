//! What users do with consumers: checked, stored, and made known to whoever reads them.

use std::sync::Arc;

use flare_model::access::Account;
use flare_model::bridge;
use flare_model::consumer::{Consumer as Settings, ConsumerDraft, StoredConsumer};
use flare_model::ids::ResourceId;
use flare_model::invalid::Invalid;
use flare_model::subscription::credentials;
use flare_model::template::UrlTemplate;
use flare_provider::{Conflict, Entity, EntityKind, ErrorKind, NewEntity, Start};

use super::unknown_consumer;
use crate::operations::access::accounts::unknown_account;
use crate::operations::{App, Done, Failure};
use crate::registry::Consumer;
use crate::sealing::consumer_at_rest;

impl App {
    /// One consumer.
    pub fn consumer(&self, id: &ResourceId) -> Done<Arc<Consumer>> {
        self.registry.consumer(id).ok_or_else(|| unknown_consumer(id))
    }

    /// Creates a consumer, which begins to read.
    pub async fn create_consumer(&self, account: &Account, mut draft: ConsumerDraft) -> Done<Arc<Consumer>> {
        let id = ResourceId::new(self.entropy.fresh_id("con"));
        let endpoint = restored(&draft, None)?;
        draft.source = draft.source.with_endpoint(endpoint);
        self.check_consumer(&id, &draft)?;
        let now = self.clock.now();
        let stored = StoredConsumer {
            draft,
            sealed: None,
            lanes: self.config.domain.lanes,
            created_at: now,
            updated_at: now,
            paused_since: None,
            replays: Vec::new(),
            last_replay: 0,
        };
        let new = NewEntity {
            kind: EntityKind::Consumer,
            id: id.to_string(),
            parent: account.parent(),
            keys: Vec::new(),
            body: consumer_at_rest(&self.vault, &id, &stored),
            lanes: stored.lanes,
            start: Start::Now,
            history: false,
            capture: None,
        };
        let _catalog = self.hold_catalog().await?;
        self.refuse_more_resources(account)?;
        let entity = self.store.catalog.create(new).await.map_err(|error| match &error.kind {
            // Deleted meanwhile.
            ErrorKind::Conflict(Conflict::Parent) => unknown_account(account),
            _ => error.into(),
        })?;
        let created = self.known_consumer(&entity)?;
        self.registry.put_consumer(created.clone());
        self.consumers_changed();
        tracing::info!(consumer.id = %id, source = created.resource.view.endpoint, "consumer created");
        Ok(created)
    }

    /// Replaces all of a consumer but the type of its source.
    pub async fn replace_consumer(&self, id: &ResourceId, mut draft: ConsumerDraft) -> Done<Arc<Consumer>> {
        let _catalog = self.hold_catalog().await?;
        let current = self.consumer(id)?;
        let before = &current.stored.draft;
        if draft.source.r#type != before.source.r#type {
            let problem =
                format!("cannot be changed from {}; create another consumer", before.source.r#type.as_str());
            return Err(Invalid::new("source.type", problem).into());
        }
        if draft.payload.format != before.payload.format {
            let problem = "cannot be changed: its documents are of one kind; create another consumer";
            return Err(Invalid::new("payload.format", problem).into());
        }
        let endpoint = restored(&draft, Some(before))?;
        draft.source = draft.source.with_endpoint(endpoint);
        self.check_consumer(id, &draft)?;
        let stored = StoredConsumer { draft, updated_at: self.clock.now(), ..current.stored.clone() };
        let stored = StoredConsumer { sealed: None, ..stored };
        self.store_consumer(&current, stored).await
    }

    /// Stops a consumer: nothing more is asked of its source. Safe to repeat.
    pub async fn pause_consumer(&self, id: &ResourceId) -> Done<Arc<Consumer>> {
        let _catalog = self.hold_catalog().await?;
        let current = self.consumer(id)?;
        if current.stored.paused_since.is_some() {
            return Ok(current);
        }
        let stored = StoredConsumer { paused_since: Some(self.clock.now()), ..current.stored.clone() };
        self.store_consumer(&current, stored).await
    }

    /// Lets a consumer go on where it was. Safe to repeat.
    pub async fn resume_consumer(&self, id: &ResourceId) -> Done<Arc<Consumer>> {
        let _catalog = self.hold_catalog().await?;
        let current = self.consumer(id)?;
        if current.stored.paused_since.is_none() {
            return Ok(current);
        }
        let stored = StoredConsumer { paused_since: None, ..current.stored.clone() };
        self.store_consumer(&current, stored).await
    }

    /// Deletes a consumer that has no producers, with its documents and how far it has read.
    pub async fn delete_consumer(&self, id: &ResourceId) -> Done<()> {
        let _catalog = self.hold_catalog().await?;
        let consumer = self.consumer(id)?;
        let deleted = match self.store.catalog.delete(EntityKind::Consumer, id.as_str()).await {
            Ok(deleted) => deleted,
            Err(error) if error.is(&Conflict::Children) => {
                let detail = format!("consumer {id} still has producers; delete them first");
                return Err(Failure::Conflict(detail));
            }
            Err(error) => return Err(error.into()),
        };
        self.registry.remove_resource(id);
        consumer.resource.lanes().for_each(|lane| self.journey.forget(lane));
        self.consumers_changed();
        if !deleted {
            return Err(unknown_consumer(id));
        }
        tracing::info!(consumer.id = %id, "consumer deleted");
        Ok(())
    }

    /// Checks what a user can get wrong, and whether this build has such a source.
    fn check_consumer(&self, id: &ResourceId, draft: &ConsumerDraft) -> Done<Settings> {
        let settings = draft.check(id)?;
        match &settings.source {
            bridge::Source::HttpPoll(poll) => self.check_polled(&poll.url)?,
            other => {
                let opened = self.bridges.source(id.as_str(), other);
                opened.map_err(|error| Invalid::new("source.type", error))?;
            }
        }
        Ok(settings)
    }

    fn check_polled(&self, url: &str) -> Done<()> {
        let url = UrlTemplate::parse(url, &[""; 0]).map_err(|error| Invalid::new("source.url", error))?;
        let (host, port) = (url.host(), url.port());
        self.destinations.check_written(host, port).map_err(|why| {
            tracing::warn!(host, port, rule = %why, "a destination is not allowed");
            let problem = format!("{host}:{port} is not allowed as a destination: {}", why.public());
            Invalid::new("source.url", problem)
        })?;
        Ok(())
    }

    /// Stores a changed consumer; the caller holds the catalog.
    pub(super) async fn store_consumer(
        &self,
        current: &Consumer,
        stored: StoredConsumer,
    ) -> Done<Arc<Consumer>> {
        let entity = Entity {
            kind: EntityKind::Consumer,
            id: current.id().to_string(),
            number: current.resource.number.0,
            version: current.version,
            parent: current.resource.account.parent(),
            keys: Vec::new(),
            body: consumer_at_rest(&self.vault, current.id(), &stored),
            lanes: current.resource.view.lanes,
            history: false,
        };
        let entity = match self.store.catalog.replace(entity).await {
            Ok(Some(entity)) => entity,
            Ok(None) => return Err(unknown_consumer(current.id())),
            Err(error) if error.is(&Conflict::Version) => {
                if let Ok(Some(entity)) =
                    self.store.catalog.get(EntityKind::Consumer, current.id().as_str()).await
                {
                    self.apply_consumer(&entity)?;
                }
                let detail = "the consumer was changed by someone else; try again";
                return Err(Failure::Conflict(detail.into()));
            }
            Err(error) => return Err(error.into()),
        };
        let changed = self.known_consumer(&entity)?;
        self.registry.put_consumer(changed.clone());
        self.consumers_changed();
        Ok(changed)
    }
}

/// What is polled, with what is kept wherever the word for a credential was sent back.
fn restored(
    draft: &ConsumerDraft,
    kept: Option<&ConsumerDraft>,
) -> Result<flare_model::subscription::EndpointDraft, Invalid> {
    let mut wanted = draft.source.endpoint();
    let kept = kept.map(|kept| kept.source.endpoint());
    credentials::restore(&mut wanted, kept.as_ref()).map_err(|wrong| Invalid {
        field: wrong.field.replacen("endpoint.", "source.", 1),
        problem: wrong.problem,
    })?;
    Ok(wanted)
}
