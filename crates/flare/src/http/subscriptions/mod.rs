//! `/resources/:rid/subscriptions`.

pub mod create;
pub mod dead_letters;
pub mod delete;
pub mod deliver;
pub mod list;
pub mod patch;
pub mod pause;
pub mod replay;
pub mod reserve;
pub mod resume;
pub mod rotate;
pub mod settle;
pub mod show;
pub mod status;
pub mod stream;

use axum::extract::Path;
use flare_model::ids::{ResourceId, SubscriptionId};

/// The two ids in the path.
pub type Ids = Path<(String, String)>;

fn ids(Path((resource, subscription)): Ids) -> (ResourceId, SubscriptionId) {
    (ResourceId::new(resource), SubscriptionId::new(subscription))
}
