//! `/resources/:rid/subscriptions`, and what is below `/consumers/:cid/producers` as well.

pub mod all;
pub mod attempts;
pub mod create;
pub mod dead_letters;
pub mod delete;
mod described;
pub mod documents;
pub mod list;
pub mod passive;
pub mod patch;
pub mod pause;
pub mod replay;
pub mod resume;
pub mod rotate;
pub mod show;
pub mod status;
pub mod test;

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use described::bounds;
use flare_core::operations::App;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::producer::ProducerView;
use flare_model::subscription::View;
use http::request::Parts;
use serde::Serialize;

use crate::error::ApiError;

/// What a path names: a subscription of a resource or, with the same operations, a producer of a consumer; and, below it, one thing
/// more.
pub struct Ids {
    resource: ResourceId,
    subscription: SubscriptionId,
    below: String,
}

impl FromRequestParts<Arc<App>> for Ids {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Ids, ApiError> {
        let pattern = parts.extensions.get::<MatchedPath>().map_or("", |matched| matched.as_str());
        let of_consumers = pattern.starts_with("/consumers/");
        let unreadable = |_| ApiError::not_found("the path cannot be read");
        let params = RawPathParams::from_request_parts(parts, app).await.map_err(unreadable)?;
        let mut named = params.iter().map(|(_, value)| value.to_owned());
        let mut next = || named.next().unwrap_or_default();
        let (resource, subscription) = (ResourceId::new(next()), SubscriptionId::new(next()));
        let kind = if of_consumers { "consumer" } else { "resource" };
        // What is there under the other path is not there under this one.
        if app.registry.tracked(&resource).is_some_and(|found| found.kind() != kind) {
            return Err(ApiError::not_found(format!("there is no {kind} {resource}")));
        }
        Ok(Ids { resource, subscription, below: next() })
    }
}

fn ids(path: Ids) -> (ResourceId, SubscriptionId) {
    (path.resource, path.subscription)
}

/// The path of a subscription, or of a producer.
pub fn place(resource: &ResourceId, id: &SubscriptionId) -> String {
    match id.is_producer() {
        true => format!("/consumers/{resource}/producers/{id}"),
        false => format!("/resources/{resource}/subscriptions/{id}"),
    }
}

/// A subscription or a producer, each in its own words.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Shown {
    /// A subscription.
    Subscription(Box<View>),
    /// A producer.
    Producer(Box<ProducerView>),
}

impl From<View> for Shown {
    fn from(view: View) -> Shown {
        match view.id.is_producer() {
            true => Shown::Producer(Box::new(view.into())),
            false => Shown::Subscription(Box::new(view)),
        }
    }
}
