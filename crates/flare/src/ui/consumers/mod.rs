//! Pages of consumers.

pub mod change;
pub mod create;
pub mod list;
pub mod show;

use axum::routing::{get, post};
use flare_http::Site;

/// Where they are.
pub fn routes() -> Site {
    Site::default()
        .route("/ui/consumers", get(list::handle))
        .route("/ui/consumers/new", get(create::form).post(create::submit))
        .route("/ui/consumers/{cid}", get(show::handle))
        .route("/ui/consumers/{cid}/pause", post(change::pause))
        .route("/ui/consumers/{cid}/resume", post(change::resume))
        .route("/ui/consumers/{cid}/delete", post(change::delete))
        .route("/ui/consumers/{cid}/replay", post(change::replay))
        .route("/ui/consumers/{cid}/discard", post(change::discard))
}

/// The page of a consumer.
fn place(id: &str) -> String {
    format!("/ui/consumers/{id}")
}
