//! `/ui/sign-in` and `/ui/sign-out`: a token comes in, and the browser keeps it for a while.

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use flare_http::AppState;
use flare_http::access::guard::{Shown, identify};
use flare_http::server::Peer;
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::cookie;
use crate::ui::HOME;
use crate::ui::form::Form;
use crate::ui::page::{Frame, PageError, Section, Visit, html_with};

const FIELDS: &[&str] = &["token", "account", "next"];

#[derive(Template)]
#[template(path = "access/sign-in.html")]
struct Page {
    frame: Frame,
    next: String,
    account: String,
    problem: Option<String>,
}

/// Asks for a token.
pub async fn form(State(app): AppState, visit: Visit) -> Response {
    if app.access.is_none() {
        return Redirect::to(HOME).into_response();
    }
    let next = place(visit.query("next").as_deref()).to_owned();
    page(StatusCode::OK, visit, next, String::new(), None)
}

/// Keeps a token that is known.
pub async fn submit(
    State(app): AppState,
    visit: Visit,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let form = Form::read(FIELDS, &app, &headers, body).await?;
    let (token, account) = (form.value("token").trim(), form.value("account").trim());
    let next = place(form.given("next"));
    let named = Some(account.to_owned()).filter(|account| !account.is_empty());
    let shown = Shown { token: token.as_bytes().to_vec(), account: named };
    let address = peer.map(|Extension(Peer(address))| address);
    match identify(&app, Some(&shown), address).await {
        Ok(_) => {
            let mut answer = Redirect::to(next).into_response();
            let speaks_tls = app.config.http.server.tls.certificate.path().is_some();
            let kept = cookie::keep(token, account, app.config.ui.session, &headers, speaks_tls);
            answer.headers_mut().insert(SET_COOKIE, kept);
            Ok(answer)
        }
        Err(error) => {
            let (status, _, detail) = error.parts();
            Ok(page(status, visit, next.to_owned(), account.to_owned(), Some(detail.to_owned())))
        }
    }
}

/// Forgets the token.
pub async fn leave() -> Response {
    let mut answer = Redirect::to("/ui/sign-in").into_response();
    answer.headers_mut().insert(SET_COOKIE, cookie::forget());
    answer
}

/// Where to go then: to one of our own pages.
fn place(next: Option<&str>) -> &str {
    let ours = |next: &&str| {
        let path = next.split('?').next().unwrap_or_default();
        let plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        plain && (path == HOME || path.starts_with("/ui/") || path == "/docs")
    };
    next.filter(ours).unwrap_or(HOME)
}

fn page(
    status: StatusCode,
    visit: Visit,
    next: String,
    account: String,
    problem: Option<String>,
) -> Response {
    let frame = visit.frame(Section::Elsewhere, "Sign in");
    html_with(status, &Page { frame, next, account, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leads_to_our_own_pages_alone() {
        for own in ["/ui", "/ui/resources?limit=5", "/docs"] {
            assert_eq!(place(Some(own)), own);
        }
        for other in
            ["", "https://evil.example", "//evil.example/ui/", "/\\evil.example", "/uix", "/ui/\r\nx: y"]
        {
            assert_eq!(place(Some(other)), HOME, "{other}");
        }
    }
}
