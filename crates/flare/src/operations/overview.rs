//! How all subscriptions stand, whatever their resource: what an operator looks at first.

use flare_model::ids::{ResourceId, SubscriptionId};
use schemars::JsonSchema;
use serde::Serialize;

use super::subscriptions::StatusView;
use super::{App, Done, Failure};
use crate::registry::Slice;

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

impl App {
    /// A part of all subscriptions, by resource and in order of creation, and how each stands.
    pub async fn overview(&self, offset: usize, limit: usize) -> Done<Slice<OverviewView>> {
        let part = self.registry.all_subscriptions(offset, limit);
        let mut entries = Vec::with_capacity(part.entries.len());
        for subscription in part.entries {
            let status = match self.status_view(&subscription).await {
                Ok(status) => status,
                // Deleted meanwhile: the list goes on without it.
                Err(Failure::Stopping) if self.registry.subscription_by_id(subscription.id()).is_none() => {
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let resource = subscription.compiled.resource.id().clone();
            entries.push(OverviewView { id: subscription.id().clone(), resource, status });
        }
        Ok(Slice { total: part.total, entries })
    }
}
