//! `GET /docs`: the description of the API as a page. It is made of `/openapi.json` and of nothing else, so what the page
//! says is what programs read.

mod curl;
mod outline;
mod schema;

use std::sync::OnceLock;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_core::config::Config;
use flare_http::AppState;
use flare_http::error::ApiError;
use flare_http::openapi;

use super::page::{Frame, PageError, Section, Visit, html};
use outline::Outline;

#[derive(Template)]
#[template(path = "docs/page.html")]
struct Page {
    frame: Frame,
    content: &'static str,
}

/// Everything between the frame.
#[derive(Template)]
#[template(path = "docs/content.html")]
struct Content {
    outline: Outline,
}

/// The content, made when it is first asked for: the description does not change while the process lives.
static CONTENT: OnceLock<String> = OnceLock::new();

/// Shows the description.
pub async fn handle(State(app): AppState, visit: Visit) -> Result<Response, PageError> {
    let content = match CONTENT.get() {
        Some(content) => content,
        None => {
            let made = content(&app.config).map_err(|error| {
                tracing::error!(error = %error, "the description could not be rendered");
                ApiError::unavailable("the description could not be rendered; the log of the node says why")
            })?;
            CONTENT.get_or_init(|| made)
        }
    };
    Ok(html(&Page { frame: visit.frame(Section::Api, "API"), content }))
}

fn content(config: &Config) -> askama::Result<String> {
    let description = serde_json::from_slice(&openapi::description(config)).expect("it was written as JSON");
    Content { outline: Outline::of(&description) }.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_every_operation_and_every_schema() {
        let config = Config::default();
        let description: serde_json::Value = serde_json::from_slice(&openapi::description(&config)).unwrap();
        let html = content(&config).unwrap();
        let schemas = description["components"]["schemas"].as_object().unwrap();
        for name in schemas.keys() {
            assert!(html.contains(&format!("id=\"schema-{name}\"")), "{name} is missing");
        }
        let items = description["paths"].as_object().unwrap().values();
        let operations: Vec<_> = items.flat_map(|item| item.as_object().unwrap().values()).collect();
        assert!(operations.len() > 40);
        for operation in operations {
            let id = operation["operationId"].as_str().unwrap();
            assert!(html.contains(&format!("id=\"{id}\"")), "{id} is missing");
        }
        for link in html.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(html.contains(&format!("id=\"{link}\"")), "{link} leads nowhere");
        }
        assert!(!html.contains("style=") && !html.contains("<script"), "the policy lets neither in");
    }
}
