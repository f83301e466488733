//! How subscriptions stand, whatever their resource: what an operator looks at first, and what is looked for.
//!
//! The catalog is in memory and searched there. Delivery threads are asked about the subscriptions of one page, and,
//! where the state is asked for, once each for those that stand out: never about every subscription one by one.

use std::sync::Arc;

use flare_model::access::Caller;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::subscription::credentials::redacted;
use flare_model::subscription::{Status, View, Way};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;

use crate::journey::{Notable, NotableOnes, Progress};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::catalog::reload::still_there;
use crate::operations::catalog::subscriptions::StatusView;
use crate::registry::{Slice, Subscription};

/// One subscription in the list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SubscriptionOverview")]
pub struct OverviewView {
    /// Its id.
    pub id: SubscriptionId,
    /// The resource.
    pub resource: ResourceId,
    #[serde(flatten)]
    pub status: StatusView,
}

/// Which subscriptions.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionQuery {
    /// Only of this resource.
    pub resource: Option<ResourceId>,
    /// Only those with this in their id, in a url of theirs or in the resource's, in any case.
    pub words: Option<String>,
    /// Only those that stand so.
    pub status: Option<Status>,
    /// After so many.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

/// A subscription, and how it stands.
pub struct Standing {
    /// The subscription.
    pub subscription: Arc<Subscription>,
    /// How it stands.
    pub status: StatusView,
}

/// A subscription that gave something up.
pub struct Burdened {
    /// The subscription.
    pub subscription: Arc<Subscription>,
    /// How many documents.
    pub dead_letters: u64,
}

impl App {
    /// A part of all subscriptions, by resource and in order of creation, and how each stands.
    pub async fn overview(&self, by: &Caller, offset: usize, limit: usize) -> Done<Slice<OverviewView>> {
        let part = self.registry.all_subscriptions_for(by, offset, limit);
        let entries = self.standings(part.entries).await?.into_iter().map(|standing| OverviewView {
            id: standing.subscription.id().clone(),
            resource: standing.subscription.compiled.resource.id().clone(),
            status: standing.status,
        });
        Ok(Slice { total: part.total, entries: entries.collect() })
    }

    /// A part of the subscriptions that are looked for, and how each stands.
    pub async fn find_subscriptions(&self, by: &Caller, query: &SubscriptionQuery) -> Done<Slice<Standing>> {
        let of = |offset, limit| match query.resource.as_ref().map(|id| self.registry.tracked(id)) {
            Some(Some(resource)) => self.registry.subscriptions_for(by, &resource, offset, limit),
            Some(None) => Slice { total: 0, entries: Vec::new() },
            None => self.registry.all_subscriptions_for(by, offset, limit),
        };
        let part = if query.words.is_none() && query.status.is_none() {
            of(query.offset, query.limit)
        } else {
            let mut found = of(0, usize::MAX).entries;
            if let Some(words) = &query.words {
                let words = words.to_lowercase();
                found.retain(|subscription| mentions(subscription, &words));
            }
            if let Some(status) = query.status {
                let notable = self.notable().await?;
                found.retain(|subscription| self.status_by(&notable, subscription) == status);
            }
            let entries = found.iter().skip(query.offset).take(query.limit).cloned().collect();
            Slice { total: found.len(), entries }
        };
        Ok(Slice { total: part.total, entries: self.standings(part.entries).await? })
    }

    /// A part of the subscriptions that gave something up, those with the most first.
    pub async fn burdened(&self, by: &Caller, offset: usize, limit: usize) -> Done<Slice<Burdened>> {
        let notable = self.notable().await?;
        let all = self.registry.all_subscriptions_for(by, 0, usize::MAX).entries.into_iter();
        let mut found: Vec<Burdened> = all
            .filter_map(|subscription| {
                let dead_letters = notable.get(&subscription.number())?.dead_letters;
                (dead_letters > 0).then_some(Burdened { subscription, dead_letters })
            })
            .collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.dead_letters));
        let total = found.len();
        Ok(Slice { total, entries: found.into_iter().skip(offset).take(limit).collect() })
    }

    async fn notable(&self) -> Done<NotableOnes> {
        self.journey.notable().await.ok_or(Failure::Stopping)
    }

    /// The state of a subscription, by what its threads say stands out.
    fn status_by(&self, notable: &NotableOnes, subscription: &Subscription) -> Status {
        let seen = match notable.get(&subscription.number()).cloned() {
            Some(Notable { fares, preparing, decision, .. }) => {
                Progress { fares, preparing, decision, ..Progress::default() }
            }
            None => Progress::default(),
        };
        self.shown(&subscription.stored, &seen).status
    }

    /// How each of these stands. All are asked at once: a busy thread is waited for once, not once for each.
    async fn standings(&self, subscriptions: Vec<Arc<Subscription>>) -> Done<Vec<Standing>> {
        let asked = subscriptions.iter().map(|subscription| self.status_view(subscription));
        let answers = join_all(asked).await;
        let standings = subscriptions.into_iter().zip(answers);
        still_there(
            standings.map(|(subscription, answer)| answer.map(|status| Standing { subscription, status })),
        )
    }

    /// Each of these as users see it.
    pub async fn views(&self, subscriptions: &[Arc<Subscription>]) -> Done<Vec<View>> {
        still_there(join_all(subscriptions.iter().map(|subscription| self.view(subscription))).await)
    }
}

/// Whether words in lower case stand in what one would look for a subscription by. Credentials are not looked through: whoever
/// searches could find them out, a letter at a time.
fn mentions(subscription: &Subscription, words: &str) -> bool {
    let endpoint = &redacted(&subscription.stored.draft.endpoint);
    let actions = [&endpoint.actions.create, &endpoint.actions.update, &endpoint.actions.delete];
    let own = actions.into_iter().flatten().filter_map(|action| action.url.as_deref());
    let sink = match &subscription.compiled.spec.way {
        Way::Http(_) => String::new(),
        Way::Sink(sink) => sink.to_string(),
    };
    let mut texts = own
        .chain(endpoint.url.as_deref())
        .chain([sink.as_str()])
        .chain([subscription.id().as_str(), &subscription.compiled.resource.view.endpoint]);
    texts.any(|text| text.to_lowercase().contains(words))
}
