//! The frame around every page: a request comes in, and what the frame shows goes out: where one is, the way there,
//! what was just done, and, when something is wrong, a page that says what.

use std::convert::Infallible;
use std::sync::Arc;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use flare_core::operations::{App, Failure};
use flare_http::error::ApiError;
use flare_http::page::pairs;
use flare_model::access::{Caller, Need, Scope};
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::request::Parts;
use http::{StatusCode, Uri};

use super::access;
use super::flash::Flash;
use crate::version;

/// The entries of the menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// How it goes.
    Dashboard,
    /// What is tracked.
    Resources,
    /// What is read from elsewhere.
    Consumers,
    /// Who is told.
    Subscriptions,
    /// What changed.
    Documents,
    /// What was given up.
    DeadLetters,
    /// Why.
    Explain,
    /// The nodes.
    Cluster,
    /// The effective configuration.
    Settings,
    /// What is shown to be let in.
    Tokens,
    /// Whom everything belongs to.
    Accounts,
    /// What was done.
    Audit,
    /// The description of the API.
    Api,
    /// None of them.
    Elsewhere,
}

/// An entry of the menu.
pub struct MenuEntry {
    section: Section,
    /// What whoever opens it needs, where there is authentication.
    need: Need,
    /// The name of its icon.
    pub icon: &'static str,
    /// Its address.
    pub href: &'static str,
    /// Its name.
    pub label: &'static str,
}

const fn entry(
    section: Section,
    need: Need,
    icon: &'static str,
    href: &'static str,
    label: &'static str,
) -> MenuEntry {
    MenuEntry { section, need, icon, href, label }
}

static MENU: [MenuEntry; 13] = [
    entry(Section::Dashboard, access::NODE, "dashboard", "/ui", "Dashboard"),
    entry(Section::Resources, access::KNOW, "stack-2", "/ui/resources", "Resources"),
    entry(Section::Subscriptions, access::FOLLOW, "users", "/ui/subscriptions", "Subscriptions"),
    entry(Section::Consumers, access::KNOW, "inbox", "/ui/consumers", "Consumers"),
    entry(Section::Documents, access::LOOK, "files", "/ui/documents", "Documents"),
    entry(Section::DeadLetters, access::FOLLOW, "mail-x", "/ui/dead-letters", "Dead letters"),
    entry(Section::Explain, access::READ, "help-circle", "/ui/explain", "Explain"),
    entry(Section::Cluster, Need::Operator, "server", "/ui/cluster", "Cluster"),
    entry(Section::Tokens, access::KNOW, "key", "/ui/tokens", "Tokens"),
    entry(Section::Accounts, Need::Operator, "database", "/ui/accounts", "Accounts"),
    entry(Section::Audit, access::KNOW, "eye", "/ui/audit", "Audit"),
    entry(Section::Settings, Need::Operator, "settings", "/ui/settings", "Settings"),
    entry(Section::Api, access::READ, "file-text", "/docs", "API"),
];

/// One step on the way to a page.
pub struct Crumb {
    /// Its name.
    pub label: String,
    /// Its address.
    pub href: String,
}

impl Crumb {
    /// A step.
    pub fn new(label: impl Into<String>, href: impl Into<String>) -> Crumb {
        Crumb { label: label.into(), href: href.into() }
    }
}

/// A browser's visit: what the frame needs to know of the request. Every handler of a page takes one.
pub struct Visit {
    uri: Uri,
    base: String,
    flash: Option<Flash>,
    who: Who,
}

/// Who looks at a page.
#[derive(Clone, Debug)]
pub enum Who {
    /// Whoever connects: there is no authentication.
    Anybody,
    /// Nobody who has signed in.
    Stranger,
    /// Somebody who has.
    Known(Caller),
}

impl FromRequestParts<Arc<App>> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Visit, Infallible> {
        let who = match (&app.access, parts.extensions.get::<Caller>()) {
            (None, _) => Who::Anybody,
            (Some(_), Some(caller)) => Who::Known(caller.clone()),
            (Some(_), None) => Who::Stranger,
        };
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:8080");
        let base = format!("http://{host}");
        Ok(Visit { uri: parts.uri.clone(), base, flash: Flash::read(&parts.headers), who })
    }
}

impl Visit {
    /// The frame of a page with a title. It becomes the last step on the way, which begins with the section.
    pub fn frame(&self, section: Section, title: impl Into<String>) -> Frame {
        let (flash, base) = (self.flash.clone(), self.base.clone());
        Frame { section, title: title.into(), crumbs: Vec::new(), flash, base, who: self.who.clone() }
    }

    /// A parameter of the query; an empty one is none.
    pub fn query(&self, name: &str) -> Option<String> {
        pairs(&self.uri)
            .into_iter()
            .find(|(known, value)| known == name && !value.is_empty())
            .map(|(_, value)| value)
    }

    /// The address of this page.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// A page that says what is wrong.
    pub fn problem(self, error: impl Into<ApiError>) -> PageError {
        PageError(error.into())
    }
}

/// What stands around the content of a page. Templates that extend `base.html` have it as `frame`.
pub struct Frame {
    /// Which entry of the menu is lit.
    pub section: Section,
    /// The heading, and the name of the browser's tab.
    pub title: String,
    /// The way to this page, without the page itself.
    pub crumbs: Vec<Crumb>,
    /// What was just done.
    pub flash: Option<Flash>,
    /// How this Flare was reached, for commands to copy.
    pub base: String,
    /// Who looks at it.
    pub who: Who,
}

impl Frame {
    /// Adds a step before this page.
    pub fn under(mut self, label: impl Into<String>, href: impl Into<String>) -> Frame {
        self.crumbs.push(Crumb::new(label, href));
        self
    }

    /// The menu: what whoever looks may open.
    pub fn menu(&self) -> Vec<&'static MenuEntry> {
        let of_access =
            |entry: &MenuEntry| matches!(entry.section, Section::Tokens | Section::Accounts | Section::Audit);
        let shown = |entry: &&MenuEntry| match &self.who {
            Who::Anybody => !of_access(entry),
            Who::Stranger => false,
            Who::Known(caller) => caller.has(entry.need),
        };
        MENU.iter().filter(shown).collect()
    }

    /// Whether whoever looks may do what this scope is for.
    pub fn may(&self, scope: &str) -> bool {
        match &self.who {
            Who::Anybody => true,
            Who::Stranger => false,
            Who::Known(caller) => {
                let scope = Scope::ALL.into_iter().find(|known| known.as_str() == scope);
                scope.is_some_and(|scope| caller.scopes.has(scope))
            }
        }
    }

    /// Who has signed in: the name of the token, and the account.
    pub fn signed_in(&self) -> Option<(String, String)> {
        let Who::Known(caller) = &self.who else { return None };
        let name = caller.token.as_ref().map_or_else(String::new, |token| token.name.clone());
        Some((name, caller.account.to_string()))
    }

    /// Whether an entry of the menu is lit.
    pub fn is_in(&self, entry: &MenuEntry) -> bool {
        self.section == entry.section
    }

    /// The command that makes a first resource.
    pub fn first_resource(&self) -> String {
        let body = r#"{"endpoint":"http://api.company.com/users/{id}","change":{"field":"version"}}"#;
        format!("curl -X POST {}/resources -d '{body}'", self.base)
    }

    /// The version, for the foot of the page.
    pub fn version(&self) -> &'static str {
        version::VERSION
    }
}

/// Renders a page.
pub fn html(template: &impl Template) -> Response {
    html_with(StatusCode::OK, template)
}

/// Renders a page with a status; a form with a mistake in it is 400.
pub fn html_with(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => {
            let mut response = (status, text).into_response();
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(error) => {
            tracing::error!(error = %error, "a page could not be rendered");
            let detail = "the page could not be rendered; the log of the node says why\n";
            (StatusCode::INTERNAL_SERVER_ERROR, detail).into_response()
        }
    }
}

/// Something is wrong, and this page says what.
#[derive(Debug)]
pub struct PageError(ApiError);

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: Frame,
    status: u16,
    detail: &'a str,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, title, detail) = self.0.parts();
        let frame = Frame {
            section: Section::Elsewhere,
            title: title.to_owned(),
            crumbs: Vec::new(),
            flash: None,
            base: String::new(),
            who: Who::Anybody,
        };
        html_with(status, &ProblemPage { frame, status: status.as_u16(), detail })
    }
}

impl<E: Into<ApiError>> From<E> for PageError {
    fn from(error: E) -> PageError {
        PageError(error.into())
    }
}

/// The message of a failed operation, for a flash.
pub fn message(failure: Failure) -> String {
    let error = ApiError::from(failure);
    let (_, _, detail) = error.parts();
    detail.to_owned()
}
