//! Pages of producers that subscriptions do not have: those of a consumer, and their settings, which are written as the API takes
//! them. Every other page of a producer is that of a subscription.

mod draft;
mod list;

use axum::routing::get;
use flare_core::operations::{App, Done};
use flare_http::Site;
use flare_model::ids::ResourceId;
use flare_model::resource::Resource;
use std::sync::Arc;

/// The pages about producers.
pub fn routes() -> Site {
    Site::default()
        .route("/ui/consumers/{cid}/producers", get(list::handle))
        .route("/ui/consumers/{cid}/producers/new", get(draft::new).post(draft::create))
        .route("/ui/consumers/{cid}/producers/{id}", get(list::one))
        .route("/ui/producers/{id}/edit", get(draft::edit).post(draft::change))
}

/// A consumer by its id.
fn consumer(app: &App, id: &str) -> Done<Arc<Resource>> {
    app.consumer_as_resource(&ResourceId::new(id))
}
