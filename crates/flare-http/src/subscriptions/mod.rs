//! `/resources/:rid/subscriptions`.

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

use axum::extract::Path;
use described::bounds;
use flare_model::ids::{ResourceId, SubscriptionId};

/// The two ids in the path.
pub type Ids = Path<(String, String)>;

fn ids(Path((resource, subscription)): Ids) -> (ResourceId, SubscriptionId) {
    (ResourceId::new(resource), SubscriptionId::new(subscription))
}
