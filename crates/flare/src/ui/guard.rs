//! What a browser may do here: a request comes in; one that another site had it send and that would change something
//! is refused, and every answer goes out with a policy that lets the page load from Flare alone.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE,
};
use http::{Method, StatusCode};

use super::flash::{self, Flash};

/// Images may be `data:` because Tabler's style sheet draws the marks of its fields so.
/// The one style that is let in by its hash is that of Turbo's bar, which Turbo brings itself.
const POLICY: &str = "default-src 'self'; style-src 'self' 'sha256-WAyOw4V+FqDc35lQPyRADLBWbuNK8ahvYEaQIYF1+Ps='; \
                      img-src 'self' data:; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

/// Stands before every page.
pub async fn watch(request: Request, next: Next) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if changes && !comes_from_here(request.headers()) {
        let text = "This form was not sent by a page of Flare, so it was not looked at. Open the page here and send it \
                    again; programs use the API.\n";
        return secured((StatusCode::FORBIDDEN, text).into_response());
    }
    // A browser that fetches ahead does not show what it got.
    let ahead =
        request.headers().contains_key("x-sec-purpose") || request.headers().contains_key("sec-purpose");
    let flashed = !ahead && Flash::read(request.headers()).is_some();
    let mut response = secured(next.run(request).await);
    let is_page =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if flashed && is_page {
        response.headers_mut().append(SET_COOKIE, flash::forget());
    }
    response
}

/// An answer that lets its page load from Flare alone.
pub fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // What a page shows is of this moment. Assets say themselves how long they hold.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether a browser says that the request was made by one of our own pages. Both headers are beyond the reach of
/// scripts; browsers that know the first do not always send it to an address without TLS, but then send the second.
fn comes_from_here(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(&HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    match (text(&ORIGIN), text(&HOST)) {
        (Some(origin), Some(host)) => {
            origin.split_once("://").is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(host))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn only_our_own_pages_may_change_something() {
        let host = ("host", "127.0.0.1:8080");
        for (given, ours) in [
            (vec![host, ("sec-fetch-site", "same-origin")], true),
            (vec![host, ("sec-fetch-site", "same-site")], false),
            (vec![host, ("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:8080")], false),
            (vec![host, ("sec-fetch-site", "none")], false),
            (vec![host, ("origin", "http://127.0.0.1:8080")], true),
            (vec![host, ("origin", "http://127.0.0.1:9090")], false),
            (vec![host, ("origin", "http://evil.example")], false),
            (vec![host, ("origin", "null")], false),
            (vec![host], false),
        ] {
            assert_eq!(comes_from_here(&headers(&given)), ours, "{given:?}");
        }
    }
}
