//! In: the head of a request. Out: whether it is looked at, or why not. A page that is open in somebody's browser can have
//! the browser send requests to any address that the machine reaches, this one included, and is not whoever runs Flare.
//!
//! What a browser says of a page (`Origin`, `Sec-Fetch-Site`) no script can change; programs that are no browsers say
//! nothing, and are not concerned. A name that is pointed at this machine makes its page one of our own in the browser's
//! eyes: so names must be known, as long as whoever connects may do anything.

use std::net::IpAddr;

use axum::response::{IntoResponse, Response};
use flare_core::config::{HostName, HttpServerConfig, WebOrigin};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderMap,
    HeaderValue, ORIGIN, VARY,
};
use http::{Method, Request, StatusCode};

use super::error::ApiError;

/// What pages of allowed origins may send.
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
const HEADERS: &str =
    "authorization, content-type, flare-account, flare-revision, last-event-id, traceparent";
/// And what they may read beside the usual.
const EXPOSED: &str = "location, allow, retry-after, flare-node, flare-outcome, www-authenticate";

/// Who may be asked for, and by pages of which origins.
#[derive(Debug)]
pub struct Visitors {
    /// Besides addresses and `localhost`; `None`: any name.
    hosts: Option<Vec<HostName>>,
    origins: Vec<WebOrigin>,
}

/// A request that is looked at.
#[derive(Debug, PartialEq)]
pub enum Admitted {
    /// By no browser, or for a page of our own.
    Ours,
    /// For a page of an origin that is allowed.
    Theirs(HeaderValue),
    /// A question of the browser's own, before it sends something for such a page.
    Preflight(HeaderValue),
}

impl Visitors {
    /// As configured. With authentication any name will do: whoever is led here by one has no token. `own` is the name by
    /// which other nodes ask for this one.
    pub fn new(config: &HttpServerConfig, authenticates: bool, own: Option<HostName>) -> Visitors {
        let hosts = (!authenticates).then(|| config.hosts.iter().cloned().chain(own).collect());
        Visitors { hosts, origins: config.cors.clone() }
    }

    /// Whether a request is looked at.
    pub fn admit<B>(&self, request: &Request<B>) -> Result<Admitted, ApiError> {
        let headers = request.headers();
        let asked = request.uri().authority().map(http::uri::Authority::as_str);
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        for name in [asked, host].into_iter().flatten() {
            self.know(name)?;
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next();
        if origins.next().is_some() {
            return Err(another_site("more than one origin"));
        }
        let Some(origin) = origin else {
            return match crosses(request) {
                true => Err(another_site("a page of another site")),
                false => Ok(Admitted::Ours),
            };
        };
        let text = origin.to_str().unwrap_or("an origin that is none");
        if self.origins.iter().any(|allowed| allowed.is(text)) {
            let asks =
                request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
            return Ok(if asks {
                Admitted::Preflight(origin.clone())
            } else {
                Admitted::Theirs(origin.clone())
            });
        }
        let own = text
            .split_once("://")
            .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
            .is_some_and(|(_, origin)| asked.or(host).is_some_and(|host| origin.eq_ignore_ascii_case(host)));
        if own && !says(headers, "cross-site") { Ok(Admitted::Ours) } else { Err(another_site(text)) }
    }

    /// Whether somebody who asks for this host means us.
    fn know(&self, host: &str) -> Result<(), ApiError> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let name = without_port(host);
        let is_known = name.is_empty()
            || name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || hosts.iter().any(|known| known.is(name));
        if is_known {
            return Ok(());
        }
        let detail = format!(
            "{name} is not a name of this Flare: ask for it by address or as localhost, or list the name in \
             http.server.hosts"
        );
        Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "Not asked here", detail))
    }
}

/// The answer to a browser that asks what a page of an allowed origin may send.
pub fn preflight(origin: HeaderValue) -> Response {
    let fixed = [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    let mut response = (StatusCode::NO_CONTENT, fixed).into_response();
    share(&mut response, origin);
    response
}

/// Lets the page of an allowed origin read an answer.
pub fn share(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// A request for another page that names no origin: one of another site, or of another port of this machine, which browsers
/// take for the same site. Following a link to one of our pages is not one: whoever does sees the page, and the other
/// site nothing of it. A link to an operation is: some that only ask give something out, such as a stream.
fn crosses<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let path = request.uri().path();
    let is_page = matches!(path, "/" | "/ui" | "/docs") || path.starts_with("/ui/");
    let follows_a_link = is_page
        && request.method() == Method::GET
        && headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate")
        && headers.get("sec-fetch-dest").is_some_and(|kind| kind == "document");
    (says(headers, "cross-site") || says(headers, "same-site")) && !follows_a_link
}

fn says(headers: &HeaderMap, site: &str) -> bool {
    headers.get_all("sec-fetch-site").iter().any(|said| said.as_bytes().eq_ignore_ascii_case(site.as_bytes()))
}

fn another_site(origin: &str) -> ApiError {
    let origin: String = origin.chars().take(100).collect();
    let detail = format!(
        "a browser sent this for {origin}, which is not this site: pages of other sites may not use the API, unless \
         http.server.cors lists their origin"
    );
    ApiError::new(StatusCode::FORBIDDEN, "Sent for another site", detail)
}

/// A host without its port, an address without its brackets. What follows a colon and is no port is left where it is: then
/// nobody knows the host.
fn without_port(host: &str) -> &str {
    let is_port = |rest: &str| {
        rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let name = match host.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        Some((address, rest)) if rest.is_empty() || is_port(rest) => address,
        Some(_) => return host,
        None => match host.find(':') {
            Some(at) if is_port(&host[at..]) => &host[..at],
            Some(_) => return host,
            None => host,
        },
    };
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitors(hosts: &[&str], cors: &[&str]) -> Visitors {
        let config = HttpServerConfig {
            hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
            cors: cors.iter().map(|origin| origin.parse().unwrap()).collect(),
            ..Default::default()
        };
        Visitors::new(&config, false, None)
    }

    fn status(visitors: &Visitors, method: &str, uri: &str, lines: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        visitors.admit(&request.body(()).unwrap()).map_or_else(|error| error.status().as_u16(), |_| 200)
    }

    #[test]
    fn only_addresses_localhost_and_listed_names_are_asked_for() {
        let visitors = visitors(&["flare.company.com"], &[]);
        for (host, expected) in [
            ("127.0.0.1:8080", 200),
            ("10.0.0.7", 200),
            ("[::1]:8080", 200),
            ("[fd00::1]", 200),
            ("localhost:8080", 200),
            ("LOCALHOST", 200),
            ("localhost.:8080", 200),
            ("flare.company.com", 200),
            ("Flare.Company.com:8443", 200),
            ("", 200),
            ("evil.example", 421),
            ("evil.example:8080", 421),
            ("flare.company.com.evil.example", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example:8080", 421),
            ("sub.localhost", 421),
            ("127.0.0.1:evil.example", 421),
            ("[::1].evil.example", 421),
            ("[::1]:evil.example", 421),
        ] {
            assert_eq!(status(&visitors, "GET", "/", &[("host", host)]), expected, "{host}");
        }
        let absolute = [("host", "127.0.0.1:8080")];
        assert_eq!(status(&visitors, "GET", "http://evil.example/", &absolute), 421, "the uri counts too");
    }

    #[test]
    fn what_a_browser_sends_for_another_site_is_refused_whatever_the_method() {
        let visitors = visitors(&[], &[]);
        let here = ("host", "127.0.0.1:8080");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            for (lines, expected) in [
                (vec![here], 200),
                (vec![here, ("origin", "http://127.0.0.1:8080")], 200),
                (vec![here, ("origin", "https://127.0.0.1:8080")], 200),
                (vec![here, ("sec-fetch-site", "same-origin")], 200),
                (vec![here, ("sec-fetch-site", "none")], 200),
                (vec![here, ("origin", "http://evil.example")], 403),
                (vec![here, ("origin", "http://127.0.0.1:9090")], 403),
                (vec![here, ("origin", "http://127.0.0.1:80808")], 403),
                (vec![here, ("origin", "null")], 403),
                (vec![here, ("origin", "")], 403),
                (vec![here, ("origin", "ftp://127.0.0.1:8080")], 403),
                (vec![here, ("origin", "http://127.0.0.1:8080"), ("origin", "http://evil.example")], 403),
                (vec![here, ("sec-fetch-site", "Cross-Site")], 403),
                (vec![here, ("sec-fetch-site", "cross-site")], 403),
                (vec![here, ("sec-fetch-site", "same-site")], 403),
                (vec![here, ("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:8080")], 403),
            ] {
                assert_eq!(status(&visitors, method, "/resources", &lines), expected, "{method} {lines:?}");
            }
        }
    }

    #[test]
    fn a_link_on_another_site_may_be_followed_but_not_into_a_frame() {
        let visitors = visitors(&[], &[]);
        let of = |mode, kind| {
            [
                ("host", "localhost"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", kind),
            ]
        };
        assert_eq!(status(&visitors, "GET", "/ui", &of("navigate", "document")), 200);
        assert_eq!(status(&visitors, "GET", "/ui", &of("navigate", "iframe")), 403);
        assert_eq!(status(&visitors, "GET", "/ui", &of("no-cors", "image")), 403);
        assert_eq!(status(&visitors, "POST", "/ui", &of("navigate", "document")), 403);
        for (path, expected) in [
            ("/", 200),
            ("/docs", 200),
            ("/ui/resources/res_1", 200),
            ("/uix", 403),
            ("/resources", 403),
            ("/resources/res_1/subscriptions/sub_1/stream", 403),
            ("/debug/pprof/profile", 403),
        ] {
            assert_eq!(status(&visitors, "GET", path, &of("navigate", "document")), expected, "{path}");
        }
    }

    #[test]
    fn pages_of_listed_origins_may_use_the_api() {
        let visitors = visitors(&[], &["https://console.company.com"]);
        let lines = |method: &str, origin: &str| {
            let mut request = Request::builder().method(method).uri("/resources").header("host", "127.0.0.1");
            request = request.header("origin", origin).header("sec-fetch-site", "cross-site");
            visitors
                .admit(&request.header("access-control-request-method", "POST").body(()).unwrap())
                .map_err(|error| error.status().as_u16())
        };
        let origin = HeaderValue::from_static("https://console.company.com");
        assert_eq!(lines("POST", "https://console.company.com"), Ok(Admitted::Theirs(origin.clone())));
        assert_eq!(lines("OPTIONS", "https://console.company.com"), Ok(Admitted::Preflight(origin)));
        assert_eq!(lines("POST", "https://console.company.com.evil.example"), Err(403));
        assert_eq!(lines("POST", "http://console.company.com"), Err(403));
    }
}
