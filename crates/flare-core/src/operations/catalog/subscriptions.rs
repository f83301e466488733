//! Subscriptions: created, patched, paused, resumed, disabled, deleted, looked at.

use std::sync::Arc;

use flare_model::cluster::NodeId;
use flare_model::explain::InLine;
use flare_model::feed::{Failure as LastFailure, SweepKind};
use flare_model::health::{Seen, Shown, shown};
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::invalid::{Invalid, plain};
use flare_model::pace::Throttle;
use flare_model::patch::{members, merged};
use flare_model::resource::Resource;
use flare_model::subscription::credentials;
use flare_model::subscription::{
    self, Draft, PauseDraft, PausedBy, Revisions, Secret, Spec, Status, Stored, View, Way,
};
use flare_model::time::Timestamp;
use flare_provider::{Conflict, Entity, EntityKind, ErrorKind, NewEntity, Start};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::journey::{Command, Lagging, Progress};
use crate::objects::Objects;
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::cluster::Shard;
use crate::operations::documents::filters::FilterView;
use crate::operations::identity_of;
use crate::operations::standstill;
use crate::operations::unknown_resource;
use crate::operations::unknown_subscription;
use crate::registry::Subscription;
use crate::sealing::{at_rest, keys_at_rest};

/// `GET .../status`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SubscriptionStatus")]
pub struct StatusView {
    /// Whether it works.
    pub status: Status,
    /// Since when that is so: it moves when the status does. One that fails does so since its first failure.
    pub since: Timestamp,
    /// Why it is so, where there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How far it is, over all lanes of the resource.
    pub feed: FeedView,
    /// Notifications that the client took.
    pub delivered: u64,
    /// Notifications that the client asked to drop.
    pub discarded: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Revisions that were no longer kept when their turn came; with `revision: all`.
    pub skipped_revisions: u64,
    /// When the client last took one.
    pub last_success_at: Option<Timestamp>,
    /// The last failure.
    pub last_failure: Option<FailureView>,
    /// A host that does not answer, and when it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerView>,
    /// The connections that it waits for, while others have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsView>,
    /// The client fails again and again, and gets one request at a time until one succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleView>,
    /// What the expressions left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterView>,
    /// The node that serves its first shard; none while nobody does.
    pub node: Option<NodeId>,
    /// Its shards, and who serves each.
    pub shards: Vec<Shard>,
    /// Its node does not answer: the numbers are those that it recorded last. Left out where they are those of now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

/// Connections that a subscription waits for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionsView {
    /// To this host; left out where as many are open to all hosts together as may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How many are open.
    pub in_use: u32,
    /// How many may be.
    pub most: u32,
    /// Those of them that clients have which are slow to answer.
    pub slow: u32,
    /// All of it in words.
    pub detail: String,
}

impl From<InLine> for ConnectionsView {
    fn from(in_line: InLine) -> ConnectionsView {
        let detail = in_line.words();
        let InLine { host, open: in_use, most, slow } = in_line;
        ConnectionsView { host, in_use, most, slow: slow.unwrap_or(0), detail }
    }
}

/// How far a subscription is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedView {
    /// Changes that are settled, or have a standing.
    pub cursor: u64,
    /// Changes there are.
    pub head: u64,
    /// Documents that the client is going to be told of.
    pub lagging: u64,
    /// `lagging` is a bound: so many, or fewer. Left out where it is exact.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lagging_is_bound: bool,
    /// Documents that wait for a retry.
    pub waiting: u64,
    /// Attempts that are open.
    pub in_flight: u64,
    /// Documents that were given up.
    pub dead_letters: u64,
    /// Documents that the client has.
    pub held: u64,
    /// Documents that the client may have and that are deleted, of which too many had to be remembered while the
    /// subscription was disabled: it is not told of their end.
    pub forgotten: u64,
    /// Why all documents are gone through just now: more may be found that the client is owed.
    pub sweep: Option<SweepView>,
}

/// Why all documents are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SweepView {
    /// The subscription starts at the beginning.
    Beginning,
    /// Someone asked for a replay.
    Replay,
    /// The filter was changed.
    Filter,
}

impl From<SweepKind> for SweepView {
    fn from(kind: SweepKind) -> Self {
        match kind {
            SweepKind::Beginning => SweepView::Beginning,
            SweepKind::Replay { .. } => SweepView::Replay,
            SweepKind::Filter => SweepView::Filter,
        }
    }
}

/// A host that is left alone.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakerView {
    /// The host.
    pub host: String,
    /// When it is tried again.
    pub retry_at: Timestamp,
}

/// A client that gets one request at a time.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThrottleView {
    /// Since when.
    pub since: Timestamp,
    /// When the next request is to be sent: when the first retry is due, or something that was not tried yet may be.
    /// Nothing while one is open, or there is nothing to send.
    pub next_at: Option<Timestamp>,
}

/// A failure.
#[derive(Serialize, JsonSchema)]
pub struct FailureView {
    /// When.
    pub at: Timestamp,
    /// The status of the answer, where there was one.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: String,
    /// The node that served the subscription then; none where that was another than does now.
    pub node: Option<NodeId>,
}

impl App {
    /// Creates a subscription; from this commit on nothing is missed. Also answers its secret, which is shown
    /// nowhere else.
    pub async fn create_subscription(
        &self,
        resource: &ResourceId,
        draft: Draft,
    ) -> Done<(Arc<Subscription>, Secret)> {
        let resource = self.registry.resource(resource).ok_or_else(|| unknown_resource(resource))?;
        refuse_words_of_producers(&draft)?;
        self.create_follower(resource, draft).await
    }

    /// Creates a subscription of a resource, or a producer of a consumer.
    pub(super) async fn create_follower(
        &self,
        resource: Arc<Resource>,
        mut draft: Draft,
    ) -> Done<(Arc<Subscription>, Secret)> {
        let kind = kind_of_followers(&resource);
        credentials::restore(&mut draft.endpoint, None)?;
        let spec = self.check(&draft, &resource)?;
        let now = self.clock.now();
        let prefix = if kind == EntityKind::Producer { SubscriptionId::PRODUCER } else { "sub" };
        let id = self.entropy.fresh_id(prefix);
        let (secret, sealed) = self.first_secret(&SubscriptionId::new(id.as_str()), draft.secret.take(), now);
        let stored = Stored {
            draft,
            sealed_endpoint: None,
            created_at: now,
            updated_at: now,
            paused_since: None,
            pause: None,
            resumed_at: None,
            disabled: None,
            begun_at: None,
            forgotten: 0,
            replays: Vec::new(),
            last_replay: 0,
            secrets: vec![sealed],
            filter_changes: 0,
        };
        let body = at_rest(&self.vault, &SubscriptionId::new(id.as_str()), &stored);
        let new = NewEntity {
            kind,
            id,
            parent: Some(resource.id().to_string()),
            keys: keys_at_rest(&self.vault, &spec),
            body,
            lanes: resource.view.lanes,
            start: match spec.start {
                subscription::Start::Now => Start::Now,
                subscription::Start::Beginning => Start::Beginning,
            },
            history: spec.revisions == Revisions::All,
            capture: None,
        };
        let _catalog = self.hold_catalog().await?;
        self.refuse_more_subscriptions(&resource.account)?;
        let entity = match self.store.catalog.create(new).await {
            Ok(entity) => entity,
            Err(error) => {
                return Err(match &error.kind {
                    ErrorKind::Conflict(Conflict::Parent) => unknown_resource(resource.id()),
                    ErrorKind::Conflict(Conflict::Taken(other)) => self.same_url(other).await,
                    _ => error.into(),
                });
            }
        };
        let created = self.compile(&entity)?;
        if let Err(error) = self.take_in(created.clone()).await {
            // Nobody serves it. If it cannot be taken back either, whoever asks for the same url meets it.
            let taken_back = self.store.catalog.delete(kind, &entity.id).await;
            tracing::warn!(
                subscription.id = %entity.id, error = %error, taken_back = taken_back.is_ok(),
                "a new subscription could not be opened"
            );
            return Err(error.into());
        }
        let word = created.id().kind();
        tracing::info!(subscription.id = %created.id(), resource.id = %resource.id(), "{word} created");
        Ok((created, secret))
    }

    fn check(&self, draft: &Draft, resource: &Resource) -> Done<Spec> {
        let spec = subscription::check(draft, resource, &self.limits)?;
        if let Way::Sink(sink) = &spec.way {
            self.bridges.outlet(sink).map_err(|why| Invalid::new("target.type", why.detail))?;
        }
        for target in spec.way.targets() {
            let (host, port) = (target.url.host(), target.url.port());
            self.destinations.check_written(host, port).map_err(|why| {
                tracing::warn!(host, port, rule = %why, "a destination is not allowed");
                let problem = format!("{host}:{port} is not allowed as a destination: {}", why.public());
                Invalid::new("endpoint.url", problem)
            })?;
        }
        let shows_itself = identity_of(draft)?.is_some();
        if shows_itself && !spec.way.targets().iter().any(|target| target.url.https()) {
            return Err(Invalid::new(
                "endpoint.tls",
                "only https urls ask for a certificate, and there is none",
            )
            .into());
        }
        Ok(spec)
    }

    /// A patch need not say anything of what the configuration has lowered; what it does say has to be allowed.
    fn check_patched(&self, draft: &Draft, current: &Subscription) -> Done<Spec> {
        let mut lowered = subscription::lowered(draft, &self.limits);
        let before = subscription::lowered(&current.stored.draft, &self.limits);
        lowered.retain(|value| before.contains(value));
        self.check(&subscription::fitting(draft, &lowered), &current.compiled.resource)
    }

    /// One subscription of a resource, or producer of a consumer.
    pub fn subscription(&self, resource: &ResourceId, id: &SubscriptionId) -> Done<Arc<Subscription>> {
        self.registry.tracked(resource).ok_or_else(|| unknown_resource(resource))?;
        self.registry.subscription(resource, id).ok_or_else(|| unknown_subscription(id))
    }

    /// Applies a JSON Merge Patch.
    pub async fn patch_subscription(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        patch: &RawValue,
    ) -> Done<Arc<Subscription>> {
        refuse_what_is_fixed(patch, id)?;
        let _catalog = self.hold_catalog().await?;
        let current = self.subscription(resource, id)?;
        let draft: Draft = patched(&current.stored.draft, patch)?;
        refuse_words_of_producers(&draft)?;
        self.change(&current, draft).await
    }

    /// Makes a subscription or producer what a draft says; the caller holds the catalog.
    pub(super) async fn change(&self, current: &Subscription, mut draft: Draft) -> Done<Arc<Subscription>> {
        credentials::restore(&mut draft.endpoint, Some(&current.stored.draft.endpoint))?;
        let spec = self.check_patched(&draft, current)?;
        // From this commit on a sweep is owed.
        let changed = u64::from(draft.filter != current.stored.draft.filter);
        let filter_changes = current.stored.filter_changes + changed;
        let updated_at = self.clock.now();
        let stored = Stored { draft, updated_at, filter_changes, ..current.stored.clone() };
        // Before and after the change, the ledger says which revisions the feeds send: killed in between, the next
        // process neither goes back to what was left out nor leaves out what was promised.
        let other_revisions = spec.revisions != current.compiled.spec.revisions;
        if other_revisions {
            self.record(current).await?;
        }
        let changed = self.replace(current, stored, keys_at_rest(&self.vault, &spec)).await?;
        self.journey.replace(&changed.compiled).await;
        if other_revisions {
            self.record(&changed).await?;
        }
        self.rearrange_if_needed(&changed).await;
        Ok(changed)
    }

    /// Stores a changed subscription; the caller holds the catalog.
    async fn replace(
        &self,
        current: &Subscription,
        mut stored: Stored,
        keys: Vec<String>,
    ) -> Done<Arc<Subscription>> {
        // What has ended is not kept, not even sealed; a clock that is ahead for a while ends nothing for ever.
        let late = self.steps.late(&*self.clock, self.config.auth.maximum_secret_overlap);
        stored.secrets.retain(|secret| secret.is_live(late));
        let resource = &current.compiled.resource;
        let entity = Entity {
            kind: kind_of_followers(resource),
            id: current.id().to_string(),
            number: current.number().0,
            version: current.version,
            parent: Some(resource.id().to_string()),
            keys,
            body: at_rest(&self.vault, current.id(), &stored),
            lanes: resource.view.lanes,
            history: resource.is_raw()
                || stored.draft.delivery.revision.as_deref() == Some(Revisions::All.as_str()),
        };
        let entity = match self.store.catalog.replace(entity).await {
            Ok(Some(entity)) => entity,
            Ok(None) => {
                self.reload_subscription(current.id()).await;
                return Err(unknown_subscription(current.id()));
            }
            Err(error) if error.is(&Conflict::Version) => {
                self.reload_subscription(current.id()).await;
                let word = current.id().kind();
                return Err(Failure::Conflict(format!("the {word} was changed by someone else; try again")));
            }
            Err(error) => {
                return Err(match &error.kind {
                    ErrorKind::Conflict(Conflict::Taken(other)) => self.same_url(other).await,
                    _ => error.into(),
                });
            }
        };
        let changed = self.compile(&entity)?;
        self.registry.put_subscription(changed.clone());
        Ok(changed)
    }

    /// Stores what Flare itself keeps about a subscription; the caller holds the catalog.
    pub(in crate::operations) async fn keep(
        &self,
        current: &Subscription,
        change: impl FnOnce(&mut Stored),
    ) -> Done<Arc<Subscription>> {
        let mut stored = current.stored.clone();
        change(&mut stored);
        self.replace(current, stored, keys_at_rest(&self.vault, &current.compiled.spec)).await
    }

    /// Stops a subscription; safe to repeat. A reason that is given later is the one that is shown.
    pub async fn pause(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        by: PausedBy,
        draft: PauseDraft,
    ) -> Done<Arc<Subscription>> {
        let pause = draft.pause(by)?;
        let _catalog = self.hold_catalog().await?;
        let current = self.subscription(resource, id)?;
        if current.stored.paused_since.is_none() {
            let now = self.clock.now();
            let paused = self
                .keep(&current, |stored| {
                    (stored.paused_since, stored.pause) = (Some(now), Some(Box::new(pause)));
                })
                .await?;
            self.stand(&paused, None).await;
            return Ok(paused);
        }
        match pause.reason.is_some() && current.stored.pause.as_deref() != Some(&pause) {
            true => self.keep(&current, |stored| stored.pause = Some(Box::new(pause))).await,
            false => Ok(current),
        }
    }

    /// Lets a subscription go on, whoever stopped it; safe to repeat.
    pub async fn resume(&self, resource: &ResourceId, id: &SubscriptionId) -> Done<Arc<Subscription>> {
        let _catalog = self.hold_catalog().await?;
        let current = self.subscription(resource, id)?;
        let stood_since = current.stored.disabled.as_ref().map(|d| d.since).or(current.stored.paused_since);
        if stood_since.is_none() {
            // It may be about to be disabled, which nobody has stored yet.
            self.overrule(&current).await;
            return Ok(current);
        }
        credentials::restore(&mut current.stored.draft.endpoint.clone(), None)?;
        let again = current.stored.disabled.as_ref().is_some_and(|disabled| disabled.start_over);
        let current = if again { self.begin_again(&current).await? } else { current };
        let now = self.clock.now();
        let resumed = self
            .keep(&current, |stored| {
                (stored.paused_since, stored.pause, stored.disabled) = (None, None, None);
                stored.resumed_at = Some(now);
            })
            .await?;
        self.stand(&resumed, stood_since).await;
        Ok(resumed)
    }

    pub(in crate::operations) async fn stand(
        &self,
        subscription: &Subscription,
        paused_since: Option<Timestamp>,
    ) {
        let (number, standstill) = (subscription.number(), standstill(&subscription.stored));
        let stand = || Command::Stand { number, standstill: standstill.clone(), paused_since };
        self.journey.send(number, stand).await;
    }

    /// Deletes a subscription with its feeds.
    pub async fn delete_subscription(&self, resource: &ResourceId, id: &SubscriptionId) -> Done<()> {
        let _catalog = self.hold_catalog().await?;
        let current = self.subscription(resource, id)?;
        // Until this is durable it is there and served like any other; after it, gone.
        let kind = kind_of_followers(&current.compiled.resource);
        let deleted = self.store.catalog.delete(kind, id.as_str()).await?;
        self.forget_subscription(&current).await;
        if !deleted {
            return Err(unknown_subscription(id));
        }
        tracing::info!(subscription.id = %id, "{} deleted", id.kind());
        Ok(())
    }

    /// How a subscription stands on its thread.
    pub(in crate::operations) async fn inspect(&self, subscription: &Subscription) -> Done<Progress> {
        let number = subscription.number();
        if self.member.is_some() && !self.journey.serves_all(number) {
            return self.recorded(subscription).await;
        }
        let seen = self.journey.ask(number, |reply| Command::Progress(number, reply)).await;
        seen.flatten().ok_or_else(|| self.left(subscription))
    }

    /// A subscription as users see it.
    pub async fn view(&self, subscription: &Subscription) -> Done<View> {
        let seen = match self.awaits_the_start(subscription) {
            true => Progress { preparing: true, ..Progress::default() },
            false => self.inspect(subscription).await?,
        };
        let Shown { status, since, reason } = self.shown(&subscription.stored, &seen);
        let mut draft = subscription::completed(&subscription.stored.draft, &subscription.compiled.spec);
        draft.endpoint = credentials::redacted(&draft.endpoint);
        Ok(View {
            id: subscription.id().clone(),
            resource: subscription.compiled.resource.id().clone(),
            draft,
            status,
            since,
            reason,
            lowered: subscription::lowered(&subscription.stored.draft, &self.limits),
            created_at: subscription.stored.created_at,
            updated_at: subscription.stored.updated_at,
            secrets: subscription::live(&subscription.stored.secrets, self.clock.now())
                .map(Into::into)
                .collect(),
            secret: None,
        })
    }

    /// `GET .../status`.
    pub async fn status(&self, resource: &ResourceId, id: &SubscriptionId) -> Done<StatusView> {
        let subscription = self.subscription(resource, id)?;
        let mut view = self.status_view(&subscription).await?;
        if view.feed.lagging_is_bound && !view.stale {
            let Lagging { documents, is_bound } = self.count_lagging(&subscription).await?;
            // All else is as it is after that was counted: what is not owed any more has come by then.
            view = self.status_view(&subscription).await?;
            if view.feed.lagging_is_bound {
                (view.feed.lagging, view.feed.lagging_is_bound) = (documents, is_bound);
            }
        }
        Ok(view)
    }

    /// How a subscription stands.
    pub(in crate::operations) async fn status_view(&self, subscription: &Subscription) -> Done<StatusView> {
        let seen = self.inspect(subscription).await?;
        let Shown { status, since, reason } = self.shown(&subscription.stored, &seen);
        let tally = seen.tally;
        let shards = self.shards_of(subscription);
        Ok(StatusView {
            status,
            since,
            reason,
            feed: FeedView {
                cursor: seen.cursor,
                head: seen.head,
                lagging: seen.lagging.documents,
                lagging_is_bound: seen.lagging.is_bound,
                waiting: seen.waiting,
                in_flight: seen.in_flight,
                dead_letters: seen.dead_letters,
                held: seen.held,
                forgotten: subscription.stored.forgotten,
                sweep: seen.sweep.map(SweepView::from),
            },
            delivered: tally.delivered,
            discarded: tally.discarded,
            failed: tally.failed,
            skipped_revisions: tally.skipped,
            last_success_at: tally.last_success_at,
            last_failure: tally.last_failure.map(|failure| {
                let LastFailure { at, status, error } = *failure;
                FailureView { at, status, error, node: self.served_here_at(subscription, at) }
            }),
            filter: FilterView::of(&subscription.compiled.spec, seen.filtering, self.clock.now()),
            breaker: seen.breaker.map(|(host, retry_at)| BreakerView { host: host.to_string(), retry_at }),
            connections: seen.in_line.map(ConnectionsView::from),
            throttle: seen.throttle.map(|Throttle { since, next }| ThrottleView { since, next_at: next }),
            node: shards.first().and_then(|shard| shard.node.clone()),
            shards,
            stale: !self.journey.serves_all(subscription.number()),
        })
    }

    /// Whether a subscription works, since when, and why.
    pub(in crate::operations) fn shown(&self, stored: &Stored, seen: &Progress) -> Shown {
        let seen = Seen {
            decision: seen.decision.as_ref().map(|decision| (decision.at, decision.reason.as_str())),
            fares: seen.fares,
            tally: Some(&seen.tally),
            preparing: seen.preparing,
        };
        shown(stored, &seen, self.journey.now(&*self.clock), self.config.delivery.failing_after)
    }
}

/// What follows a resource or a consumer in the catalog.
fn kind_of_followers(resource: &Resource) -> EntityKind {
    if resource.consumer().is_some() { EntityKind::Producer } else { EntityKind::Subscription }
}

/// What only producers have. It is stored with the rest, and so has a place in the same draft.
fn refuse_words_of_producers(draft: &Draft) -> Result<(), Invalid> {
    let field = match draft {
        Draft { sink: Some(_), .. } => "sink",
        Draft { ttl: Some(_), .. } => "ttl",
        _ => return Ok(()),
    };
    Err(Invalid::new(
        field,
        "unknown field: producers of a consumer have such, a subscription has an endpoint",
    ))
}

/// What no patch changes.
pub(super) fn refuse_what_is_fixed(patch: &RawValue, id: &SubscriptionId) -> Result<(), Invalid> {
    let word = id.kind();
    let Some(fields) = members(patch) else {
        return Err(Invalid::new("body", "a merge patch is a JSON object"));
    };
    if fields.contains_key("start") {
        return Err(Invalid::new("start", format!("cannot be changed; create another {word}")));
    }
    if fields.contains_key("secret") {
        let problem = format!("cannot be patched; POST .../secret/rotate gives the {word} another one");
        return Err(Invalid::new("secret", problem));
    }
    Ok(())
}

/// A draft with a patch applied to it.
pub(super) fn patched<D: Serialize + serde::de::DeserializeOwned>(
    draft: &D,
    patch: &RawValue,
) -> Result<D, Invalid> {
    let draft = to_raw_value(draft).expect("a draft is plain data");
    let draft = merged(&draft, patch);
    let mut draft = serde_json::Deserializer::from_str(draft.get());
    serde_path_to_error::deserialize(Objects(&mut draft))
        .map_err(|e| Invalid::new(e.path().to_string(), plain(e.inner())))
}
