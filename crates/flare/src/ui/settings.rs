//! `GET /ui/settings`: the effective configuration, secrets hidden, each value with where it came from.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_core::config::{Entry, Origin};
use flare_http::AppState;

use super::page::{Frame, PageError, Section, Visit, html};
use super::text;

#[derive(Template)]
#[template(path = "settings.html")]
struct Page {
    frame: Frame,
    groups: Vec<Group>,
    changed: u64,
}

/// The keys of one section of the file.
struct Group {
    name: String,
    rows: Vec<Row>,
}

struct Row {
    key: String,
    value: String,
    origin: String,
    is_default: bool,
}

/// Shows the settings.
pub async fn handle(State(app): AppState, visit: Visit) -> Result<Response, PageError> {
    let mut groups: Vec<Group> = Vec::new();
    for Entry { key, value, origin } in &app.about.settings {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let is_default = *origin == Origin::Default;
        let row =
            Row { key: name.to_owned(), value: value.to_string(), origin: origin.to_string(), is_default };
        match groups.last_mut().filter(|group| group.name == section) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name: section.to_owned(), rows: vec![row] }),
        }
    }
    let changed = groups.iter().flat_map(|group| &group.rows).filter(|row| !row.is_default).count() as u64;
    Ok(html(&Page { frame: visit.frame(Section::Settings, "Settings"), groups, changed }))
}
