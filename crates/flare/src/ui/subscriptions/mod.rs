//! `/ui/subscriptions`: who is told, and how. Every page of one subscription has the same head: its state, and tabs.

mod attempts;
mod dead_letters;
mod delete;
mod documents;
mod exchange;
mod form;
mod head;
mod leases;
mod letters;
mod list;
mod plot;
mod replays;
mod secret;
mod show;
mod stand;
mod test;

use axum::routing::{get, post};
use flare_http::Site;
use form::{create, edit, pick, preview, trial};

pub use attempts::stream as attempts_stream;
pub use form::Created;
pub use head::{Head, Tab, place};
pub use list::Row;
pub use replays::stream as replays_stream;
pub use show::stream as show_stream;

/// The pages about subscriptions.
pub fn routes() -> Site {
    Site::default()
        .route("/ui/subscriptions", get(list::all))
        .route("/ui/resources/{rid}/subscriptions", get(list::of_resource))
        .route("/ui/subscriptions/new", get(pick::handle))
        .route("/ui/resources/{rid}/subscriptions/new", get(create::form).post(create::submit))
        .route("/ui/resources/{rid}/subscriptions/draft", post(create::switch))
        .route("/ui/resources/{rid}/subscriptions/preview", post(preview::handle))
        .route("/ui/resources/{rid}/subscriptions/try", post(trial::handle))
        .route("/ui/resources/{rid}/subscriptions/{id}", get(show::of_resource))
        .route("/ui/subscriptions/{id}", get(show::handle))
        .route("/ui/subscriptions/{id}/live", get(show::live))
        .route("/ui/subscriptions/{id}/edit", get(edit::form).post(edit::submit))
        .route("/ui/subscriptions/{id}/draft", post(edit::switch))
        .route("/ui/subscriptions/{id}/pause", post(stand::pause))
        .route("/ui/subscriptions/{id}/resume", post(stand::resume))
        .route("/ui/subscriptions/{id}/delete", post(delete::submit))
        .route("/ui/subscriptions/{id}/replays", get(replays::page).post(replays::submit))
        .route("/ui/subscriptions/{id}/replays/live", get(replays::live))
        .route("/ui/subscriptions/{id}/test", get(test::form).post(test::submit))
        .route("/ui/subscriptions/{id}/secret", get(secret::page).post(secret::submit))
        .route("/ui/subscriptions/{id}/attempts", get(attempts::list))
        .route("/ui/subscriptions/{id}/attempts/live", get(attempts::live))
        .route("/ui/subscriptions/{id}/attempts/{attempt}", get(attempts::show))
        .route("/ui/subscriptions/{id}/documents", get(documents::handle))
        .route("/ui/subscriptions/{id}/dead-letters", get(dead_letters::list))
        .route("/ui/subscriptions/{id}/dead-letters/replay", post(dead_letters::replay))
        .route("/ui/subscriptions/{id}/dead-letters/discard", post(dead_letters::discard))
        .route("/ui/subscriptions/{id}/leases", get(leases::list).post(leases::end))
        .route("/ui/dead-letters", get(letters::handle))
}
